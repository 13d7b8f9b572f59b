"""Measure the cost of reading a key of N shards, compared with a single key of the same items."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import boto3
from boto3.dynamodb.conditions import Key
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.shards import Shards
from keyhop.sharding.table import ShardedTable

from bench.sharding_tables import KEY, METADATA, TABLE, Counting, create, register
from testing.servers import LOCAL_CREDENTIALS, local_client

SHARDS = (1, 2, 8, 32)
ITEMS = 2_000
FEW = 50
FEW_ROUNDS, ALL_ROUNDS = 25, 5
SEED = 7
SINGLE = "/srv/share/single.xlsx_1"
PADDING = "x" * 150


@dataclass(frozen=True, slots=True)
class Read:
    """The cost of a read.

    Attributes:
        shards: the number of shards; None for boto3's query of the single key
        reads_all: whether it reads all items, or only the first few
        requests, units: of one read
        latency, cpu: of the client, in proportion to boto3's query of the single key
        ordered: whether the shards must be read one after the other
    """

    shards: int | None
    reads_all: bool
    consistent: bool
    requests: float
    units: float
    latency: float
    cpu: float
    ordered: bool = False


def reads(url: str) -> list[Read]:
    """Measure all combinations, then those whose shards must be read in an order."""
    reads: list[Read] = []
    for shards in SHARDS:
        reads += _measure(url, shards, ordered=False, first=shards == SHARDS[0])
    for shards in SHARDS[2:]:
        reads += _measure(url, shards, ordered=True, first=False)
    return reads


def _measure(url: str, shards: int, *, ordered: bool, first: bool) -> list[Read]:
    client = local_client(url)
    create(client)
    placement = Placement(ordered, "jump", not ordered)
    history = [n for n in (1, 2, 4, 8, 16, 32) if n <= shards] if ordered else [shards]
    at = int(time.time()) - 86_400
    history_of_key = Shards(
        shards,
        at,
        ((at, shards),),
        shards,
        shards,
        placed_by=frozenset(history),
        placement=placement.text("_"),
    )
    register(client, history_of_key)
    plain = boto3.resource("dynamodb", endpoint_url=url, **LOCAL_CREDENTIALS).Table(TABLE)
    counting = Counting(url)
    table = ShardedTable(
        TABLE,
        metadata=METADATA,
        placement="calculated" if ordered else "random",
        append_only=not ordered,
        client=counting,
        chance=random.Random(SEED),
    )
    rows = [
        {"path": KEY, "accessed": f"2026-11-21T{number:06}", "note": PADDING}
        for number in range(ITEMS)
    ]
    assert table.batch_write(rows).written == ITEMS
    with plain.batch_writer() as batch:
        for row in rows:
            batch.put_item(Item={**row, "path": SINGLE})
    reads = []
    for reads_all in (False, True):
        for consistent in (True,) if ordered else (False, True):
            base = _single(plain, reads_all, consistent)
            ours = _sharded(table, reads_all, consistent)
            latency, cpu = _ratios(base, ours, ALL_ROUNDS if reads_all else FEW_ROUNDS)
            if first:
                requests, units = base()
                reads.append(Read(None, reads_all, consistent, requests, units, 1.0, 1.0))
            table.metadata.of({"S": KEY}, fresh=True)
            before = counting.requests, counting.read_units
            ours()
            reads.append(
                Read(
                    shards,
                    reads_all,
                    consistent,
                    counting.requests - before[0],
                    counting.read_units - before[1],
                    latency,
                    cpu,
                    ordered,
                )
            )
    table.close()
    return reads


def _single(table: Any, reads_all: bool, consistent: bool) -> Callable[[], tuple[int, float]]:
    def read() -> tuple[int, float]:
        request: dict[str, Any] = {
            "KeyConditionExpression": Key("path").eq(SINGLE),
            "ConsistentRead": consistent,
            "ReturnConsumedCapacity": "TOTAL",
        }
        if not reads_all:
            request["Limit"] = FEW
        requests, units, items = 0, 0.0, 0
        while True:
            page = table.query(**request)
            requests, items = requests + 1, items + page["Count"]
            units += page["ConsumedCapacity"]["CapacityUnits"]
            if not reads_all or "LastEvaluatedKey" not in page:
                assert items == (ITEMS if reads_all else FEW)
                return requests, units
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    return read


def _sharded(table: ShardedTable, reads_all: bool, consistent: bool) -> Callable[[], object]:
    def read() -> object:
        limit = None if reads_all else FEW
        items = sum(1 for _ in table.query(KEY, limit=limit, consistent=consistent))
        assert items == (ITEMS if reads_all else FEW)
        return items

    return read


def _ratios(
    base: Callable[[], object], ours: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Return the ratios of the median times and of the median CPU times; both take turns."""
    figures_by_read: dict[Callable[[], object], list[tuple[float, float]]] = {base: [], ours: []}
    for read in figures_by_read:
        read()
    for _ in range(rounds):
        for read, figures in figures_by_read.items():
            began = time.monotonic(), time.process_time()
            read()
            figures.append((time.monotonic() - began[0], time.process_time() - began[1]))
    (seconds, cpu), (of_base, cpu_of_base) = (
        map(median, zip(*figures_by_read[read], strict=True)) for read in (ours, base)
    )
    return seconds / of_base, cpu / cpu_of_base
