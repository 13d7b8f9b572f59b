"""Drains that are called off, changed, or continued by another process."""

from collections.abc import Callable

import pytest
from keyhop.sharding.drain import Drain, DrainStep, Next

from testing.databases import Database
from tests.integration.sharding.single import Place
from tests.integration.sharding.tables import KEY, Setup, in_time, sharded


def test_a_call_off_ends_the_drain_of_another_process(place: Place) -> None:
    """It marks the drain at once, and does not wait until no process takes a step."""
    driver, operator = place.table(), place.table()
    place.register("/f", 4)
    for n in range(8):
        driver.put_item(Item={"path": "/f", "at": str(n)})
    step = place.drain(driver, "/f", 1, until="fenced")[-1]
    assert Drain(operator).call_off("/f").action is Next.WAIT
    while step.action not in (Next.DONE, Next.CALLED_OFF):
        place.clock.sleep(step.seconds)
        step = Drain(driver).step("/f", 1, begun=step.begun)
    assert (step.action, step.shards.number, step.shards.readable) == (Next.CALLED_OFF, 4, 4)
    assert set(place.shards_of_items("/f")) == {str(n) for n in range(8)}


def test_a_drain_may_continue_to_fewer_shards(place: Place) -> None:
    table = place.table()
    place.register("/f", 4)
    table.put_item(Item={"path": "/f", "at": "a"})
    Drain(table).step("/f", 2)
    last = place.drain(table, "/f", 1)[-1]
    assert (last.action, last.shards.readable) == (Next.DONE, 1)


def test_each_step_may_be_taken_by_a_new_process(place: Place) -> None:
    """For example by cold functions: the state machine measures the time between the steps."""
    table = place.table()
    place.register("/f", 4)
    for n in range(8):
        table.put_item(Item={"path": "/f", "at": str(n)})
    steps = [Drain(place.table()).step("/f", 1)]
    while steps[-1].action is not Next.DONE:
        assert len(steps) < 12
        place.clock.sleep(steps[-1].seconds)
        previous = (steps[-1].shards.last_updated, steps[-1].seconds)
        step = Drain(place.table()).step("/f", 1, begun=steps[-1].begun, seen=previous)
        assert step.seconds <= step.shards.settle
        steps.append(step)
    assert {shard for shards in place.shards_of_items("/f").values() for shard in shards} == {1}


def test_a_step_that_was_seen_before_a_change_does_not_count(place: Place) -> None:
    place.register("/f", 4)
    last = Drain(place.table()).step("/f", 1)
    place.register("/f", 4, last_updated={"N": str(last.shards.last_updated + 1)})
    place.clock.sleep(last.seconds)
    previous = (last.shards.last_updated, last.seconds)
    step = Drain(place.table()).step("/f", 1, seen=previous)
    assert (step.action, step.seconds, step.shards.phase) == (Next.WAIT, 5.0, "steady")


def drain_under_load(setup: Setup, writes: float, old: int) -> tuple[DrainStep, int, int]:
    """Drain so many old items during writes; return the last step, late writes, and all writes."""
    clock = setup.clock
    log = setup.table(placement="random", append_only=True, settle_seconds=2.0, patience=120)
    record = log.metadata.of({"S": KEY}, register=True)
    clock.sleep(2.0)
    record = log.metadata.grow({"S": KEY}, record, 4)
    for _ in range(2):
        clock.sleep(2.0)
        record = log.metadata.change({"S": KEY}, record, record.shards.advanced(clock.time()))
    for shard in range(1, 5):
        for first in range(0, old // 4, 25):
            keys = [{"path": f"{KEY}_{shard}", "at": f"{shard} {first + n}"} for n in range(25)]
            items = [{name: {"S": text} for name, text in key.items()} for key in keys]
            setup.database.client.batch_write_item(
                RequestItems={setup.name: [{"PutRequest": {"Item": item}} for item in items]}
            )
    last_steps: list[DrainStep] = []
    waits: list[float] = []

    def writer(number: int) -> Callable[[], None]:
        def write() -> None:
            clock.sleep(number / writes)
            count = 0
            while not last_steps:
                began = clock.monotonic()
                log.put_item(Item={"path": KEY, "at": f"new {number} {count}"})
                waits.append(clock.monotonic() - began)
                count += 1
                clock.sleep(16 / writes)

        return write

    clock.run(
        [lambda: last_steps.append(setup.drain(log)), *(writer(number) for number in range(16))]
    )
    late = sum(seconds > 0 for seconds in waits)
    return last_steps[0], late, len(waits)


@pytest.mark.prove
@pytest.mark.parametrize("old", [200, 800])
def test_a_drain_does_not_call_itself_off(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch, old: int
) -> None:
    """Eight movers could use all capacity of the target. They yield and do not count as heat."""
    with sharded(dynamodb, table_name, rate=100.0) as setup:
        in_time(setup.clock, monkeypatch)
        step, late, writes = drain_under_load(setup, writes=50.0, old=old)
        assert (step.action, step.shards.readable) == (Next.DONE, 1)
        assert late < 0.05 * writes
        assert set(setup.model.by_key(setup.name)) >= {f"{KEY}_{n}" for n in range(1, 5)}


@pytest.mark.prove
def test_a_hot_key_calls_its_drain_off(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sharded(dynamodb, table_name, rate=100.0) as setup:
        in_time(setup.clock, monkeypatch)
        step, _, _ = drain_under_load(setup, writes=200.0, old=800)
        assert step.action is Next.CALLED_OFF
        assert step.shards.readable >= 4
