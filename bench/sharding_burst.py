"""A burst of five times what a partition takes: fixed keys beside a key that gets shards.

All in virtual time, with real requests through the partition model to DynamoDB Local: the same
writers, the same back-off, the same demand. Only where they write differs.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Endpoint, dynamodb_client
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.store.requests import Requests
from keyhop.sharding.table import ShardedTable

from bench.sharding_tables import KEY, TABLE, create
from testing.partitions import partitions
from testing.servers import local_client
from testing.virtual_time import EPOCH, VirtualClock

KEY_RATE = 20
"""Write units a second of a physical key in the model."""
TIMES = 5
WRITERS = 32
CALM_SECONDS = 5
BURST_SECONDS = 60
CALM_RATE = KEY_RATE / 4
BURST_RATE = float(TIMES * KEY_RATE)
ABSORBED = 0.95
SEED = 5

Write = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Way:
    """Where writers write. shards: fixed; None: Keyhop, from one shard, with these settings."""

    title: str
    shards: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)


WAYS = (
    Way("a single key", 1),
    Way("3 shards, fixed (guessed too few)", 3),
    Way("8 shards, fixed (guessed right)", 8),
    Way("Keyhop, as it comes (settle 5 s, cooldown 5 s)"),
    Way(
        "Keyhop, settle 2 s, cooldown 2 s",
        settings={"settle_seconds": 2.0, "policy": Policy(cooldown=2.0)},
    ),
)


@dataclass
class Outcome:
    """What came of one way. Seconds are since the burst began; None: not within it.

    absorbed: from when on 95 % of what is wanted is written, in every later five seconds.
    """

    way: Way
    wanted: int = 0
    written: int = 0
    throttles: int = 0
    last_throttle: int | None = None
    absorbed: int | None = None
    longest_wait: float = 0.0
    shards: list[tuple[int, int]] = field(default_factory=list)
    given_up: int = 0


def bursts(url: str) -> list[Outcome]:
    """All ways, one after the other."""
    return [_burst(url, way) for way in WAYS]


def _burst(url: str, way: Way) -> Outcome:
    create(local_client(url))
    random.seed(SEED)  # the waits of back-offs come from here
    clock = VirtualClock()
    outcome = Outcome(way)
    with partitions(url, rate=KEY_RATE, tables={TABLE}, clock=clock) as model:
        client = dynamodb_client(Endpoint(url=model.url), 2 * WRITERS)
        table = None
        if way.shards is None:
            table = ShardedTable(
                TABLE,
                metadata=f"{TABLE}-shards",
                placement="random",
                append_only=True,
                client=client,
                clock=clock,
                chance=random.Random(SEED),
                **way.settings,
            )
            put: Write = lambda item: table.put_item(Item=item)  # noqa: E731
        else:
            put = _fixed(Requests(client, clock), way.shards)
        clock.run([_writer(clock, put, outcome, number) for number in range(WRITERS)])
        began = int(EPOCH) + CALM_SECONDS
        throttled = model.by_second(TABLE, refused=True)
        accepted = model.by_second(TABLE)
        outcome.throttles = sum(throttled.values())
        _judge(outcome, began, accepted, throttled)
        if table is not None:
            history = table.metadata.of({"S": KEY}).shards.history
            outcome.shards = [(at - began, count) for at, count in history]
            table.close()
    return outcome


def _fixed(requests: Requests, shards: int) -> Write:
    """The published way: a random suffix from a fixed range, and patience."""
    chance = random.Random(SEED)

    def put(item: dict[str, Any]) -> None:
        typed = {name: {"S": value} for name, value in item.items()}
        typed["path"] = {"S": f"{item['path']}_{chance.randint(1, shards)}"}
        requests.call("put_item", TableName=TABLE, Item=typed)

    return put


def _writer(clock: VirtualClock, put: Write, outcome: Outcome, number: int) -> Callable[[], None]:
    chance = random.Random(number)
    end = EPOCH + CALM_SECONDS + BURST_SECONDS

    def write() -> None:
        due = EPOCH + chance.random() * WRITERS / CALM_RATE
        count = 0
        while due < end:
            clock.sleep(max(0.0, due - clock.time()))
            in_burst = clock.time() >= EPOCH + CALM_SECONDS
            outcome.wanted += in_burst
            count += 1
            try:
                put({"path": KEY, "accessed": f"{number:02}-{count:06}"})
            except ClientError:
                outcome.given_up += 1
            if in_burst:
                outcome.longest_wait = max(outcome.longest_wait, clock.time() - due)
            pause = WRITERS / (BURST_RATE if in_burst else CALM_RATE)
            following = due + pause * chance.uniform(0.5, 1.5)
            if not in_burst:  # all begin the burst together
                following = min(following, EPOCH + CALM_SECONDS + chance.random() * 0.5)
            due = max(following, clock.time())  # nobody makes up for a delay

    return write


def _judge(
    outcome: Outcome, began: int, accepted: dict[int, int], throttled: dict[int, int]
) -> None:
    burst = range(began, began + BURST_SECONDS)
    outcome.written = sum(accepted.get(second, 0) for second in burst)
    refused = [second - began for second in burst if throttled.get(second)]
    outcome.last_throttle = refused[-1] if refused else None
    windows = {second: sum(accepted.get(second + n, 0) for n in range(5)) for second in burst[:-4]}
    absorbed = None
    for second in reversed(list(windows)):
        if windows[second] < ABSORBED * 5 * BURST_RATE:
            break
        absorbed = second - began
    outcome.absorbed = absorbed
