"""The number of pages to read at once, found by measuring what more of them gain. Pure.

A lane reads one page after the other. With n lanes, and d seconds per page, n / d pages per second
arrive. While only the distance is the limit, d stays constant, and more lanes bring more pages.
Where the CPU or the capacity of the table is the limit, d grows with the lanes, and nothing is
gained. So the number is changed by a step, and the result is compared with what it would have been
if d had stayed constant (TCP Vegas; the gradient of Netflix's concurrency-limits). This works in
both directions: lanes that gain nothing are given up.

A rate limit, and a table that throttles (rate_limit.py), need no trials: pages wait for their turn
then, and the number of lanes that suffices is that of the requests in flight, and a few that wait.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

FIRST = 8
"""The number of lanes at the beginning, because only a few pages may remain to be read."""

MOST = 256
"""Lanes of one process: a thread and a connection each."""

LEAP, STEP = 2.0, 1.25
"""The factors by which the lanes are changed: while that pays, and after it has not."""

GAIN = 0.3
"""The share that more lanes must gain, of what they would gain if d stayed constant. Where requests
queue at random, 0.3 reaches nine tenths of the possible throughput; 1.0 would stop at eight."""

LOSS = 0.15
"""The share that fewer lanes may lose, of what they would lose if d stayed constant."""

SHORTEST_SECONDS, LONGEST_SECONDS = 0.15, 2.0
"""The length of a window. A window that gets longer is judged with fewer pages."""

PAGES_EACH, FEWEST_PAGES, FEWEST_OF_STEP = 2, 20, 100
"""The minimum of pages in a window, for each lane and in total: the time of a few is random."""

REST_SECONDS = 3.0
"""The time between two trials of other numbers, if the time of a page has not changed."""

BUSY = 0.9
"""CPU seconds per second from which on lanes do not grow, as Python runs one thread at a time."""

CHANGED = 1.25
"""The factor of a page's time that shows a change."""

WAITING = 0.25
"""The share of lanes that wait for their turn, on average, if the rate is the limit."""

SPARE = 0.25
"""Spare lanes, as a share of those with a request in flight, because answers are irregular."""


class Throughput(NamedTuple):
    """The throughput of a number of lanes, whose pages take `seconds` each."""

    lanes: int
    seconds: float

    @property
    def pages(self) -> float:
        return self.lanes / max(self.seconds, 1e-9)

    def differs_from(self, earlier: "Throughput") -> bool:
        return not self.seconds / CHANGED < earlier.seconds < self.seconds * CHANGED


@dataclass(slots=True)
class _Window:
    """The measurements since a moment. Pages that began before it do not count."""

    since: float = math.inf
    pages: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    throttles: int = 0
    cpu: float = 0.0


@dataclass(slots=True)
class InFlight:
    """The lanes of one process. Calls must not overlap, except those of `waited` and `throttled`.

    Attributes:
        cpu: Returns the CPU seconds that the process has used so far.
        limit: The maximum number of lanes, because each takes much memory.
        most: The current maximum.
        wanted: The best number of lanes that has been found so far.
        _before: The measurement before the step that is being tried.
        _rested: The throughput at the beginning of a rest.
        _no_more: Whether more lanes have gained too little since the rest.
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

    def begin(self, now: float, limit: int) -> int:
        """Begin again with all lanes, at most `limit`; return the number of lanes."""
        self.most = min(limit, self.limit)
        self._window = _Window(now, cpu=self.cpu())
        return self.lanes

    @property
    def lanes(self) -> int:
        """Return the number of lanes now. Too little may remain to be read for more."""
        return min(self.wanted, self.most)

    def page(self, began: float, ended: float) -> None:
        """Record that a lane has read a page."""
        if began >= self._window.since:
            self._window.pages += 1
            self._window.seconds += ended - began

    def waited(self, began: float, ended: float) -> None:
        """Record that a page has waited for its turn."""
        self._window.waited += max(0.0, ended - max(began, self._window.since))

    def throttled(self) -> None:
        self._window.throttles += 1

    def look(self, now: float) -> int:
        """Return the number of lanes from now on; called often while all lanes are busy."""
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
        """Return the number of pages to wait for."""
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
        """Return the number of lanes to continue with after a window."""
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
