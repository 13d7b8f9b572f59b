"""The shard of an item, from a stable hash of its partition key and sort key. Pure.

`jump`: jump consistent hashing (Lamping and Veach, 2014, "A Fast, Minimal Memory, Consistent Hash
Algorithm"). From N to N + 1 shards one item in N + 1 gets another shard, always the new one.
`modulo`: the published method, the MD5 modulo N. From N to N + 1 all but one in N + 1 change.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from keyhop.dynamodb.values import TypedValue, distinct_bytes

Hash = Literal["jump", "modulo"]
Place = Callable[[int], int]
"""Returns the shard, 1 or more, of one item for a shard count."""

_TEXT = re.compile(r"(append-only )?(calculated|random) (jump|modulo) (\S+)")
_LINEAR = 2862933555777941757
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Placement:
    """The rules by which all writers of a key choose shards; stored in the metadata.

    If it is not calculated from an item's sort key, a new item may be in any shard. `append_only`
    says that no item is ever written twice, so writers do not read first.
    """

    calculated: bool
    hash: Hash = "jump"
    append_only: bool = False

    @property
    def is_random(self) -> bool:
        """Whether the shard of a new item is chosen at random."""
        return not self.calculated and self.append_only

    def text(self, separator: str) -> str:
        """Return the text in the metadata, including the keys' separator: "calculated jump _"."""
        kind = "calculated" if self.calculated else "random"
        words = (*(["append-only"] if self.append_only else ()), kind, self.hash, separator)
        return " ".join(words)

    @classmethod
    def parse(cls, text: str) -> "tuple[Placement, str]":
        """Parse a placement and a separator from `text`. Raise ValueError."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError("no placement that this version knows")
        append_only, kind, hash_, separator = match.groups()
        return cls(kind == "calculated", cast(Hash, hash_), append_only is not None), separator


def place_of(partition: TypedValue, sort: TypedValue, hash_: Hash) -> Place:
    """Return the function of an item's places, for its logical partition key and sort key."""
    digest = hashlib.md5(
        distinct_bytes(partition) + distinct_bytes(sort), usedforsecurity=False
    ).digest()
    if hash_ == "modulo":
        number = int.from_bytes(digest, "big")
        return lambda count: number % count + 1
    number = int.from_bytes(digest[:8], "big")
    return lambda count: jump(number, count) + 1


def jump(key: int, buckets: int) -> int:
    """Return the bucket, starting at 0, of a 64-bit key."""
    bucket, following = -1, 0
    while following < buckets:
        bucket = following
        key = (key * _LINEAR + 1) & _MASK
        following = int((bucket + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return bucket
