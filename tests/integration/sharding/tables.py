"""Sharded tables in virtual time, behind the partition model, and access to the stored items."""

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
"""The logical key to which most tests write."""


@dataclass
class Setup:
    """A table `name` (path, at) and its metadata, behind `model`, in the time of `clock`."""

    database: Database
    name: str
    model: Partitions
    clock: VirtualClock
    client: Client
    seed: int = 1
    tables: list[ShardedTable] = field(default_factory=list)

    @property
    def metadata(self) -> str:
        return f"{self.name}-shards"

    def table(self, client: Any = None, seed: int | None = None, **settings: Any) -> ShardedTable:
        """Return a table with a separate cache, as in a separate process."""
        table = ShardedTable(
            self.name,
            metadata=self.metadata,
            client=client or self.client,
            clock=self.clock,
            chance=random.Random(self.seed - 1 + len(self.tables) if seed is None else seed),
            **settings,
        )
        self.tables.append(table)
        return table

    def drain(self, table: ShardedTable) -> DrainStep:
        """Drain to one shard, or until it is called off, and return the last step."""
        step = Drain(table).step(KEY, 1)
        while step.action not in (Next.DONE, Next.CALLED_OFF):
            self.clock.sleep(step.seconds)
            step = Drain(table).step(KEY, 1, begun=step.begun)
        return step

    def shards(self, key: str = KEY) -> Shards:
        """Return the stored metadata of a key."""
        answer = self.database.client.get_item(
            TableName=self.metadata, Key={"path": {"S": key}}, ConsistentRead=True
        )
        return from_item(answer["Item"])

    def copies(self, key: str = KEY) -> dict[str, dict[int, dict[str, Any]]]:
        """Return all stored items of a key, by sort key and then by shard."""
        copies: dict[str, dict[int, dict[str, Any]]] = {}
        names = Names("S", "_")
        for item in self.scanned(key):
            parsed = names.parsed(item["path"])
            assert parsed is not None
            if parsed[0] == {"S": key}:
                copies.setdefault(item["at"]["S"], {})[parsed[1]] = item
        return copies

    def scanned(self, key: str) -> Iterator[dict[str, Any]]:
        """Yield all items whose physical key starts with `key`, without the model."""
        pages = self.database.client.get_paginator("scan").paginate(
            TableName=self.name,
            ConsistentRead=True,
            FilterExpression="begins_with(#p, :p)",
            ExpressionAttributeNames={"#p": "path"},
            ExpressionAttributeValues={":p": {"S": key}},
        )
        for page in pages:
            yield from page["Items"]

    def tally(self) -> Counter[str]:
        """Return the sums of the counters of all tables."""
        return sum((table.usage.counters for table in self.tables), Counter[str]())


def in_time(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the library's thread pools in the time of the clock."""
    for module in (keyhop.sharding.table, keyhop.sharding.drain):
        monkeypatch.setattr(module, "ThreadPoolExecutor", partial(Pool, clock))


@contextmanager
def sharded(
    database: Database, name: str, *, together: bool = False, seed: int = 1, **limits: Any
) -> Iterator[Setup]:
    """Create an empty table and its metadata. limits: the settings of the model."""
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
            for table in setup.tables:
                table.close()
