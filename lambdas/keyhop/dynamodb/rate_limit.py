"""The limits on how fast and how much a run may read.

`Budget` decides how long a page must wait; its caller has the clock. `Gate` is the one lock around
a budget, where threads wait for their turn.

A page is paid for with its expected cost before it is sent, and settled with the cost that the
response reports. With a rate R (read units per second), a page may be sent once the units earned
since the start pay for all pages before it *and for the page itself*. So after t seconds at most
R*t units have been spent, except for pages in flight that cost more than expected; the next pages
make up for those.

Nothing is lost while pages wait for their turn, and what a page leaves of its reservation is
available to the next ones at once. While no page waits, the budget saves up at most one page, the
largest so far: that is the only burst. So in any one second no more is spent than R, and one page
for each request that was in flight or waiting. The limit is not the page that was sent last,
because a small page after a large one that cost little would lose most of what the large one has
left. But after a throttle it is the last page, because bursts are refused then.

The expected cost of a page is calculated from items that were read before. So under a limit the
very first page is one item, and no other page is in flight beside it. If the total of units is
limited, each page also reserves the largest surprise of any page so far.

Throttling lowers the rate for all workers at once, to a share of the rate that was really read in
the last second. From there the rate grows back quickly to a little less than the rate that was
refused, then faster and faster, as in TCP CUBIC, until the next throttle, or until it no longer
limits anything.
So it is near the capacity of the table for most of the time, and finds more if there is more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition

from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.errors import BudgetSpent

SLOWER = 0.7
"""The share of the measured rate that remains after a throttle."""

WAY_BACK_PER_SECOND = 0.20
"""The growth after a throttle, up to KEPT of the rate that was refused."""

KEPT = 0.9
"""The share of a refused rate that a table can sustain: saved capacity let it serve more before."""

CARE = 0.0025
"""The growth beyond that in t seconds is e^(CARE t^2): after six, the rate that was refused."""

SECONDS_FOR_A_PAGE = 0.1
"""The part of that time for which each page counts that was read since then. Otherwise more than
one page in fifty would be refused if there are only a few large pages a second."""

LONGEST_GROWTH_SECONDS = 60.0
SLOWEST = 25.0
"""The read units a second below which throttling does not lower the rate; back-off still may."""

REACTION_SECONDS = 1.0
"""Throttles closer together than this are one event."""

FREE_AGAIN = 4.0
"""A rate this many times the greatest measured one no longer binds, and is dropped."""

PAGE_SECONDS = 0.4
"""A page may cost at most the units of this many seconds, so that one page more or less is at most
4 % of the units of ten seconds."""

SLOWED_PAGE_SECONDS = 0.05
"""The same after a throttle. Each throttle refuses a page or two, so smaller pages lose less."""

CLOCK_SECONDS = 1e-6
"""A page that lacks no more than this is sent, because clocks do not measure shorter waits."""

LONGEST_WAIT_SECONDS = 0.2
"""The interval in which a waiting thread checks whether the run was stopped."""


@dataclass(slots=True)
class _Window:
    """A measurement of read units a second over the last one to two seconds."""

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


@dataclass(slots=True)
class _Slowed:
    """The rate after a throttle at `began`: it grows from `lowest`.

    Attributes:
        sustained: A rate slightly below what the table can serve; infinite at the first throttle.
        pages: The number of pages that were read since then.
    """

    began: float
    lowest: float
    sustained: float
    pages: int = 0

    def rate(self, now: float) -> float:
        since = min(now - self.began, LONGEST_GROWTH_SECONDS)
        grown: float = self.lowest * (1 + WAY_BACK_PER_SECOND) ** since
        if grown <= self.sustained:
            return grown
        way_back = math.log(self.sustained / self.lowest) / math.log(1 + WAY_BACK_PER_SECOND)
        beyond = min(since - way_back, SECONDS_FOR_A_PAGE * self.pages)
        return self.sustained * math.exp(CARE * beyond**2)


@dataclass(eq=False, slots=True)
class Turn:
    """The turn of a page, from `reserve` to `settle`; it waits until `is_sent` is true."""

    units: float
    is_sent: bool = False


@dataclass(slots=True)
class Budget:
    """The budget that all readers of a run share. Calls must not overlap.

    All times are seconds of one clock.

    Attributes:
        max_rate: The read units per second for the whole run; None for no limit.
        max_units: The read units in total; None for no limit.
        sized: Whether a page has held items, so that their size is known.
        surprise: The largest number of read units by which a page has exceeded its expected cost.
        _earned: The units that the rate has earned and that are not spent; negative after pages
            that cost more than expected.
        _page: The units of the largest page that was sent, or of the last one after a throttle. If
            the rate changes, it is at most a page of the new rate.
    """

    max_rate: float | None = None
    max_units: float | None = None
    spent: float = 0.0
    sized: bool = False
    surprise: float = 0.0
    _reserved: float = 0.0
    _waiting: list[Turn] = field(default_factory=list)
    _earned: float = 0.0
    _earned_at: float = math.inf
    _page: float = 0.0
    _slowed: _Slowed | None = None
    _throttled_at: float = -math.inf
    _window: _Window = field(default_factory=_Window)

    def page_units(self, now: float) -> float:
        """Return the maximum expected read units of the next page, which may be infinite."""
        seconds = PAGE_SECONDS if self._slowed is None else SLOWED_PAGE_SECONDS
        return max(UNITS_PER_BLOCK, min(self.remaining, self._rate(now) * seconds))

    def allow_more(self, units: float | None) -> None:
        """Allow `units` more to be spent; None for any number."""
        self.max_units = None if units is None else self.spent + max(0.0, units)

    def limit_rate(self, now: float, max_rate: float) -> None:
        """Set another `max_rate`. Pages that wait for their turn are paid for at that rate."""
        self._earn(now)
        self.max_rate = max_rate
        self._page = min(self._page, self.page_units(now))

    @property
    def is_blind(self) -> bool:
        """Return whether there is a limit and the size of items is still unknown."""
        return not self.sized and (self.max_units is not None or self.max_rate is not None)

    @property
    def is_free(self) -> bool:
        """Return whether nothing is limited now, so that no page waits and nothing is earned."""
        return self.max_units is None and self.max_rate is None and self._slowed is None

    def pass_free(self, units: float) -> Turn:
        """Do as `reserve` and `wait` do, without limits."""
        self._reserved += units
        self._page = max(self._page, units)
        return Turn(units, is_sent=True)

    def must_wait(self, units: float) -> bool:
        """Return whether a page of `units` may fit after pages in flight are settled."""
        return self._reserved > 0 and (units > self.remaining or self.is_blind)

    def reserve(self, now: float, units: float) -> Turn:
        """Reserve `units` for a page, which then waits for its turn; raise BudgetSpent."""
        if units > self.remaining:
            raise self.exhausted()
        self._earn(now)
        turn = Turn(units)
        self._reserved += units
        self._waiting.append(turn)
        return turn

    def exhausted(self) -> BudgetSpent:
        """Return the error to raise when the remaining units do not pay for a page."""
        return BudgetSpent(
            f"Of {self.max_units:g} read units {self.spent:g} are spent, and the next page may "
            f"cost more than the rest."
        )

    def wait(self, now: float, turn: Turn) -> float:
        """Return the expected seconds until a page may be sent; 0 if it is sent now."""
        self._earn(now)
        rate = self._rate(now)
        if not math.isinf(rate):
            place = self._waiting.index(turn)
            missing = sum(earlier.units for earlier in self._waiting[: place + 1]) - self._earned
            if missing > rate * CLOCK_SECONDS:
                return missing / rate
        self._waiting.remove(turn)
        turn.is_sent = True
        self._earned -= turn.units
        self._page = turn.units if self._slowed else max(self._page, turn.units)
        return 0.0

    def settle(self, now: float, turn: Turn, spent: float, expected: float | None = None) -> None:
        """Record that a page cost `spent`, which is 0 if it failed or gave its turn up.

        `expected` is its expected cost, if that is not the reserved number of units.
        """
        is_free = self.is_free
        self._reserved -= turn.units
        if not is_free:
            self._earn(now)
        if not turn.is_sent:
            self._waiting.remove(turn)
        elif not is_free:
            self._save(turn.units - spent)
        self._book(now, spent, turn.units if expected is None else expected)

    def book(self, now: float, units: float) -> None:
        """Subtract the units of a page that was read without a turn."""
        self._earn(now)
        self._save(-units)
        self._book(now, units, units)

    def throttled(self, now: float) -> None:
        if now - self._throttled_at < REACTION_SECONDS:
            return
        self._earn(now)
        refused = self._rate(now)
        lowest = max(SLOWEST, SLOWER * min(self._window.rate(now), refused))
        self._slowed = _Slowed(now, lowest, max(lowest, KEPT * refused))
        self._throttled_at = now
        self._earned = min(0.0, self._earned)
        self._page = min(self._page, self.page_units(now))

    @property
    def remaining(self) -> float:
        """Return the read units that may still be reserved, which may be infinite."""
        if self.max_units is None:
            return math.inf
        return self.max_units - self.spent - self._reserved

    def _book(self, now: float, spent: float, expected: float) -> None:
        self.spent += spent
        if self._slowed is not None and spent > 0:
            self._slowed.pages += 1
        self.surprise = max(self.surprise, spent - expected)
        self._window.add(now, spent)

    def _earn(self, now: float) -> None:
        """Earn units for the time up to now, at the present rate."""
        seconds, self._earned_at = max(0.0, now - self._earned_at), now
        rate = self._rate(now)
        if math.isinf(rate):
            self._earned = 0.0
            return
        self._save(rate * seconds)

    def _save(self, units: float) -> None:
        """Save units, at most those of all waiting pages, or of one page; a debt is negative."""
        maximum = max(self._page, sum(turn.units for turn in self._waiting))
        self._earned = min(self._earned + units, max(maximum, self._earned))

    def _rate(self, now: float) -> float:
        limit = math.inf if self.max_rate is None else self.max_rate
        if self._slowed is None:
            return limit
        grown = self._slowed.rate(now)
        if grown > FREE_AGAIN * max(SLOWEST, self._window.peak):
            self._slowed = None
            return limit
        return min(limit, grown)


@dataclass(eq=False, slots=True)
class Gate:
    """Shared by all threads of a process that spend from one budget."""

    budget: Budget
    clock: Callable[[], float]
    _changed: Condition = field(default_factory=Condition)

    def enter(self, units: float, check: Callable[[], None]) -> Turn:
        """Wait until a page may be sent that will probably cost `units`; raise BudgetSpent.

        `check` is called first, and a few times per second. What it raises ends the wait. The
        result must be passed to `leave`.
        """
        check()
        with self._changed:
            if self.budget.is_free:
                return self.budget.pass_free(units)
        turn: Turn | None = None
        try:
            while True:
                check()
                with self._changed:
                    seconds = LONGEST_WAIT_SECONDS
                    reserved = units
                    if self.budget.max_units is not None:
                        reserved += self.budget.surprise
                    if turn is None and not self.budget.must_wait(reserved):
                        turn = self.budget.reserve(self.clock(), reserved)
                    if turn is not None:
                        seconds = self.budget.wait(self.clock(), turn)
                        if turn.is_sent:
                            return turn
                    self._changed.wait(min(seconds, LONGEST_WAIT_SECONDS))
        except BaseException:
            if turn is not None:
                self.leave(turn, 0.0)
            raise

    def leave(
        self, turn: Turn, spent: float, expected: float | None = None, sized: bool = False
    ) -> None:
        """Record the cost of a page, its expected cost, and whether it held items."""
        with self._changed:
            is_news = (
                spent != turn.units or self.budget.is_blind or self.budget.max_units is not None
            )
            self.budget.settle(self.clock(), turn, spent, expected)
            self.budget.sized = self.budget.sized or sized
            if is_news:
                self._changed.notify_all()

    def book(self, units: float) -> None:
        """Subtract the units of a page that was read without a turn."""
        with self._changed:
            self.budget.book(self.clock(), units)

    def room(self) -> float | None:
        """Return the maximum read units of the next page; None for the first page: one item."""
        if self.budget.is_free:
            return math.inf
        with self._changed:
            return None if self.budget.is_blind else self.budget.page_units(self.clock())

    def limit_rate(self, max_rate: float) -> None:
        with self._changed:
            self.budget.limit_rate(self.clock(), max_rate)
            self._changed.notify_all()

    def allow_more(self, units: float | None) -> None:
        with self._changed:
            self.budget.allow_more(units)
            self._changed.notify_all()

    def throttled(self) -> None:
        with self._changed:
            self.budget.throttled(self.clock())
