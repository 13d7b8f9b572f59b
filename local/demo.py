"""`make demo`: the application on this machine, with real data.

It lists the keys of two tables by Keyhop and by the other ways, and compares their costs. It puts
an item beside each key, and deletes it again. Then it builds a key index while routes come and go.
"""

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path
from threading import Event
from typing import Any

from keyhop.dynamodb.requester import Requester
from keyhop.dynamodb.units import BLOCK_BYTES, ON_DEMAND, UNITS_PER_BLOCK, US_EAST_1
from keyhop.each.outcomes import ERROR, OUTCOME
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import (
    CPU_SECONDS,
    CPU_SECONDS_PER_BYTE,
    Layout,
    groups_of_layout,
    layout_for_scan,
    layout_for_skip,
)
from keyhop.jobs.price import FunctionSize, run_cost
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.public.deployment import Deployment, OpenStack
from keyhop.scan.statistics import Forecast
from keyhop.storage.local import UNDO, Directory
from rich.table import Table

from local.cloud import Cloud, Failed, beside, console, exit_with, laptop_cloud
from local.laptop import ITEMS, load_and_deploy
from local.stream_bridge import bridge_for
from testing.baselines import full_scan, published
from testing.databases import Database
from testing.executions import Executions
from testing.flights import BY_AIRCRAFT, BY_ROUTE, PARTITION_KEYS
from testing.servers import ROOT, local_client

SEGMENTS = {BY_ROUTE: 32, BY_AIRCRAFT: 128}
"""More segments than a plan has, because DynamoDB Local slows down inside a segment."""

TIMES = 1_000
"""The factor by which the table of the extrapolated totals is larger."""

WORKER = FunctionSize(1769, "arm64")
"""The default worker of a deployment."""

WORKER_SECONDS = 840.0
"""The maximum of an invocation's 15 minutes that a worker uses."""

FEATURE = {"departure": "#feature", "seats": "free", "by": "${run}", "since": "${now}"}
BUILD = {"table": BY_ROUTE, "maxConcurrency": 2, "graceSeconds": 2}
LONGEST_DELIVERY_SECONDS = 60.0
LONGEST_FAILURE_SECONDS = 120.0
LONGEST_WAIT_SECONDS = 1.0
"""The time for which the demo repeats writes that all fail, and the wait between two of them."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to list keys; `services` are the dollars for Lambda, Step Functions and S3."""

    name: str
    keys: int
    requests: int
    units: float
    services: float = 0.0

    @classmethod
    def deployed(cls, name: str, result: Mapping[str, Any]) -> "Way":
        """Return a way from the output of an execution."""
        services = result["cost"]["total"] - result["cost"]["dynamodb"]
        return cls(name, result["keys"], result["requests"], result["read_units"], services)

    @property
    def bytes_read(self) -> float:
        """Return the bytes that it has read, approximately, if its pages are large."""
        return self.units / UNITS_PER_BLOCK * BLOCK_BYTES

    @property
    def total(self) -> float:
        return US_EAST_1.dollars(self.units) + self.services


def main() -> int:
    """Deploy the application, run and compare the ways, and return an exit status."""
    with laptop_cloud() as cloud:
        load_and_deploy(cloud)
        faults = _show(cloud)
    console.print("All servers are stopped, and their files are deleted.")
    for fault in faults:
        print(f"The demo has failed: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _show(cloud: Cloud) -> list[str]:
    """Show both tables, then a key index of one of them; return a sentence for each fault."""
    by_route = _show_keys(cloud, BY_ROUTE)
    by_aircraft = _show_keys(cloud, BY_AIRCRAFT)
    _say_what_to_choose(*by_route)
    return [
        *faults_of_ways(by_route),
        *faults_of_ways(by_aircraft),
        *show_each(cloud, by_route[0].keys),
        *_show_key_index(cloud, by_route[0]),
    ]


def faults_of_ways(ways: Sequence[Way]) -> Iterator[str]:
    """Return a sentence if not all ways have found the same number of keys."""
    if len({way.keys for way in ways}) > 1:
        counts = ", ".join(f"{way.name} {way.keys:,}" for way in ways)
        yield f"the ways found different numbers of keys: {counts}."


def _show_keys(cloud: Cloud, table: str) -> list[Way]:
    """Run the deployed application, and the ways from one machine; return them in this order."""
    partition_key = PARTITION_KEYS[table]
    run = f"every-{partition_key}"
    result = _keyhop_run(cloud, table, run, "--segments", str(SEGMENTS[table]))
    outputs = cloud.outputs
    written = Executions(cloud.client, outputs["StateMachineArn"], outputs["ResultsBucketName"])
    first = [key[partition_key]["S"] for key in islice(written.keys(run), 8)]
    console.print(f"{', '.join(first)}, ... {result['keys']:,} keys\n")
    ways = [Way.deployed("by a deployment", result), *_from_one_machine(cloud.dynamodb, table)]
    kilobytes = ways[-1].bytes_read / 1024 / ways[0].keys
    console.print(
        f"{table}: {ways[0].keys:,} keys, each of {ITEMS / ways[0].keys:,.0f} items, "
        f"{kilobytes:,.1f} KB"
    )
    console.print(table_of(ways))
    return ways


def _from_one_machine(url: str, table: str) -> Iterator[Way]:
    """Yield the ways from one machine, which cost only reads; the full scan is the last one."""
    segments = SEGMENTS[table]
    with tempfile.TemporaryDirectory(prefix="keyhop-") as folder:
        database = Database("dynamodb_local", url)
        _, report = database.report(table, Path(folder), "--segments", str(segments))
    yield Way("keyhop keys", report["keys"], report["requests"], report["read_units"])
    client = local_client(url)
    for name, way in (("Limit=1, as published", published), ("full scan", full_scan)):
        reading = way(client, table, segments)
        yield Way(name, reading.keys, reading.requests, reading.units)


def _say_what_to_choose(deployed: Way, hopped: Way, *other_ways: Way) -> None:
    """Print the totals at a size at which a deployment is useful, and which way to choose."""
    run_cost, scan = larger(TIMES, hopped, other_ways[-1])
    console.print(
        f"\nAll ways were run just now; prices {ON_DEMAND}.\n"
        f"A deployed run pays for Lambda, Step Functions and S3 too: {dollars(deployed.services)} "
        f"here, more than the scan saves.\n"
        f"With {TIMES:,} times the routes ({run_cost.keys:,} keys, {TIMES * ITEMS:,} items), the "
        f"estimated total would be:\n"
        f"  by a deployment {dollars(run_cost.total)}    a full scan by one {dollars(scan.total)}\n"
        f"\n"
        f"Which way to choose: if the items of a key are less than 4 KB together, a full scan\n"
        f"costs the same as Keyhop. Otherwise use keyhop keys for one list (with --remote for a\n"
        f"large table), and a key index for repeated lists."
    )


def table_of(ways: Iterable[Way]) -> Table:
    """Return a table for the console."""
    table = Table(box=None, pad_edge=False)
    table.add_column("way")
    for heading in ("requests", "read units", "reads", "Lambda, ...", "total"):
        table.add_column(heading, justify="right")
    for way in ways:
        table.add_row(
            way.name,
            f"{way.requests:,}",
            f"{way.units:,.1f}",
            dollars(US_EAST_1.dollars(way.units)),
            dollars(way.services) if way.services else "-",
            dollars(way.total),
        )
    return table


def dollars(amount: float) -> str:
    """Format small amounts to the millionth, and others to the cent."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.6f}"


def larger(times: int, hopped: Way, scanned: Way) -> Iterator[Way]:
    """Return both ways in a deployment for `times` as many keys of the same shape, as planned."""
    keys = hopped.keys * times
    forecast = Forecast(hopped.units / hopped.keys, hopped.requests / hopped.keys)
    size = scanned.bytes_read * times
    wishes = wishes_of_fleet(Request("", "keys"), int(size), one_worker=False)
    layout = layout_for_skip(keys, forecast, wishes)
    yield _deployed("keyhop", keys, hopped.requests * times, hopped.units * times, 0.0, layout)
    layout = layout_for_scan(size, wishes)
    yield _deployed("full scan", keys, layout.segments, scanned.units * times, size, layout)


def _deployed(
    name: str, keys: int, requests: int, units: float, bytes_read: float, layout: Layout
) -> Way:
    seconds = requests * CPU_SECONDS + bytes_read * CPU_SECONDS_PER_BYTE
    groups, _ = groups_of_layout(layout, one_worker=False)
    invocations = max(groups, ceil(seconds / WORKER_SECONDS))
    cost = run_cost(WORKER, units, seconds, invocations, groups, invocations)
    return Way(name, keys, requests, units, cost["total"] - cost["dynamodb"])


def show_each(cloud: Cloud, keys: int) -> list[str]:
    """Put an item into each route, and delete it; return a sentence for each fault.

    If the command ends with an error, print what became of the keys and raise Failed.
    """
    console.print("\nA feature needs an item in every route: put it there, and take it back.")
    place = ("--endpoint-url", cloud.dynamodb, "--region", "us-east-1", "--yes", "--quiet")
    with tempfile.TemporaryDirectory(prefix="keyhop-") as name:
        folder = Path(name)
        (folder / "feature.json").write_text(json.dumps(FEATURE))
        reports = []
        for words, run in (
            (["--put", "feature.json", "-o", "feature"], folder / "feature"),
            (["--undo", "feature"], folder / "feature" / UNDO),
        ):
            console.print(f"$ keyhop each {BY_ROUTE} {' '.join(words)}", markup=False)
            command = ["each", BY_ROUTE, *words, *place, "--format", "json"]
            report = folder / "report.json"
            try:
                with report.open("wb") as output:
                    _run(cloud, command, folder, output)
            except Failed:  # the folder, and all evidence in it, is about to be deleted
                for line in (*report.read_text().splitlines(), *_outcomes_of(run)):
                    console.print(line, markup=False)
                raise
            reports.append(json.loads(report.read_bytes()))
    for report in reports:
        outcomes = ", ".join(f"{count:,} {name}" for name, count in report["outcomes"].items())
        console.print(
            f"{outcomes}, in {report['seconds']:.1f} s, for {report['write_units']:,.0f} WRU and "
            f"{report['read_units']:,.0f} RRU: {dollars(report['dollars'])}"
        )
    both = [report["outcomes"] for report in reports]
    if both == [{"put": keys}, {"deleted": keys}]:
        return []
    return [f"of {keys:,} keys, keyhop each has put and deleted {json.dumps(both)}."]


def _outcomes_of(run: Path) -> Iterator[str]:
    """Return a line for each different outcome and error in a run of `keyhop each`."""
    journal = Journal(Directory(run))
    plan = journal.plan()
    if plan is None:
        yield "The run had not begun."
        return
    counts: Counter[tuple[str, str]] = Counter()
    for commit in journal.commits_of(range(plan.groups)):
        for part in commit.parts:
            for _, row in journal.keys(plan, part):
                error = row.get(ERROR, {}).get("S", "")
                counts[row[OUTCOME]["S"], error] += 1
    for (outcome, error), count in counts.most_common():
        yield f"  {count:,} {outcome}: {error}".rstrip(": ")


def _show_key_index(cloud: Cloud, before: Way) -> Iterator[str]:
    """Build it while routes come and go, verify and read it; yield a sentence for each fault.

    `before` is the run of the same table by hops.
    """
    bridge = bridge_for(cloud)
    console.print(f"\nStarting BuildKeyIndex with {json.dumps(BUILD)},", markup=False)
    console.print("while routes come and go, whose records the keeper follows ...")
    with bridge.running(), routes_come_and_go(cloud) as counts:
        built = _build(cloud)
    bridge.deliver_all(LONGEST_DELIVERY_SECONDS)
    build, verification = built["build"], built["verification"]
    console.print(
        f"Built in {build['seconds']:.1f} s: {build['put']:,} sentinels put, for "
        f"{build['write_units']:,.0f} WRU. During the build {counts['came']:,} routes came and "
        f"{counts['went']:,} went;\nthe keeper has processed {bridge.counts['delivered']:,} "
        f"records of the stream. The verification: missing {verification['missing']}, "
        f"surplus {verification['surplus']}, for {verification['read_units']:,.1f} RRU."
    )
    read = _keyhop_run(cloud, BY_ROUTE, "by-index")
    console.print(table_of((before, Way.deployed("by key index", read))))
    expected = before.keys + counts["came"] - counts["went"]
    yield from faults_of_index(verification, read, expected)


def faults_of_index(
    verification: Mapping[str, Any], read: Mapping[str, Any], expected: int
) -> Iterator[str]:
    """Return a sentence for each expectation of a built index that is not met.

    Drift that has disappeared when the verification ends is not a fault: the keeper was only
    behind, and `auto` reads such an index.

    Args:
        verification: The result of the build's verification.
        read: The result of the run that should read the index.
        expected: The number of keys in the table.
    """
    if verification["remaining"]:
        yield (
            f"the verification found {verification['missing']} missing and "
            f"{verification['surplus']} surplus sentinels, and {verification['remaining']} of "
            f"these {verification['drift']} remained wrong."
        )
    if read["method"] != "index":
        yield f"the run did not read the index: {read['reason']}."
    if read["keys"] != expected:
        yield f"the run by the index found {read['keys']:,} keys instead of {expected:,}."


def _keyhop_run(cloud: Cloud, table: str, name: str, *flags: str) -> dict[str, Any]:
    """Run `keyhop keys TABLE --remote` as a user would, and return the result; raise Failed."""
    for words in (
        ["keys", table, "--remote", "--name", name, *flags],
        ["runs", "show", name, "--follow"],
    ):
        console.print(f"\n$ keyhop {' '.join(words)}", markup=False)
        _run(cloud, words)
    return dict(_deployment(cloud).show(name).output)


def _run(cloud: Cloud, words: list[str], folder: Path = ROOT, output: Any = None) -> None:
    """Run `keyhop` in a folder as a user would; raise Failed."""
    if status := cloud.keyhop(words, folder, output):
        raise Failed(f"keyhop {words[0]} has ended with status {status}.")


def _build(cloud: Cloud) -> dict[str, Any]:
    """Run BuildKeyIndex, and return its output; raise Failed."""
    deployment = _deployment(cloud)
    with console.status("BuildKeyIndex is running ..."):
        ended = deployment.follow(deployment.start(BUILD, machine="BuildKeyIndex"))
    if not ended.has_succeeded:
        raise Failed(f"{ended.status}: {ended.error}: {ended.cause}")
    return dict(ended.output)


def _deployment(cloud: Cloud) -> Deployment:
    return Deployment(OpenStack("Keyhop", cloud.outputs, cloud.client))


@contextmanager
def routes_come_and_go(cloud: Cloud) -> Iterator[Counter[str]]:
    """Give routes their first flight, and take the last one from some, until the block ends."""
    counts: Counter[str] = Counter()
    # DynamoDB Local answers InternalFailure for some time while it creates an index. The requests
    # may be repeated: a put of the same item, and a delete.
    requester = Requester(
        local_client(cloud.dynamodb),
        BY_ROUTE,
        patience=LONGEST_FAILURE_SECONDS,
        longest_wait=LONGEST_WAIT_SECONDS,
    )
    chance = random.Random(1)

    def write(over: Event) -> None:
        present: list[dict[str, Any]] = []
        while not over.wait(0.2):
            if present and chance.random() < 0.3:
                flight = present.pop(chance.randrange(len(present)))
                requester.call("delete_item", TableName=BY_ROUTE, Key=flight)
                counts["went"] += 1
            else:  # to where nobody flew
                route, departure = f"JFK-KEYHOP{counts['came']}", "2013-12-31T23:59#KH1"
                flight = {"route": {"S": route}, "departure": {"S": departure}}
                requester.call("put_item", TableName=BY_ROUTE, Item=flight)
                present.append(flight)
                counts["came"] += 1

    with beside(write):
        yield counts


if __name__ == "__main__":
    exit_with(main)
