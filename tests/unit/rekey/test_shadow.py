"""Shadow reads: which table answers, and which differences count."""

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
        self.differences: list[Difference] = []
        self.router = Router(
            self.side,
            clients=(),
            clock=self.clock,
            chance=random.Random(3),
            on_difference=self.differences.append,
        )
        self.old: object = "a"
        self.new: object = "a"
        self.calls: list[str] = []

    def answer(self, which: str) -> object:
        self.calls.append(which)
        result = self.old if which == "old" else self.new
        if isinstance(result, Exception):
            raise result
        return result

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


def test_both_tables_are_read_and_the_serving_one_answers(world: Shadowed) -> None:
    world.new = "b"
    assert world.read() == "a"
    assert sorted(world.calls) == ["new", "old"]


def test_the_tables_are_read_in_random_order(world: Shadowed) -> None:
    for _ in range(40):
        world.read()
    assert {*world.calls[::2]} == {"new", "old"}


def test_equal_answers_are_counted(world: Shadowed) -> None:
    world.read()
    assert world.count("equal") == 1


def test_a_share_of_zero_reads_only_the_serving_table() -> None:
    world = Shadowed(share=0.0)
    world.read()
    assert world.calls == ["old"]


def test_an_error_of_the_candidate_is_swallowed_and_counted(world: Shadowed) -> None:
    world.new = RuntimeError("candidate")
    assert world.read() == "a"
    assert world.count("failed") == 1


def test_an_error_of_the_serving_table_is_raised(world: Shadowed) -> None:
    world.old = RuntimeError("serving")
    with pytest.raises(RuntimeError, match="serving"):
        world.read()


def test_a_difference_that_disappears_is_in_flight(world: Shadowed) -> None:
    world.new = "b"
    world.read()
    world.new = "a"
    world.later()
    world.read()
    assert (world.count("in_flight"), world.count("real")) == (1, 0)


def test_a_difference_that_remains_longer_than_the_lag_is_real(world: Shadowed) -> None:
    world.new = "b"
    world.read(key="customer 7")
    for _ in range(4):
        world.later()
        world.side.item = replace(world.side.item, shadow=1e-12)
        world.read()
    assert world.count("real") == 1
    assert [difference.key for difference in world.differences] == [hashed("customer 7")]
    assert "customer" not in world.differences[0].key


def test_an_item_that_always_changes_is_in_flight(world: Shadowed) -> None:
    world.new = 0
    world.read()
    world.side.item = replace(world.side.item, shadow=1e-12)
    for number in range(1, 5):
        world.old = number
        world.later()
        world.read()
    assert (world.count("in_flight"), world.count("real")) == (1, 0)


def test_strong_reads_decide_about_a_difference(world: Shadowed) -> None:
    world.new = "stale"
    strong: list[str] = []

    def read_strongly() -> str:
        strong.append("read")
        return "a"

    world.read(strong_new=read_strongly)
    world.later()
    world.side.item = replace(world.side.item, shadow=1e-12)
    world.read()
    assert strong == ["read"]
    assert world.count("in_flight") == 1


def test_the_caller_may_pass_a_comparison(world: Shadowed) -> None:
    world.old, world.new = {"PK": "a", "n": 1}, {"PK": "b", "n": 1}
    world.read(same=lambda old, new: old["n"] == new["n"])  # type: ignore[index]
    assert world.count("equal") == 1


def test_the_metadata_of_a_response_is_not_compared() -> None:
    response = {"Item": {"a": 1}, "ResponseMetadata": {"RequestId": "x"}, "ConsumedCapacity": {}}
    assert same_answers(response, {"Item": {"a": 1}})
    assert not same_answers(response, {"Item": {"a": 2}})


def test_the_counts_are_reported_in_the_side_table(world: Shadowed) -> None:
    world.read()
    world.later(31)
    world.read()
    (report,) = world.side.reports.values()
    assert report["shadow_equal"] == 1


def test_keys_are_not_logged(world: Shadowed, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world.new = "b"
    world.read(key="customer 7")
    assert "customer" not in caplog.text
