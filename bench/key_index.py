"""The key index: what its keeper sustains and adds to users' writes, and what reading it costs.

`python -m bench.key_index` measures for a minute or two and writes docs/benchmark-key-index.md;
`make bench` does so too. A keeper is measured twice: in this process (`keep` on records that were
read from DynamoDB Local's stream before), and deployed to the laptop cloud behind its mapping. What
it spends is what it counts itself.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any
from unittest.mock import patch

from keyhop import __version__
from keyhop.dynamodb.capacity import SENTINEL_WRITE_UNITS, UNITS_PER_BLOCK, blocks_of
from keyhop.dynamodb.usage import Usage
from keyhop.key_index.collections import usage_json
from keyhop.key_index.keeper import keep
from keyhop.key_index.sentinel import INDEX, LEAST_SORT_KEY, MARKER
from keyhop.streams.event_source import SETTINGS
from keyhop.streams.partition_worker import THREADS

from bench.markdown import markdown
from bench.report import DOCS
from local.cloud import Cloud, laptop_cloud
from local.stream_bridge import IDLE_SECONDS, StreamBridge, bridge_for
from testing.databases import Database, keyhop
from testing.executions import Executions
from testing.key_index_tables import STREAM, Stream, collections_of, drift

DEPLOYED, ALONE = "Bench", "Alone"
"""The tables of the deployed keeper, and of the one in this process."""

KEYS, ITEMS, ITEM_BYTES = 1_000, 20, 500
BACKLOG = 600
ROUNDS = 2
SINGLES = 50
WARM_UP = 100
DELAYS = 100
BATCH = SETTINGS["BatchSize"]
LANES = SETTINGS["ParallelizationFactor"]
WORKER_SECONDS = "30"
DELIVERY_SECONDS = 60.0
LONGEST_SECONDS = 100.0
LOOK_SECONDS = 0.002
SEED = 7
REPORT = DOCS / "benchmark-key-index.md"

Requests = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """Users' writes of one kind. expected: RRU and WRU for each that the service will charge."""

    title: str
    requests: Callable[[int], Requests]
    expected: tuple[float, float]


def _puts(name: str, sort: str, filling: str = "x") -> Callable[[int], Requests]:
    item = {"sk": {"S": sort}, "d": {"S": filling * 400}}
    return lambda count: (
        {"PutRequest": {"Item": {"pk": {"S": f"{name}{number:06}"}, **item}}}
        for number in range(count)
    )


def _deletes(name: str, sort: str) -> Callable[[int], Requests]:
    return lambda count: (
        {"DeleteRequest": {"Key": {"pk": {"S": f"{name}{number:06}"}, "sk": {"S": sort}}}}
        for number in range(count)
    )


KINDS = (
    Kind("insert into an old collection", _puts("k", "more"), (1.0, 0.0)),
    Kind("modification", _puts("k", "more", "y"), (0.0, 0.0)),
    Kind("delete, other items are left", _deletes("k", "more"), (1.0, 0.0)),
    Kind("insert into a new collection", _puts("new", "a"), (3.0, 2.0)),
    Kind("delete of the last item", _deletes("new", "a"), (2.0, 2.0)),
)
"""One after the other: in the end the table is as before."""


@dataclass
class Work:
    """What a keeper did for the writes of one kind: users' writes, seconds, calls, units."""

    kind: Kind
    writes: int
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def rate(self) -> float:
        """Users' writes a second."""
        return self.writes / self.seconds

    @property
    def charged_writes(self) -> float:
        """Write units as the service charges: for the table and for the index."""
        return SENTINEL_WRITE_UNITS * (self.usage.counters["put"] + self.usage.counters["deleted"])


def main() -> None:
    """Measure, then write the document."""
    write_report(measure())


def measure() -> dict[str, Any]:
    """All figures, of one run on one machine."""
    began = time.monotonic()
    load = os.getloadavg()[0]
    with (
        laptop_cloud() as cloud,
        patch.dict(os.environ, {"XDG_STATE_HOME": str(cloud.folder / "state")}),
        ThreadPoolExecutor(1) as pool,
    ):
        database = Database("dynamodb_local", cloud.dynamodb)
        _say("key index: deploying, and loading tables")
        tables = [{"table": DEPLOYED, "keyIndex": True}]
        deploying = pool.submit(cloud.deploy, tables, workerTimeoutSeconds=WORKER_SECONDS)
        _load(database)
        deploying.result()
        _say("key index: BuildKeyIndex")
        results: dict[str, Any] = {"load": load, "built": _build(cloud)}
        _say("key index: reading")
        results["readings"] = list(_readings(database, cloud.folder))
        _say("key index: the keeper in this process")
        alone = Alone(database)
        results["singles"] = [alone.work(kind, SINGLES, batch=1) for kind in KINDS]
        results["alone"] = _fastest(lambda kind: alone.work(kind, BACKLOG, batch=BATCH))
        assert drift(database, ALONE, alone.collections.sentinel) == (set(), set())
        bridge = bridge_for(cloud)
        _say("key index: the deployed keeper")
        deployed = DeployedKeeper(database, bridge)
        results["deployed"] = _fastest(lambda kind: deployed.work(kind, BACKLOG))
        assert bridge.counts["failed"] == 0
        _say("key index: delays")
        with bridge.running():
            results["delays"] = _delays(database)
        results["seconds"] = time.monotonic() - began
    return results


def _fastest(work: Callable[[Kind], Work]) -> list[Work]:
    """Of each kind the fastest of a few rounds: other work on the machine only slows down."""
    rounds = [[work(kind) for kind in KINDS] for _ in range(ROUNDS)]
    return [min(of_kind, key=lambda done: done.seconds) for of_kind in zip(*rounds, strict=True)]


def _load(database: Database) -> None:
    database.create(DEPLOYED)
    overhead = len("pk" + "sk" + "d" + "k000000" + "000000")
    filling = {"d": {"S": "x" * (ITEM_BYTES - overhead)}}
    database.fill(
        DEPLOYED,
        (
            {"pk": {"S": f"k{number:06}"}, "sk": {"S": f"{item:06}"}, **filling}
            for number in range(KEYS)
            for item in range(ITEMS)
        ),
    )
    database.create(ALONE, **STREAM)
    _write(database, ALONE, _puts("k", "000000")(BACKLOG))
    _command(database, "index", "build", ALONE, "--max-write-rate", "100000")


def _command(database: Database, *arguments: str) -> None:
    ended = keyhop(*arguments, "--endpoint-url", database.url, "--quiet")
    assert ended.status == 0, ended.err


def _write(database: Database, table: str, requests: Iterable[dict[str, Any]]) -> None:
    """Users' writes, in batches, several at once; no two of one item."""

    def write(batch: list[dict[str, Any]]) -> None:
        left = database.client.batch_write_item(RequestItems={table: batch})["UnprocessedItems"]
        assert not left

    rest = iter(requests)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, iter(lambda: list(islice(rest, 25)), [])))


def _build(cloud: Cloud) -> dict[str, Any]:
    outputs = cloud.outputs
    machine = Executions(cloud.client, outputs["BuildKeyIndexArn"], outputs["ResultsBucketName"])
    given = {"table": DEPLOYED, "maxWriteRate": 100_000, "maxConcurrency": 2, "graceSeconds": 0}
    ended = machine.follow(machine.start(given), LONGEST_SECONDS)
    assert ended.status == "SUCCEEDED", ended
    assert ended.output["audit"]["drift"] == 0
    built: dict[str, Any] = ended.output
    return built


def _readings(database: Database, folder: Path) -> Iterator[dict[str, Any]]:
    """What the keys of one table cost by each method, and an audit."""
    report = folder / "report.json"
    for way, arguments in (
        ("key index (`--method index`)", ("keys", DEPLOYED, "--method", "index")),
        ("skip-scan (`--method skip`)", ("keys", DEPLOYED, "--method", "skip")),
        ("full scan (`--method scan`)", ("keys", DEPLOYED, "--method", "scan")),
        ("audit (`keyhop index audit`)", ("index", "audit", DEPLOYED, "--grace", "0")),
    ):
        _command(database, *arguments, "--report", str(report))
        told = json.loads(report.read_text())
        keys = told.get("keys", told.get("collections"))
        assert keys == KEYS
        yield {"way": way, **told, "keys": keys}


class Alone:
    """The keeper in this process, on a table of its own."""

    def __init__(self, database: Database) -> None:
        self.collections = collections_of(database, ALONE)
        self._database = database
        self._stream = Stream(database, ALONE)
        self._stream.new()

    def work(self, kind: Kind, count: int, batch: int) -> Work:
        """Users write, then `keep` works all records, those of the sentinels' own writes too."""
        _write(self._database, ALONE, kind.requests(count))
        done = Work(kind, count)
        self.collections.usage.take()
        while records := self._stream.new():
            began = time.monotonic()
            for at in range(0, len(records), batch):
                assert not keep(records[at : at + batch], self.collections).failed
            done.seconds += time.monotonic() - began
        done.usage = self.collections.usage.take()
        return done


class DeployedKeeper:
    """The deployed keeper, at the end of the stream bridge."""

    def __init__(self, database: Database, bridge: StreamBridge) -> None:
        self._database = database
        self._bridge = bridge
        bridge.deliver_all(DELIVERY_SECONDS)
        for kind in KINDS:  # so that its processes are warm
            self.work(kind, WARM_UP)

    def work(self, kind: Kind, count: int) -> Work:
        """Users write; then the backlog is drained."""
        _write(self._database, DEPLOYED, kind.requests(count))
        began = time.monotonic()
        self._bridge.deliver_all(DELIVERY_SECONDS)
        return Work(kind, count, time.monotonic() - began)


def _delays(database: Database) -> list[float]:
    """Seconds from the answer to a user's write of a new key to its row in the key index."""
    chance = Random(SEED)
    delays = []
    for number in range(DELAYS):
        partition = {"S": f"late{number:06}"}
        time.sleep(chance.uniform(0, IDLE_SECONDS))  # the bridge looks now and then
        database.client.put_item(TableName=DEPLOYED, Item={"pk": partition, "sk": {"S": "a"}})
        began = time.monotonic()
        while not database.client.query(
            TableName=DEPLOYED,
            IndexName=INDEX,
            KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": partition},
        )["Count"]:
            time.sleep(LOOK_SECONDS)
        delays.append(time.monotonic() - began)
    return delays


def write_report(results: dict[str, Any]) -> None:
    """Write docs/benchmark-key-index.md."""
    REPORT.write_text("\n".join(_lines(results)) + "\n")


def _lines(results: dict[str, Any]) -> Iterator[str]:
    yield "# Benchmark of the key index"
    yield ""
    yield (
        f"Made by `make bench` (this part alone: `python -m bench.key_index`) in one run of "
        f"{results['seconds']:.0f} seconds: keyhop {__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, on which "
        f"DynamoDB Local, the emulator with the deployed functions, the bridge and all clients run "
        f"together. The machine's load of the last minute was {results['load']:.1f} when it "
        f"began: other work makes rates and delays worse, not units. Figures are comparable "
        f"within a run, not between machines."
    )
    yield from ("", "## How many writes a keeper sustains", "")
    yield from markdown(
        ("users' writes", "in one process: seconds", "writes/s", "deployed: seconds", "writes/s"),
        (
            (alone.kind.title, *_pace(alone), *_pace(deployed))
            for alone, deployed in zip(results["alone"], results["deployed"], strict=True)
        ),
    )
    yield ""
    yield (
        f"Each row: a backlog of {BACKLOG:,} writes, each in a collection of its own (the worst "
        f"case: of a batch, each collection is worked once), and the time until it is drained, "
        f"with the records that the keeper's own writes leave; the faster of {ROUNDS} rounds. In "
        f"one process: one `keep` after the other, batches of {BATCH}, {THREADS} threads, records "
        f"read from the stream before; modifications are passed over. Deployed: until nothing "
        f"is left, one batch of up to {BATCH} at a time (the bridge has one lane, the mapping has "
        f"{LANES} for a shard), with reading the stream, filtering, and calling the function "
        f"through the emulator; the row of modifications shows what the bridge alone takes. On AWS "
        f"a function has a processor of its own, and a large table has many shards, each with its "
        f"own keeper; that was not measured."
    )
    yield from ("", "## What it adds to a user's write", "")
    yield from _costs(results)
    yield from ("", "## From a user's write to the row in the index", "")
    cuts = quantiles(results["delays"], n=20)
    yield from markdown(
        ("single writes of new keys", "p50", "p95", "longest"),
        [
            (
                f"{len(results['delays'])}",
                *(f"{1000 * delay:.0f} ms" for delay in (cuts[9], cuts[18])),
                f"{1000 * max(results['delays']):.0f} ms",
            )
        ],
    )
    yield ""
    yield (
        f"One at a time, from the answer to the write until a query of the index finds the key. "
        f"The bridge looks at the stream every {1000 * IDLE_SECONDS:.0f} ms; Lambda polls a shard "
        f"about four times a second (AWS documentation), so it may be some 100 ms more on AWS, "
        f"where it was not measured."
    )
    yield from ("", "## Reading the keys", "")
    yield from _reading_lines(results)


def _pace(work: Work) -> tuple[str, str]:
    return f"{work.seconds:.2f}", f"{work.rate:,.0f}" if any(work.kind.expected) else "no requests"


def _costs(results: dict[str, Any]) -> Iterator[str]:
    rows = []
    for single, batched in zip(results["singles"], results["alone"], strict=True):
        reads, writes = single.kind.expected
        charged = (single.usage.read_units / single.writes, single.charged_writes / single.writes)
        rows.append(
            (
                single.kind.title,
                *_each(single),
                *_each(batched),
                f"{charged[1]:.2f}",
                f"{reads:.0f} / {writes:.0f}",
                "yes" if charged == (reads, writes) else "**no**",
            )
        )
    yield from markdown(
        (
            "for each write",
            "one by one: reads / writes",
            "RRU",
            "WRU",
            f"batches of {BATCH}: reads / writes",
            "RRU",
            "WRU",
            "WRU of the service",
            "expected RRU / WRU",
            "kept",
        ),
        rows,
    )
    yield ""
    yield (
        "Requests and units as the keeper counts them (`Collections.usage`), with those for the "
        "record of the sentinel's own insert or delete. A sentinel is put or deleted for 2 WRU on "
        "the service, 1 for the table and 1 for the index; DynamoDB Local reports the same. Of "
        "items that a BatchGetItem does not find it reports nothing; the keeper counts 1 RRU each, "
        "as the service charges. Batches save requests, no units. A look reads the first two items "
        "of a collection, here under 4 KB together; larger items cost it more."
    )


def _each(work: Work) -> tuple[str, str, str]:
    usage, count = usage_json(work.usage), work.writes
    return (
        f"{usage['reads'] / count:.2f} / {usage['writes'] / count:.2f}",
        f"{usage['read_units'] / count:.2f}",
        f"{usage['write_units'] / count:.2f}",
    )


def _reading_lines(results: dict[str, Any]) -> Iterator[str]:
    yield from markdown(
        (f"{KEYS:,} keys x {ITEMS} items x {ITEM_BYTES} B", "requests", "RRU", "RRU/key", "s"),
        (
            (
                row["way"],
                f"{row['requests']:,}",
                f"{row['read_units']:,.1f}",
                f"{row['read_units'] / KEYS:.4f}",
                f"{row['seconds']:.2f}",
            )
            for row in results["readings"]
        ),
    )
    size = _row_bytes()
    index = results["readings"][0]
    least = UNITS_PER_BLOCK * blocks_of(size * KEYS)
    most = least + UNITS_PER_BLOCK * index["segments"]
    kept = "kept" if least <= index["read_units"] <= most else "**not kept**"
    built, audit = results["built"]["build"], results["built"]["audit"]
    yield ""
    yield (
        f"All on the same table, with its sentinels. A row of the index is partition key, sort "
        f"key and marker, {size} B here, and is read for {UNITS_PER_BLOCK} RRU for each 4 KB; the "
        f"100 B that DynamoDB adds to an item of an index count for storage only. So {KEYS:,} "
        f"keys are expected to cost {least:.1f} RRU, and up to {UNITS_PER_BLOCK} more for each "
        f"segment (here {index['segments']}), {most:.1f} at most: {kept}. A million such keys "
        f"would cost {UNITS_PER_BLOCK * blocks_of(size * 1_000_000):,.0f} RRU."
    )
    yield ""
    yield (
        f"BuildKeyIndex on it took {built['read_units'] / KEYS:.2f} RRU and "
        f"{built['write_units'] / KEYS:.2f} WRU a key, in {built['seconds']:.0f} s, and the audit "
        f"at its end {audit['read_units'] / KEYS:.2f} RRU a key."
    )


def _row_bytes() -> int:
    """Of a row of the index; a number of one digit takes 2."""
    place = LEAST_SORT_KEY["S"]["S"]
    return len("pk" + "k000000" + "sk" + place + MARKER) + 2


def _say(what: str) -> None:
    print(f"bench: {what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
