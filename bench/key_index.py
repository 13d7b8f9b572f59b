"""Measure the throughput of the key index's keeper, and the cost of the keeper and of readers.

`python -m bench.key_index` measures for a minute or two and writes
docs/internals/benchmark-key-index.md; `make bench` does so too. A keeper is measured twice: in this
process (`keep` on records that were read from DynamoDB Local's stream before), and deployed to the
laptop cloud behind its mapping. The figures of its cost are those that it counts itself.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from keyhop.key_index.keeper import keep
from keyhop.key_index.sentinel import INDEX

from bench.key_index_report import write_report
from bench.key_index_work import (
    ALONE,
    BACKLOG,
    BATCH,
    DELAYS,
    DELIVERY_SECONDS,
    DEPLOYED,
    ITEM_BYTES,
    ITEMS,
    KEYS,
    KINDS,
    LONGEST_SECONDS,
    LOOK_SECONDS,
    ROUNDS,
    SEED,
    SINGLES,
    WARM_UP,
    WORKER_SECONDS,
    Kind,
    Work,
    puts,
)
from local.cloud import Cloud, laptop_cloud
from local.stream_bridge import IDLE_SECONDS, StreamBridge, bridge_for
from testing.databases import Database, keyhop
from testing.executions import Executions
from testing.key_index_tables import STREAM, Stream, collections_of, drift


def main() -> None:
    """Measure, then write the document."""
    write_report(measure())


def measure() -> dict[str, Any]:
    """Return all figures of one run on one machine."""
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
    """Return each kind's fastest round: other work on the machine only slows rounds down."""
    rounds = [[work(kind) for kind in KINDS] for _ in range(ROUNDS)]
    return [min(works, key=lambda work: work.seconds) for works in zip(*rounds, strict=True)]


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
    _write(database, ALONE, puts("k", "000000")(BACKLOG))
    _command(database, "index", "build", ALONE, "--yes", "--max-write-rate", "100000")


def _command(database: Database, *arguments: str) -> bytes:
    ended = keyhop(*arguments, "--endpoint-url", database.url, "--quiet")
    assert ended.status == 0, ended.err
    return ended.out


def _write(database: Database, table: str, requests: Iterable[dict[str, Any]]) -> None:
    """Write as users do, in concurrent batches; no item is written twice."""

    def write(batch: list[dict[str, Any]]) -> None:
        response = database.client.batch_write_item(RequestItems={table: batch})
        assert not response["UnprocessedItems"]

    rest = iter(requests)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, iter(lambda: list(islice(rest, 25)), [])))


def _build(cloud: Cloud) -> dict[str, Any]:
    outputs = cloud.outputs
    machine = Executions(cloud.client, outputs["BuildKeyIndexArn"], outputs["ResultsBucketName"])
    run_input = {"table": DEPLOYED, "maxWriteRate": 100_000, "maxConcurrency": 2, "graceSeconds": 0}
    ended = machine.follow(machine.start(run_input), LONGEST_SECONDS)
    assert ended.status == "SUCCEEDED", ended
    assert ended.output["verification"]["drift"] == 0
    built: dict[str, Any] = ended.output
    return built


def _readings(database: Database, folder: Path) -> Iterator[dict[str, Any]]:
    """Measure a list of one table's keys by each method, and a verification."""
    summary = folder / "summary.json"
    keys_of = ("keys", DEPLOYED, "--summary", str(summary), "--method")
    verify = ("index", "verify", DEPLOYED, "--yes", "--format", "json")
    for way, arguments in (
        ("key index (`--method index`)", (*keys_of, "index", "--accept", "stale-index")),
        ("skip-scan (`--method skip`)", (*keys_of, "skip")),
        ("full scan (`--method scan`)", (*keys_of, "scan")),
        ("verification (`keyhop index verify`)", (*verify, "--grace", "0")),
    ):
        out = _command(database, *arguments)
        figures = json.loads(summary.read_text() if arguments[0] == "keys" else out)
        keys = figures.get("keys", figures.get("collections"))
        assert keys == KEYS
        yield {"way": way, **figures, "keys": keys}


class Alone:
    """The keeper in this process, on a separate table."""

    def __init__(self, database: Database) -> None:
        self.collections = collections_of(database, ALONE)
        self._database = database
        self._stream = Stream(database, ALONE)
        self._stream.new()

    def work(self, kind: Kind, count: int, batch: int) -> Work:
        """Write as users do; then `keep` processes all records, also those of its own writes."""
        _write(self._database, ALONE, kind.requests(count))
        work = Work(kind, count)
        self.collections.usage.take()
        while records := self._stream.new():
            began = time.monotonic()
            for at in range(0, len(records), batch):
                assert not keep(
                    records[at : at + batch], self.collections, withdraw=lambda: None
                ).failed
            work.seconds += time.monotonic() - began
        work.usage = self.collections.usage.take()
        return work


class DeployedKeeper:
    """The deployed keeper, which gets records from the stream bridge."""

    def __init__(self, database: Database, bridge: StreamBridge) -> None:
        self._database = database
        self._bridge = bridge
        bridge.deliver_all(DELIVERY_SECONDS)
        for kind in KINDS:  # start its processes
            self.work(kind, WARM_UP)

    def work(self, kind: Kind, count: int) -> Work:
        """Write as users do; then deliver the backlog."""
        _write(self._database, DEPLOYED, kind.requests(count))
        began = time.monotonic()
        self._bridge.deliver_all(DELIVERY_SECONDS)
        return Work(kind, count, time.monotonic() - began)


def _delays(database: Database) -> list[float]:
    """Return the seconds from the response to a write of a new key until the index has its row."""
    chance = Random(SEED)
    delays = []
    for number in range(DELAYS):
        partition = {"S": f"late{number:06}"}
        time.sleep(chance.uniform(0, IDLE_SECONDS))  # the bridge reads the stream at intervals
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


def _say(what: str) -> None:
    print(f"bench: {what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
