"""The second half of a verify: buckets compared, one after the other, and what differs looked at.

A bucket is a segment of this run within the run (jobs/nested.py); a step settles some candidates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import Part, RunPlan
from keyhop.jobs.pages import Learnt
from keyhop.rekey.compare.looks import Found, Looks
from keyhop.rekey.compare.rows import Candidate, Unmatched
from keyhop.rekey.side.rows import key_text
from keyhop.scan.in_flight import InFlight
from keyhop.scan.reader import pause
from keyhop.scan.skip_scan import Position, Step

CANDIDATES_AT_ONCE = 1_000
"""They wait together."""

GATHERED_AT_ONCE = 20_000
"""Candidates whose keys are held in memory: for so many a bucket is read once more."""

ROWS = "rows"


@dataclass(slots=True)
class _Open:
    """A bucket under way. waiting: its next candidates, from number `first` on."""

    unmatched: Unmatched
    first: int = 0
    waiting: list[Candidate] = field(default_factory=list)


@dataclass(slots=True)
class BucketPages:
    """The buckets of a finished run of scans (pages.Pages)."""

    journal: Journal
    plan: RunPlan
    parts: Sequence[Part]
    looks: Looks
    stop: Event
    note: Callable[[Found], None] = lambda found: None
    usage: Usage = field(default_factory=Usage)
    in_flight: InFlight = field(default_factory=InFlight)
    _open: dict[int, _Open] = field(default_factory=dict)

    def go_on(self, learnt: Learnt | None) -> None:
        return

    def learnt(self) -> Learnt:
        return {}

    def step(self, segment: int, position: Position, over: Event) -> Step:
        """Pages.step; a position's `start` is the number of candidates before it, as a key."""
        done = int(position.start[ROWS]["N"]) if position.start else 0
        bucket = self._open.get(segment)
        if bucket is None:
            bucket = self._open[segment] = _Open(Unmatched(self._rows(segment)))
            self.usage.count(items=bucket.unmatched.rows)
        candidates = self._next(segment, bucket, done)
        if not candidates:
            self._open.pop(segment)
            return Step((), None)
        counts, real = self.looks.settled(candidates, partial(pause, self.stop, over))
        for one in real:
            self.note(one)
        done += len(candidates)
        return Step(
            [row_of(one) for one in real], Position({ROWS: {"N": str(done)}}), counts=counts
        )

    def _next(self, segment: int, bucket: _Open, done: int) -> list[Candidate]:
        at = done - bucket.first
        if not 0 <= at < len(bucket.waiting):
            rows = self._rows(segment)
            bucket.waiting = bucket.unmatched.candidates(rows, done, GATHERED_AT_ONCE)
            bucket.first, at = done, 0
        return bucket.waiting[at : at + CANDIDATES_AT_ONCE]

    def _rows(self, bucket: int) -> Iterator[Key]:
        for part in self.parts:
            offset = part.header
            for block in part.blocks:
                if block.segment == bucket:
                    yield from self.journal.piece(self.plan, part, offset, block.size)
                offset += block.size


def row_of(found: Found) -> dict[str, Any]:
    """A real difference, as it stands in the run's parts: it holds keys."""
    return {
        "finding": {"S": found.finding},
        "place": {"S": key_text(found.candidate.place)},
        "repaired": {"S": str(found.is_repaired).lower()},
        **{
            f"owner{number}": {"S": key_text(owner)}
            for number, owner in enumerate(found.candidate.owners)
        },
    }
