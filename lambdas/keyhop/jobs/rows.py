"""The places of a run's rows in its parts, by segment or by bucket, and three ways to read them.

`checked` reads whole parts and compares each with its checksum. `after` does so once for each part,
and keeps copies of a few. `pieces` reads only the blocks, which have no checksum.
"""

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from tempfile import SpooledTemporaryFile
from threading import Lock
from typing import IO

from keyhop.dynamodb.values import Key
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import HARMED, READERS, Journal, Part, RunPlan, broken

OPEN_PARTS = 4
"""The number of copies to keep. The threads of a worker read from one or two at a time."""

MOST_HELD_BYTES = 8 << 20
"""The maximum size of a copy in memory. A larger one is stored on disk."""


class Rows:
    """The rows of a run. Any number of threads may use it, after they have loaded their groups."""

    def __init__(self, journal: Journal, plan: RunPlan) -> None:
        self._journal = journal
        self._plan = plan
        self._encoder = Encoder(plan.format, plan.space)
        self._parts: list[Part] = []
        # Four numbers for each of maybe millions of blocks: its part, offset, size and rows.
        self._blocks: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._loaded: set[int] = set()
        self._copies: OrderedDict[str, IO[bytes]] = OrderedDict()
        self._lock = Lock()

    def load(self, groups: Sequence[int]) -> "Rows":
        """Read the commits of these groups, unless they have been read before."""
        with self._lock:
            groups = [group for group in groups if group not in self._loaded]
            for first in range(0, len(groups), READERS):  # so that few commits are in memory
                some = groups[first : first + READERS]
                # All commits come before the first is added: if one fails, none is added twice.
                for commit in list(self._journal.commits_of(some)):
                    for part in commit.parts:
                        self._add(part)
                self._loaded.update(some)
        return self

    def _add(self, part: Part) -> None:
        offset = part.header
        for segment, keys, size in part.blocks:
            self._blocks[segment].extend((len(self._parts), offset, size, keys))
            offset += size
        self._parts.append(part.in_one() if self._plan.buckets else part)

    def blocks(self, segment: int) -> Iterator[tuple[Part, int, int, int]]:
        """Yield the part of each block of a segment, its offset, its size and its rows."""
        numbers = iter(self._blocks.get(segment, ()))
        for part, offset, size, rows in zip(numbers, numbers, numbers, numbers, strict=True):
            yield self._parts[part], offset, size, rows

    def count(self, segment: int) -> int:
        return sum(rows for *_, rows in self.blocks(segment))

    def checked(self, segment: int) -> Iterator[Key]:
        """Yield the rows of a segment; raise BrokenPromise if a part of them is damaged."""
        parts = {part.name: part for part, *_ in self.blocks(segment)}
        for part in parts.values():
            for _, row in self._journal.keys(self._plan, part, {segment}):
                yield row

    def pieces(self, bucket: int) -> Iterator[Key]:
        """Yield the rows of a bucket; raise BrokenPromise if a block is missing or not readable.

        Only the checksum of a whole part exists, so this cannot check that the rows are those that
        were committed. Parts with buckets are not compressed.
        """
        remaining = self.blocks(bucket)
        span = self._journal.store.span
        with ThreadPoolExecutor(READERS) as pool:
            while some := list(islice(remaining, READERS)):
                contents = pool.map(lambda b: span(b[0].name, b[1], b[2]), some)
                for (part, _, size, _), content in zip(some, contents, strict=True):
                    if content is None or len(content) != size:
                        raise broken(part.name)
                    try:
                        yield from self._encoder.decode(content)
                    except HARMED as error:
                        raise broken(part.name) from error

    def after(self, skip: int, segments: Sequence[int]) -> Iterator[Key]:
        """Yield the rows of several segments without the first `skip`; raise as `checked` does."""
        for segment in segments:
            for part, offset, size, rows in self.blocks(segment):
                if skip < rows:
                    yield from self._encoder.decode(self._content(part, offset, size), skip)
                skip = max(0, skip - rows)

    def _content(self, part: Part, offset: int, size: int) -> bytes:
        with self._lock:
            copy = self._copies.get(part.name)
            if copy is None:
                copy = SpooledTemporaryFile(MOST_HELD_BYTES)  # noqa: SIM115 (closed when dropped)
                for chunk in self._journal.unpacked(self._plan, part):
                    copy.write(chunk)
                self._copies[part.name] = copy
                if len(self._copies) > OPEN_PARTS:
                    self._copies.popitem(last=False)[1].close()
            self._copies.move_to_end(part.name)
            copy.seek(offset)
            return copy.read(size)
