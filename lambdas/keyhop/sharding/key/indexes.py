"""The indexes of a sharded table, and whether their keys have the shard's suffix. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeyAttribute, indexes_of
from keyhop.errors import CannotStart
from keyhop.sharding.key.schema import Schema


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
                f"The index {self.name!r} cannot be queried: its partition key has the shard, and "
                "for the shards to be merged it needs one sort key, and nothing else."
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
