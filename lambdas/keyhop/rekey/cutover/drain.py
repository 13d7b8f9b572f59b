"""Prove by markers that the worker has processed all writes to the serving table. Pure.

A *marker* is an item with a random key that is put into that table and deleted at once. Its record
is in a shard of the table's stream, after all earlier writes of that shard (A4: within a shard the
order of publication is that of the commits). The worker has one batch of a shard at a time, and
records a marker when its batch has finished. So once each open shard has returned a marker that was
put after the last write, nothing remains. Stream positions would not prove that: a shard without
new records looks the same as a shard with a record that is not published yet.

The shard of a key's records is determined before writes are frozen, and does not change: records of
one item come in order, so in one shard and, when that is closed, in one of its children (AWS
documentation, "How DynamoDB Streams works"). A closed shard is processed before its children.
"""

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import Key, TypedValue

KEY_PREFIX = "keyhop-rekey-marker-"
RANDOM_BYTES = 16
NUMBER_DIGITS = 37


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a stream; `parent` is empty if it has no parent, or the parent is trimmed."""

    id: str
    parent: str = ""
    is_open: bool = True

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> "Shard":
        """Return the shard of a description by DescribeStream."""
        is_open = "EndingSequenceNumber" not in description.get("SequenceNumberRange", {})
        return cls(description["ShardId"], description.get("ParentShardId", ""), is_open)


def keys_by_open_shard(
    shards: Sequence[Shard], keys_by_shard: Mapping[str, Key]
) -> dict[str, Key | None]:
    """Return a key whose records come to each open shard; None for a shard without such a key.

    `keys_by_shard` has keys by the shard in which a record was seen. An only child has its parent's
    keys; for two children it is unclear which one has them.
    """
    parents = {shard.id: shard.parent for shard in shards}
    children = Counter(shard.parent for shard in shards)

    def key_of(shard: str) -> Key | None:
        while shard not in keys_by_shard:
            parent = parents.get(shard, "")
            if not parent or children[parent] > 1:
                return None
            shard = parent
        return keys_by_shard[shard]

    return {shard.id: key_of(shard.id) for shard in shards if shard.is_open}


def uncovered(shards: Sequence[Shard], marked: Collection[str]) -> list[str]:
    """Return the open shards that had no marker, if one was put for each shard of `marked`."""
    keys = keys_by_open_shard(shards, {shard: {} for shard in marked})
    return [shard for shard, key in keys.items() if key is None]


def random_key(space: KeySpace, chance: random.Random, partition: Key | None = None) -> Key:
    """Return a random primary key, with the given partition key if the table has a sort key."""
    values = {attribute.name: _random_value(attribute, chance) for attribute in space.attributes}
    return {**values, **(partition or {})}


def _random_value(attribute: KeyAttribute, chance: random.Random) -> TypedValue:
    content = chance.randbytes(RANDOM_BYTES)
    if attribute.type == "N":
        return {"N": str(-chance.randrange(10 ** (NUMBER_DIGITS - 1), 10**NUMBER_DIGITS))}
    if attribute.type == "B":
        return {"B": KEY_PREFIX.encode() + content}
    return {"S": KEY_PREFIX + content.hex()}
