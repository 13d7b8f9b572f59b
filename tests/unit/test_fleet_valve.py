"""A rate over a whole fleet, while Step Functions' map changes or does not answer."""

import pytest
from keyhop.enumerate.fleet.shares import poll_seconds
from keyhop.enumerate.fleet.valve import AtOnce, Valve

FOREVER = 1e9


class World:
    """A fleet under one map, whose limit changes; sums what all may read at any moment."""

    def __init__(self, rate: float, planned: int) -> None:
        self.rate, self.planned = rate, planned
        self.limit = planned
        self.now = 0.0
        self.shares: dict[int, float] = {}
        self.valves: dict[int, Valve] = {}
        self.dumb: set[int] = set()
        self.raised_at: dict[int, float] = {}

    def begin(self, name: int, first: bool = True, until: float = FOREVER) -> bool:
        """A worker begins, and waits if it must; whether it may read."""

        def limit(share: float) -> None:
            self.shares[name] = share

        def wait(seconds: float) -> None:
            # It reads nothing while it waits; the others go on, and look at the map in their time.
            self.shares.pop(name, None)
            end = self.now + seconds
            while self.now < end:
                self.pass_time(min(1.0, end - self.now))

        def at_once() -> AtOnce | None:
            return None if name in self.dumb else AtOnce(self.limit, len(self.valves))

        def raised_for(limit: int) -> float:
            return self.now - self.raised_at.setdefault(limit, self.now)

        valve = Valve(
            self.rate, self.planned, at_once, raised_for, limit, wait, clock=lambda: self.now
        )
        self.valves[name] = valve
        return valve.open(first, until)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for name in list(self.shares):
            self.valves[name].tick()
        assert sum(self.shares.values()) <= self.rate * 1.000001


def test_the_sum_of_shares_never_exceeds_the_rate_while_concurrency_is_raised() -> None:
    world = World(1_000, planned=2)
    for name in range(2):
        world.begin(name)
    world.limit = 8
    for name in range(2, 8):
        assert world.begin(name)
        world.pass_time(0.1)
    world.pass_time(100)
    assert sum(world.shares.values()) == pytest.approx(1_000)


def test_the_sum_of_shares_never_exceeds_the_rate_while_concurrency_is_lowered() -> None:
    world = World(1_000, planned=8)
    for name in range(8):
        world.begin(name)
    world.limit = 2
    world.pass_time(100)
    for name in range(6):
        del world.valves[name], world.shares[name]
        world.pass_time(30)
    assert sum(world.shares.values()) == pytest.approx(1_000)


def test_only_the_first_after_a_raise_wait_and_only_as_long_as_the_old_fleet_needs() -> None:
    """Not as long as the new, larger fleet would take; and later groups need not wait again."""
    world = World(1_000, planned=2)
    world.begin(0)
    world.limit = 10_000
    world.begin(1)
    assert world.now <= poll_seconds(2)
    began = world.now
    world.begin(2)
    assert world.now == began


def test_a_wait_that_does_not_fit_into_the_functions_time_is_handed_back() -> None:
    world = World(1_000, planned=2)
    world.begin(0)
    world.limit = 8
    assert not world.begin(1, until=world.now + 3.0)
    assert world.now == 3.0
    assert 1 not in world.shares
    assert world.begin(1, first=False)


def test_a_worker_that_gets_no_answer_does_not_read_until_it_does() -> None:
    world = World(1_000, planned=4)
    world.dumb = {0}
    assert not world.begin(0, until=60.0)
    assert world.now == 60.0
    assert world.shares == {}
    world.dumb = set()
    assert world.begin(0)
    assert world.shares == {0: 250}


def test_a_worker_that_gets_no_answer_any_more_makes_room_for_those_that_may_have_begun() -> None:
    world = World(1_000, planned=2)
    for name in range(2):
        world.begin(name)
    world.dumb = {0, 1}
    world.limit = 4
    for name in (2, 3):
        assert world.begin(name)
    world.dumb = set()
    world.pass_time(60)
    assert sum(world.shares.values()) == pytest.approx(1_000)
