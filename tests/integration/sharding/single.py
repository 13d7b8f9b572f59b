"""Sharded tables for a single thread. Time passes only when it sleeps."""

import random
from collections.abc import Mapping
from typing import Any

import boto3
from keyhop.dynamodb.values import KeyType
from keyhop.sharding.drain import Drain, DrainStep, Next
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.manage import TooEarly, add_shards
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from testing.servers import LOCAL_CREDENTIALS
from testing.virtual_time import EPOCH as BEGIN
from testing.virtual_time import JumpingClock

KINDS = ("HASH", "RANGE")


def index(name: str, *keys: str, **types: KeyType) -> dict[str, Any]:
    """Return CreateTable arguments of an index. types: of attributes that are not table keys."""
    schema = [
        {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, KINDS, strict=False)
    ]
    return {
        "AttributeDefinitions": [
            {"AttributeName": attribute, "AttributeType": type_}
            for attribute, type_ in types.items()
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": name, "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}
        ],
    }


class Place:
    """A table (path, at) with its metadata, and access to the stored items."""

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
        defaults: dict[str, Any] = {"clock": self.clock, "chance": random.Random(3)}
        if not settings.keys() & {"client", "session", "table"}:
            defaults["endpoint_url"] = self.database.url
        return ShardedTable(
            settings.pop("table", self.name),
            metadata=self.metadata,
            **{**defaults, **settings},
        )

    def boto3(self) -> Any:
        """Return boto3's resource."""
        return boto3.resource("dynamodb", endpoint_url=self.database.url, **LOCAL_CREDENTIALS)

    def register(self, key: Any, number: int, **more: Mapping[str, Any]) -> None:
        """Write metadata with only the three attributes that the published method has."""
        item = {
            **self._key(key),
            "number_of_shards": {"N": str(number)},
            "last_updated": {"N": str(int(BEGIN) - 10_000)},
            "shard_history": {"SS": [f"{int(BEGIN) - 10_000}:{number}"]},
            **more,
        }
        self.database.client.put_item(TableName=self.metadata, Item=item)

    def item_of(self, key: Any = "!keyhop-total") -> dict[str, Any]:
        """Return the metadata item of a key, or of the whole table. It may be empty."""
        answer = self.database.client.get_item(TableName=self.metadata, Key=self._key(key))
        return dict(answer.get("Item", {}))

    def shards(self, key: Any) -> Shards:
        """Return the stored metadata of a key."""
        return from_item(self.item_of(key))

    def lose(self, *keys: Any) -> None:
        """Delete the metadata of these keys."""
        for key in keys:
            self.database.client.delete_item(TableName=self.metadata, Key=self._key(key))

    def put_physical(self, path: str, at: str, **more: Mapping[str, Any]) -> None:
        """Put an item with this physical key, without the library."""
        item = {"path": {"S": path}, "at": {"S": at}, **more}
        self.database.client.put_item(TableName=self.name, Item=item)

    def shards_of_items(self, key: Any) -> dict[Any, list[int]]:
        """Return the shards in which each item of a key is stored, by its sort key."""
        shards: dict[Any, list[int]] = {}
        for item in self.database.client.scan(TableName=self.name)["Items"]:
            parsed = self.names.parsed(item["path"])
            assert parsed is not None
            if parsed[0] == self._key(key)["path"]:
                ((_, at),) = item["at"].items()
                shards.setdefault(at, []).append(parsed[1])
        return shards

    def grow(self, table: ShardedTable, key: Any, count: int) -> None:
        """Add shards, and wait for the end of the change."""
        while True:
            try:
                record = add_shards(table, key, count)
                break
            except TooEarly as early:
                self.clock.sleep(early.seconds)
        while record.shards.phase != "steady":
            self.clock.sleep(record.shards.settle)
            record = table.metadata.of(self._key(key)["path"], fresh=True)
            record = table.writer.throttle_tracker.pass_on(self._key(key)["path"], record)

    def drain(self, table: ShardedTable, key: Any, shards: int, until: str = "") -> list[DrainStep]:
        """Drain to the end, or until a phase, and return all steps."""
        steps = [Drain(table).step(key, shards)]
        while steps[-1].action is not Next.DONE and steps[-1].shards.phase != until:
            assert steps[-1].action is not Next.CALLED_OFF
            self.clock.sleep(steps[-1].seconds)
            steps.append(Drain(table).step(key, shards, begun=steps[-1].begun))
        return steps

    def _key(self, key: Any) -> dict[str, Any]:
        return {"path": {"S" if isinstance(key, str) else "B": key}}
