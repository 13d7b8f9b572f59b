"""A re-key in the simulated service: its tables, its workers and the time."""

import random
from collections.abc import Sequence
from concurrent.futures import Executor
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.rekey.control import Control, Direction
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.worker.replicate import GiveUp, Replicator

from testing.rekey_owned import Owned
from testing.simulation.network import Fate, Network
from testing.simulation.schedule import Killed, Pool, Schedule
from testing.simulation.service import Service
from testing.simulation.streams import Streams, records
from testing.simulation.tables import Table, keyed

Item = dict[str, Any]

EPOCH = 1_800_000_000.0
SHARDS = 3
TIMEOUT_SECONDS = 2.0
PROMISED_SECONDS = 4.5
"""The protocol's limit: no request takes effect later than this after it was sent."""


class Waiting(Event):
    """The event on which requests wait; it is never set."""

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
    """The tables and the clock of a re-key; `chance` decides everything that happens."""

    shards = SHARDS
    poll_seconds = 0.25
    """The seconds between two polls of a shard without new records."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.schedule = Schedule(chance)
        self.pair = Pair("source", "to", {})
        self.transform = Owned()
        self.stop = Waiting(self.schedule)
        self.streams: Any = self._make_tables()
        self.calm = self.connection(lambda operation, request: "well")

    def _make_tables(self) -> Any:
        """Make the tables, and return their streams."""
        keys = {self.pair.source: "id", self.pair.destination: "pk"}
        self.tables = {
            name: Table(keyed({key: "S"}), shards=self.shards, now=self.time)
            for name, key in keys.items()
        }
        side = keyed({"pk": "S", "sk": "S"})
        self.tables[self.pair.side] = Table(side, now=self.time)
        self.service = Service(self.tables)
        return Streams(self.schedule, self.tables)

    def put_first(self, items: Sequence[Item]) -> None:
        """Put items into the source before anything else happens."""
        for item in items:
            self.tables[self.pair.source].put(item)

    def forget_records(self) -> None:
        """Delete the source's stream records, so that its items are in no record."""
        for shard in self.tables[self.pair.source].shards:
            shard.clear()

    def records(self, table: str, shard: int, start: int, limit: int) -> list[dict[str, Any]]:
        """Return records of a table's stream, beginning with the record of this number."""
        return records(self.tables[table], table, shard, start, limit)

    def items(self, table: str) -> list[Item]:
        return self.tables[table].items

    def monotonic(self) -> float:
        return self.schedule.now

    def time(self) -> float:
        return EPOCH + self.schedule.now

    def sleep(self, seconds: float, /) -> None:
        self.schedule.sleep(seconds)

    def pool(self, threads: int) -> Executor:
        return Pool(self.schedule)

    def connection(self, fate: Fate, timeout: float = TIMEOUT_SECONDS) -> Connection:
        """Return a connection whose requests have the fates that the function decides."""
        network = Network(
            self.schedule, self.service, self.chance, PROMISED_SECONDS, fate, timeout=timeout
        )
        return Connection(network, clock=self.monotonic)

    def side(self, connection: Connection | None = None, **more: Any) -> SideTable:
        return SideTable(
            connection or self.calm, self.pair.side, now=self.time, stop=self.stop, **more
        )

    def begin(self) -> None:
        """Fill the side table as `create` does."""
        side = self.side()
        side.put_plan(self.pair)
        side.swap(None, Control(replicating=True))

    def replicator(
        self, direction: Direction, connection: Connection, give_up: GiveUp
    ) -> Replicator:
        return Replicator(
            self.pair,
            direction,
            self.transform,
            lambda name: connection,
            give_up=give_up,
            now=self.time,
            pool=self.pool,
            stop=self.stop,
        )
