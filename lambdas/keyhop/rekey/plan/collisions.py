"""Count the items of a whole table that map to the same place, by hashes in files.

Each item has eight bytes of SHA-256, in 256 files of which one at a time is in memory: 3 MB for 100
M items. A false pair occurs in one of 3,000 tables.
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
"""The hashes of a bucket that are written together."""


class Tally:
    """Counts pairs of equal places. Two items at one place are a pair, three are three pairs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = [array("Q") for _ in range(BUCKETS)]
        self._files = ExitStack()
        self._open = [self._files.enter_context(self._path(n).open("wb")) for n in range(BUCKETS)]

    def add(self, place: Key) -> None:
        """Add a place, with its attributes in the order of the key."""
        digest = hashlib.sha256(b"".join(map(distinct_bytes, place.values()))).digest()
        hashes = self._held[digest[0]]
        hashes.append(int.from_bytes(digest[1:9]))
        if len(hashes) >= HELD:
            self._write(digest[0])

    def pairs(self) -> int:
        """Return the number of pairs. No place can be added after this."""
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
    """Make a Tally whose files are removed afterwards."""
    with TemporaryDirectory(prefix="keyhop-") as folder:
        counter = Tally(Path(folder))
        try:
            yield counter
        finally:
            counter.close()


def _pairs(hashes: "array[int]") -> int:
    pairs, run, last = 0, 0, -1
    for value in sorted(hashes):
        run = run + 1 if value == last else 0
        pairs += run
        last = value
    return pairs
