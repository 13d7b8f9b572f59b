"""A burst of what a partition takes several times: fixed keys beside a key that gets shards.

All in virtual time, over a model of partitions and of the service: the same writers, the same
back-off, the same demand. Only where they write differs.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.store.requests import Requests
from keyhop.sharding.table import ShardedTable

from bench.sharding_tables import KEY, METADATA, TABLE
from testing.partitions import Partitions
from testing.sharding_simulator.budgets import Budgeted
from testing.sharding_simulator.world import EPOCH, Machine
from testing.simulation.schedule import Process, Schedule
from testing.simulation.service import Service
from testing.simulation.tables import Table, keyed

KEY_RATE = 100
"""Write units a second of a physical key in the model."""
WRITERS = 32
CALM_SECONDS = 5
CALM_RATE = KEY_RATE / 4
ABSORBED = 0.95
SEED = 5

Write = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to write a burst.

    Attributes:
        shards: a fixed number of shards; None for Keyhop with its default policy
        settings: the settings of the ShardedTable
        times: how many times the capacity of a partition the writers write
        processes: over how many processes the writers are spread; each has a ShardedTable
        seconds: the length of the burst
        saved: the write units that a partition lends at once; None for those of a second
    """

    title: str
    shards: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    times: float = 5
    writers: int = WRITERS
    processes: int = 1
    seconds: int = 60
    saved: float | None = None

    @property
    def rate(self) -> float:
        """Return the writes a second that the writers try to make."""
        return float(self.times * KEY_RATE)


LOG: dict[str, Any] = {"placement": "random", "append_only": True}
CALCULATED: dict[str, Any] = {"placement": "calculated"}
WAYS = (
    Way("5 times: a single key", 1),
    Way("3 shards, fixed (guessed too few)", 3),
    Way("8 shards, fixed (guessed right)", 8),
    Way("Keyhop, append-only", settings=LOG),
    Way("Keyhop, calculated (the default)", settings=CALCULATED),
    Way("the same, 32 processes of one writer", settings=CALCULATED, processes=32),
    Way("append-only, 32 processes of one writer", settings=LOG, processes=32),
    Way(
        "Keyhop, calculated, `start_shards` of 8",
        settings={**CALCULATED, "policy": Policy(start_shards={"/srv/*": 8})},
    ),
    Way("20 times: Keyhop, append-only", settings=LOG, times=20, seconds=30),
    Way("20 times: Keyhop, calculated", settings=CALCULATED, times=20, seconds=30),
    Way("the same, 32 processes", settings=CALCULATED, processes=32, times=20, seconds=30),
)


@dataclass
class Outcome:
    """The result of one way. Seconds are those since the burst began; None if not within it.

    Attributes:
        absorbed: the second after which 95 % of the writes succeed in every five seconds
        reports, claims: writes of the metadata
        by_second: the acknowledged writes of each second
        acknowledged, read: the sort keys of acknowledged items, and of those read at the end
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
    reports: int = 0
    claims: int = 0
    by_second: list[int] = field(default_factory=list)
    accepted: Counter[int] = field(default_factory=Counter)
    acknowledged: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)


def bursts() -> list[Outcome]:
    """All ways, one after the other."""
    return [burst(way) for way in WAYS]


def burst(way: Way, seed: int = SEED) -> Outcome:
    """One way, from calm to the end."""
    random.seed(seed)  # the waits of back-offs come from here
    schedule = Schedule(random.Random(seed))
    clock = Machine(schedule)
    outcome = Outcome(way)
    tables = {
        TABLE: Table(keyed({"path": "S", "accessed": "S"})),
        METADATA: Table(keyed({"path": "S"})),
    }
    model = Partitions("", rate=KEY_RATE, burst=way.saved, tables={TABLE}, clock=clock)
    client = Budgeted(Service(tables), model)
    users = [
        ShardedTable(
            TABLE,
            metadata=METADATA,
            client=client,
            clock=clock,
            chance=random.Random(seed + process),
            **way.settings,
        )
        for process in range(way.processes if way.shards is None else 0)
    ]
    puts = [_put_into(table) for table in users]
    if way.shards is not None:
        puts = [_fixed(Requests(client, clock), way.shards, seed)]
    for number in range(way.writers):
        write = _writer(clock, puts[number % len(puts)], outcome, number, number + seed - SEED)
        schedule.spawn(write, Process(f"writer {number}"))
    schedule.run()
    began = int(EPOCH) + CALM_SECONDS
    throttled = model.by_second(TABLE, refused=True)
    outcome.throttles = sum(throttled.values())
    _judge(outcome, began, throttled)
    outcome.claims = client.claims
    outcome.reports = client.writes[METADATA] - client.claims
    for table in users[:1]:
        outcome.read = [item["accessed"] for item in table.query(KEY, consistent=True)]
    for table in users:
        history = table.metadata.of({"S": KEY}, fresh=True).shards.history
        outcome.shards = [(at - began, count) for at, count in history]
        table.close()
    return outcome


def _put_into(table: ShardedTable) -> Write:
    return lambda item: table.put_item(Item=item)


def _fixed(requests: Requests, shards: int, seed: int) -> Write:
    """The published way: a random suffix from a fixed range, and patience."""
    chance = random.Random(seed)

    def put(item: dict[str, Any]) -> None:
        typed = {name: {"S": value} for name, value in item.items()}
        typed["path"] = {"S": f"{item['path']}_{chance.randint(1, shards)}"}
        requests.call("put_item", TableName=TABLE, Item=typed)

    return put


def _writer(
    clock: Machine, put: Write, outcome: Outcome, number: int, seed: int
) -> Callable[[], None]:
    chance = random.Random(seed)
    writers = outcome.way.writers
    end = EPOCH + CALM_SECONDS + outcome.way.seconds

    def write() -> None:
        due = EPOCH + chance.random() * writers / CALM_RATE
        count = 0
        while due < end:
            clock.sleep(max(0.0, due - clock.time()))
            in_burst = clock.time() >= EPOCH + CALM_SECONDS
            outcome.wanted += in_burst
            count += 1
            try:
                put({"path": KEY, "accessed": f"{number:02}-{count:06}"})
                outcome.acknowledged.append(f"{number:02}-{count:06}")
                outcome.accepted[int(clock.time())] += 1
            except ClientError:
                outcome.given_up += 1
            if in_burst:
                outcome.longest_wait = max(outcome.longest_wait, clock.time() - due)
            pause = writers / (outcome.way.rate if in_burst else CALM_RATE)
            following = due + pause * chance.uniform(0.5, 1.5)
            if not in_burst:  # all begin the burst together
                following = min(following, EPOCH + CALM_SECONDS + chance.random() * 0.5)
            due = max(following, clock.time())  # nobody makes up for a delay

    return write


def _judge(outcome: Outcome, began: int, throttled: dict[int, int]) -> None:
    accepted = outcome.accepted
    burst = range(began, began + outcome.way.seconds)
    outcome.by_second = [accepted[second] for second in burst]
    outcome.written = sum(outcome.by_second)
    refused = [second - began for second in burst if throttled.get(second)]
    outcome.last_throttle = refused[-1] if refused else None
    windows = {second: sum(accepted[second + n] for n in range(5)) for second in burst[:-4]}
    absorbed = None
    for second in reversed(list(windows)):
        if windows[second] < ABSORBED * 5 * outcome.way.rate:
            break
        absorbed = second - began
    outcome.absorbed = absorbed
