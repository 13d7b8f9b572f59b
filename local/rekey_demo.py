"""`make rekey-demo`: a live table under another primary key, and back.

The flights of New York City lie under their aircraft. They are re-keyed to their routes while four
threads read and write them through a router, cut over, and rolled back; every read is checked.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from keyhop.dynamodb.client import Endpoint
from keyhop.rekey import Router
from rich.console import Console

from local.cloud import Cloud, Failed, exit_with, laptop_cloud
from local.rekey_traffic import Traffic
from local.stream_bridge import bridge_for
from testing.databases import Database, load
from testing.flights import BY_AIRCRAFT, BY_ROUTE, create_table, flights
from testing.key_index_tables import scanned
from testing.servers import ROOT, child, local_client

ITEMS = 4_000
TEMPLATE = "examples/rekey/flights-by-route.yaml"
FOUND = 3
"""The exit status of a verify that has found differences."""

PAIRS = [{"source": BY_AIRCRAFT, "destination": BY_ROUTE}]

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """There and back; returns an exit status."""
    began = time.monotonic()
    with laptop_cloud() as cloud:
        items = list(islice(flights(), ITEMS))
        with cloud.deploying([BY_AIRCRAFT], rekey=json.dumps(PAIRS)) as deployment:
            console.print(f"$ cdk deploy -c 'rekey={json.dumps(PAIRS)}'", markup=False)
            create_table(cloud.dynamodb, BY_AIRCRAFT)
            load(local_client(cloud.dynamodb), iter(items), BY_AIRCRAFT)
            deployment.result()
        console.print(f"Loaded {ITEMS:,} flights into {BY_AIRCRAFT}: tailnum, departure.")
        is_right = _there_and_back(cloud, items)
    console.print(f"All servers are stopped. It took {time.monotonic() - began:.0f} s.")
    return 0 if is_right else 1


def _there_and_back(cloud: Cloud, items: list[dict[str, Any]]) -> bool:
    keys = ("--template", TEMPLATE, "--partition-key", "route", "--sort-key", "leaves")
    _keyhop(cloud, "plan", *keys)
    _keyhop(cloud, "create", *keys)
    client = local_client(cloud.dynamodb)
    router = Router(f"{BY_ROUTE}.rekey", name="demo", endpoint=Endpoint(url=cloud.dynamodb))
    traffic = Traffic(router, client, BY_AIRCRAFT, BY_ROUTE, items)
    with bridge_for(cloud).running(), traffic.running():
        console.print("\nFrom here on four threads read and write flights through a router.")
        _keyhop(cloud, "start", "--stack", "Keyhop", "--follow")
        console.print("\nWhat was deleted while it was copied is found, and taken away again:")
        if _keyhop(cloud, "verify", may=(0, FOUND)) == FOUND:
            _keyhop(cloud, "verify")
        traffic.take_longest()
        _keyhop(cloud, "cutover", "--stack", "Keyhop", "--follow")
        _say_pause(traffic, BY_ROUTE)
        _keyhop(cloud, "rollback", "--stack", "Keyhop", "--follow")
        _say_pause(traffic, BY_AIRCRAFT)
    counts = traffic.counts
    expected = dict[int, Any](enumerate(items)) | traffic.known
    there = [item for item in expected.values() if item is not None]
    found = scanned(Database("dynamodb_local", cloud.dynamodb), BY_AIRCRAFT)
    is_same = sorted(map(_text, there)) == sorted(map(_text, found))
    _keyhop(cloud, "cancel")
    left = set(client.list_tables()["TableNames"]) - {BY_AIRCRAFT}
    console.print(
        f"\n{counts['read']:,} reads were checked, {counts['wrong']} were wrong; of "
        f"{counts['put'] + counts['deleted'] + counts['moved']:,} writes ({counts['moved']:,} to "
        f"another route) and all reads {counts['failed']} failed.\n"
        f"{BY_AIRCRAFT} is {'as the writers left it' if is_same else 'NOT as the writers left it'}"
        f"; tables that are left beside it: {', '.join(sorted(left)) or 'none'}."
    )
    return traffic.is_right and is_same and not left


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _say_pause(traffic: Traffic, table: str) -> None:
    console.print(
        f"Now {table} serves. The longest that a write has waited meanwhile: "
        f"{traffic.take_longest():.1f} s; reads waited for nothing."
    )


def _keyhop(cloud: Cloud, action: str, *flags: str, may: Sequence[int] = (0,)) -> int:
    """Run `keyhop rekey`, as a user would; its status. Raises Failed if it may not be that."""
    words = ["rekey", action, BY_AIRCRAFT, "--to", BY_ROUTE, *flags]
    console.print(f"\n$ keyhop {' '.join(words)}", markup=False)
    command = [sys.executable, "-m", "keyhop", *words, "--yes"]
    with child(command, Path(ROOT), {**os.environ, **cloud.exports}, None) as running:
        status = running.wait()
    if status not in may:
        raise Failed(f"keyhop rekey {action} has ended with status {status}.")
    return int(status)


if __name__ == "__main__":
    exit_with(main)
