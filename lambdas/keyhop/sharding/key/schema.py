"""A sharded table's keys, and their requirements. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeyAttribute, KeySpace, has_key_index, indexes_of
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.errors import CannotStart
from keyhop.sharding.key.names import Names
from keyhop.sharding.key.shards import ATTRIBUTES


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
            f"The table {table!r} cannot be sharded: its partition key is called {partition.name}, "
            "as is something else in the shard metadata."
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
