"""Shadow reads: who answers, and which difference counts."""

import logging
import random
from dataclasses import replace

import pytest
from keyhop.rekey import Router
from keyhop.rekey.routing.shadow import Difference, hashed, same_answers

from testing.rekey_side import SideInMemory
from testing.virtual_time import VirtualClock


class Shadowed:
    def __init__(self, share: float = 1.0) -> None:
        self.clock = VirtualClock()
        self.side = SideInMemory()
        self.side.item = replace(self.side.item, shadow=share)
        self.told: list[Difference] = []
        self.router = Router(
            self.side,
            clients=(),
            clock=self.clock,
            chance=random.Random(3),
            on_difference=self.told.append,
        )
        self.old: object = "a"
        self.new: object = "a"
        self.calls: list[str] = []

    def answer(self, which: str) -> object:
        self.calls.append(which)
        found = self.old if which == "old" else self.new
        if isinstance(found, Exception):
            raise found
        return found

    def read(self, **more):
        return self.router.read(
            old=lambda: self.answer("old"), new=lambda: self.answer("new"), **more
        )

    def later(self, seconds: float = 2.5) -> None:
        self.clock.run([lambda: self.clock.sleep(seconds)])

    def count(self, name: str) -> int:
        return self.router.usage.counters[f"shadow_{name}"]


@pytest.fixture
def world() -> Shadowed:
    return Shadowed()


def test_both_are_read_and_the_one_that_serves_answers(world: Shadowed) -> None:
    world.new = "b"
    assert world.read() == "a"
    assert sorted(world.calls) == ["new", "old"]


def test_they_are_read_in_random_order(world: Shadowed) -> None:
    for _ in range(40):
        world.read()
    firsts = world.calls[::2]
    assert {"new", "old"} == set(firsts)


def test_equal_answers_are_counted(world: Shadowed) -> None:
    world.read()
    assert world.count("equal") == 1


def test_a_share_of_none_reads_one(world: Shadowed) -> None:
    quiet = Shadowed(share=0.0)
    quiet.read()
    assert quiet.calls == ["old"]


def test_an_error_of_the_candidate_is_swallowed_and_counted(world: Shadowed) -> None:
    world.new = RuntimeError("candidate")
    assert world.read() == "a"
    assert world.count("failed") == 1


def test_an_error_of_the_one_that_serves_is_the_callers(world: Shadowed) -> None:
    world.old = RuntimeError("serving")
    with pytest.raises(RuntimeError, match="serving"):
        world.read()


def test_a_difference_that_goes_is_one_in_flight(world: Shadowed) -> None:
    world.new = "b"
    world.read()
    world.new = "a"
    world.later()
    world.read()
    assert (world.count("in_flight"), world.count("real")) == (1, 0)


def test_a_difference_that_stays_is_real_after_looks_past_the_lag(world: Shadowed) -> None:
    world.new = "b"
    world.read(key="customer 7")
    for _ in range(4):
        world.later()
        world.side.item = replace(world.side.item, shadow=1e-12)
        world.read()
    assert world.count("real") == 1
    assert [one.key for one in world.told] == [hashed("customer 7")]
    assert "customer" not in world.told[0].key


def test_what_changes_all_the_time_is_in_flight(world: Shadowed) -> None:
    world.new = 0
    world.read()
    world.side.item = replace(world.side.item, shadow=1e-12)
    for number in range(1, 5):
        world.old = number
        world.later()
        world.read()
    assert (world.count("in_flight"), world.count("real")) == (1, 0)


def test_the_strong_reads_are_the_ones_that_decide(world: Shadowed) -> None:
    world.new = "stale"
    strong: list[str] = []

    def again() -> str:
        strong.append("read")
        return "a"

    world.read(strong_new=again)
    world.later()
    world.side.item = replace(world.side.item, shadow=1e-12)
    world.read()
    assert strong == ["read"]
    assert world.count("in_flight") == 1


def test_a_comparison_of_the_callers_own(world: Shadowed) -> None:
    world.old, world.new = {"PK": "a", "n": 1}, {"PK": "b", "n": 1}
    world.read(same=lambda one, other: one["n"] == other["n"])  # type: ignore[index]
    assert world.count("equal") == 1


def test_what_boto3_tells_beside_an_item_is_not_compared() -> None:
    one = {"Item": {"a": 1}, "ResponseMetadata": {"RequestId": "x"}, "ConsumedCapacity": {}}
    assert same_answers(one, {"Item": {"a": 1}})
    assert not same_answers(one, {"Item": {"a": 2}})


def test_the_counts_are_told_in_the_side_table(world: Shadowed) -> None:
    world.read()
    world.later(31)
    world.read()
    (told,) = world.side.reports.values()
    assert told["shadow_equal"] == 1


def test_nothing_is_logged_of_keys(world: Shadowed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world.new = "b"
    world.read(key="customer 7")
    assert "customer" not in caplog.text
