"""The world of a run: the tables, machines with wrong clocks, and the record of operations."""

import copy
import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.sharding.table import ShardedTable

from testing.sharding_simulator.linearizable import Effect, Operation, is_linearizable
from testing.sharding_simulator.network import Network, Trouble
from testing.simulation.schedule import Pool, Schedule, WaitingLock
from testing.simulation.service import Service
from testing.simulation.tables import Table, keyed

TABLE, METADATA = "items", "items-shards"
PARTITION, SORT = "path", "at"
EPOCH = 1_800_000_000.0
SETTLE = 2.0


@dataclass
class Machine:
    """A process's clocks: the wall clock, wrong by `ahead`, and one that starts at `began`."""

    schedule: Schedule
    ahead: float = 0.0
    began: float = 0.0

    def monotonic(self) -> float:
        return self.began + self.schedule.now

    def time(self) -> float:
        return EPOCH + self.schedule.now + self.ahead

    def sleep(self, seconds: float) -> None:
        self.schedule.sleep(seconds)


class KernelsChance(random.Random):
    """A generator that, like SystemRandom, a fork does not copy."""

    def __copy__(self) -> "KernelsChance":
        return self


class World:
    """The world of one run: its tables, and the record of all operations by item.

    chance: the generator of all random decisions. wrong: descriptions of the violations so far.
    """

    def __init__(self, seed: int, settings: Mapping[str, Any], trouble: Trouble) -> None:
        self.chance = random.Random(seed)
        self.settings = settings
        self.schedule = Schedule(self.chance)
        self.tables = {
            TABLE: Table(keyed({PARTITION: "S", SORT: "S"})),
            METADATA: Table(keyed({PARTITION: "S"})),
        }
        service = Service(self.tables, page_items=self.chance.choice([2, 3, 1_000]))
        self.network = Network(
            self.schedule, service, trouble, self.chance, METADATA, SETTLE / 2 - 0.02
        )
        self.record: dict[str, list[Operation]] = {}
        self.wrong: list[str] = []
        self._events = itertools.count(1)

    def table(self, ahead: float = 0.0) -> ShardedTable:
        """Return the table of a new process, whose clock is `ahead` by so many seconds."""
        clock = Machine(self.schedule, ahead, self.chance.uniform(0, 1e6))
        table = ShardedTable(
            TABLE,
            metadata=METADATA,
            client=self.network,
            clock=clock,
            settle_seconds=SETTLE,
            **self.settings,
        )
        return self._with_schedule(table)

    def fork(self, table: ShardedTable) -> ShardedTable:
        """Return the table of a forked child: a copy of the memory, but not of the kernel's."""
        child = copy.copy(table)
        child._process = 0  # its parent's
        child.requests = replace(table.requests, chance=copy.copy(table.requests.chance))
        return self._with_schedule(child)

    def _with_schedule(self, table: ShardedTable) -> ShardedTable:
        """Make all waiting in the table wait in the schedule, and return the table."""
        table.reader.executor = Pool(self.schedule)
        table.metadata._reading = (WaitingLock(self.schedule),)
        return table

    def moment(self) -> int:
        """Return the number of the next event."""
        return next(self._events)

    def begin(self, name: str, what: str, effect: Effect) -> Operation:
        """Record the start of an operation on an item."""
        operation = Operation(what, effect, self.moment())
        self.record.setdefault(name, []).append(operation)
        return operation

    def end(self, operation: Operation, **reported: Any) -> None:
        """Record the response to an operation."""
        operation.reported, operation.is_certain = reported, True
        operation.ended = self.moment()

    def record_repeats(self, name: str, operation: Operation, times: int) -> None:
        """Record that an operation may have taken effect again, as with retries of boto3."""
        for _ in range(times):
            self.record[name].append(replace(operation, reported={}, is_certain=False))

    def judge(self) -> list[str]:
        """Return descriptions of all violations."""
        return self.wrong + [
            f"{name}: no order explains {_listed(operations)}"
            for name, operations in sorted(self.record.items())
            if not is_linearizable(operations)
        ]


def _listed(operations: list[Operation]) -> str:
    return "\n".join(
        f"  {o.began}-{o.ended} {o.what}: {dict(o.reported) if o.is_certain else '?'}"
        for o in sorted(operations, key=lambda o: o.began)
    )
