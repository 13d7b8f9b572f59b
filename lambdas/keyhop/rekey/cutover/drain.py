"""When all that was written to the table that serves has been worked: what markers prove. Pure.

A *marker* is an item with a random key that is put into that table and deleted at once. Its record
stands in a shard of the table's stream, behind all that was written there before (A4: within a
shard the order of publication is that of the commits). The worker has one batch of a shard at a
time and tells of a marker when its batch is done; so once each open shard has shown one that was
put after the last write, nothing is left. Positions would not do: a shard that has nothing new
says the same as one of which something is not published yet.

Which shard a key's records come to is found out before writes are frozen, and stays: records of one
item come in order, so in one shard and, when that is closed, in one of its children (AWS
documentation, "How DynamoDB Streams works"). A closed shard is worked before its children.
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
    """parent: empty for one that has none, or whose parent is trimmed."""

    id: str
    parent: str = ""
    is_open: bool = True

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Shard":
        """From DescribeStream."""
        is_open = "EndingSequenceNumber" not in told.get("SequenceNumberRange", {})
        return cls(told["ShardId"], told.get("ParentShardId", ""), is_open)


def keys_by_open_shard(shards: Sequence[Shard], known: Mapping[str, Key]) -> dict[str, Key | None]:
    """A key whose records come to it, of each open shard; None: it is not known of any.

    known: by the shard in which a key's record was seen. An only child has its parent's keys; of
    two children nobody knows which has them.
    """
    parents = {shard.id: shard.parent for shard in shards}
    children = Counter(shard.parent for shard in shards)

    def key_of(shard: str) -> Key | None:
        while shard not in known:
            parent = parents.get(shard, "")
            if not parent or children[parent] > 1:
                return None
            shard = parent
        return known[shard]

    return {shard.id: key_of(shard.id) for shard in shards if shard.is_open}


def uncovered(shards: Sequence[Shard], known: Collection[str]) -> list[str]:
    """Open shards in which no marker was, if one was put of a key of each of `known`."""
    keys = keys_by_open_shard(shards, {shard: {} for shard in known})
    return [shard for shard, key in keys.items() if key is None]


def random_key(space: KeySpace, chance: random.Random, partition: Key | None = None) -> Key:
    """A primary key that nobody has; partition: with this partition key, if there is a sort key."""
    attributes = [*space.partition, *([space.sort] if space.sort else [])]
    drawn = {one.name: _random_value(one, chance) for one in attributes}
    return {**drawn, **(partition or {})}


def _random_value(attribute: KeyAttribute, chance: random.Random) -> TypedValue:
    drawn = chance.randbytes(RANDOM_BYTES)
    if attribute.type == "N":
        return {"N": str(-chance.randrange(10 ** (NUMBER_DIGITS - 1), 10**NUMBER_DIGITS))}
    if attribute.type == "B":
        return {"B": KEY_PREFIX.encode() + drawn}
    return {"S": KEY_PREFIX + drawn.hex()}
