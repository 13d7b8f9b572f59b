"""The indexes of a sharded table: whether their keys carry the shard. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeyAttribute, indexes_of
from keyhop.errors import CannotStart
from keyhop.sharding.key.schema import Schema


@dataclass(frozen=True, slots=True)
class Index:
    """Its name and keys; there may be up to four of each kind."""

    name: str
    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]

    def carries_shard(self, schema: Schema) -> bool:
        """Whether its items are spread over the table's physical keys.

        Raises CannotStart if they are, and cannot be brought together again.
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
    """From DescribeTable's `Table`."""
    types = {d["AttributeName"]: d["AttributeType"] for d in description["AttributeDefinitions"]}
    found = {}
    for index in indexes_of(description):
        keys: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
        for entry in index["KeySchema"]:
            name = entry["AttributeName"]
            keys[entry["KeyType"]].append(KeyAttribute(name, types[name]))
        name = index["IndexName"]
        found[name] = Index(name, tuple(keys["HASH"]), tuple(keys["RANGE"]))
    return found
