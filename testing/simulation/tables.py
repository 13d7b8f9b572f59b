"""Tables in memory, with their indexes and streams.

A table and each of its indexes are a View: places in the order of a Scan, and the item at each
place. Both may be generated on demand (testing/report_corpus/virtual.py), so that a table of
millions of items needs no memory and no time to load.
"""

import hashlib
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, MutableSequence
from functools import cached_property, lru_cache
from typing import Any

from keyhop.dynamodb.values import MOST_ITEM_BYTES, size_of, value_bytes

from testing.simulation.values import Invalid, Item, Value, order_of, stored_item

HASHES = 1 << 128
"""The size of the hash space. A segment is an equal part of it."""

Place = tuple[int, tuple[Any, ...], tuple[Any, ...]]
"""The place of an item in a Scan: its hash, and the sort values of its partition and sort keys."""


@lru_cache(1 << 16)
def hash_of(orders: tuple[Any, ...]) -> int:
    """Return the place in the hash space of a partition key, given its sort values."""
    return int.from_bytes(hashlib.md5(repr(orders).encode()).digest(), "big")


class View:
    """A table or an index in the order of a Scan: by hash, then partition key, then sort key.

    Attributes:
        hashes, ranges: The attributes of the partition key and of the sort key.
        types: The types of all key attributes of the table and its indexes.
        tie: For an index, the attributes of the table's key, which order items with equal keys.
        names: The attributes of a start key.
        projected: The attributes that an index has; None for all.
        is_global: Whether it is a global index.
        items: The item at each place.
    """

    def __init__(
        self,
        key_schema: list[Mapping[str, str]],
        types: Mapping[str, str],
        tie: tuple[str, ...] = (),
        projection: Mapping[str, Any] | None = None,
        is_global: bool = False,
    ) -> None:
        self.types = types
        self.hashes, self.ranges = (
            tuple(e["AttributeName"] for e in key_schema if e["KeyType"] == kind)
            for kind in ("HASH", "RANGE")
        )
        self.tie = tie
        self.schema = self.hashes + self.ranges
        self.names = tuple(dict.fromkeys(self.schema + tie))
        self.places: MutableSequence[Place] = []
        self.items: dict[Place, dict[str, Value]] = {}
        self.is_global = is_global
        self.projected: set[str] | None = None
        if projection is not None and projection["ProjectionType"] != "ALL":
            self.projected = {*self.names, *projection.get("NonKeyAttributes", ())}

    def place(self, key: Item) -> Place:
        partition = tuple([order_of(key[name]) for name in self.hashes])
        rest = tuple([order_of(key[name]) for name in self.ranges + self.tie])
        return hash_of(partition), partition, rest

    def key_of(self, item: Item) -> dict[str, Value]:
        return {name: item[name] for name in self.names}

    def at(self, key: Item) -> dict[str, Value] | None:
        return self.items.get(self.place(key))

    def replace(self, old: Item | None, new: dict[str, Value] | None) -> None:
        """Replace the item with the same key. None stands for no item."""
        before, after = (
            self.place(item) if item is not None and item.keys() >= set(self.schema) else None
            for item in (old, new)
        )
        if before is not None and before != after:
            del self.items[before]
            del self.places[bisect_left(self.places, before)]
        if after is not None and new is not None:
            if before != after:
                insort(self.places, after)
            names = self.projected
            if names is not None:
                new = {name: value for name, value in new.items() if name in names}
            self.items[after] = new

    def check_key(self, key: Item) -> None:
        """Raise Invalid unless this is a key of this table, or a start key of this index."""
        if key.keys() != set(self.names):
            raise Invalid("The provided key element does not match the schema")
        for name, value in key.items():
            self.check_key_value(name, value)

    def check_key_value(self, name: str, value: Value) -> None:
        """Raise Invalid unless this can be the value of a key attribute."""
        type_ = self.types[name]
        if value.keys() != {type_}:
            raise Invalid(f"Type mismatch for key {name}")
        if not value[type_]:
            raise Invalid(f"The value of a key attribute must not be empty. Key: {name}")
        maximum = 2_048 if name in self.hashes else 1_024
        if type_ != "N" and value_bytes(value) > maximum:
            raise Invalid(
                f"The value of a key attribute has more than {maximum} bytes. Key: {name}"
            )


_GLOBAL, _LOCAL = "GlobalSecondaryIndexes", "LocalSecondaryIndexes"


class Table:
    """A table.

    Attributes:
        base, indexes: The items in the order of the table and of each index.
        shards: The changes in each shard of its stream: the time, the old item and the new item.
            A table without shards has no stream.
        reported: The item count and the bytes that DescribeTable reports; None for the true ones.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        *,
        shards: int = 0,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create a table, given the parameters of CreateTable."""
        self._request = request
        self._now = now
        self.created = now()
        types = {d["AttributeName"]: d["AttributeType"] for d in request["AttributeDefinitions"]}
        self.base = View(request["KeySchema"], types)
        self.indexes = {
            index["IndexName"]: View(
                index["KeySchema"], types, self.base.schema, index["Projection"], kind == _GLOBAL
            )
            for kind in (_GLOBAL, _LOCAL)
            for index in request.get(kind, ())
        }
        self.shards: list[list[tuple[float, Item | None, Item | None]]] = [
            [] for _ in range(shards)
        ]
        self.reported: tuple[int, int] | None = None
        self._size: int | None = None  # in bytes; None after a change

    @property
    def keys(self) -> tuple[str, ...]:
        return self.base.names

    @cached_property
    def all_keys(self) -> frozenset[str]:
        """The key attributes of the table and of its indexes."""
        return frozenset(self.keys).union(*(index.schema for index in self.indexes.values()))

    @property
    def items(self) -> list[dict[str, Value]]:
        """All items in the order in which their keys were added."""
        return list(self.base.items.values())

    def put(self, item: Item) -> None:
        """Store an item. Raise Invalid if it cannot be one of this table."""
        new = stored_item(item)
        self.check(new)
        self.store(new, new)

    def delete(self, key: Item) -> None:
        self.store(key, None)

    def check(self, item: Item) -> None:
        """Raise Invalid unless this can be an item of this table."""
        self.base.check_key({name: item[name] for name in self.keys if name in item})
        for index in self.indexes.values():
            for name in index.schema:
                if name in item:
                    index.check_key_value(name, item[name])
        if size_of(item) > MOST_ITEM_BYTES:
            raise Invalid("Item size has exceeded the maximum allowed size")

    def store(self, key: Item, new: dict[str, Value] | None) -> None:
        """Store an item that was checked, or delete the item with this key (None)."""
        self._size = None
        old = self.base.at(key)
        if self.shards and old != new:
            shard = self.base.place(key)[0] % len(self.shards)
            self.shards[shard].append((self._now(), old, new))
        for view in (self.base, *self.indexes.values()):
            view.replace(old, new)

    def _bytes(self) -> int:
        if self._size is None:
            self._size = sum(map(size_of, self.items))
        return self._size

    def describe(self, name: str) -> dict[str, Any]:
        """Return the table's description by DescribeTable."""
        count, size = self.reported or (len(self.base.items), self._bytes())
        description = {
            "TableName": name,
            "TableStatus": "ACTIVE",
            "KeySchema": self._request["KeySchema"],
            "AttributeDefinitions": self._request["AttributeDefinitions"],
            "CreationDateTime": self.created,
            "TableArn": f"arn:aws:dynamodb:us-east-1:123456789012:table/{name}",
            "TableId": f"{int(self.created * 1e6):032x}",
            "ItemCount": count,
            "TableSizeBytes": size,
        }
        if self.shards:
            description["LatestStreamArn"] = name
        for kind in {_GLOBAL, _LOCAL} & self._request.keys():
            description[kind] = [
                {
                    "IndexName": index["IndexName"],
                    "KeySchema": index["KeySchema"],
                    "Projection": index["Projection"],
                    "IndexStatus": "ACTIVE",
                    "ItemCount": len(self.indexes[index["IndexName"]].places),
                    "IndexSizeBytes": 0,
                }
                for index in self._request[kind]
            ]
        return description


def keyed(types: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of CreateTable for a partition key and perhaps a sort key.

    types: The types of the key attributes by their names.
    """
    kinds = zip(types, ("HASH", "RANGE"), strict=False)
    return {
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in kinds],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
    }
