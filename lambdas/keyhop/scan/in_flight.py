"""How many pages to read at once: found by what more of them bring. Pure: the caller has the clock.

A lane reads one page after the other. With n lanes, of which each page takes d seconds, n / d pages
a second come. As long as nothing but distance is the limit, d stays what it is, and more lanes
bring more pages; where the CPU, or what the table serves, is the limit, d grows with the lanes and
nothing is gained. So the number is changed by a step, and what that has brought is compared with
what it would have brought if d had stayed (TCP Vegas; the gradient of Netflix's
concurrency-limits). Both ways: lanes that bring nothing are given up.

An allowed rate, and a table that throttles (rate_limit.py), is no matter of trying: pages wait for
their turn then, and as many lanes suffice as have a request under way, and a few that wait.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

FIRST = 8
"""Lanes to begin with: what is left to read may be a few pages."""

MOST = 256
"""Lanes of one process: a thread and a connection each."""

LEAP, STEP = 2.0, 1.25
"""By how much the lanes are changed: as long as that pays, and once it has not."""

GAIN = 0.3
"""Of what more lanes would bring if d stayed, they must bring so much. Where requests queue at
random, 0.3 is nine tenths of what there is to have; 1.0 would stop at eight."""

LOSS = 0.15
"""Of what fewer lanes would lose if d stayed, they may lose so much."""

SHORTEST_SECONDS, LONGEST_SECONDS = 0.15, 2.0
"""Of a window; a longer one is judged with fewer pages."""

PAGES_EACH, FEWEST_PAGES, FEWEST_OF_STEP = 2, 20, 100
"""Pages in a window, for each lane and in all: the time of a few pages is chance."""

REST_SECONDS = 3.0
"""Between two trials of other numbers, if pages take as long as they did."""

BUSY = 0.9
"""CPU seconds of the process in a second. Python runs one thread at a time: no more lanes then."""

CHANGED = 1.25
"""By so much longer, or shorter, something has changed."""

WAITING = 0.25
"""Lanes that wait for their turn, on average, from where on the rate is the limit."""

SPARE = 0.25
"""Lanes beside those with a request under way, as a share of these: answers come by chance."""


class Throughput(NamedTuple):
    """What so many lanes brought: pages a second, of `seconds` each."""

    lanes: int
    seconds: float

    @property
    def pages(self) -> float:
        return self.lanes / max(self.seconds, 1e-9)

    def differs_from(self, other: "Throughput") -> bool:
        return not self.seconds / CHANGED < other.seconds < self.seconds * CHANGED


@dataclass(slots=True)
class _Window:
    """What has been seen since a moment; pages that had begun before it do not count."""

    since: float = math.inf
    pages: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    throttles: int = 0
    cpu: float = 0.0


@dataclass(slots=True)
class InFlight:
    """The lanes of one process; calls must not overlap, but for those of `waited`, `throttled`.

    cpu: seconds that the process has used so far. limit: never more, as each takes much memory.
    most: an upper bound, as long as the lanes work. wanted: lanes to have, as
    far as has been found out.
    _before: what was measured before the step that is on trial. _rested: the pace at the beginning
    of a rest. _no_more: more lanes have brought too little since the rest.
    """

    cpu: Callable[[], float] = lambda: 0.0
    limit: int = MOST
    most: int = MOST
    wanted: int = FIRST
    _window: _Window = field(default_factory=_Window)
    _factor: float = LEAP
    _before: Throughput | None = None
    _rested: Throughput | None = None
    _rest_until: float = -math.inf
    _no_more: bool = False

    def begin(self, now: float, most: int) -> int:
        """All lanes begin anew, `most` at most; returns how many to have."""
        self.most = min(most, self.limit)
        self._window = _Window(now, cpu=self.cpu())
        return self.lanes

    @property
    def lanes(self) -> int:
        """To have now: what is left to read can be too little for those that are wanted."""
        return min(self.wanted, self.most)

    def page(self, began: float, ended: float) -> None:
        """A lane has read a page."""
        if began >= self._window.since:
            self._window.pages += 1
            self._window.seconds += ended - began

    def waited(self, began: float, ended: float) -> None:
        """A page has waited for its turn."""
        self._window.waited += max(0.0, ended - max(began, self._window.since))

    def throttled(self) -> None:
        self._window.throttles += 1

    def look(self, now: float) -> int:
        """Lanes to have from now on. To be called a few times a second while all lanes work."""
        window = self._window
        elapsed = now - window.since
        if elapsed < SHORTEST_SECONDS or window.pages < self._enough(elapsed):
            return self.lanes
        before = self.lanes
        pace = Throughput(before, window.seconds / window.pages)
        waiting = window.waited / elapsed
        if waiting >= WAITING:
            self._before = self._rested = None
            enough = math.ceil((1 + SPARE) * max(0.0, before - waiting) + 1)
            self._have(min(before, enough) if window.throttles else enough)
        elif not window.throttles:
            is_busy = self.cpu() - window.cpu >= BUSY * elapsed
            self._have(self._tried(now, pace, can_grow=before < self.most and not is_busy))
        return self.begin(now, self.most)

    def _enough(self, elapsed: float) -> int:
        """Pages to wait for."""
        if elapsed >= LONGEST_SECONDS:
            return self.lanes
        leaps = self._factor == LEAP and self._rested is None
        return max(PAGES_EACH * self.lanes, FEWEST_PAGES if leaps else FEWEST_OF_STEP)

    def _have(self, lanes: int) -> None:
        self.wanted = max(1, min(self.most, lanes))

    def _settle(self, now: float, pace: Throughput) -> int:
        """Try nothing for a while."""
        self._before, self._no_more = None, False
        self._rested, self._rest_until = pace, now + REST_SECONDS
        return pace.lanes

    def _tried(self, now: float, pace: Throughput, can_grow: bool) -> int:
        """The number to go on with, after a window."""
        before = self._before
        if before is None or before.lanes == pace.lanes:  # there was no room for the trial
            return self._next_trial(now, pace, can_grow)
        share = (pace.pages / before.pages - 1) / (pace.lanes / before.lanes - 1)
        if pace.lanes > before.lanes and share >= GAIN:
            self._factor = min(LEAP, self._factor * STEP)
            if can_grow:
                return self._more(pace)
            return self._settle(now, pace)
        if pace.lanes < before.lanes and share < LOSS:
            if pace.lanes > 1:
                return self._fewer(pace)
            return self._settle(now, pace)
        if pace.lanes < before.lanes:
            return self._settle(now, before)
        self._no_more = self._factor == STEP
        self._factor = max(STEP, math.sqrt(self._factor))
        self._before = None
        return before.lanes

    def _next_trial(self, now: float, pace: Throughput, can_grow: bool) -> int:
        rested = self._rested
        if rested is not None and now < self._rest_until and not rested.differs_from(pace):
            return pace.lanes
        self._rested = None
        if can_grow and not self._no_more:
            return self._more(pace)
        if pace.lanes > 1:
            return self._fewer(pace)
        return self._settle(now, pace)

    def _more(self, pace: Throughput) -> int:
        self._before = pace
        return max(pace.lanes + 1, math.ceil(pace.lanes * self._factor))

    def _fewer(self, pace: Throughput) -> int:
        self._before = pace
        return min(pace.lanes - 1, int(pace.lanes / STEP))
