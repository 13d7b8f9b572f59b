"""A sharded table's keys and indexes, and their requirements. Pure.

A physical key is the logical key, the separator, and the shard's number in decimal, without leading
zeros; also in the first shard: `"/f.txt_3"` for `"/f.txt"`. A separator has no digits, so each
physical key has one meaning. A logical key may itself end like one: `"a_1"` in shard 2 is
`"a_1_2"`, which is not a shard of `"a"`.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeyAttribute, KeySpace, has_key_index, indexes_of
from keyhop.dynamodb.values import KeyType, TypedValue, canonical
from keyhop.errors import CannotStart
from keyhop.sharding.key.shards import ATTRIBUTES, MOST_SHARDS

DEFAULT_SEPARATOR = "_"
MOST_KEY_BYTES = 2048
"""The maximum size of a partition key (AWS documentation)."""

_NUMBER = re.compile(rb"[1-9][0-9]{0,3}\Z")
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")


@dataclass(frozen=True, slots=True)
class Names:
    """The form of a table's physical keys. Raises CannotStart for a type of the partition key or a
    separator that does not allow suffixes.
    """

    type: KeyType = "S"
    separator: str = DEFAULT_SEPARATOR

    def __post_init__(self) -> None:
        if self.type == "N":
            raise CannotStart(
                "The partition key is a number (N), which cannot carry a shard's suffix: only "
                "tables with a string (S) or binary (B) partition key can be sharded."
            )
        if not _SEPARATOR.fullmatch(self.separator):
            raise CannotStart(
                f"The separator {self.separator!r} is not possible: it must be 1 to 16 printable "
                "ASCII characters, with no digits and no spaces."
            )

    def physical(self, logical: TypedValue, shard: int) -> dict[str, str | bytes]:
        """Return the typed key of a shard. Raise CannotStart if it is too long."""
        content = logical.get(self.type)
        if not isinstance(content, str if self.type == "S" else bytes):
            kind = "a text" if self.type == "S" else "bytes"
            raise CannotStart(f"A partition key of this table must be {kind}.")
        data = content.encode() if isinstance(content, str) else content
        maximum = MOST_KEY_BYTES - len(self.separator) - len(str(MOST_SHARDS))
        if not 1 <= len(data) <= maximum:
            raise CannotStart(
                f"A logical key must have 1 to {maximum} bytes, as a shard's suffix follows it; "
                f"this one has {len(data)}."
            )
        data = b"%b%b%d" % (data, self.separator.encode(), shard)
        return {self.type: data if self.type == "B" else data.decode()}

    def parsed(self, physical: TypedValue) -> tuple[dict[str, str | bytes], int] | None:
        """Return the logical key and the shard of a physical key; None if it has no suffix."""
        content = physical.get(self.type)
        if content is None:
            return None
        data = content.encode() if isinstance(content, str) else bytes(content)
        before, separator, digits = data.rpartition(self.separator.encode())
        if not separator or not before or not _NUMBER.match(digits) or int(digits) > MOST_SHARDS:
            return None
        return {self.type: before if self.type == "B" else before.decode()}, int(digits)


def metadata_of(table: str, stack: str) -> str:
    """Return the default name of a table's shard-metadata table."""
    return f"{stack}-shards-{table}"


@dataclass(frozen=True, slots=True)
class ItemKey:
    """A logical key and a sort key, as typed values."""

    logical: TypedValue
    sort: TypedValue


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's name and keys. names: the form of its physical keys."""

    table: str
    partition: KeyAttribute
    sort: KeyAttribute
    names: Names

    def physical(self, key: ItemKey, shard: int) -> dict[str, Any]:
        """Return the key of an item in a shard, as requests have it."""
        return {
            self.partition.name: self.names.physical(key.logical, shard),
            self.sort.name: key.sort,
        }

    def name_of(self, item: Mapping[str, Any]) -> Hashable:
        """Return a physical key in a canonical form, because the service may reformat numbers."""
        return canonical(item[self.partition.name]), canonical(item[self.sort.name])


def schema_of(space: KeySpace, table: str, separator: str) -> Schema:
    """Return the keys of a table. Raise CannotStart if it cannot be sharded."""
    if space.sort is None:
        raise CannotStart(
            f"The table {table!r} has no sort key: each partition key has one item, and a single "
            "item cannot be spread over shards."
        )
    (partition,) = space.partition
    if partition.name in ATTRIBUTES:
        raise CannotStart(
            f"The table {table!r} cannot be sharded: its partition key is called "
            f"{partition.name}, which is also the name of another attribute of the shard metadata."
        )
    return Schema(table, partition, space.sort, Names(partition.type, separator))


def check_indexes(description: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise CannotStart if a table has a key index, whose sentinels would be read and moved like
    items, or if one of these indexes cannot replace the table.
    """
    if has_key_index(description):
        table = description["TableName"]
        raise CannotStart(
            f"The table {table!r} has a key index, and so it cannot be sharded: remove the "
            "index first."
        )
    indexes = {index["IndexName"]: index for index in indexes_of(description)}
    for name in names:
        index = indexes.get(name)
        if index is None:
            raise CannotStart(f"The table has no index {name!r}, which read_indexes names.")
        same = index["KeySchema"] == description["KeySchema"]
        if not same or index["Projection"]["ProjectionType"] != "ALL":
            raise CannotStart(
                f"The index {name!r} cannot be read in the table's place: read_indexes must have "
                "the table's key schema, and project all attributes."
            )


@dataclass(frozen=True, slots=True)
class Index:
    """An index's name and keys; each key may have up to four attributes."""

    name: str
    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]

    def carries_shard(self, schema: Schema) -> bool:
        """Return whether the index's items are spread over the table's physical keys, or raise
        CannotStart if they are, and cannot be merged.
        """
        if schema.partition not in self.partition:
            return False
        if len(self.partition) > 1 or len(self.sort) != 1:
            raise CannotStart(
                f"The index {self.name!r} cannot be queried: its partition key contains the "
                "shard. To merge the shards, it needs exactly one sort key."
            )
        return True


def indexes_by_name(description: Mapping[str, Any]) -> dict[str, Index]:
    """Return the indexes in DescribeTable's `Table`, by name."""
    types = {d["AttributeName"]: d["AttributeType"] for d in description["AttributeDefinitions"]}
    indexes = {}
    for index in indexes_of(description):
        keys: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
        for entry in index["KeySchema"]:
            name = entry["AttributeName"]
            keys[entry["KeyType"]].append(KeyAttribute(name, types[name]))
        name = index["IndexName"]
        indexes[name] = Index(name, tuple(keys["HASH"]), tuple(keys["RANGE"]))
    return indexes
