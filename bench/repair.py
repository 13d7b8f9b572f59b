"""Compare the time in which a verification repairs a destination with the time of the copy.

`python -m bench.repair` does both on DynamoDB Local, one after the other. Each round uses new
tables, and the ratio of each round counts. `--write` also writes
docs/internals/benchmark-repair.md.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.jobs.request import Request
from keyhop.rekey.compare.looks import PAUSES
from keyhop.rekey.request import VERIFY, BackfillInput, VerifyInput, digests_of, with_digests
from keyhop.storage.local import Directory
from keyhop.tasks import tasks_of

from bench.markdown import markdown
from testing.databases import Database
from testing.rekey_pairs import RekeyTables, create, order, transform_of
from testing.rekey_tasks import verifying
from testing.servers import ROOT, dynamodb_local

ITEMS, ITEM_BYTES, ROUNDS = 100_000, 1_000, 1
MOST_TIMES = 2.0
"""The maximum ratio of the time of a repair to the time of the copy of the same items."""

PAGE = ROOT / "docs" / "internals" / "benchmark-repair.md"


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of one round.

    Attributes:
        read: Seconds in which the verification read both tables, before its first look.
        repair: Seconds of all the rest of it: looks, quiet times and repairs.
    """

    copy: float
    read: float
    repair: float

    @property
    def ratio(self) -> float:
        """Return the ratio of the time of the repair to the time of the copy."""
        return self.repair / self.copy


def measure_round(url: str, number: int, items: int, pauses: tuple[float, float] = PAUSES) -> Round:
    """Copy a table, make every copied item differ, and let a verification repair all of them.

    Half of the copied items are deleted, and the other half are changed.

    Args:
        url: The database.
        number: The number of the round, which its tables have in their names.
        items: The number of items.
        pauses: The quiet times of the verification, in seconds.
    """
    database = Database("dynamodb_local", url)
    connection = connect(Endpoint(region="us-east-1", url=url), 64)
    rekey = create(database, connection, f"Repair{number}")
    rekey.put(order(each, size=ITEM_BYTES - 100) for each in range(items))
    with tempfile.TemporaryDirectory() as folder:
        bench = _Runs(connection, rekey, Path(folder), pauses)
        began = time.monotonic()
        bench.copy()
        copy = time.monotonic() - began
        _spoil(database, rekey)
        began = time.monotonic()
        digests = bench.digest("first")
        read = time.monotonic() - began
        repaired = bench.compare("first", digests)
        repair = time.monotonic() - began - read
        clean = bench.compare("second", bench.digest("second"))
    if repaired["counts"].get("repaired") != items or not clean["verify"]["is_clean"]:
        raise SystemExit(f"Not every item was repaired: {repaired['counts']}, {clean['counts']}")
    return Round(copy, read, repair)


def _spoil(database: Database, rekey: RekeyTables) -> None:
    """Delete every other item of the destination, and change the others."""
    client, table = database.client, rekey.pair.destination
    pages = client.get_paginator("scan").paginate(TableName=table)
    requests: list[dict[str, Any]] = []
    for page in pages:
        for number, item in enumerate(page["Items"]):
            if number % 2:
                key = {name: item[name] for name in ("pk", "sk")}
                requests.append({"DeleteRequest": {"Key": key}})
            else:
                requests.append({"PutRequest": {"Item": {**item, "total": {"N": "-1"}}}})
    for first in range(0, len(requests), 25):
        client.batch_write_item(RequestItems={table: requests[first : first + 25]})


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of one round, each in a separate directory."""

    connection: Connection
    rekey: RekeyTables
    folder: Path
    pauses: tuple[float, float]

    def copy(self) -> dict[str, Any]:
        request = BackfillInput.parse({"rekey": self.rekey.pair.destination, "maxWriteRate": 1e6})
        return self._finished(request, tasks_of(transform_of=transform_of), "copy")

    def digest(self, name: str) -> Request:
        """Make the first run of a verification, and return its request."""
        request = digests_of(
            VerifyInput.parse({"rekey": self.rekey.pair.destination, "repair": True})
        )
        self._finished(request, self._tasks, f"{name}-digests")
        return request

    def compare(self, name: str, digests: Request) -> dict[str, Any]:
        """Make the second run of a verification, which repairs."""
        digested = str(self.folder / f"{name}-digests")
        request = with_digests(replace(digests, task=VERIFY), digested)
        return self._finished(request, self._tasks, name)

    @property
    def _tasks(self) -> Any:
        def journal_of(path: str) -> Journal:
            return Journal(Directory(Path(path)))

        return verifying(journal_of, transform_of, pauses=self.pauses)

    def _finished(self, request: Request, tasks: Any, name: str) -> dict[str, Any]:
        job = LocalJob(request, tasks, self.connection, opened(self.folder / name, False))
        job.prepare()
        job.begin()
        if not job.work():
            raise SystemExit(f"The run {name!r} did not come to its end.")
        return job.finish()[1]


def _lines(items: int, rounds: Sequence[Round], load: float) -> Iterator[str]:
    yield "# Benchmark of a verification that repairs"
    yield ""
    yield (
        f"Made by `python -m bench.repair --items {items} --rounds {len(rounds)} --write`: keyhop "
        f"{__version__}, Python {platform.python_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores, on which DynamoDB Local and the client run together. The "
        f"machine's load of the last minute was {load:.1f} when it began. Nothing here was "
        "measured on AWS."
    )
    yield ""
    yield (
        f"A table of {items:,} items of {ITEM_BYTES:,} bytes is copied without a limit on the "
        "rate. Then half of the copied items are deleted, the others are changed, and a "
        "verification repairs them all, in one process as the copy. *Read* is its first run, "
        "which reads both tables. "
        f"*Repair* is its second run: three looks at each item, quiet times of {PAUSES[0]:g} and "
        f"{PAUSES[1]:g} seconds, the repairs, and a look at each item afterwards."
    )
    yield ""
    rows = [
        (
            str(number),
            f"{times.copy:.1f} s",
            f"{times.read:.1f} s",
            f"{times.repair:.1f} s",
            f"{times.repair / times.copy:.2f}",
            f"{(times.read + times.repair) / times.copy:.2f}",
        )
        for number, times in enumerate(rounds, 1)
    ]
    yield from markdown(
        (
            "round",
            "copy",
            "read",
            "repair",
            "repair / copy",
            "(read + repair) / copy",
        ),
        rows,
    )
    median = statistics.median(times.ratio for times in rounds)
    verdict = "kept" if median <= MOST_TIMES else "not kept"
    yield ""
    yield (
        "Write units are left out: DynamoDB Local reports 4 for a whole transaction, whereas "
        "DynamoDB charges 2 for each KB of each item in it."
    )
    yield ""
    yield (
        f"Wanted: a repair takes at most {MOST_TIMES:g} times as long as the copy. Median of the "
        f"rounds: {median:.2f} times ({verdict})."
    )


def main() -> None:
    """Measure, print the page, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    arguments = parser.parse_args()
    load, rounds = os.getloadavg()[0], []
    with dynamodb_local() as url:
        for number in range(arguments.rounds):
            rounds.append(measure_round(url, number, arguments.items))
            print(f"bench: {rounds[-1]}", file=sys.stderr, flush=True)
    page = "\n".join(_lines(arguments.items, rounds, load)) + "\n"
    print(page)
    if arguments.write:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
