"""Sharded tables for a single thread: time passes only when somebody sleeps."""

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
    """An index for CreateTable. types: of the attributes that the table's key does not have."""
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

    def boto3(self) -> Any:
        """The resource of boto3's users."""
        return boto3.resource("dynamodb", endpoint_url=self.database.url, **LOCAL_CREDENTIALS)

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

    def item_of(self, key: Any = "!keyhop-total") -> dict[str, Any]:
        """The metadata item of a key, or of the table as a whole; empty: there is none."""
        answer = self.database.client.get_item(TableName=self.metadata, Key=self._key(key))
        return dict(answer.get("Item", {}))

    def shards(self, key: Any) -> Shards:
        """The metadata as it lies in its table."""
        return from_item(self.item_of(key))

    def lose(self, *keys: Any) -> None:
        """Somebody deletes the metadata of these keys."""
        for key in keys:
            self.database.client.delete_item(TableName=self.metadata, Key=self._key(key))

    def put_physical(self, path: str, at: str, **more: Mapping[str, Any]) -> None:
        """An item with this physical key, past the library."""
        item = {"path": {"S": path}, "at": {"S": at}, **more}
        self.database.client.put_item(TableName=self.name, Item=item)

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

    def drain(self, table: ShardedTable, key: Any, shards: int, until: str = "") -> list[DrainStep]:
        """Drain to the end, or until a phase; all steps."""
        steps = [Drain(table).step(key, shards)]
        while steps[-1].action is not Next.DONE and steps[-1].shards.phase != until:
            assert steps[-1].action is not Next.CALLED_OFF
            self.clock.sleep(steps[-1].seconds)
            steps.append(Drain(table).step(key, shards, begun=steps[-1].begun))
        return steps

    def _key(self, key: Any) -> dict[str, Any]:
        return {"path": {"S" if isinstance(key, str) else "B": key}}
