"""Sharded tables for a single thread: time passes only when somebody sleeps."""

import random
from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.values import KeyType
from keyhop.sharding.drain import Drain, DrainStep, Next
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.table import ShardedTable

from testing.databases import Database

BEGIN = 1_800_000_000.0


class JumpingClock:
    """Time that jumps ahead instead of being waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return BEGIN + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Place:
    """A table (path, at) with its metadata, and what lies in it in fact."""

    def __init__(
        self,
        database: Database,
        name: str,
        sort: KeyType = "S",
        partition: KeyType = "S",
        **more: Any,
    ) -> None:
        self.database = database
        self.name = name
        self.metadata = f"{name}-shards"
        self.clock = JumpingClock()
        self.names = Names(partition)
        database.create(name, partition=("path", partition), sort=("at", sort), **more)
        database.create(self.metadata, partition=("path", partition), sort=None)

    def table(self, **settings: Any) -> ShardedTable:
        usual: dict[str, Any] = {"clock": self.clock, "chance": random.Random(3)}
        if not settings.keys() & {"client", "session", "table"}:
            usual["endpoint_url"] = self.database.url
        return ShardedTable(
            settings.pop("table", self.name),
            metadata=self.metadata,
            **{**usual, **settings},
        )

    def register(self, key: Any, number: int, **more: Mapping[str, Any]) -> None:
        """Metadata as the published way has it, with its three attributes only."""
        item = {
            **self._key(key),
            "number_of_shards": {"N": str(number)},
            "last_updated": {"N": str(int(BEGIN) - 10_000)},
            "shard_history": {"SS": [f"{int(BEGIN) - 10_000}:{number}"]},
            **more,
        }
        self.database.client.put_item(TableName=self.metadata, Item=item)

    def shards(self, key: Any) -> Shards:
        """The metadata as it lies in its table."""
        answer = self.database.client.get_item(TableName=self.metadata, Key=self._key(key))
        return from_item(answer["Item"])

    def lies_in(self, key: Any) -> dict[Any, list[int]]:
        """In which shards each item of a key lies, by the content of its sort key."""
        held: dict[Any, list[int]] = {}
        for item in self.database.client.scan(TableName=self.name)["Items"]:
            parsed = self.names.parsed(item["path"])
            assert parsed is not None
            if parsed[0] == self._key(key)["path"]:
                ((_, at),) = item["at"].items()
                held.setdefault(at, []).append(parsed[1])
        return held

    def grow(self, table: ShardedTable, key: Any, count: int) -> None:
        """Add shards, and let the change come to its end."""
        while True:
            try:
                known = add_shards(table, key, count)
                break
            except TooEarly as early:
                self.clock.sleep(early.seconds)
        while known.shards.phase != "steady":
            self.clock.sleep(known.shards.settle)
            known = table.metadata.of(self._key(key)["path"], fresh=True)
            known = table.writer.throttle_tracker.pass_on(self._key(key)["path"], known)

    def drain(self, table: ShardedTable, key: Any, shards: int) -> list[DrainStep]:
        """Drain to the end; all steps."""
        steps = [Drain(table).step(key, shards)]
        while steps[-1].action is not Next.DONE:
            assert steps[-1].action is not Next.CALLED_OFF
            self.clock.sleep(steps[-1].seconds)
            steps.append(Drain(table).step(key, shards, begun=steps[-1].begun))
        return steps

    def _key(self, key: Any) -> dict[str, Any]:
        return {"path": {"S" if isinstance(key, str) else "B": key}}
