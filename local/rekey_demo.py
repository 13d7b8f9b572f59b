"""`make rekey-demo`: a live table under another primary key, and back.

The flights of New York City lie under their aircraft. They are re-keyed to their routes while four
threads read and write them through a router, cut over, and rolled back; every read is checked.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from keyhop.dynamodb.endpoint import Endpoint
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
KEYS = ("--template", TEMPLATE, "--partition-key", "route", "--sort-key", "leaves")
LEASE_SECONDS = 10
"""A cutover begins so long before writes wait, and so does a rollback."""

FOUND = 3
"""The exit status of a verify that has found differences."""

PAIRS = [{"source": BY_AIRCRAFT, "destination": BY_ROUTE}]

console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """There and back; returns an exit status."""
    laps = Laps()
    with laptop_cloud() as cloud:
        items = list(islice(flights(), ITEMS))
        with cloud.deploying([BY_AIRCRAFT], rekey=json.dumps(PAIRS)) as deployment:
            console.print(f"$ cdk deploy -c 'rekey={json.dumps(PAIRS)}'", markup=False)
            console.print("Meanwhile, the table as it is, and the new one:")
            create_table(cloud.dynamodb, BY_AIRCRAFT)
            load(local_client(cloud.dynamodb), iter(items), BY_AIRCRAFT)
            console.print(f"Loaded {ITEMS:,} flights into {BY_AIRCRAFT}: tailnum, departure.")
            _keyhop(cloud, "plan", *KEYS)
            _keyhop(cloud, "create", *KEYS, "--lease", str(LEASE_SECONDS))
            deployment.result()
        laps.end("deploy, load, plan, create")
        is_right = _there_and_back(cloud, items, laps)
    laps.end("check, cancel, stop the servers")
    console.print(f"\n{laps.table()}\n\nAll servers are stopped.")
    return 0 if is_right else 1


@dataclass
class Laps:
    """The durations of the steps, with what the protocol waits for in each."""

    began: float = field(default_factory=time.monotonic)
    rows: list[tuple[str, float, str]] = field(default_factory=list)

    def end(self, what: str, waits: str = "") -> None:
        """End a step and begin the next one."""
        self.rows.append((what, self._so_far() - sum(row[1] for row in self.rows), waits))

    def table(self) -> str:
        """All of them, and their sum."""
        rows = [*self.rows, ("in all", self._so_far(), "")]
        width = max(len(what) for what, _, _ in rows)
        return "\n".join(f"{w.ljust(width)} {s:4.0f} s  {why}".rstrip() for w, s, why in rows)

    def _so_far(self) -> float:
        return time.monotonic() - self.began


def _there_and_back(cloud: Cloud, items: list[dict[str, Any]], laps: Laps) -> bool:
    client = local_client(cloud.dynamodb)
    endpoint = Endpoint(url=cloud.dynamodb)
    router = Router(f"{BY_ROUTE}.rekey", clients=[client], name="demo", endpoint=endpoint)
    traffic = Traffic(router, client, BY_AIRCRAFT, BY_ROUTE, items)
    with bridge_for(cloud).running(), traffic.running():
        console.print("\nFrom here on four threads read and write flights through a router.")
        _keyhop(cloud, "start", "--stack", "Keyhop", "--follow")
        laps.end("start: copy, and follow")
        _keyhop(cloud, "verify", may=(0, FOUND))
        laps.end("verify", "12 s until nothing of the copy is under way, 8 s between its looks")
        _keyhop(cloud, "cutover", "--dry-run")
        traffic.take_longest()
        _keyhop(cloud, "cutover", "--stack", "Keyhop", "--follow")
        _say_wait(traffic)
        laps.end("gates, cutover", f"{LEASE_SECONDS} s for routers to hear of it, 4 s frozen")
        _keyhop(cloud, "rollback", "--stack", "Keyhop", "--follow")
        _say_wait(traffic)
        laps.end("rollback", "the same")
    expected = dict[int, Any](enumerate(items)) | traffic.known
    expected_items = [item for item in expected.values() if item is not None]
    stored = list(scanned(Database("dynamodb_local", cloud.dynamodb), BY_AIRCRAFT))
    is_same = sorted(map(_text, expected_items)) == sorted(map(_text, stored))
    _keyhop(cloud, "cancel")
    leftovers = set(client.list_tables()["TableNames"]) - {BY_AIRCRAFT}
    _sum_up(traffic, len(stored), is_same, leftovers)
    return traffic.is_right and is_same and not leftovers


def _sum_up(traffic: Traffic, items: int, is_same: bool, leftovers: set[str]) -> None:
    counts = traffic.counts
    writes = counts["put"] + counts["deleted"] + counts["moved"]
    served = ", ".join(
        f"{counts[f'read {table}']:,} by {table}" for table in sorted(traffic.tables)
    )
    console.print(
        f"\nreads   {counts['read']:,}, each checked: {counts['wrong']} wrong ({served})\n"
        f"writes  {writes:,}, of them {counts['moved']:,} to another route and "
        f"{counts['deleted']:,} deletes\n"
        f"failed  {counts['failed']}\n"
        f"tables  {BY_AIRCRAFT} has {items:,} flights, "
        f"{'each as the writers left it' if is_same else 'NOT as the writers left them'}; "
        f"beside it: {', '.join(sorted(leftovers)) or 'nothing is left'}"
    )


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _say_wait(traffic: Traffic) -> None:
    write, read = traffic.take_longest()
    console.print(f"The slowest write took {write:.1f} s meanwhile, the slowest read {read:.1f} s.")


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
