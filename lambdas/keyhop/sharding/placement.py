"""Where an item belongs: a shard from a stable hash of its partition key and sort key. Pure.

`jump`: jump consistent hashing (Lamping and Veach, 2014, "A Fast, Minimal Memory, Consistent Hash
Algorithm"). From N to N + 1 shards one item in N + 1 gets another place, always the new shard.
`modulo`: the published way, the MD5 modulo N; from N to N + 1 all but one in N + 1 do.
"""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from typing import Literal

from keyhop.dynamodb.values import TypedValue

Hash = Literal["jump", "modulo"]
Place = Callable[[int], int]
"""From a shard count to the shard, 1 or more, at which one item belongs by that count."""

_LINEAR = 2862933555777941757
_MASK = (1 << 64) - 1
_EXACT = Context(prec=38, Emin=-999, Emax=999, traps=[])
"""A number of DynamoDB has 38 digits and an exponent of up to 125."""


def place_of(partition: TypedValue, sort: TypedValue, hash_: Hash) -> Place:
    """The places of the item with this logical partition key and sort key."""
    digest = hashlib.md5(_bytes_of(partition) + _bytes_of(sort), usedforsecurity=False).digest()
    if hash_ == "modulo":
        number = int.from_bytes(digest, "big")
        return lambda count: number % count + 1
    number = int.from_bytes(digest[:8], "big")
    return lambda count: jump(number, count) + 1


def jump(key: int, buckets: int) -> int:
    """The bucket, from 0, of a 64-bit key."""
    bucket, following = -1, 0
    while following < buckets:
        bucket = following
        key = (key * _LINEAR + 1) & _MASK
        following = int((bucket + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return bucket


def expected_candidates(counts: Iterable[int], hash_: Hash) -> float:
    """In how many shards an item may be on average, that was placed by any of these counts.

    So many reads a look at the item costs while all of the counts are remembered. For modulo it is
    somewhat more than the truth: a place that an item comes back to is counted twice.
    """
    ordered = sorted(set(counts))
    expected = 1.0
    for before, after in itertools.pairwise(ordered):
        # Two remainders are alike for `before` of the numbers below the least common multiple.
        stays = before / (after if hash_ == "jump" else math.lcm(before, after))
        expected += 1 - stays
    return expected


def canonical(value: TypedValue) -> tuple[str, str | bytes]:
    """A key's value in one form only: a number may be written in many."""
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        # Not by the context of whoever calls: it may round.
        return "N", "0" if not number else str(number.normalize(_EXACT))
    return type_, content if isinstance(content, str) else bytes(content)


def _bytes_of(value: TypedValue) -> bytes:
    """A typed value, so that equal keys have equal bytes and unequal ones have not."""
    type_, content = canonical(value)
    whole = content.encode() if isinstance(content, str) else content
    return b"%b%d:%b" % (type_.encode(), len(whole), whole)
