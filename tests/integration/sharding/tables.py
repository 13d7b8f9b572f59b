"""Sharded tables in virtual time, behind the partition model; and what lies in them in fact."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import keyhop.sharding.drain
import keyhop.sharding.table
import pytest
from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.transport import Client
from keyhop.sharding.drain import Drain, DrainStep, Next
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from testing.partitions import Partitions, partitions
from testing.virtual_time import Pool, VirtualClock

KEY = "/var/log/hot.txt"
"""The one logical key that most tests write to."""


@dataclass
class Setup:
    """A table `name` (path, at), and its metadata; behind `model`, in the time of `clock`."""

    database: Database
    name: str
    model: Partitions
    clock: VirtualClock
    client: Client
    seed: int = 1
    made: list[ShardedTable] = field(default_factory=list)

    @property
    def metadata(self) -> str:
        return f"{self.name}-shards"

    def table(self, client: Any = None, seed: int | None = None, **settings: Any) -> ShardedTable:
        """A user of the table, with a cache of its own as if it were a process of its own."""
        table = ShardedTable(
            self.name,
            metadata=self.metadata,
            client=client or self.client,
            clock=self.clock,
            chance=random.Random(self.seed - 1 + len(self.made) if seed is None else seed),
            **settings,
        )
        self.made.append(table)
        return table

    def drain(self, table: ShardedTable) -> DrainStep:
        """Drain to one shard, or until it is called off; the last step."""
        step = Drain(table).step(KEY, 1)
        while step.action not in (Next.DONE, Next.CALLED_OFF):
            self.clock.sleep(step.seconds)
            step = Drain(table).step(KEY, 1, begun=step.begun)
        return step

    def shards(self, key: str = KEY) -> Shards:
        """The metadata as it lies in the table."""
        answer = self.database.client.get_item(
            TableName=self.metadata, Key={"path": {"S": key}}, ConsistentRead=True
        )
        return from_item(answer["Item"])

    def copies(self, key: str = KEY) -> dict[str, dict[int, dict[str, Any]]]:
        """All items of a key as they lie in the table: by sort key, then by shard."""
        held: dict[str, dict[int, dict[str, Any]]] = {}
        names = Names("S", "_")
        for item in self.scanned(key):
            parsed = names.parsed(item["path"])
            assert parsed is not None
            if parsed[0] == {"S": key}:
                held.setdefault(item["at"]["S"], {})[parsed[1]] = item
        return held

    def scanned(self, key: str) -> Iterator[dict[str, Any]]:
        """All items whose physical key begins so, past the model."""
        more: dict[str, Any] = {
            "TableName": self.name,
            "ConsistentRead": True,
            "FilterExpression": "begins_with(#p, :p)",
            "ExpressionAttributeNames": {"#p": "path"},
            "ExpressionAttributeValues": {":p": {"S": key}},
        }
        while True:
            page = self.database.client.scan(**more)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            more["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def tally(self) -> Counter[str]:
        """What all users have counted."""
        told: Counter[str] = Counter()
        for table in self.made:
            told += table.usage.counters
        return told


def in_time(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's thread pools live in the clock, so that their requests may take time, too."""
    for module in (keyhop.sharding.table, keyhop.sharding.drain):
        monkeypatch.setattr(module, "ThreadPoolExecutor", partial(Pool, clock))


@contextmanager
def sharded(
    database: Database, name: str, *, together: bool = False, seed: int = 1, **limits: Any
) -> Iterator[Setup]:
    """An empty table and its metadata; limits: the model's settings."""
    database.create(name, partition=("path", "S"), sort=("at", "S"))
    database.create(f"{name}-shards", partition=("path", "S"), sort=None)
    random.seed(seed)  # the waits of retries come from here
    clock = VirtualClock(together=together)
    chance = random.Random(seed + 4)
    with partitions(database.url, tables={name}, clock=clock, chance=chance, **limits) as model:
        client = dynamodb_client(Endpoint(url=model.url), 64)
        setup = Setup(database, name, model, clock, client, seed)
        try:
            yield setup
        finally:
            for table in setup.made:
                table.close()
