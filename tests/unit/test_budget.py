"""Check the budget with a simulated clock and simulated requests, without threads or waits."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from keyhop.dynamodb.rate_limit import PAGE_SECONDS, SLOWEST, Budget, Turn
from keyhop.errors import BudgetSpent

LATE_SECONDS = 0.002
"""The maximum delay with which a thread or a timer wakes up."""

Cost = tuple[float, float]
"""The expected and the actual cost of a page."""


@dataclass
class Requests:
    """`at_once` callers that spend from a budget; each asks again as soon as it is answered.

    Attributes:
        sent: When each page was sent, and its cost.
        answered: When each page was answered, and its cost.
        widest: The largest expected or actual cost of a page.
    """

    budget: Budget
    at_once: int
    page: Callable[[float], Cost]
    latency: Callable[[], float]
    late: Callable[[], float] = lambda: 0.0
    requests: list[tuple[float, float]] = field(default_factory=list)
    answered: list[tuple[float, float]] = field(default_factory=list)
    widest: float = 0.0

    def run(self, until: float) -> "Requests":
        events: list[tuple[float, int, str, Turn, float]] = []
        numbers = count()
        waiting: dict[Turn, float] = {}

        def at(moment: float, what: str, turn: Turn, cost: float) -> None:
            heappush(events, (moment, next(numbers), what, turn, cost))

        def ask(now: float) -> None:
            expected, cost = self.page(self.budget.page_units(now))
            self.widest = max(self.widest, expected, cost)
            turn = self.budget.reserve(now, expected)
            waiting[turn] = cost
            at(now, "look", turn, cost)

        for _ in range(self.at_once):
            ask(0.0)
        while events and events[0][0] < until:
            now, _, what, turn, cost = heappop(events)
            if what == "answer":
                self.answered.append((now, cost))
                self.budget.settle(now, turn, cost)
                ask(now)
                if cost != turn.units:  # all waiting callers look again
                    for next_turn, its_cost in waiting.items():
                        at(now, "look", next_turn, its_cost)
            elif turn in waiting:
                seconds = self.budget.wait(now, turn)
                if turn.is_sent:
                    del waiting[turn]
                    self.requests.append((now, cost))
                    at(now + self.latency(), "answer", turn, cost)
                else:
                    at(now + seconds + self.late(), "look", turn, cost)
        return self


def in_windows(moments: Iterable[tuple[float, float]], seconds: float) -> list[tuple[float, float]]:
    """Return each window that begins with one of the moments, as its begin and its sum of units."""
    ordered = sorted(moments)
    sums = [0.0, *accumulate(units for _, units in ordered)]
    windows, end = [], 0
    for first, (moment, _) in enumerate(ordered):
        while end < len(ordered) and ordered[end][0] < moment + seconds:
            end += 1
        windows.append((moment, sums[end] - sums[first]))
    return windows


@dataclass(frozen=True)
class Fleet:
    """Workers that share a rate. The items that they read have sizes in read units."""

    rate: float
    workers: int
    at_once: int
    smallest: float
    largest: float
    latency: float
    cut_short: float
    seed: int

    @property
    def share(self) -> float:
        return self.rate / self.workers

    def run(self, seconds: float) -> list[Requests]:
        return [self._worker(number, seconds) for number in range(self.workers)]

    def _worker(self, number: int, seconds: float) -> Requests:
        chance = random.Random(self.seed + number)
        mean = (self.smallest + self.largest) / 2

        def page(room: float) -> Cost:
            items = max(1, int(room * chance.choice((0.3, 1.0)) / mean))
            expected = max(0.5, items * mean)
            if chance.random() < self.cut_short:  # the segment ended in it
                items = chance.randint(1, items)
            units = sum(chance.uniform(self.smallest, self.largest) for _ in range(min(items, 9)))
            return expected, max(0.5, units * max(1.0, items / 9))

        return Requests(
            Budget(max_rate=self.share),
            self.at_once,
            page,
            latency=lambda: self.latency * chance.uniform(0.5, 1.0),
            late=lambda: chance.uniform(0.0, LATE_SECONDS),
        ).run(seconds)


fleets = st.builds(
    Fleet,
    rate=st.floats(4, 5_000),
    workers=st.sampled_from([1, 1, 1, 2, 7]),
    at_once=st.sampled_from([1, 2, 8, 16]),
    smallest=st.sampled_from([0.02, 0.375, 3.0]),
    largest=st.sampled_from([0.04, 0.375, 0.5, 6.0]),
    latency=st.floats(0.002, 0.3),
    cut_short=st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    seed=st.integers(0, 10_000),
).filter(lambda fleet: fleet.smallest <= fleet.largest)


@given(fleet=fleets)
@example(fleet=Fleet(6.0, 1, 2, 0.375, 0.5, latency=0.1108, cut_short=0.5, seed=7204))
@example(fleet=Fleet(48.017, 7, 1, 0.375, 0.5, latency=0.0508, cut_short=0.5, seed=9587))
def test_the_rate_is_used_and_never_exceeded(fleet: Fleet) -> None:
    """The limits hold for each ten seconds, for the run, and for each second."""
    seconds = 25.0
    workers = fleet.run(seconds)
    for worker in workers:
        in_flight = fleet.at_once * worker.widest
        for moments, seconds_of in ((worker.requests, 1.0), (worker.answered, 1.0 + fleet.latency)):
            maximum = fleet.share * seconds_of + in_flight + 1e-6
            assert all(units <= maximum for _, units in in_windows(moments, 1.0))
        surprises = fleet.at_once * worker.budget.surprise
        assert worker.budget.spent <= fleet.share * seconds + surprises + 1e-6
        assert surprises > 0 or worker.budget.spent <= 1.02 * fleet.share * seconds
    if not can_use(fleet, workers):
        return
    first = 2.0  # the first pages have been earned and sent
    together = [moment for worker in workers for moment in worker.requests if moment[0] >= first]
    for began, units in in_windows(together, 10.0):
        assert began + 10.0 > seconds or units >= 0.95 * fleet.rate * 10.0


def can_use(fleet: Fleet, workers: list[Requests]) -> bool:
    """Return if the requests in flight can use the rate, and no single page is too large."""
    widest = max(worker.widest for worker in workers)
    cheapest = min(cost for worker in workers for _, cost in worker.requests)
    able = fleet.at_once * cheapest / (fleet.latency + LATE_SECONDS)
    return able >= 1.25 * fleet.share and widest <= 0.45 * fleet.share


def steady(rate: float, at_once: int, page: Callable[[float], Cost], latency: float) -> Requests:
    return Requests(Budget(max_rate=rate), at_once, page, lambda: latency).run(60.0)


@pytest.mark.parametrize("rate", [50.0, 100.0, 200.0, 400.0])
@pytest.mark.parametrize("at_once", [1, 8])
def test_returned_units_are_used(rate: float, at_once: int) -> None:
    """Half of the pages end with their segment, and return most of their reservation."""
    chance = random.Random(2)
    read = steady(rate, at_once, lambda room: (16.0, chance.choice([2.0, 16.0])), latency=0.004)
    for began, units in in_windows(read.requests, 10.0):
        assert began > 50.0 or units >= 0.95 * rate * 10.0
    assert read.budget.spent <= rate * 60.0


def test_the_longest_waiting_page_takes_returned_units() -> None:
    budget = Budget(max_rate=10.0)
    first, second, third = (budget.reserve(0.0, 4.0) for _ in range(3))
    assert budget.wait(0.0, first) == pytest.approx(0.4)
    assert budget.wait(0.4, first) == 0.0
    assert budget.wait(0.4, second) == pytest.approx(0.4)
    budget.settle(0.4, first, 0.5)
    assert budget.wait(0.4, second) == pytest.approx(0.05)
    assert budget.wait(0.4, third) == pytest.approx(0.45)


def test_a_page_overtakes_only_if_there_is_enough_for_both() -> None:
    budget = Budget(max_rate=10.0)
    large, small = budget.reserve(0.0, 4.0), budget.reserve(0.0, 0.5)
    assert budget.wait(0.2, small) == pytest.approx(0.25)
    assert budget.wait(0.45, small) == 0.0
    assert budget.wait(0.45, large) == 0.0


def test_an_idle_budget_saves_up_one_page() -> None:
    """This prevents a burst after an hour of other work."""
    budget = Budget(max_rate=10.0)
    turn = budget.reserve(0.0, 2.0)
    assert budget.wait(0.2, turn) == 0.0
    budget.settle(0.2, turn, 2.0)
    assert sum(send(budget, 3_600.0, 2.0) == 0.0 for _ in range(10)) == 1


def test_a_small_page_keeps_the_units_that_a_large_one_returned() -> None:
    budget = Budget(max_rate=10.0)
    large = budget.reserve(0.0, 4.0)
    assert budget.wait(0.4, large) == 0.0
    budget.settle(0.5, large, 1.0)
    small = budget.reserve(0.5, 1.0)
    assert budget.wait(0.5, small) == 0.0
    budget.settle(0.6, small, 1.0)
    assert budget.wait(0.6, budget.reserve(0.6, 4.0)) == 0.0


def test_at_a_lower_rate_only_a_page_of_that_rate_is_saved_up() -> None:
    budget = Budget(max_rate=1_000.0)
    turn = budget.reserve(0.0, 400.0)
    assert budget.wait(0.4, turn) == 0.0
    budget.settle(0.4, turn, 400.0)
    budget.limit_rate(0.4, 10.0)
    assert sum(send(budget, 3_600.0, 1.0) == 0.0 for _ in range(10)) == 10.0 * PAGE_SECONDS


def test_a_cancelled_turn_costs_nothing_and_delays_nobody() -> None:
    budget = Budget(max_rate=10.0)
    first, second = budget.reserve(0.0, 4.0), budget.reserve(0.0, 1.0)
    budget.settle(0.05, first, 0.0)
    assert budget.wait(0.05, second) == pytest.approx(0.05)


def send(budget: Budget, now: float, units: float) -> float:
    """Reserve and settle a page, and return the seconds that it would have to wait."""
    turn = budget.reserve(now, units)
    seconds = budget.wait(now, turn)
    budget.settle(now, turn, units if turn.is_sent else 0.0)
    return seconds


def test_pages_that_cost_more_than_expected_are_made_up_for() -> None:
    chance = random.Random(3)
    read = steady(
        100.0, 8, lambda room: (0.5, 5.0 if chance.random() < 0.1 else 0.5), latency=0.003
    )
    assert read.budget.spent == pytest.approx(6_000.0, rel=0.02)


def test_without_a_rate_nothing_waits() -> None:
    budget = Budget()
    assert {send(budget, 0.0, 0.5) for _ in range(100)} == {0.0}


def test_units_run_out_before_they_are_overspent() -> None:
    budget = Budget(max_units=10.0)
    for _ in range(11):
        send(budget, 0.0, 0.9)
    with pytest.raises(BudgetSpent, match=r"Of 10 read units 9\.9 are spent"):
        budget.reserve(0.0, 0.9)
    assert budget.spent == pytest.approx(9.9)


def test_units_in_flight_count_as_spent() -> None:
    budget = Budget(max_units=1.0)
    turn = budget.reserve(0.0, 0.5)
    budget.reserve(0.0, 0.5)
    with pytest.raises(BudgetSpent):
        budget.reserve(0.0, 0.5)
    budget.settle(0.0, turn, 0.0)  # one of them failed and cost nothing
    budget.reserve(0.0, 0.5)


def test_a_page_waits_for_those_in_flight_before_the_budget_is_spent() -> None:
    """A page that is expected to be large may turn out small."""
    budget = Budget(max_units=130.0)
    assert not budget.must_wait(128.0)
    turn = budget.reserve(0.0, 128.0)
    assert budget.must_wait(128.0)
    assert budget.wait(0.0, turn) == 0.0
    budget.settle(0.0, turn, 1.0)
    assert not budget.must_wait(128.0)
    assert budget.wait(0.0, budget.reserve(0.0, 128.0)) == 0.0


def test_pages_shrink_to_a_part_of_the_rate_and_to_the_remaining_units() -> None:
    assert Budget(max_rate=10.0).page_units(0.0) == 10.0 * PAGE_SECONDS
    assert Budget(max_rate=10.0, max_units=3.0).page_units(0.0) == 3.0
    assert Budget(max_rate=0.1).page_units(0.0) == 0.5


def test_a_throttle_slows_all_pages_down_to_a_share_of_the_measured_rate() -> None:
    budget = throttled()
    turns = [budget.reserve(4.0, 10.0) for _ in range(5)]
    waits = [budget.wait(4.0, turn) for turn in turns]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(10.0 / 700, rel=0.1)
    assert waits[4] == pytest.approx(50.0 / 700, rel=0.1)


def test_throttles_at_the_same_moment_are_one_event() -> None:
    budget = throttled()
    for _ in range(50):
        budget.throttled(4.0)
    assert budget.wait(4.0, budget.reserve(4.0, 10.0)) == pytest.approx(10.0 / 700, rel=0.1)


def throttled() -> Budget:
    """Return a budget that was throttled after four seconds at 1,000 units a second."""
    budget = Budget()
    for now in range(400):
        send(budget, now / 100, 10.0)
    budget.throttled(4.0)
    return budget


def test_the_rate_recovers_and_never_falls_below_the_slowest() -> None:
    budget = Budget()
    for now in range(100):
        budget.throttled(now * 2.0)
    assert 0.5 < send(budget, 200.0, SLOWEST) <= 1.0
    read(budget, begin=200.0, end=400.0)
    assert send(budget, 400.0, SLOWEST) == 0.0


def test_throttling_never_lifts_the_user_s_rate() -> None:
    budget = Budget(max_rate=40.0)
    budget.throttled(0.0)
    read(budget, begin=0.0, end=1_000.0)
    assert budget.wait(1_000.0, budget.reserve(1_000.0, 40.0)) == pytest.approx(1.0, abs=0.02)


def read(budget: Budget, begin: float, end: float) -> None:
    """Book half a unit every tenth of a second."""
    for tenth in range(round(10 * begin), round(10 * end)):
        budget.book(tenth / 10, 0.5)


def test_waiting_pages_are_paid_for_at_the_new_rate() -> None:
    """Otherwise a page that was queued at a tiny rate would delay the others for hours."""
    budget = Budget(max_rate=0.01)
    first = budget.reserve(0.0, 1.0)
    assert budget.wait(0.0, first) == pytest.approx(100.0)
    budget.limit_rate(0.0, 10.0)
    second = budget.reserve(0.0, 1.0)
    assert budget.wait(0.0, second) == pytest.approx(0.2)
    budget.settle(1.0, first, 0.0)
    assert budget.wait(1.0, second) == 0.0
