"""What actors share: the tables, machines with wrong clocks, and the record of what was done."""

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
    """A process's clocks: of the day, wrong by `ahead`; and another that began at any moment."""

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
    """As SystemRandom: a fork does not copy it."""

    def __copy__(self) -> "KernelsChance":
        return self


class World:
    """One run. settings: of all its tables. chance: decides all; from the seed.

    record: what was done to each item. wrong: what was found wrong on the way, in words.
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
        """As a process of its own makes it. ahead: seconds that its clock is wrong by."""
        clock = Machine(self.schedule, ahead, self.chance.uniform(0, 1e6))
        table = ShardedTable(
            TABLE,
            metadata=METADATA,
            client=self.network,
            clock=clock,
            settle_seconds=SETTLE,
            **self.settings,
        )
        return self._opened(table)

    def forked(self, table: ShardedTable) -> ShardedTable:
        """As a child of the process has it: a copy of its memory, but not of the kernel's."""
        child = copy.copy(table)
        child._process = 0  # its parent's
        child.requests = replace(table.requests, chance=copy.copy(table.requests.chance))
        return self._opened(child)

    def _opened(self, table: ShardedTable) -> ShardedTable:
        """What waits in it waits in the schedule."""
        table.reader.executor = Pool(self.schedule)
        table.metadata._reading = (WaitingLock(self.schedule),)
        return table

    def moment(self) -> int:
        """Of the record: a number that grows."""
        return next(self._events)

    def begun(self, name: str, what: str, effect: Effect) -> Operation:
        """Somebody begins to do something to an item."""
        operation = Operation(what, effect, self.moment())
        self.record.setdefault(name, []).append(operation)
        return operation

    def ended(self, operation: Operation, **told: Any) -> None:
        """It was answered."""
        operation.told, operation.is_certain = told, True
        operation.ended = self.moment()

    def repeated(self, name: str, operation: Operation, times: int) -> None:
        """It may have been done several times, as boto3's own retries would: an error is not known
        to have written nothing."""
        for _ in range(times):
            self.record[name].append(replace(operation, told={}, is_certain=False))

    def judge(self) -> list[str]:
        """What is wrong, in words."""
        wrong = list(self.wrong)
        for name, operations in sorted(self.record.items()):
            if not is_linearizable(operations):
                wrong.append(f"{name}: no order explains {told(operations)}")
        return wrong


def told(operations: list[Operation]) -> str:
    return "\n".join(
        f"  {one.began}-{one.ended} {one.what}: {dict(one.told) if one.is_certain else '?'}"
        for one in sorted(operations, key=lambda one: one.began)
    )
