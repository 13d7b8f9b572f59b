"""What a write costs in requests, units and client CPU, in the steady state and after growth."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.shards import SETTLE_SECONDS, Phase, Shards
from keyhop.sharding.table import ShardedTable

from bench.sharding_tables import KEY, METADATA, TABLE, Counting, create, register
from testing.servers import LOCAL_CREDENTIALS, local_client
from testing.sharding_costs import expected_candidates
from testing.virtual_time import EPOCH, VirtualClock

WRITES = 300
ROUNDS = 4
BATCH = 25
GROWTH = (1, 2, 4, 8)
WRITES_A_SECOND = 200
"""Of one process, to one key: between two writes the clock moves on."""
SEED = 3
PADDING = "x" * 400

AFTER_GROWTH = expected_candidates(GROWTH, "jump")


@dataclass
class Cost:
    """The cost of one way to write, for each item.

    Attributes:
        metadata: the requests to the metadata table
        looked_up: the keys that are read before the write, whether they exist or not
        cpu: the client's CPU, in proportion to boto3's put
    """

    title: str
    requests: float = 0.0
    metadata: float = 0.0
    looked_up: float = 0.0
    moves: float = 0.0
    read_units: float = 0.0
    write_units: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """Keyhop's way to write. shards: the metadata, None: a new key each time.

    before: items are put before the key has grown. rounds: how often each of them is replaced
    before it is measured.
    """

    title: str
    shards: tuple[int, ...] | None = (1,)
    phase: Phase = Phase.STEADY
    before: bool = False
    replaced: int = 0
    batch: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


APPEND = {"placement": "random", "append_only": True}
CALCULATED = {"placement": "calculated"}
WAYS = (
    Way("append-only, random, 8 shards: `put_item`", GROWTH, settings=APPEND),
    Way("the same: `batch_write`, 25 items", GROWTH, batch=True, settings=APPEND),
    Way("append-only, random: first write of a new key", None, settings=APPEND),
    Way("calculated, one candidate (1 shard)", settings=CALCULATED),
    Way("calculated, after 1, 2, 4, 8: new item", GROWTH, settings=CALCULATED),
    Way("... old item, replaced for the first time", GROWTH, before=True, settings=CALCULATED),
    Way("... old item, replaced again", GROWTH, before=True, replaced=1, settings=CALCULATED),
    Way("... `batch_write`, new items", GROWTH, batch=True, settings=CALCULATED),
    Way(
        "calculated, new item while it grows from 4 to 8",
        GROWTH,
        phase=Phase.ANNOUNCED,
        settings=CALCULATED,
    ),
    Way("random, not append-only, 8 shards: new item", GROWTH, settings={"placement": "random"}),
)


def costs(url: str) -> list[Cost]:
    """boto3's own two ways first, then Keyhop's."""
    plain = [_plain(url), _plain_batch(url)]
    return [*plain, *(_keyhop(url, way) for way in WAYS)]


def item(number: int, path: str = KEY) -> dict[str, Any]:
    """One access; under 1 KB."""
    return {"path": path, "accessed": f"2026-11-21T{number:09}", "who": "ana", "note": PADDING}


def _table(url: str) -> Any:
    """boto3's, as it comes."""
    create(local_client(url))
    return boto3.resource("dynamodb", endpoint_url=url, **LOCAL_CREDENTIALS).Table(TABLE)


def _plain(url: str) -> Cost:
    table = _table(url)
    units = [
        table.put_item(Item=item(number), ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"][
            "CapacityUnits"
        ]
        for number in range(100)
    ]
    return Cost("boto3 `Table.put_item`", 1.0, write_units=sum(units) / len(units), cpu=1.0)


def _plain_batch(url: str) -> Cost:
    table = _table(url)
    requests: list[str] = []
    table.meta.client.meta.events.register(
        "before-send.dynamodb", lambda **event: requests.append(event["event_name"])
    )

    def write(numbers: range) -> None:
        with table.batch_writer() as batch:
            for number in numbers:
                batch.put_item(Item=item(number))

    cpu = _cpu(table, write)
    requests_per_item = sum("BatchWriteItem" in name for name in requests) / (WRITES * ROUNDS)
    return Cost("boto3 `Table.batch_writer`", requests_per_item, write_units=1.0, cpu=cpu)


def _keyhop(url: str, way: Way) -> Cost:
    plain = _table(url)
    clock = VirtualClock()

    def opened(client: Any) -> ShardedTable:
        return ShardedTable(
            TABLE,
            metadata=METADATA,
            client=client,
            clock=clock,
            chance=random.Random(SEED),
            **way.settings,
        )

    everything = range(WRITES * ROUNDS)
    if way.before:
        register(local_client(url), _shards(way, (1,)))
        opened(Counting(url)).batch_write(item(number) for number in everything)
        clock.sleep(100)
    if way.shards is not None:
        register(local_client(url), _shards(way, way.shards))
    counting = Counting(url)
    table = opened(counting)
    for _ in range(way.replaced):
        for number in everything:
            table.put_item(Item=item(number))
    if way.shards is not None:
        table.put_item(Item=item(10**8))  # from here on the metadata is cached
        clock.sleep(0.1)
    before = _figures(table, counting)

    def write(numbers: range) -> None:
        if way.batch:
            for at in range(numbers.start, numbers.stop, BATCH):
                written = table.batch_write(map(item, range(at, at + BATCH))).written
                assert written == BATCH
                clock.sleep(BATCH / WRITES_A_SECOND)
            return
        for number in numbers:
            path = KEY if way.shards is not None else f"/new/{number}"
            table.put_item(Item=item(number, path))
            clock.sleep(1 / WRITES_A_SECOND)

    cpu = _cpu(plain, write)
    after = _figures(table, counting)
    each = [(late - early) / (WRITES * ROUNDS) for early, late in zip(before, after, strict=True)]
    table.close()
    return Cost(way.title, *each, cpu)


def _shards(way: Way, history: tuple[int, ...]) -> Shards:
    """Long ago, or just now for a key that is growing."""
    growing = way.phase is not Phase.STEADY
    at = int(EPOCH) if growing else int(EPOCH) - 86_400
    placement = way.settings["placement"]
    agreed = Placement(placement == "calculated", "jump", way.settings.get("append_only", False))
    return Shards(
        history[-1],
        at,
        tuple((at - 100 * (len(history) - n - 1), count) for n, count in enumerate(history)),
        writable=history[-2] if growing else history[-1],
        readable=history[-1],
        phase=way.phase,
        placed_by=frozenset(history),
        settle=60.0 if growing else SETTLE_SECONDS,  # it does not end while we look
        placement=agreed.text("_"),
    )


def _figures(table: ShardedTable, counting: Counting) -> tuple[float, ...]:
    """Return the figures in the order of Cost's fields."""
    tally = table.usage.counters
    assert not tally["looks"] or counting.looked_up
    return (
        counting.requests,
        sum(n for name, n in counting.operations.items() if name.startswith("metadata")),
        counting.looked_up,
        tally["moves"],
        counting.read_units,
        counting.write_units,
    )


def _cpu(plain: Any, write: Callable[[range], None]) -> float:
    """Return the client's CPU in proportion to boto3's put; each is a minimum of rounds."""

    def put(numbers: range) -> None:
        for number in numbers:
            plain.put_item(Item=item(number, "/plain"))

    put(range(20))
    seconds: dict[Callable[[range], None], list[float]] = {put: [], write: []}
    for numbers in _rounds():
        for work, times in seconds.items():
            began = time.process_time()
            work(numbers)
            times.append(time.process_time() - began)
    return min(seconds[write]) / min(seconds[put])


def _rounds() -> Iterator[range]:
    return (range(n * WRITES, (n + 1) * WRITES) for n in range(ROUNDS))
