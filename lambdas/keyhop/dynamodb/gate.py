"""Where threads wait for their turn: a budget behind the one lock there is around it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition

from keyhop.dynamodb.rate_limit import Budget, Turn

LONGEST_WAIT_SECONDS = 0.2
"""So often a thread that waits looks whether the run was stopped."""


@dataclass(eq=False, slots=True)
class Gate:
    """Shared by all threads of a process that spend from one budget."""

    budget: Budget
    clock: Callable[[], float]
    _changed: Condition = field(default_factory=Condition)

    def enter(self, units: float, check: Callable[[], None]) -> Turn:
        """Wait until a page may be sent that will probably cost `units`.

        Args:
            units: The expected read units.
            check: Is called first, and a few times per second. What it raises ends the wait.

        Returns:
            The turn of the page, which must be passed to `leave`.

        Raises:
            BudgetSpent: The remaining budget is too small.
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
                    reserved = self.budget.with_surprise(units)
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
        """Most read units that the next page should cost; None for the first page: one item."""
        if self.budget.is_free:
            return math.inf
        with self._changed:
            return None if self.budget.is_blind else self.budget.page_units(self.clock())

    def limit_rate(self, max_rate: float) -> None:
        with self._changed:
            self.budget.limit_rate(self.clock(), max_rate)
            self._changed.notify_all()

    def allow_more(self, units: float | None) -> None:
        """`units` more may be spent, and no more; None: any number."""
        with self._changed:
            if units is None:
                self.budget.max_units = None
            else:
                self.budget.allow_more(units)
            self._changed.notify_all()

    def throttled(self) -> None:
        with self._changed:
            self.budget.throttled(self.clock())
