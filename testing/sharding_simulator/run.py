"""A run of the simulator: set up everything from a seed, run it, and report violations."""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

from keyhop.sharding.key.placement import place_of
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import from_item
from keyhop.sharding.table import ShardedTable

from testing.sharding_simulator.actors import User, drain, grow, heat, in_order_of
from testing.sharding_simulator.network import Trouble
from testing.sharding_simulator.world import METADATA, PARTITION, SORT, TABLE, KernelsChance, World
from testing.simulation.schedule import Process

SECONDS = 45.0
MOST_SHARDS = 6
FORKED, DRAWN = "/forked", 12
QUICK = Policy(
    threshold=2,
    lasting=0.0,
    window=8.0,
    cooldown=1.0,
    most=MOST_SHARDS,
    most_added=1,
    start_shards={FORKED: MOST_SHARDS},
)
PLACEMENTS: list[dict[str, Any]] = [
    {"placement": "calculated"},
    {"placement": "calculated", "hash": "modulo"},
    {"placement": "random"},
    {"placement": "random", "append_only": True},
    {"placement": "calculated", "append_only": True},
]
SHARES = [12, 3, 3, 3, 2]


@dataclass
class Outcome:
    """The outcome of a run. wrong: descriptions of its violations."""

    seed: int
    wrong: list[str]
    requests: int
    operations: int


def run(seed: int, seconds: float = SECONDS) -> Outcome:
    """Run the simulator once. The same seed gives the same run."""
    state, switching = random.getstate(), sys.getswitchinterval()
    random.seed(seed)  # the waits of retries
    sys.setswitchinterval(1.0)  # only one thread runs anyway
    kernel = random.Random(f"kernel {seed}")
    try:
        with mock.patch.object(random, "SystemRandom", partial(_kernel_chance, kernel)):
            return _Run(seed, seconds).outcome()
    finally:
        random.setstate(state)
        sys.setswitchinterval(switching)


def _kernel_chance(kernel: random.Random) -> KernelsChance:
    return KernelsChance(kernel.random())


class _Run:
    def __init__(self, seed: int, seconds: float) -> None:
        chance = random.Random(f"setting {seed}")
        settings = dict(chance.choices(PLACEMENTS, SHARES)[0])
        self.log = settings.get("append_only", False)
        trouble = Trouble(
            late=chance.choice([0.02, 0.15]),
            told_late=chance.choice([0.01, 0.05]),
            too_late=0.05 if self.log else 0.0,
        )
        settings |= {"policy": QUICK, "patience": 10.0}
        self.seed, self.until, self.chance = seed, seconds, chance
        self.world = World(seed, settings, trouble)
        self.keys = ["/f", "/g"][: chance.choice([1, 1, 2])]
        hash_ = settings.get("hash", "jump")
        self.items = [] if self.log else self._items(hash_, chance.choice([2, 3]))
        self.max_clock_error = chance.choice([0.0, 4.0, 30.0, 120.0])
        self.users: list[User] = []

    def _items(self, hash_: Any, count: int) -> list[tuple[str, str]]:
        """Return items whose shards differ most between the shard counts."""
        items = []
        for key in self.keys:
            names = [f"{n:02}" for n in range(60)]
            self.chance.shuffle(names)

            def places(at: str, key: str = key) -> int:
                shard_of = place_of({"S": key}, {"S": at}, hash_)
                return len({shard_of(number) for number in range(1, 5)})

            names.sort(key=places, reverse=True)
            items += [(key, at) for at in names[: count + 4]][:count]
        return items

    def outcome(self) -> Outcome:
        world, schedule = self.world, self.world.schedule
        if self.log:
            self.items += [(key, "first") for key in self.keys]
        for number in range(self.chance.choice([2, 3])):
            self._supervise(lambda process, n=number: self._run_process(process, n))
        self._supervise(lambda process: self._run_changes(process, grow))
        self._supervise(lambda process: self._run_changes(process, drain))
        schedule.spawn(lambda: heat(world, self.until), Process("heat"))
        schedule.run()
        world.network.is_calm = True
        schedule.spawn(self._check_reads, Process("judge"))
        if self.log:
            schedule.spawn(self._check_fork, Process("judge"))
        schedule.run()
        operations = sum(map(len, world.record.values()))
        return Outcome(self.seed, world.judge(), world.network.requests, operations)

    def _clock_error(self) -> float:
        return self.chance.uniform(-self.max_clock_error, self.max_clock_error)

    def _supervise(self, start: Callable[[Process], None]) -> None:
        """Start a process, and start another one whenever it was killed."""
        schedule = self.world.schedule

        def watch() -> None:
            process = Process("")
            process.is_alive = False
            while schedule.now < self.until:
                if not process.is_alive:
                    process = Process("")
                    schedule.spawn(lambda process=process: start(process), process)
                schedule.sleep(1.0)

        schedule.spawn(watch, Process("supervisor"))

    def _table(self) -> ShardedTable:
        return self.world.table(self._clock_error())

    def _run_process(self, process: Process, number: int) -> None:
        table = self._table()
        schedule = self.world.schedule
        if self.chance.random() < 0.5:  # a second thread
            schedule.spawn(lambda: self._run_user(table, process, number), process)
        if self.chance.random() < 0.3:
            self._run_user(table, process, number, until=self.chance.uniform(0, self.until / 2))
            child = self.world.fork(table)
            child_process = Process("child")
            schedule.spawn(lambda: self._run_user(child, child_process, number), child_process)
        self._run_user(table, process, number)

    def _run_user(
        self, table: ShardedTable, process: Process, number: int, until: float | None = None
    ) -> None:
        name = f"u{number}.{len(self.users)}."
        user = User(self.world, table, process, self.items, self.log, name)
        self.users.append(user)
        user.run(self.until if until is None else until, self.chance.choice([0.2, 0.6]))

    def _run_changes(self, process: Process, alter: Callable[..., None], *more: Any) -> None:
        table = self._table()
        for key in self.keys[1:]:
            self.world.schedule.spawn(
                lambda key=key: alter(self.world, table, key, self.until, *more), process
            )
        alter(self.world, table, self.keys[0], self.until, *more)

    def _check_reads(self) -> None:
        """Check all items by reading them once there are no more faults; then check each copy."""
        world = self.world
        world.schedule.sleep(60.0)
        table = self._table()
        user = User(world, table, Process("judge"), self.items, self.log, "judge")
        for key, at in list(self.items)[:40]:
            user._read([{PARTITION: key, SORT: at}], lambda keys: [user._get_item(keys[0])])
        for key in self.keys:
            items = list(table.query(key, consistent=True))
            if [item[SORT] for item in items] != sorted({item[SORT] for item in items}):
                world.wrong.append("the last query is in no order")
            user._read(user.keys_of(key), partial(in_order_of, items=items))
        self._check_copies()

    def _check_fork(self) -> None:
        """Check that a process and its forked child put items into different random shards."""
        world = self.world
        parent = self._table()
        parent.put_item(Item={PARTITION: FORKED, SORT: "first"})
        child = world.fork(parent)
        for n in range(DRAWN):
            parent.put_item(Item={PARTITION: FORKED, SORT: f"parent {n:02}"})
            child.put_item(Item={PARTITION: FORKED, SORT: f"child {n:02}"})
        shards = self._shards_of_items()
        drawn_shards = {
            who: [shards[FORKED, f"{who} {n:02}"] for n in range(DRAWN)]
            for who in ("parent", "child")
        }
        if parent.placement.is_random and drawn_shards["parent"] == drawn_shards["child"]:
            world.wrong.append(f"a fork draws its parent's shards: {drawn_shards['child']}")

    def _shards_of_items(self) -> dict[tuple[str, str], list[int]]:
        names = Names("S")
        shards: dict[tuple[str, str], list[int]] = {}
        for item in self.world.tables[TABLE].items:
            parsed = names.parsed(item[PARTITION])
            assert parsed is not None
            key, shard = parsed
            shards.setdefault((key["S"], item[SORT]["S"]), []).append(shard)
        return shards

    def _check_copies(self) -> None:
        tables = self.world.tables
        for (key, at), shards in self._shards_of_items().items():
            metadata = tables[METADATA].base.at({PARTITION: {"S": key}})
            assert metadata is not None
            readable = from_item(metadata).readable
            # A write that arrived too late and was never acknowledged may be where nobody reads.
            if len(shards) > 1 or (max(shards) > readable and not self.log):
                self.world.wrong.append(f"{key} {at} lies in {shards}, {readable} are read")
