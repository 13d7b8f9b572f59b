"""The second half of `make demo`: a key index on the flights, built while they change."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Console

from local.cloud import Cloud
from local.flights import TABLE
from local.follow import Executions
from local.show import print_ways, run
from local.stream_bridge import bridge_for
from testing.servers import local_client

BUILD = {"table": TABLE, "maxWriteRate": 20_000, "maxConcurrency": 2, "graceSeconds": 1}
READ = {"table": TABLE, "method": "auto"}
LONGEST_SECONDS = 180.0
SETTLE_SECONDS = 60.0
NEW = "KEYHOP{number}"
"""Tail numbers that no aircraft has."""


def show_key_index(console: Console, cloud: Cloud, skipped: dict[str, Any]) -> bool:
    """Build it while aircraft come and go, read it, audit it; whether all was right.

    skipped: the result of the skip-scan of the same table.
    """
    bridge = bridge_for(cloud)
    console.print(f"\nStarting BuildKeyIndex with {json.dumps(BUILD)},", markup=False)
    console.print("while aircraft come and go, whose records the keeper follows ...")
    with bridge.running(), _aircraft_come_and_go(cloud) as counts:
        built = _run(console, cloud, "BuildKeyIndexArn", BUILD)
    if built is None:
        return False
    bridge.settle(SETTLE_SECONDS)
    _print_built(console, built, counts, bridge.counts["delivered"])
    read = _run(console, cloud, "StateMachineArn", READ)
    if read is None:
        return False
    expected = skipped["keys"] + counts["came"] - counts["went"]
    _print_read(console, built["audit"], read, skipped)
    return bool(built["audit"]["drift"] == 0 and read["keys"] == expected)


def _run(console: Console, cloud: Cloud, output: str, given: dict[str, Any]) -> Any:
    executions = Executions(cloud.client, cloud.outputs[output], cloud.outputs["ResultsBucketName"])
    return run(console, executions, given, LONGEST_SECONDS)


@contextmanager
def _aircraft_come_and_go(cloud: Cloud) -> Iterator[dict[str, int]]:
    """Until the block ends: aircraft get their first flight, and some lose their last one."""
    counts = {"came": 0, "went": 0}
    over = Event()
    # DynamoDB Local fails a request now and then while it makes an index.
    client = local_client(cloud.dynamodb, attempts=8)
    chance = random.Random(1)

    def write() -> None:
        present: list[str] = []
        while not over.wait(0.1):
            if present and chance.random() < 0.3:
                name = present.pop(chance.randrange(len(present)))
                client.delete_item(TableName=TABLE, Key=_flight(name))
                counts["went"] += 1
            else:
                name = NEW.format(number=counts["came"])
                client.put_item(TableName=TABLE, Item=_flight(name))
                present.append(name)
                counts["came"] += 1

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield counts
    finally:
        over.set()
        writer.join()


def _flight(name: str) -> dict[str, Any]:
    return {"tailnum": {"S": name}, "departure": {"S": "2013-12-31T23:59#KH1"}}


def _print_built(
    console: Console, built: dict[str, Any], counts: dict[str, int], records: int
) -> None:
    build = built["build"]
    console.print(
        f"Built in {build['seconds']:.1f} s: {build['put']:,} sentinels put, for "
        f"{build['write_units']:,.0f} WRU. Meanwhile {counts['came']:,} aircraft came and "
        f"{counts['went']:,} went;\nthe keeper has worked {records:,} records of the stream."
    )


def _print_read(
    console: Console, audit: dict[str, Any], read: dict[str, Any], skipped: dict[str, Any]
) -> None:
    console.print(
        f"Its audit, while they come and go: {audit['collections']:,} collections compared,\n"
        f"missing {audit['missing']}, surplus {audit['surplus']}: drift {audit['drift']}, "
        f"for {audit['read_units']:,.1f} RRU."
    )
    rows = (("skip-scan, before", skipped), ("key index, now", read))
    print_ways(
        console,
        ((way, one["keys"], one["requests"], one["read_units"]) for way, one in rows),
    )
    console.print(f'"method": "auto" chose: {read["method"]}.')
