"""Checks of sharded tables: shards added after throttling, the functions, and a drain."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import boto3
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.store.capacity import Provisioned
from keyhop.sharding.table import ShardedTable

from tests.live.fixtures import SMALL_CAPACITY, Fixture, OfOwnStack
from tests.live.report import Report, expect, expect_equal
from tests.live.runs import Runs

KEY = "/srv/budget.xlsx"
HOT = "/srv/hot.log"
ITEMS = 40
HOT_ITEMS = 16
HOT_BYTES = 100_000
HOT_SECONDS = 90.0
HOT_WRITE_UNITS = 150_000
"""The maximum. An update is charged for the whole item: 98 write units for a small request."""

OTHER_WRITE_UNITS = 20_000
"""The maximum of all other writes here: loading, moving, and the table of 5 WCU."""

SMALL_SECONDS = 420.0
"""A table of 5 WCU saves up unused capacity for 300 seconds: 1,500 writes before the first
throttle."""

WRITERS = 16
RAISED_TO = 15


def check_hot_keys(
    client: Any, tables: OfOwnStack, runs: Runs, outputs: dict[str, str], report: Report
) -> None:
    """Make the checks. `outputs` are those of the stack."""
    functions = boto3.client("lambda")

    def invoke(name: str, event: dict[str, Any]) -> Any:
        response = functions.invoke(
            FunctionName=outputs[f"{name}Name"], Payload=json.dumps(event).encode()
        )
        output = json.loads(response["Payload"].read())
        expect("FunctionError" not in response, f"{name} failed: {output}")
        return output

    def write_and_query() -> str:
        items = [{"pk": KEY, "sk": f"{number:03}"} for number in range(ITEMS)]
        first = invoke("WriteSharded", {"table": tables.hot.name, "items": items[: ITEMS // 2]})
        with closing(ShardedTable(tables.hot.name, metadata=tables.shards.name)) as table:
            _add(table, 3)
        time.sleep(runs.ways.settle_seconds)
        second = invoke("WriteSharded", {"table": tables.hot.name, "items": items[ITEMS // 2 :]})
        expect_equal(first["failed"] + second["failed"], [], "items that were not written")
        _expect_all(invoke, tables.hot, items)
        return f"{ITEMS} items over {_shards(client, tables.shards, KEY).number} shards"

    def drain() -> str:
        values = {"table": tables.hot.name, "key": KEY, "shards": 1}
        output = runs.output(runs.start("drain", values, outputs["DrainShardsArn"]))
        expect_equal((output["action"], output["shards"]), ("done", 1), "the drain's output")
        _expect_all(invoke, tables.hot, [{"pk": KEY, "sk": f"{n:03}"} for n in range(ITEMS)])
        return "1 shard, all items"

    report.check("sharding-functions", write_and_query)
    report.check("sharding-drain", drain)
    report.check("sharding-hot-key", lambda: hot_key(client, tables))
    report.check("sharding-small-table", lambda: small_table(client, tables))


def _add(table: ShardedTable, count: int) -> None:
    """Add shards as soon as the metadata has been unchanged for long enough."""
    while True:
        try:
            add_shards(table, KEY, count)
        except TooEarly as early:
            time.sleep(early.seconds)
        else:
            return


def hot_key(client: Any, tables: OfOwnStack) -> str:
    """Write more than a partition's 1,000 WRU a second to a key, until it has two shards."""
    with closing(ShardedTable(tables.hot.name, metadata=tables.shards.name)) as table:
        for number in range(HOT_ITEMS):
            table.put_item(Item={"pk": HOT, "sk": f"{number:03}", "filling": "x" * HOT_BYTES})
        budget = HOT_WRITE_UNITS * 1024 // HOT_BYTES
        writes = _write_until(
            lambda number: table.update_item(
                Key={"pk": HOT, "sk": f"{number % HOT_ITEMS:03}"},
                UpdateExpression="SET seen = :n",
                ExpressionAttributeValues={":n": number},
            ),
            lambda: _shards(client, tables.shards, HOT).number > 1,
            HOT_SECONDS,
            budget,
        )
        throttles = dict(table.usage.throttles)
    shards = _shards(client, tables.shards, HOT).number
    expect(shards > 1, f"{writes} updates of 98 write units added no shard; throttles: {throttles}")
    hot = {reason for reason in throttles if reason.startswith("TableWriteKeyRange")}
    expect(hot, f"no throttle named a key range: {throttles}")
    return f"{shards} shards after {writes} updates of 98 write units; throttles: {throttles}"


def small_table(client: Any, tables: OfOwnStack) -> str:
    """Check that throttling of a small table raises its capacity, and adds no shards."""
    bounds = Provisioned(SMALL_CAPACITY, RAISED_TO)
    sharded = ShardedTable(
        tables.small.name, metadata=tables.small_shards.name, append_only=True, provisioned=bounds
    )
    with closing(sharded) as table:
        writes = _write_until(
            lambda number: table.put_item(Item={"pk": KEY, "sk": f"{number:06}"}),
            lambda: _capacity(client, tables.small) > SMALL_CAPACITY,
            SMALL_SECONDS,
            100_000,
        )
        throttles = dict(table.usage.throttles)
    expect("TableWriteProvisionedThroughputExceeded" in throttles, f"throttles: {throttles}")
    capacity = _capacity(client, tables.small)
    expect(SMALL_CAPACITY < capacity <= RAISED_TO, f"it has {capacity} WCU")
    expect_equal(_shards(client, tables.small_shards, KEY).number, 1, "shards")
    return f"{capacity} WCU after {writes} writes; throttles: {throttles}"


def _write_until(write: Any, is_enough: Any, seconds: float, limit: int) -> int:
    """Write in many threads until `is_enough`, an error or a limit; return the number of writes."""
    over = threading.Event()
    counts = [0] * WRITERS

    def writer(number: int) -> None:
        while not over.is_set() and counts[number] < limit // WRITERS:
            write(counts[number] * WRITERS + number)
            counts[number] += 1

    deadline = time.monotonic() + seconds
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(writer, number) for number in range(WRITERS)]
        try:
            while not is_enough() and time.monotonic() < deadline:
                if all(future.done() for future in writers):
                    break
                over.wait(1.0)
        finally:
            over.set()
        for future in writers:
            future.result()
    return sum(counts)


def _expect_all(invoke: Any, table: Fixture, items: list[dict[str, Any]]) -> None:
    page = invoke(
        "QuerySharded", {"table": table.name, "key": KEY, "limit": 1000, "consistent": True}
    )
    expect_equal(page["items"], items, "the items of all shards in order")


def _shards(client: Any, metadata: Fixture, key: str) -> Shards:
    response = client.get_item(TableName=metadata.name, Key={"pk": {"S": key}}, ConsistentRead=True)
    return from_item(response["Item"])


def _capacity(client: Any, table: Fixture) -> int:
    throughput = client.describe_table(TableName=table.name)["Table"]["ProvisionedThroughput"]
    return int(throughput["WriteCapacityUnits"])
