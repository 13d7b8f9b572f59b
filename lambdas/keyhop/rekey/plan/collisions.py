"""How many items want the same place: counted over a whole table, by hashes in files.

Eight bytes of SHA-256 for each item, in 256 files of which one at a time is in memory: of 100 M
items 3 MB, and a pair that only looks like one in 3,000 tables.
"""

import hashlib
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from keyhop.dynamodb.values import Key, distinct_bytes

BUCKETS = 256
HELD = 1_024
"""Hashes of a bucket that are written at once."""


class Tally:
    """Of the places that were added. Two items at one place are a pair, three are three pairs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = [array("Q") for _ in range(BUCKETS)]
        self._files = ExitStack()
        self._open = [self._files.enter_context(self._path(n).open("wb")) for n in range(BUCKETS)]

    def add(self, place: Key) -> None:
        """place: in the order of the key's attributes."""
        digest = hashlib.sha256(b"".join(map(distinct_bytes, place.values()))).digest()
        held = self._held[digest[0]]
        held.append(int.from_bytes(digest[1:9]))
        if len(held) >= HELD:
            self._write(digest[0])

    def pairs(self) -> int:
        """Of all; nothing is added any more."""
        for bucket in range(BUCKETS):
            self._write(bucket)
        self._files.close()
        return sum(_pairs(array("Q", self._path(n).read_bytes())) for n in range(BUCKETS))

    def close(self) -> None:
        self._files.close()

    def _write(self, bucket: int) -> None:
        self._open[bucket].write(self._held[bucket].tobytes())
        self._held[bucket] = array("Q")

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{bucket:02x}"


@contextmanager
def tally() -> Iterator[Tally]:
    """With files that are gone afterwards."""
    with TemporaryDirectory(prefix="keyhop-") as folder:
        made = Tally(Path(folder))
        try:
            yield made
        finally:
            made.close()


def _pairs(hashes: "array[int]") -> int:
    pairs, run, last = 0, 0, -1
    for one in sorted(hashes):
        run = run + 1 if one == last else 0
        pairs += run
        last = one
    return pairs
