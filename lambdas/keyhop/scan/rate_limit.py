"""How fast, and how far, a run may read. Decisions only: the caller brings the clock and waits.

A page is paid for before it is sent, with what it is expected to cost, and settled with what the
response reports. With a rate R (read units a second), page i may be sent once all pages before it
*and itself* have been earned: at any time t after the start at most R*t units have been spent, but
for pages that cost more than expected; those are made up for by the next ones. There is no burst.

What a page will cost is reckoned from items read before. So under a limit the very first page is
one item, with no other page beside it; and of a sum of units, each page sets aside as much more as
the worst page so far has surprised by.

Throttling lowers the rate for all workers at once: to a share of what was really read in the last
second, from where it grows again until the next throttle, or until it no longer binds.
"""

import math
from dataclasses import dataclass, field

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.errors import BudgetSpent

SLOWER = 0.7
"""Share of the measured rate that remains after a throttle."""

GROWTH_PER_SECOND = 0.10
LONGEST_GROWTH_SECONDS = 600.0
SLOWEST = 25.0
"""Read units a second that throttling never goes below; each worker's own back-off does."""

REACTION_SECONDS = 1.0
"""Throttles closer together than this are one event."""

FREE_AGAIN = 4.0
"""A rate this many times the greatest measured one no longer binds, and is dropped."""

PAGE_SECONDS = 1.0
"""A page may cost at most what this many seconds earn."""


@dataclass(slots=True)
class Budget:
    """Shared by all workers of a run; calls must not overlap. All times in seconds of one clock.

    max_rate: read units a second for the whole run, None for no limit.
    max_units: read units that may be spent at all, None for no limit.
    sized: whether a page has held items, so that their size is known.
    """

    max_rate: float | None = None
    max_units: float | None = None
    spent: float = 0.0
    sized: bool = False
    _reserved: float = 0.0
    _surprise: float = 0.0
    _next_at: float = -math.inf
    _throttled_rate: float | None = None
    _throttled_at: float = -math.inf
    _window: "_Window" = field(default_factory=lambda: _Window())

    def page_units(self, now: float) -> float:
        """Most read units that the next page should be expected to cost; may be infinite."""
        return max(UNITS_PER_BLOCK, min(self.left, self._rate(now) * PAGE_SECONDS))

    def allow_more(self, units: float) -> None:
        """From now on `units` more may be spent, and no more."""
        self.max_units = self.spent + max(0.0, units)

    def limit_rate(self, now: float, max_rate: float) -> None:
        """From now on another `max_rate`; what waits for its turn is paid for at that rate."""
        before = self._rate(now)
        self.max_rate = max_rate
        if self._next_at > now and not math.isinf(before):
            self._next_at = now + (self._next_at - now) * before / self._rate(now)

    @property
    def is_blind(self) -> bool:
        """Whether there is a limit, and no item yet to tell how large items are."""
        return not self.sized and (self.max_units is not None or self.max_rate is not None)

    def with_surprise(self, units: float) -> float:
        """What to reserve for a page that should cost `units`."""
        return units if self.max_units is None else units + self._surprise

    def must_wait(self, units: float) -> bool:
        """Whether a page of `units` may fit once pages that are under way are settled."""
        return self._reserved > 0 and (units > self.left or self.is_blind)

    def reserve(self, now: float, units: float) -> float:
        """Set `units` aside for a page; returns the seconds to wait before it is sent.

        Raises BudgetSpent if that is more than is left.
        """
        if units > self.left:
            raise BudgetSpent(
                f"Of {self.max_units:g} read units {self.spent:g} are spent, and the next page may "
                f"cost more than what is left."
            )
        self._reserved += units
        rate = self._rate(now)
        if math.isinf(rate):
            return 0.0
        self._next_at = max(now, self._next_at) + units / rate
        return self._next_at - now

    def settle(
        self, now: float, reserved: float, spent: float, expected: float | None = None
    ) -> None:
        """Book a page for which `reserved` was set aside and that cost `spent` (0 if it failed).

        expected: what it should have cost, if that is not what was set aside.
        """
        self._reserved -= reserved
        self.spent += spent
        self._surprise = max(self._surprise, spent - (reserved if expected is None else expected))
        self._window.add(now, spent)
        rate = self._rate(now)
        if not math.isinf(rate):
            self._next_at += (spent - reserved) / rate

    def throttled(self, now: float) -> None:
        """A request was throttled: slow everyone down."""
        if now - self._throttled_at < REACTION_SECONDS:
            return
        measured = self._window.rate(now)
        self._throttled_rate = max(SLOWEST, SLOWER * min(measured, self._rate(now)))
        self._throttled_at = now
        self._next_at = max(self._next_at, now)

    @property
    def left(self) -> float:
        """Read units that may still be set aside; may be infinite."""
        if self.max_units is None:
            return math.inf
        return self.max_units - self.spent - self._reserved

    def _rate(self, now: float) -> float:
        limit = math.inf if self.max_rate is None else self.max_rate
        if self._throttled_rate is None:
            return limit
        since = min(now - self._throttled_at, LONGEST_GROWTH_SECONDS)
        grown: float = self._throttled_rate * (1 + GROWTH_PER_SECOND) ** since
        if grown > FREE_AGAIN * max(SLOWEST, self._window.peak):
            self._throttled_rate = None
            return limit
        return min(limit, grown)


@dataclass(slots=True)
class _Window:
    """Read units a second, measured over the last one to two seconds."""

    began: float = -math.inf
    units: float = 0.0
    previous: float = 0.0
    peak: float = 0.0

    def add(self, now: float, units: float) -> None:
        self._turn(now)
        self.units += units

    def rate(self, now: float) -> float:
        self._turn(now)
        return max(self.previous, self.units / max(REACTION_SECONDS, now - self.began))

    def _turn(self, now: float) -> None:
        age = now - self.began
        if age < REACTION_SECONDS:
            return
        self.previous = self.units / age if age < 2 * REACTION_SECONDS else 0.0
        self.peak = max(self.peak, self.previous)
        self.units = 0.0
        self.began = now
