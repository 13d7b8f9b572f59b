"""A cutover reads a stream that others read too, and DynamoDB Streams throttles a third reader."""

import itertools
import random
from collections.abc import Callable

import pytest
from keyhop.errors import GaveUp
from keyhop.rekey.cutover.change import PATIENCE_SECONDS
from keyhop.rekey.cutover.markers import Markers
from keyhop.rekey.side.layout import MARKER_KEYS

from testing.simulation.schedule import Process
from testing.simulation.streams import TOO_MANY_READERS
from tests.unit.rekey.chaos_world import ChaosWorld

OPERATIONS = ("describe_stream", "get_shard_iterator", "get_records")


def run(
    is_crowded: Callable[[str], bool], act: Callable[[ChaosWorld, Markers], object]
) -> tuple[ChaosWorld, Markers]:
    """Call a function that uses the source's stream, and raise the errors that it raises."""
    world = ChaosWorld(random.Random(1))
    world.begin()
    world.streams.is_crowded = is_crowded
    markers = Markers(
        world.calm,
        world.pair.source,
        "source",
        world.side(),
        world.streams,
        world,
        chance=world.chance,
        pool=world.pool,
        patience=PATIENCE_SECONDS,
        stop=world.stop,
    )
    errors: list[Exception] = []

    def attempt() -> None:
        try:
            act(world, markers)
        except Exception as error:
            errors.append(error)

    world.schedule.spawn(attempt, Process("coordinator"))
    world.schedule.run()
    if errors:
        raise errors[0]
    return world, markers


def locate(world: ChaosWorld, markers: Markers) -> None:
    markers.locate()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_that_is_throttled_for_a_third_reader_is_sent_again(operation: str) -> None:
    refusals = iter([True] * 4)
    world, markers = run(lambda name: name == operation and next(refusals, False), locate)
    assert next(refusals, None) is None, "the throttled requests were sent again"
    keys_by_shard = world.side().told(f"{MARKER_KEYS} source") or {}
    assert len(keys_by_shard) == world.shards
    assert markers.usage.throttles.total() == 4


def test_throttles_with_successes_between_them_never_use_up_the_patience() -> None:
    """The patience limits a time in which nothing succeeds."""
    refusals = itertools.cycle([True, False])

    def look(world: ChaosWorld, markers: Markers) -> None:
        for _ in range(3):
            assert len(markers.shards()) == world.shards
            world.sleep(PATIENCE_SECONDS)

    _, markers = run(lambda operation: next(refusals), look)
    assert markers.usage.throttles.total() == 3


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_stream_that_stays_crowded_ends_the_attempt_with_the_services_message(
    operation: str,
) -> None:
    with pytest.raises(GaveUp, match=TOO_MANY_READERS):
        run(lambda name: name == operation, locate)
