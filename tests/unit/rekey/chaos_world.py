"""A re-key in the simulated service: its tables, those who work on it, and the time."""

import random
from concurrent.futures import Executor
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.rekey.control import Control, Direction
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.worker.replicate import GiveUp, Replicator

from testing.rekey_owned import Owned
from testing.simulation.network import Fate, Network, drawn
from testing.simulation.schedule import Killed, Pool, Schedule
from testing.simulation.service import Service, Table
from testing.simulation.streams import Streams

EPOCH = 1_800_000_000.0
SHARDS = 3
TIMEOUT_SECONDS = 2.0
PROMISED_SECONDS = 4.5
"""No request takes effect later, as the protocol has it."""


class Waiting(Event):
    """What requests wait by: it is never set."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def is_set(self) -> bool:
        if not self._schedule.running.process.is_alive:
            raise Killed
        return False

    def wait(self, timeout: float | None = None) -> bool:
        self._schedule.sleep(timeout or 0.0)
        return False


class ChaosWorld:
    """chance: decides all that happens. It is the clock, too."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.schedule = Schedule(chance)
        self.pair = Pair("source", "to", {})
        self.transform = Owned()
        self.source = Table(("id",), shards=[[] for _ in range(SHARDS)], now=self.time)
        self.destination = Table(("pk",), shards=[[] for _ in range(SHARDS)], now=self.time)
        self.beside = Table(("pk", "sk"))
        self.tables = {
            self.pair.source: self.source,
            self.pair.destination: self.destination,
            self.pair.side: self.beside,
        }
        self.service = Service(self.tables)
        self.streams = Streams(self.schedule, self.tables)
        self.stop = Waiting(self.schedule)
        self.calm = self.connection(lambda operation, request: "well")

    def monotonic(self) -> float:
        return self.schedule.now

    def time(self) -> float:
        return EPOCH + self.schedule.now

    def sleep(self, seconds: float, /) -> None:
        self.schedule.sleep(seconds)

    def pool(self, threads: int) -> Executor:
        return Pool(self.schedule)

    def connection(self, fate: Fate, timeout: float = TIMEOUT_SECONDS) -> Connection:
        """Whose requests meet that."""
        network = Network(
            self.schedule,
            self.service,
            self.chance,
            PROMISED_SECONDS,
            fate,
            timeout=timeout,
        )
        return Connection(network, clock=self.monotonic)

    def side(self, connection: Connection | None = None, **more: Any) -> SideTable:
        return SideTable(
            connection or self.calm, self.pair.side, now=self.time, stop=self.stop, **more
        )

    def begin(self) -> None:
        """The side table as `create` leaves it."""
        side = self.side()
        side.put_plan(self.pair)
        side.swap(None, Control(replicating=True))

    def replicator(
        self, direction: Direction, connection: Connection, give_up: GiveUp
    ) -> Replicator:
        return Replicator.of(
            self.pair,
            direction,
            self.transform,
            lambda name: connection,
            give_up=give_up,
            now=self.time,
            pool=self.pool,
            stop=self.stop,
        )


def items_of(table: Table) -> dict[str, Any]:
    """All, by the text of their keys."""
    found = (item for partition in table.items.values() for item in partition.values())
    return {key_text(table.key_of(item)): item for item in found}


def shares(chance: random.Random, of: dict[str, float]) -> Fate:
    """Each request meets one of these, by its share."""
    return lambda operation, request: drawn(chance.random(), of)
