"""Key schemas, and the greatest sort keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import Key, KeyType, TypedValue

# AWS documentation: a sort key has at most 1,024 bytes, strings sort by their UTF-8 bytes, numbers
# have 38 digits. Items may exist *at* these values.
GREATEST_SORT_KEY: dict[str, TypedValue] = {
    "S": {"S": "\U0010ffff" * 256},
    "N": {"N": "9.9999999999999999999999999999999999999E+125"},
    "B": {"B": b"\xff" * 1024},
}

MARKER = "keyhop"
"""The attribute, a number, that marks a sentinel."""
KEY_INDEX = "keyhop-keys"
"""The name of the index that holds the sentinels only."""


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """An attribute of a key schema."""

    name: str
    type: KeyType


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The key attributes of a table, or of one of its indexes.

    Attributes:
        partition: The HASH attributes; one for a table, up to four for an index.
        sort: The sort key of the table, which is needed to hop; None for a table without one, and
            for every index, because items with equal keys have no promised order there.
    """

    partition: tuple[KeyAttribute, ...]
    sort: KeyAttribute | None = None

    @property
    def attributes(self) -> tuple[KeyAttribute, ...]:
        """Return the attributes of the primary key, those of the partition key first."""
        return self.partition if self.sort is None else (*self.partition, self.sort)

    @property
    def types(self) -> dict[str, KeyType]:
        """Return the types of the primary key's attributes by their names."""
        return {attribute.name: attribute.type for attribute in self.attributes}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the partition key's attributes."""
        return tuple(attribute.name for attribute in self.partition)

    def partition_of(self, item: Key) -> Key:
        """Return the partition key of an item or a LastEvaluatedKey."""
        return {attribute.name: item[attribute.name] for attribute in self.partition}

    def hop_from(self, partition: Key) -> Key:
        """Return the ExclusiveStartKey that lands on the item collection after `partition`'s."""
        if self.sort is None:
            raise ValueError("without a sort key there is nothing to hop over")
        return {**partition, self.sort.name: GREATEST_SORT_KEY[self.sort.type]}


def keyspace_of(description: Mapping[str, Any], index: Mapping[str, Any] | None = None) -> KeySpace:
    """Return the key space of DescribeTable's `Table`, or of the index with this entry in it."""
    # AttributeDefinitions come in no promised order and hold the indexes' attributes too.
    types = {d["AttributeName"]: d["AttributeType"] for d in description["AttributeDefinitions"]}
    keys: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
    for entry in (index or description)["KeySchema"]:
        name = entry["AttributeName"]
        keys[entry["KeyType"]].append(KeyAttribute(name, types[name]))
    sort = keys["RANGE"][0] if keys["RANGE"] and index is None else None
    return KeySpace(tuple(keys["HASH"]), sort)


def has_key_index(description: Mapping[str, Any]) -> bool:
    """Return whether a table (DescribeTable's `Table`) has an index of the key index's shape."""
    (partition,) = keyspace_of(description).partition
    keys = [(partition.name, "HASH"), (MARKER, "RANGE")]
    return any(
        index["IndexName"] == KEY_INDEX
        and [(entry["AttributeName"], entry["KeyType"]) for entry in index["KeySchema"]] == keys
        for index in description.get("GlobalSecondaryIndexes", ())
    )


def indexes_of(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all indexes in DescribeTable's `Table`, global ones first."""
    return [
        *description.get("GlobalSecondaryIndexes", ()),
        *description.get("LocalSecondaryIndexes", ()),
    ]
