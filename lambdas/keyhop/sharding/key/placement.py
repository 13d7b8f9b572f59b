"""Where an item belongs: a shard from a stable hash of its partition key and sort key. Pure.

`jump`: jump consistent hashing (Lamping and Veach, 2014, "A Fast, Minimal Memory, Consistent Hash
Algorithm"). From N to N + 1 shards one item in N + 1 gets another place, always the new shard.
`modulo`: the published way, the MD5 modulo N; from N to N + 1 all but one in N + 1 do.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from keyhop.dynamodb.values import TypedValue, distinct_bytes

Hash = Literal["jump", "modulo"]
Place = Callable[[int], int]
"""From a shard count to the shard, 1 or more, at which one item belongs by that count."""

_TEXT = re.compile(r"(append-only )?(calculated|random) (jump|modulo) (\S+)")
_LINEAR = 2862933555777941757
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Placement:
    """How all writers of a key choose shards; kept in the metadata.

    calculated: an item has a place by its sort key; otherwise a new item may go anywhere.
    append_only: no item is ever written twice, so nobody looks.
    """

    calculated: bool
    hash: Hash = "jump"
    append_only: bool = False

    @property
    def is_random(self) -> bool:
        """Whether the shard of a new item is chosen by chance."""
        return not self.calculated and self.append_only

    def text(self, separator: str) -> str:
        """As the metadata has it, with the separator of the keys: "calculated jump _"."""
        kind = "calculated" if self.calculated else "random"
        words = (*(["append-only"] if self.append_only else ()), kind, self.hash, separator)
        return " ".join(words)

    @classmethod
    def parse(cls, text: str) -> "tuple[Placement, str]":
        """The inverse of `text`: placement and separator. Raises ValueError for any other text."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError("no placement that this version knows")
        append_only, kind, hash_, separator = match.groups()
        return cls(kind == "calculated", cast(Hash, hash_), append_only is not None), separator


def place_of(partition: TypedValue, sort: TypedValue, hash_: Hash) -> Place:
    """The places of the item with this logical partition key and sort key."""
    digest = hashlib.md5(
        distinct_bytes(partition) + distinct_bytes(sort), usedforsecurity=False
    ).digest()
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
