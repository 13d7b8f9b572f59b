"""A counter that is spread over shards: where its parts lie, and what moves between them. Pure.

A counter's part in a shard is one item, with a sort key that is always the same; the count is their
sum. An add is an ADD at one of shards 1 to `writable`, drawn by lot. A *fold* takes a part away, on
the condition that it holds what was read, and adds that to a part below, in one transaction. So the
sum of all parts never changes by a fold, whoever folds, whenever, and however often he tries. Folds
therefore need no fence, unlike moves of items (protocol.py); what is left to be kept is that
everybody sums up the right parts:

- Only parts above `writable` are folded, in the phases `moving` and, by movers who are a phase
  behind, `moved` and `halted`. Nobody adds there any more. `moved` ends when there are none.
- **Reading.** A batch of reads is no snapshot: of a fold meanwhile it may see both sides, or none.
  So in a drain the parts above `writable` are read before the others, and again after them. If none
  of those that were there is gone, no fold took place in between, and each count was seen once.
- **Late answers.** An add that took effect in time is folded with the others. One that took effect
  late may lie where readers do not look any more: whoever has sent it folds it.
- **Tokens.** A marker is put by the same transaction as the add, if there is none. Its place comes
  from the token alone, and from no shard count.
"""

import hashlib
from collections.abc import Collection

from keyhop.dynamodb.values import TypedValue, distinct_bytes, same_value
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.key.shards import Phase, Shards

COUNT = "keyhop_count"
"""The attribute with a part's number."""
TOKENS = "!tokens"
"""What follows the counter's key in the one that its markers have."""

_SORT_KEYS: dict[str, dict[str, str | bytes]] = {
    "S": {"S": "!keyhop-count"},
    "B": {"B": b"!keyhop-count"},
    "N": {"N": "-1E-130"},  # the greatest number below zero: hardly anybody's own
}
_FOLDING = frozenset({Phase.FENCED, Phase.MOVING, Phase.MOVED, Phase.HALTED})
"""Known by readers while folds may take effect."""


def counter_key(schema: Schema, logical: TypedValue) -> ItemKey:
    """The key of all parts of a counter; the shard is in the physical one."""
    return ItemKey(logical, _SORT_KEYS[schema.sort.type])


def is_counter(schema: Schema, item: TypedValue) -> bool:
    """Whether an item of a table is a part of a counter: by its place, and by what it holds."""
    place = _SORT_KEYS[schema.sort.type]
    return COUNT in item and same_value(item[schema.sort.name], place)


def marker_key(schema: Schema, logical: TypedValue, token: str) -> dict[str, TypedValue]:
    """The key of a token's marker, as requests have it; one of 256 physical keys of a counter's."""
    schema.names.physical(logical, 1)  # or it is no key
    whole = distinct_bytes(logical) + token.encode()
    digest = hashlib.blake2b(whole, digest_size=15).digest()  # 36 digits, as a number
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
    """Any of these takes an add."""
    return range(1, shards.writable + 1)


def reads_of(shards: Shards) -> tuple[range, range]:
    """The shards to be read, and those among them to be read before the others, and again after."""
    whole = range(1, shards.readable + 1)
    return whole, whole[shards.writable :] if shards.phase in _FOLDING else whole[:0]


def is_folded(before: Collection[int], after: Collection[int]) -> bool:
    """Whether a shard has lost its part between two looks; each: the shards that had one."""
    return not set(before) <= set(after)


def is_stranded(shards: Shards, shard: int) -> bool:
    """Whether nobody will look at a part in this shard, if it came late, but who has sent it."""
    return shard > (shards.writable if shards.phase is Phase.MOVED else shards.readable)
