"""The pages of a verify: buckets of digests compared, and what differs looked at.

A bucket is a segment. It is read in many steps, which are not committed one by one: whoever is
killed reads it again. Then each step settles some of its candidates, and those are.
"""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Event, Lock
from typing import Any

from keyhop.dynamodb.requester import pause
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import READERS, Journal
from keyhop.jobs.model import Part, RunPlan
from keyhop.jobs.pages import Learnt
from keyhop.rekey.compare.looks import Found, Looks
from keyhop.rekey.compare.rows import Candidate, Unmatched
from keyhop.rekey.side.rows import key_text
from keyhop.scan.in_flight import InFlight
from keyhop.scan.skip_scan import PageResult, Position

AT_ONCE = 2
"""Buckets of a worker: each is held in memory, and while one waits for looks, one is read."""

ROWS_AT_ONCE = 20_000
"""A fraction of a second."""

GATHERED_AT_ONCE = 20_000
"""Candidates whose keys are held in memory: for so many a bucket is read once more. At most so many
wait together between their looks; fewer if looking takes long (looks.FIRST_LOOK_SECONDS)."""

SETTLED_AT_ONCE = 1_000
"""Candidates of a step, which is committed as a whole: some seconds of repairs."""

ROWS = "rows"


class Blocks:
    """Where the rows of each bucket are: three numbers a block, as there may be millions."""

    def __init__(self, journal: Journal, plan: RunPlan) -> None:
        self._parts: list[str] = []
        self._of = [array("q") for _ in range(plan.buckets)]
        for first in range(0, plan.groups, READERS):  # and no more commits in memory
            for commit in journal.commits_of(range(plan.groups)[first : first + READERS]):
                for part in commit.parts:
                    self._add(part)

    def _add(self, part: Part) -> None:
        offset = part.header
        for block in part.blocks:
            self._of[block.segment].extend((len(self._parts), offset, block.size))
            offset += block.size
        self._parts.append(part.name)

    def of(self, bucket: int) -> Iterator[tuple[str, int, int]]:
        """The part of each, where it begins, and its size."""
        numbers = iter(self._of[bucket])
        for part, offset, size in zip(numbers, numbers, numbers, strict=True):
            yield self._parts[part], offset, size


@dataclass(slots=True)
class _Open:
    """A bucket under way.

    Attributes:
        rows: Those left to read.
        waiting: Its next candidates, from number `first` on.
        found: What the looks at its next candidates found, from number `found_first` on.
    """

    rows: Iterator[Key]
    unmatched: Unmatched = field(default_factory=Unmatched)
    is_read: bool = False
    first: int = 0
    waiting: list[Candidate] = field(default_factory=list)
    found_first: int = 0
    found: list[Found] = field(default_factory=list)

    def found_from(self, number: int) -> list[Found]:
        """Return what is to be settled next, from this candidate on; nothing if none was looked at.

        Args:
            number: The number of the first candidate that is not settled yet.
        """
        at = number - self.found_first
        return self.found[at : at + SETTLED_AT_ONCE] if 0 <= at < len(self.found) else []


@dataclass(slots=True)
class BucketPages:
    """The buckets of a finished run of digests (pages.Pages); journal, plan: its."""

    journal: Journal
    plan: RunPlan
    looks: Looks
    stop: Event
    note: Callable[[Found], None] = lambda found: None
    usage: Usage = field(default_factory=Usage)
    in_flight: InFlight = field(default_factory=lambda: InFlight(limit=AT_ONCE))
    _open: dict[int, _Open] = field(default_factory=dict)
    _blocks: Blocks | None = None
    _lock: Lock = field(default_factory=Lock)

    def go_on(self, learnt: Learnt | None) -> None:
        return

    def learnt(self) -> Learnt:
        return {}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Pages.step; a position's `start` is the number of candidates before it, as a key."""
        bucket = self._open.get(segment)
        if bucket is None:
            bucket = self._open[segment] = _Open(self._rows(segment))
        if not bucket.is_read:
            self._read(bucket)
            return PageResult((), position)
        done = int(position.start[ROWS]["N"]) if position.start else 0
        found = bucket.found_from(done)
        if not found:
            candidates = self._next(segment, bucket, done)
            if not candidates:
                self._open.pop(segment)
                return PageResult((), None)
            bucket.found = self.looks.look(candidates, partial(pause, self.stop, over))
            bucket.found_first = done
            found = bucket.found_from(done)
        counts, real = self.looks.settled(found)
        for one in real:
            self.note(one)
        done += len(found)
        return PageResult(
            [row_of(one) for one in real], Position({ROWS: {"N": str(done)}}), counts=counts
        )

    def _read(self, bucket: _Open) -> None:
        """On through its rows."""
        taken = bucket.unmatched.take(islice(bucket.rows, ROWS_AT_ONCE))
        self.usage.count(items=taken)
        if taken < ROWS_AT_ONCE:
            bucket.unmatched.end()
            bucket.is_read = True

    def _next(self, segment: int, bucket: _Open, done: int) -> list[Candidate]:
        if done >= len(bucket.unmatched.places):
            return []
        at = done - bucket.first
        if not 0 <= at < len(bucket.waiting):
            rows = self._rows(segment)
            bucket.waiting = bucket.unmatched.candidates(rows, done, GATHERED_AT_ONCE)
            bucket.first, at = done, 0
        return bucket.waiting[at:]

    def _rows(self, bucket: int) -> Iterator[Key]:
        with self._lock:
            if self._blocks is None:
                self._blocks = Blocks(self.journal, self.plan)
        return self.journal.pieces(self.plan, self._blocks.of(bucket))


def row_of(found: Found) -> dict[str, Any]:
    """Return a difference as it is written into the run's parts, with its keys."""
    return {
        "finding": {"S": found.finding},
        "place": {"S": key_text(found.candidate.place)},
        "repaired": {"S": str(found.is_repaired).lower()},
        **({"straggler": {"S": "true"}} if found.is_bypassed else {}),
        **{
            f"owner{number}": {"S": key_text(owner)}
            for number, owner in enumerate(found.candidate.owners)
        },
    }
