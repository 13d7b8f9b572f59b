"""Drains that somebody calls off, or that another one is to follow."""

import pytest
from keyhop.sharding.drain import Drain, Next

from testing.databases import Database
from tests.integration.sharding.single import Place


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def test_a_call_off_wins_against_whoever_takes_the_steps(place: Place) -> None:
    """It marks the drain at once, and need not wait for a moment at which nobody is at it."""
    driver, person = place.table(), place.table()
    place.register("/f", 4)
    for n in range(8):
        driver.put_item(Item={"path": "/f", "at": str(n)})
    step = Drain(driver).step("/f", 1)
    place.clock.sleep(step.seconds)
    step = Drain(driver).step("/f", 1, begun=step.begun)
    assert step.phase == "fenced"
    assert Drain(person).call_off("/f").action is Next.WAIT
    while step.action not in (Next.DONE, Next.CALLED_OFF):
        place.clock.sleep(step.seconds)
        step = Drain(driver).step("/f", 1, begun=step.begun)
    assert (step.action, step.number, step.readable) == (Next.CALLED_OFF, 4, 4)
    assert set(place.lies_in("/f")) == {str(n) for n in range(8)}


def test_a_drain_may_go_on_to_fewer_shards_than_another_has_begun_with(place: Place) -> None:
    table = place.table()
    place.register("/f", 4)
    table.put_item(Item={"path": "/f", "at": "a"})
    Drain(table).step("/f", 2)
    last = place.drain(table, "/f", 1)[-1]
    assert (last.action, last.readable) == (Next.DONE, 1)
