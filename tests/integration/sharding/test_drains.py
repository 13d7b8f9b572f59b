"""Drains that somebody calls off, or that another one is to follow."""

from collections.abc import Callable

import pytest
from keyhop.sharding.drain import Drain, DrainStep, Next

from testing.databases import Database
from tests.integration.sharding.single import Place
from tests.integration.sharding.tables import KEY, Setup, in_time, sharded


def test_a_call_off_wins_against_whoever_takes_the_steps(place: Place) -> None:
    """It marks the drain at once, and need not wait for a moment at which nobody is at it."""
    driver, person = place.table(), place.table()
    place.register("/f", 4)
    for n in range(8):
        driver.put_item(Item={"path": "/f", "at": str(n)})
    step = place.drain(driver, "/f", 1, until="fenced")[-1]
    assert Drain(person).call_off("/f").action is Next.WAIT
    while step.action not in (Next.DONE, Next.CALLED_OFF):
        place.clock.sleep(step.seconds)
        step = Drain(driver).step("/f", 1, begun=step.begun)
    assert (step.action, step.shards.number, step.shards.readable) == (Next.CALLED_OFF, 4, 4)
    assert set(place.lies_in("/f")) == {str(n) for n in range(8)}


def test_a_drain_may_go_on_to_fewer_shards_than_another_has_begun_with(place: Place) -> None:
    table = place.table()
    place.register("/f", 4)
    table.put_item(Item={"path": "/f", "at": "a"})
    Drain(table).step("/f", 2)
    last = place.drain(table, "/f", 1)[-1]
    assert (last.action, last.shards.readable) == (Next.DONE, 1)


def test_each_step_may_be_taken_by_a_process_that_has_seen_nothing(place: Place) -> None:
    """As by functions that are cold: the time between two steps is measured by who waits."""
    table = place.table()
    place.register("/f", 4)
    for n in range(8):
        table.put_item(Item={"path": "/f", "at": str(n)})
    steps = [Drain(place.table()).step("/f", 1)]
    while steps[-1].action is not Next.DONE:
        assert len(steps) < 12
        place.clock.sleep(steps[-1].seconds)
        seen = (steps[-1].shards.last_updated, steps[-1].seconds)
        step = Drain(place.table()).step("/f", 1, begun=steps[-1].begun, seen=seen)
        assert step.seconds <= step.shards.settle
        steps.append(step)
    assert {shard for shards in place.lies_in("/f").values() for shard in shards} == {1}


def test_what_others_have_changed_since_was_not_seen(place: Place) -> None:
    place.register("/f", 4)
    last = Drain(place.table()).step("/f", 1)
    place.register("/f", 4, last_updated={"N": str(last.shards.last_updated + 1)})
    place.clock.sleep(last.seconds)
    seen = (last.shards.last_updated, last.seconds)
    step = Drain(place.table()).step("/f", 1, seen=seen)
    assert (step.action, step.seconds, step.shards.phase) == (Next.WAIT, 5.0, "steady")


def drained_beside(setup: Setup, writes: float, old: int) -> tuple[DrainStep, int, int]:
    """A drain of so many old items, while others write; its last step, late writes, and all."""
    clock = setup.clock
    log = setup.table(placement="random", append_only=True, settle_seconds=2.0, patience=120)
    known = log.metadata.of({"S": KEY}, register=True)
    clock.sleep(2.0)
    known = log.metadata.grow({"S": KEY}, known, 4)
    for _ in range(2):
        clock.sleep(2.0)
        known = log.metadata.change({"S": KEY}, known, known.shards.advanced(clock.time()))
    for shard in range(1, 5):
        for first in range(0, old // 4, 25):
            keys = [{"path": f"{KEY}_{shard}", "at": f"{shard} {first + n}"} for n in range(25)]
            items = [{name: {"S": text} for name, text in key.items()} for key in keys]
            setup.database.client.batch_write_item(
                RequestItems={setup.name: [{"PutRequest": {"Item": item}} for item in items]}
            )
    done: list[DrainStep] = []
    waited: list[float] = []

    def writer(number: int) -> Callable[[], None]:
        def write() -> None:
            clock.sleep(number / writes)
            count = 0
            while not done:
                began = clock.monotonic()
                log.put_item(Item={"path": KEY, "at": f"new {number} {count}"})
                waited.append(clock.monotonic() - began)
                count += 1
                clock.sleep(16 / writes)

        return write

    clock.run([lambda: done.append(setup.drain(log)), *(writer(number) for number in range(16))])
    late = sum(seconds > 0 for seconds in waited)
    return done[0], late, len(waited)


@pytest.mark.prove
@pytest.mark.parametrize("old", [200, 800])
def test_a_drain_does_not_call_itself_off(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch, old: int
) -> None:
    """Eight movers could fill the target; they yield, and what they cause is no heat."""
    with sharded(dynamodb, table_name, rate=100.0) as setup:
        in_time(setup.clock, monkeypatch)
        step, late, writes = drained_beside(setup, writes=50.0, old=old)
        assert (step.action, step.shards.readable) == (Next.DONE, 1)
        assert late < 0.05 * writes
        assert set(setup.model.by_key(setup.name)) >= {f"{KEY}_{n}" for n in range(1, 5)}


@pytest.mark.prove
def test_a_key_that_gets_hot_while_it_is_drained_calls_it_off(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sharded(dynamodb, table_name, rate=100.0) as setup:
        in_time(setup.clock, monkeypatch)
        step, _, _ = drained_beside(setup, writes=200.0, old=800)
        assert step.action is Next.CALLED_OFF
        assert step.shards.readable >= 4
