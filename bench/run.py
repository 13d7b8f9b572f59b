"""`make bench`: Keyhop beside the published ways, in one run. Writes docs/benchmark.{md,json,svg}.

The key index and write sharding have documents of their own, docs/internals/benchmark-key-index.md
(key_index.py) and docs/internals/benchmark-sharding.md (sharding.py).

Three parts: real requests to DynamoDB Local and dynalite; the simulator at the scale of the cost
model, against the offline optimum; the client's speed, CPU and memory against a stub (speed.py).
"""

import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from keyhop import __version__
from keyhop.report.request import DEFAULT_UNITS

from bench import key_index, profile, sharding, speed
from bench.rates import measure_rates
from bench.rekey import copy_cpu
from bench.report import plot, say, write_report
from bench.report_units import measured
from bench.simulated import SEED, simulated_tables
from testing.databases import load
from testing.servers import ROOT, dynalite, dynamodb_local, local_client
from testing.tables import TABLES

SEGMENTS = 16
REPORTS = 10

LOCAL_TABLES: dict[str, int] = {
    "ten": 10,
    "1x150": 6_000,
    "10x500": 1_500,
    "1000x500": 600,
    "zipf": 1_500,
    "bimodal-small": 2_000,
    "mixed": 1_200,
}
"""Tables for the local databases, and how many keys to ask for."""

SMALLER_ON_DYNALITE = {"1000x500": 100}


def main() -> None:
    """Measure everything, then write the report."""
    began = time.monotonic()
    results: dict[str, Any] = {
        "software_version": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "databases": {},
    }
    for name, database in (("DynamoDB Local", dynamodb_local), ("dynalite", dynalite)):
        results["databases"][name] = list(_on_database(name, database))
    results["simulated"] = simulated_tables()
    results |= speed.measure_all()
    profile.main()
    results["rates"] = measure_rates()
    say("the copy of a re-key, and a report")
    results["rekey"] = copy_cpu()
    results["report"] = measured(DEFAULT_UNITS, REPORTS)
    results["minutes"] = round((time.monotonic() - began) / 60, 1)
    write_report(results)
    plot(results)
    key_index.main()
    sharding.main()


def _on_database(
    name: str, database: Callable[[], AbstractContextManager[str]]
) -> Iterator[dict[str, Any]]:
    with database() as url:
        client = local_client(url)
        for kind, keys in LOCAL_TABLES.items():
            if name == "dynalite":
                keys = SMALLER_ON_DYNALITE.get(kind, keys)
            say(f"{name}: loading {kind}")
            collections = TABLES[kind].make(random.Random(SEED), keys)
            _create(client, kind)
            load(client, _items(collections), kind)
            ways: list[tuple[str, str, int | None]] = [
                ("published, serial", "published", None),
                (f"full scan, {SEGMENTS} segments", "full scan", SEGMENTS),
                ("keyhop, as planned", "keyhop", None),
                (f"keyhop, {SEGMENTS} segments", "keyhop", SEGMENTS),
            ]
            for title, way, segments in ways:
                say(f"{name}: {kind}: {title}")
                row = _measure(way, url, kind, segments)
                yield {"table": kind, "way": title, **row}
            client.delete_table(TableName=kind)


def _create(client: Any, table: str) -> None:
    client.create_table(
        TableName=table,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})


def _items(collections: list[list[int]]) -> Iterator[dict[str, Any]]:
    """Items of the wanted sizes: what the keys do not fill is padding."""
    for number, sizes in enumerate(collections):
        partition, sort = f"k{number:06}", "000000"
        overhead = len("pk") + len(partition) + len("sk") + len(sort) + len("d")
        for position, size in enumerate(sizes):
            yield {
                "pk": {"S": partition},
                "sk": {"S": f"{position:06}"},
                "d": {"S": "x" * (size - overhead)},
            }


def _measure(way: str, url: str, table: str, segments: int | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.measure", way, url, table]
    if segments:
        command.append(str(segments))
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(ended.stdout)
    return row


if __name__ == "__main__":
    main()
