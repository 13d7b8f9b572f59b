"""A counter that is spread over shards: the places of its parts, and the moves between them. Pure.

A counter's part in a shard is one item, whose sort key is always the same. The count is the sum of
all parts. An add is an ADD in a random shard from 1 to `writable`. A *fold* is a transaction that
deletes a part, on condition that it has the value that was read, and adds this value to a lower
part. So a fold never changes the sum of all parts, however often it is tried, and needs no fence,
unlike moves of items (protocol.py). It only remains that everybody adds up the same, right parts:

- Only parts above `writable` are folded, in the phase `moving` and, by movers that are a phase
  behind, in `moved` and `halted`. No writer adds there any more. `moved` ends when there are none.
- **Reading.** A batch of reads is not a snapshot: if a fold takes effect in between, it may see
  both sides, or neither. So during a drain the parts above `writable` are read before the others,
  and again after them. If each still exists, there was no fold, and each part was counted once.
- **Late answers.** An add that took effect late may be in a shard that readers no longer read: its
  writer folds it.
- **Tokens.** A marker is put by the same transaction as the add, if it does not exist. Its key
  depends on the token only, and not on a shard count.
"""

import hashlib
from collections.abc import Collection

from keyhop.dynamodb.values import TypedValue, distinct_bytes, same_value
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.key.shards import Phase, Shards

COUNT = "keyhop_count"
"""The attribute with a part's number."""
TOKENS = "!tokens"
"""The suffix of the counter's key in the key of its markers."""

_SORT_KEYS: dict[str, dict[str, str | bytes]] = {
    "S": {"S": "!keyhop-count"},
    "B": {"B": b"!keyhop-count"},
    "N": {"N": "-1E-130"},  # the greatest number below zero, which users hardly have
}
_FOLDING = frozenset({Phase.FENCED, Phase.MOVING, Phase.MOVED, Phase.HALTED})
"""The phases that readers may see while folds take effect."""


def counter_key(schema: Schema, logical: TypedValue) -> ItemKey:
    """Return the key of all parts of a counter, without the shard."""
    return ItemKey(logical, _SORT_KEYS[schema.sort.type])


def is_counter(schema: Schema, item: TypedValue) -> bool:
    """Return whether an item is a part of a counter, judged by its sort key and its attributes."""
    place = _SORT_KEYS[schema.sort.type]
    return COUNT in item and same_value(item[schema.sort.name], place)


def marker_key(schema: Schema, logical: TypedValue, token: str) -> dict[str, TypedValue]:
    """Return the key of a token's marker, in one of a counter's 256 physical keys for markers."""
    schema.names.physical(logical, 1)  # raises for an invalid key
    content_bytes = distinct_bytes(logical) + token.encode()
    digest = hashlib.blake2b(content_bytes, digest_size=15).digest()  # 36 digits, as a number
    ((type_, content),) = logical.items()
    key = content + TOKENS if isinstance(content, str) else bytes(content) + TOKENS.encode()
    name: dict[str, str | bytes] = {
        "S": digest.hex(),
        "B": digest,
        "N": str(int.from_bytes(digest, "big")),
    }
    return {
        schema.partition.name: schema.names.physical({type_: key}, digest[0] + 1),
        schema.sort.name: {schema.sort.type: name[schema.sort.type]},
    }


def shards_to_add(shards: Shards) -> range:
    """Return the shards that accept an add."""
    return range(1, shards.writable + 1)


def reads_of(shards: Shards) -> tuple[range, range]:
    """Return the shards to read, and the ones to read before and again after the others."""
    readable = range(1, shards.readable + 1)
    return readable, readable[shards.writable :] if shards.phase in _FOLDING else readable[:0]


def is_folded(before: Collection[int], after: Collection[int]) -> bool:
    """Return whether a shard has lost its part between two reads, each of which found shards."""
    return not set(before) <= set(after)


def is_stranded(shards: Shards, shard: int) -> bool:
    """Return whether only the writer of a late part in this shard still knows about it."""
    return shard > (shards.writable if shards.phase is Phase.MOVED else shards.readable)
