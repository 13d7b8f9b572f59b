"""A rate over a whole fleet, while Step Functions' map changes or does not answer."""

import random

import pytest
from keyhop.errors import GaveUp, StoreUnavailable
from keyhop.jobs.fleet_rate import SLOT_SECONDS, FleetRate
from keyhop.scan.rate_limit import Budget

FOREVER = 1e9
RATE = 1_000.0


class World:
    """A fleet under one map, whose limit changes; sums what all may read at any moment.

    limit: of the map, 0 for none. children: of the map, in all.
    """

    def __init__(self, limit: int, children: int = 1_000) -> None:
        self.limit = limit
        self.children = children
        self.now = 1_000_003.0
        self.shares: dict[int, float] = {}
        self.running: dict[int, FleetRate] = {}
        self.dumb = False
        self.notes: dict[int, int] = {}
        self.asked_at: list[float] = []
        self.chance = random.Random(7)

    def current(self) -> int | None:
        self.asked_at.append(self.now)
        if self.dumb:
            return None
        waiting = self.children - len(self.running)
        return max(1, self.limit or len(self.running) + waiting, len(self.running))

    def noted(self, slot: int) -> int | None:
        return self.notes.get(slot)

    def note(self, slot: int, level: int) -> int:
        return self.notes.setdefault(slot, level)

    def begin(self, name: int, until: float = FOREVER) -> bool:
        """A worker begins, and waits if it must; whether it may read."""

        def limit(share: float) -> None:
            self.shares[name] = share * RATE
            self.check()

        def wait(seconds: float) -> None:
            # It reads nothing while it waits; the others go on, and look at the map in their time.
            self.shares.pop(name, None)
            end = self.now + seconds
            while self.now < end:
                self.pass_time(min(0.5, end - self.now))

        rate = FleetRate(self, limit, wait, lambda: self.now, self.chance)
        self.running[name] = rate
        return rate.open(until)

    def end(self, name: int) -> None:
        del self.running[name], self.shares[name]

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            for name in list(self.shares):
                self.running[name].tick()

    def check(self) -> None:
        assert sum(self.shares.values()) <= RATE * 1.000001

    @property
    def total(self) -> float:
        return sum(self.shares.values())


def test_a_fleet_as_planned_begins_at_once() -> None:
    world = World(limit=8)
    began = world.now
    for name in range(8):
        assert world.begin(name)
    assert world.now == began
    assert world.total == pytest.approx(RATE)


@pytest.mark.parametrize("limits", [[2, 8], [2, 10, 2, 10], [10, 200, 400], [5, 1, 5, 20, 3, 40]])
def test_the_sum_of_shares_never_exceeds_the_rate_whatever_is_changed(limits: list[int]) -> None:
    world = World(limit=limits[0])
    number = 0
    for limit in limits:
        world.limit = limit
        while len(world.running) > limit:
            world.end(next(iter(world.running)))
            world.pass_time(3.0)
        while len(world.running) < limit:
            assert world.begin(number)
            number += 1
        world.pass_time(world.chance.uniform(0, 45))
    world.pass_time(2 * SLOT_SECONDS)
    assert world.total == pytest.approx(RATE)


def test_a_change_in_the_moment_in_which_a_worker_begins() -> None:
    for offset in range(40):
        world = World(limit=2)
        world.begin(0)
        world.begin(1)
        world.pass_time(offset / 2)
        world.limit = 6
        for name in range(2, 6):
            assert world.begin(name)
        world.pass_time(30)
        assert world.total == pytest.approx(RATE)


def test_no_limit_is_as_many_as_may_yet_begin() -> None:
    world = World(limit=2, children=40)
    world.begin(0)
    world.begin(1)
    world.limit = 0
    for name in range(2, 40):
        assert world.begin(name)
        world.pass_time(2.0)
    world.pass_time(20)
    assert world.total == pytest.approx(RATE)


def test_a_wait_is_two_slots_at_most_and_later_groups_need_not_wait_again() -> None:
    world = World(limit=2)
    world.begin(0)
    world.limit = 10_000
    began = world.now
    world.begin(1)
    assert world.now - began <= 2 * SLOT_SECONDS + 2
    began = world.now
    world.begin(2)
    assert world.now == began


def test_a_fleet_asks_step_functions_about_once_a_slot() -> None:
    """DescribeMapRun serves about one request a second; there may be ten thousand workers."""
    world = World(limit=300)
    for name in range(300):
        world.begin(name)
    world.asked_at.clear()
    world.pass_time(100)
    assert 9 <= len(world.asked_at) <= 11


def test_a_wait_that_does_not_fit_into_the_functions_time_is_handed_back() -> None:
    world = World(limit=2)
    world.begin(0)
    world.limit = 8
    began = world.now
    assert not world.begin(1, until=world.now + 3.0)
    assert world.now == began + 3.0
    assert 1 not in world.shares


def test_a_worker_that_gets_no_answer_does_not_read_and_says_why_in_the_end() -> None:
    world = World(limit=4)
    world.dumb = True
    with pytest.raises(GaveUp, match="did not tell how many workers share maxReadRate"):
        world.begin(0, until=world.now + 60.0)
    assert world.shares == {}


def test_a_worker_that_hears_nothing_any_more_takes_less_and_all_again_afterwards() -> None:
    world = World(limit=2)
    world.begin(0)
    world.begin(1)
    world.dumb = True
    world.pass_time(3 * SLOT_SECONDS)
    assert world.total <= RATE / 4
    world.pass_time(1_000)
    assert world.total > RATE / 100
    world.dumb = False
    world.pass_time(2 * SLOT_SECONDS)
    assert world.total == pytest.approx(RATE)


def test_notes_that_cannot_be_read_are_as_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(limit=2)
    world.begin(0)

    def unavailable(slot: int) -> int:
        raise StoreUnavailable("S3")

    monkeypatch.setattr(world, "noted", unavailable)
    world.pass_time(2 * SLOT_SECONDS)
    assert world.total < RATE / 2


def test_what_waits_for_its_turn_is_paid_for_at_the_new_rate() -> None:
    """Else a page that was queued at a tiny rate would hold up the pages of hours."""
    budget = Budget(max_rate=0.01)
    assert budget.reserve(0.0, 1.0) == pytest.approx(100.0)
    budget.limit_rate(0.0, 10.0)
    assert budget.reserve(0.0, 1.0) == pytest.approx(0.2)
    budget.settle(1.0, 1.0, 0.0)
    assert budget.reserve(1.0, 1.0) <= 0.2
