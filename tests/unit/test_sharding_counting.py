"""Check that no add is lost or counted twice, over all interleavings of small scenarios."""

from dataclasses import replace

import pytest
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.sharding.key.counting import COUNT, counter_key, is_counter, marker_key, reads_of
from keyhop.sharding.key.schema import Names, Schema
from keyhop.sharding.key.shards import Phase, Shards

from testing.counter_explorer import Adder, Mover, Reader, Rules, World
from tests.unit.test_sharding_protocol import (
    CALLED_OFF,
    DRAIN,
    DRAIN_AND_GROWTH,
    GROWTH,
    TO_TWO,
    TWICE,
)


def counter(*parts, adders=(), readers=1, movers=0) -> World:
    """Return a counter whose shards hold acknowledged adds."""
    acknowledged = tuple(sorted(add for part in parts for add in part))
    return World(
        tuple(parts),
        tuple(adders),
        tuple(Reader(1) for _ in range(readers)),
        tuple(Mover() for _ in range(movers)),
        acknowledged=acknowledged,
    )


A, B = Adder("a"), Adder("b")
ONCE = Adder("a", token=True, lost=1)
SLOW = Adder("a", slow=True)

SCENARIOS = {
    "growth": (GROWTH, counter(("x",), (), adders=[A, B])),
    "growth twice": (TWICE, counter(("x",), (), (), adders=[A, B])),
    "drain, an add": (DRAIN, counter(("x",), ("y",), adders=[A], movers=1)),
    "drain, two movers": (DRAIN, counter((), ("y", "z"), adders=[A], movers=2)),
    "drain, two adds": (DRAIN, counter(("x",), ("y",), adders=[A, B], movers=1)),
    "drain, two readers": (DRAIN, counter(("x",), ("y",), readers=2, movers=1)),
    "drain to two": (TO_TWO, counter(("x",), (), ("y",), adders=[A], movers=1)),
    "drain, a token": (DRAIN, counter(("x",), ("y",), adders=[ONCE], movers=1)),
    "drain, a token used twice": (DRAIN, counter((), ("y",), adders=[ONCE, ONCE], movers=1)),
    # A late add may be read twice or not at all for a while; in the end it is counted once.
    "drain, a late add": (DRAIN, counter(("x",), ("y",), adders=[SLOW], readers=0, movers=1)),
    "drain, two late adds": (
        DRAIN,
        counter((), ("y",), adders=[SLOW, SLOW._replace(add="b")], readers=0, movers=1),
    ),
    "drain, a late add with a token": (
        DRAIN,
        counter((), ("y",), adders=[ONCE._replace(slow=True)], readers=0, movers=1),
    ),
    "drain, growth again": (DRAIN_AND_GROWTH, counter((), ("y",), adders=[A], movers=1)),
    "drain called off": (CALLED_OFF, counter((), ("y",), adders=[A], movers=2)),
    "growth, lost answers": (GROWTH, counter((), (), adders=[A._replace(lost=1), B])),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_add_is_counted(scenario: str) -> None:
    path, world = SCENARIOS[scenario]
    worlds, wrong = Rules(path).explore(world)
    assert worlds > 100, "nothing was interleaved"
    assert wrong == []


WITHOUT = {
    "metadata two phases old": ({"behind": 2}, "drain, an add"),
    "reading folded shards again": ({"again": False}, "drain, two readers"),
    "a condition on folds": ({"conditional": False, "once": True}, "drain, two movers"),
    "folding late adds": ({"reunited": False}, "drain, a late add"),
    "folding late adds by their marker": (
        {"reunited": False},
        "drain, a late add with a token",
    ),
    "a token, to be counted once": ({"once": True}, "growth, lost answers"),
}


@pytest.mark.prove
@pytest.mark.parametrize("left_out", WITHOUT)
def test_each_part_of_the_counters_is_needed(left_out: str) -> None:
    changes, scenario = WITHOUT[left_out]
    path, world = SCENARIOS[scenario]
    assert replace(Rules(path), **changes).explore(world)[1], "nothing goes wrong without it"


def test_shards_are_read_again_only_while_they_may_be_folded() -> None:
    phases = {shards.phase for shards in (*DRAIN, *CALLED_OFF, *GROWTH) if reads_of(shards)[1]}
    assert phases == {Phase.FENCED, Phase.MOVING, Phase.MOVED, Phase.HALTED}


def schema(partition: str = "S", sort: str = "S") -> Schema:
    return Schema("T", KeyAttribute("p", partition), KeyAttribute("s", sort), Names(partition))


@pytest.mark.parametrize("sort", ["S", "N", "B"])
def test_a_counter_is_recognized_by_its_place_and_its_count(sort: str) -> None:
    place = counter_key(schema(sort=sort), {"S": "/f"}).sort
    another_place = {"S": {"S": "x"}, "N": {"N": "0"}, "B": {"B": b"x"}}[sort]
    assert is_counter(schema(sort=sort), {"s": place, COUNT: {"N": "3"}})
    assert not is_counter(schema(sort=sort), {"s": place})
    assert not is_counter(schema(sort=sort), {"s": another_place, COUNT: {"N": "3"}})


@pytest.mark.parametrize("sort", ["S", "N", "B"])
def test_markers_are_spread_and_have_one_place_each(sort: str) -> None:
    places = [marker_key(schema(sort=sort), {"S": "/f"}, f"t{n}") for n in range(2000)]
    assert len({str(place) for place in places}) == 2000
    assert len({place["p"]["S"] for place in places}) == 256
    assert all(place["p"]["S"].startswith("/f!tokens_") for place in places)
    assert marker_key(schema(sort=sort), {"S": "/f"}, "t0") == places[0]
    assert marker_key(schema(sort=sort), {"S": "/g"}, "t0")["s"] != places[0]["s"]
    if sort == "N":
        assert all(len(place["s"]["N"]) <= 37 for place in places)


def test_markers_of_binary_keys() -> None:
    place = marker_key(schema("B"), {"B": b"\xff"}, "t")
    assert place["p"]["B"].startswith(b"\xff!tokens_")


def test_all_shards_of_a_growth_are_read_once() -> None:
    grown = Shards.registered(0.0, 5.0, None).grown(3, 0.0)
    assert [list(shards) for shards in reads_of(grown)] == [[1, 2, 3], []]
