"""The pages of a verification: compare the buckets of digests, and look at the differences.

A bucket is a segment. It is read in many steps, which are not committed one by one: a worker that
is killed reads it again. Then the worker looks at its candidates in waves; some waves wait while it
looks at or settles another. A step makes one look at a wave, or settles some candidates of the
first wave. Only settled candidates are committed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from typing import Any

from keyhop.dynamodb.requester import pause
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.pages import Learnt
from keyhop.jobs.rows import Rows
from keyhop.rekey.compare.looks import Found, Looks
from keyhop.rekey.compare.rows import Candidate, Unmatched
from keyhop.rekey.side.rows import key_text
from keyhop.scan.in_flight import InFlight
from keyhop.scan.skip_scan import PageResult, Position

AT_ONCE = 2
"""Buckets of a worker. Each is held in memory, and while one waits for looks, another is read."""

ROWS_AT_ONCE = 20_000
"""Rows of a step, which take a fraction of a second."""

GATHERED_AT_ONCE = 20_000
"""Candidates whose keys are held in memory. For each such number of candidates, a bucket is read
once more. A wave has at most as many, or fewer if looking takes long (looks.FIRST_LOOK_SECONDS).
"""

WAITING_AT_ONCE = 2
"""Waves of a bucket that wait for their next look: enough work for the quiet times."""

SETTLED_AT_ONCE = 1_000
"""Candidates that a step settles; it is committed as a whole, and takes some seconds of repairs."""

ROWS = "rows"


@dataclass(slots=True)
class _Wave:
    """Candidates that the worker looks at together, from number `first` of their bucket on, with
    the last look at each, and the remaining looks; `due` is infinite if none remains.
    """

    first: int
    found: list[Found]
    looks: Iterator[float]
    due: float = 0.0

    @property
    def end(self) -> int:
        """The number of the candidate after the last one."""
        return self.first + len(self.found)

    def look_again(self, clock: Callable[[], float]) -> None:
        """Make the look that is due, and compute when the next one is due."""
        seconds = next(self.looks, math.inf)
        self.due = clock() + seconds


@dataclass(slots=True)
class _Open:
    """A bucket that is being verified. Its next candidates are gathered, from number `first` on;
    those before them wait, in waves, for looks or for settling.
    """

    rows: Iterator[Key]
    unmatched: Unmatched = field(default_factory=Unmatched)
    is_read: bool = False
    first: int = 0
    gathered: list[Candidate] = field(default_factory=list)
    waves: list[_Wave] = field(default_factory=list)

    def found_from(self, number: int) -> list[Found]:
        """Return the candidates to settle next, from this one on; empty if they have to wait."""
        if not self.waves or self.waves[0].due < math.inf:
            return []
        at = number - self.waves[0].first
        return self.waves[0].found[at : at + SETTLED_AT_ONCE]

    def waits_until(self) -> float:
        """Return when the next look at a wave is due; infinite if none waits."""
        return min((wave.due for wave in self.waves), default=math.inf)


@dataclass(slots=True)
class BucketPages:
    """The buckets of a finished run of digests (pages.Pages), with its journal and plan."""

    journal: Journal
    plan: RunPlan
    looks: Looks
    stop: Event
    note: Callable[[Found], None] = lambda result: None
    usage: Usage = field(default_factory=Usage)
    in_flight: InFlight = field(default_factory=lambda: InFlight(limit=AT_ONCE))
    _open: dict[int, _Open] = field(default_factory=dict)
    _digests: Rows = field(init=False)

    def __post_init__(self) -> None:
        self._digests = Rows(self.journal, self.plan)

    def go_on(self, learnt: Learnt | None) -> None:
        return

    def learnt(self) -> Learnt:
        return {}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Make a step (Pages.step); a position's `start` counts the earlier candidates."""
        bucket = self._open.get(segment)
        if bucket is None:
            bucket = self._open[segment] = _Open(self._rows(segment))
        if not bucket.is_read:
            self._read(bucket)
            return PageResult((), position)
        settled_count = int(position.start[ROWS]["N"]) if position.start else 0
        bucket.waves = [wave for wave in bucket.waves if wave.end > settled_count]
        clock, due = self.looks.clock, bucket.waits_until()
        if due <= clock():
            next(wave for wave in bucket.waves if wave.due == due).look_again(clock)
        elif self._begins_wave(segment, bucket, settled_count):
            bucket.waves[-1].look_again(clock)
        elif results := bucket.found_from(settled_count):
            return self._settled(results, settled_count)
        elif due < math.inf:
            pause(self.stop, over, due - clock())
        else:
            self._open.pop(segment)
            return PageResult((), None)
        return PageResult((), position)

    def _begins_wave(self, segment: int, bucket: _Open, settled_count: int) -> bool:
        """Look at the next candidates, unless enough waves wait, or none remain."""
        first = bucket.waves[-1].end if bucket.waves else settled_count
        waiting = sum(wave.due < math.inf for wave in bucket.waves)
        if waiting == WAITING_AT_ONCE or first - settled_count >= GATHERED_AT_ONCE:
            return False
        candidates = self._next(segment, bucket, first)
        if candidates:
            results = self.looks.look(candidates)
            bucket.waves.append(_Wave(first, results, self.looks.look_again(results)))
        return bool(candidates)

    def _settled(self, results: list[Found], settled_count: int) -> PageResult:
        counts, real = self.looks.settled(results)
        for result in real:
            self.note(result)
        position = Position({ROWS: {"N": str(settled_count + len(results))}})
        return PageResult([row_of(result) for result in real], position, counts=counts)

    def _read(self, bucket: _Open) -> None:
        """Read more rows of a bucket."""
        count = bucket.unmatched.take(islice(bucket.rows, ROWS_AT_ONCE))
        self.usage.count(items=count)
        if count < ROWS_AT_ONCE:
            bucket.unmatched.end()
            bucket.is_read = True

    def _next(self, segment: int, bucket: _Open, number: int) -> list[Candidate]:
        """Return candidates from this number on; empty if there are no more."""
        if number >= len(bucket.unmatched.places):
            return []
        at = number - bucket.first
        if not 0 <= at < len(bucket.gathered):
            rows = self._rows(segment)
            bucket.gathered = bucket.unmatched.candidates(rows, number, GATHERED_AT_ONCE)
            bucket.first, at = number, 0
        return bucket.gathered[at:]

    def _rows(self, bucket: int) -> Iterator[Key]:
        return self._digests.load(range(self.plan.groups)).pieces(bucket)


def row_of(result: Found) -> dict[str, Any]:
    """Return a difference as it is written into the run's parts, with its keys."""
    return {
        "finding": {"S": result.finding},
        "place": {"S": key_text(result.candidate.place)},
        "repaired": {"S": str(result.is_repaired).lower()},
        **({"straggler": {"S": "true"}} if result.is_bypassed else {}),
        **{
            f"owner{number}": {"S": key_text(owner)}
            for number, owner in enumerate(result.candidate.owners)
        },
    }
