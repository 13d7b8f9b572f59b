"""The budget, with a clock of its own."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.errors import BudgetSpent
from keyhop.scan.rate_limit import SLOWEST, Budget


def spend(budget: Budget, pages: list[tuple[float, float]], workers: int, latency: float):
    """Workers that read pages as soon as they may; yields (time sent, cost)."""
    free = [0.0] * workers
    for expected, cost in pages:
        worker = min(range(workers), key=free.__getitem__)
        now = free[worker]
        sent = now + budget.reserve(now, expected)
        budget.settle(sent + latency, expected, cost)
        free[worker] = sent + latency
        yield sent, cost


@given(
    rate=st.floats(1, 5_000),
    workers=st.integers(1, 16),
    costs=st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=1, max_size=300),
)
def test_the_rate_holds_at_every_moment(rate: float, workers: int, costs: list[float]) -> None:
    """From the start, not on average: there is no burst."""
    total = 0.0
    for sent, cost in spend(Budget(max_rate=rate), [(c, c) for c in costs], workers, 0.003):
        total += cost
        assert total <= rate * sent * (1 + 1e-9) + 1e-6


def test_pages_that_cost_more_than_expected_are_made_up_for() -> None:
    chance = random.Random(3)
    pages = [(0.5, 5.0 if chance.random() < 0.1 else 0.5) for _ in range(3_000)]
    sent, costs = zip(*spend(Budget(max_rate=100.0), pages, 8, 0.003), strict=True)
    assert sum(costs) / max(sent) == pytest.approx(100.0, rel=0.02)


def test_without_a_rate_nothing_waits() -> None:
    assert {sent for sent, _ in spend(Budget(), [(0.5, 0.5)] * 100, 1, 0.0)} == {0.0}


def test_units_run_out_before_they_are_overspent() -> None:
    budget = Budget(max_units=10.0)
    for _ in range(11):
        budget.reserve(0.0, 0.9)
        budget.settle(0.0, 0.9, 0.9)
    with pytest.raises(BudgetSpent, match=r"Of 10 read units 9\.9 are spent"):
        budget.reserve(0.0, 0.9)
    assert budget.spent == pytest.approx(9.9)


def test_units_under_way_count_as_spent() -> None:
    budget = Budget(max_units=1.0)
    budget.reserve(0.0, 0.5)
    budget.reserve(0.0, 0.5)
    with pytest.raises(BudgetSpent):
        budget.reserve(0.0, 0.5)
    budget.settle(0.0, 0.5, 0.0)  # one of them failed and cost nothing
    budget.reserve(0.0, 0.5)


def test_a_page_waits_for_those_under_way_before_the_budget_is_called_spent() -> None:
    """A page that is expected to be large may turn out small."""
    budget = Budget(max_units=130.0)
    assert not budget.must_wait(128.0)
    budget.reserve(0.0, 128.0)
    assert budget.must_wait(128.0)
    budget.settle(0.0, 128.0, 1.0)
    assert not budget.must_wait(128.0)
    assert budget.reserve(0.0, 128.0) == 0.0


def test_pages_shrink_to_what_a_second_earns_and_to_what_is_left() -> None:
    assert Budget(max_rate=10.0).page_units(0.0) == 10.0
    assert Budget(max_rate=10.0, max_units=3.0).page_units(0.0) == 3.0
    assert Budget(max_rate=0.1).page_units(0.0) == 0.5


def test_a_throttle_slows_all_down_to_a_share_of_what_was_read() -> None:
    budget = Budget()
    for now in range(400):
        budget.reserve(now / 100, 10.0)
        budget.settle(now / 100, 10.0, 10.0)
    budget.throttled(4.0)
    waits = [budget.reserve(4.0, 10.0) for _ in range(5)]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(10.0 / 700, rel=0.1)
    assert waits[4] == pytest.approx(50.0 / 700, rel=0.1)


def test_throttles_at_the_same_moment_are_one_event() -> None:
    budget = Budget()
    for now in range(400):
        budget.reserve(now / 100, 10.0)
        budget.settle(now / 100, 10.0, 10.0)
    for _ in range(50):
        budget.throttled(4.0)
    assert budget.reserve(4.0, 10.0) == pytest.approx(10.0 / 700, rel=0.1)


def test_the_rate_recovers_and_never_falls_below_the_slowest() -> None:
    budget = Budget()
    for now in range(100):
        budget.throttled(now * 2.0)
    slow = budget.reserve(200.0, SLOWEST)
    assert 0.5 < slow <= 1.0
    assert budget.reserve(400.0, SLOWEST) == 0.0


def test_throttling_never_lifts_the_user_s_rate() -> None:
    budget = Budget(max_rate=40.0)
    budget.throttled(0.0)
    assert budget.reserve(1_000.0, 40.0) == pytest.approx(1.0)
