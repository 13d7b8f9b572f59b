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
"""The attribute, a number, by which a sentinel is known."""


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """One attribute of a key schema."""

    name: str
    type: KeyType


@dataclass(frozen=True, slots=True)
class KeySpace:
    """Whose distinct keys are asked for: a table's, or one of its indexes'.

    partition: the HASH attributes; one for a table, up to four for an index.
    sort: the table's sort key; None for a table without one, and for every index: it is of use only
    to hop, and an index is never hopped in (ties in it have no promised order).
    """

    partition: tuple[KeyAttribute, ...]
    sort: KeyAttribute | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the partition key's attributes."""
        return tuple(attribute.name for attribute in self.partition)

    def partition_of(self, item: Key) -> Key:
        """The partition key of an item, or of a LastEvaluatedKey, without its other attributes."""
        return {attribute.name: item[attribute.name] for attribute in self.partition}

    def hop_from(self, partition: Key) -> Key:
        """The ExclusiveStartKey that lands on the item collection after `partition`'s."""
        if self.sort is None:
            raise ValueError("without a sort key there is nothing to hop over")
        return {**partition, self.sort.name: GREATEST_SORT_KEY[self.sort.type]}


def table_keyspace(description: Mapping[str, Any]) -> KeySpace:
    """The key space of a table, from DescribeTable's `Table`."""
    types = _types(description)
    names = {entry["KeyType"]: entry["AttributeName"] for entry in description["KeySchema"]}
    partition = KeyAttribute(names["HASH"], types[names["HASH"]])
    sort = KeyAttribute(names["RANGE"], types[names["RANGE"]]) if "RANGE" in names else None
    return KeySpace((partition,), sort)


def index_keyspace(description: Mapping[str, Any], entry: Mapping[str, Any]) -> KeySpace:
    """The key space of an index, from DescribeTable's `Table` and the entry of the index in it."""
    types = _types(description)
    hashes = [e["AttributeName"] for e in entry["KeySchema"] if e["KeyType"] == "HASH"]
    return KeySpace(tuple(KeyAttribute(name, types[name]) for name in hashes))


def indexes_of(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All indexes of a table, global ones first, from DescribeTable's `Table`."""
    return [
        *description.get("GlobalSecondaryIndexes", ()),
        *description.get("LocalSecondaryIndexes", ()),
    ]


def _types(description: Mapping[str, Any]) -> dict[str, KeyType]:
    # AttributeDefinitions come in no promised order and hold the indexes' attributes too.
    return {d["AttributeName"]: d["AttributeType"] for d in description["AttributeDefinitions"]}
