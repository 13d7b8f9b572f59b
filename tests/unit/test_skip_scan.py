"""The walk, against a make-believe service that cuts pages wherever it likes."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import GREATEST_SORT_KEY, KeyAttribute, KeySpace
from keyhop.errors import BrokenPromise
from keyhop.scan.skip_scan import BEGINNING, MOST_STUCK, Page, Position, advance, collapse

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "N"))
BEYOND = 10**6
"""Sort keys from here on sort after the greatest one: only an emulator has such items."""


def place(key) -> tuple[int, float]:
    number = key["sk"]["N"]
    sort = BEYOND - 0.5 if number == GREATEST_SORT_KEY["N"]["N"] else float(number)
    return int(key["pk"]["S"]), sort


def item(collection: int, sort: int):
    return {"pk": {"S": str(collection)}, "sk": {"N": str(sort)}}


class Service:
    """Items in order; pages of at most `limit`, shortened, emptied and ended early at random."""

    def __init__(self, items: Sequence, chance: random.Random, empty: float = 0.0) -> None:
        self.items = sorted(items, key=place)
        self.chance = chance
        self.empty = empty
        self.requests = 0

    def page(self, start, limit: int) -> Page:
        self.requests += 1
        rest = [i for i in self.items if start is None or place(i) > place(start)]
        if rest and self.chance.random() < self.empty:
            before = item(int(rest[0]["pk"]["S"]), -5)
            at = before if start is None or place(before) > place(start) else start
            return Page([], [], at, 0.5)
        take = min(limit, self.chance.randint(1, limit))
        taken = rest[:take]
        more = len(rest) > take or (taken and self.chance.random() < 0.5)
        keys, runs = collapse(taken, SPACE.names)
        return Page(keys, runs, taken[-1] if taken and more else None, 0.5)


def walk(service: Service, hop: bool, limit: int, resume: bool = False) -> tuple[list[str], int]:
    found, stalls = [], 0
    position: Position | None = BEGINNING
    while position is not None:
        assert service.requests < 20_000
        if resume:
            position = Position.from_json(position.to_json())
        step = advance(SPACE, position, service.page(position.start, limit), hop)
        found += [key["pk"]["S"] for key in step.keys]
        stalls += step.no_progress
        position = step.position
    return found, stalls


@given(
    sizes=st.lists(st.integers(1, 12), max_size=25),
    beyond=st.sets(st.integers(0, 24)),
    hop=st.booleans(),
    limit=st.integers(1, 20),
    empty=st.sampled_from([0.0, 0.3, 0.8]),
    seed=st.integers(0, 1 << 32),
)
def test_each_key_is_reported_exactly_once(sizes, beyond, hop, limit, empty, seed) -> None:
    """Short pages, empty pages with a LastEvaluatedKey, items after the greatest sort key."""
    items = [
        item(collection, sort + (BEYOND if collection in beyond else 0))
        for collection, size in enumerate(sizes)
        for sort in range(size)
    ]
    service = Service(items, random.Random(seed), empty)
    found, _ = walk(service, hop, limit, resume=True)
    assert found == [str(collection) for collection in range(len(sizes))]


def test_a_hop_that_comes_back_is_counted_and_the_collection_read_through() -> None:
    items = [item(0, BEYOND + sort) for sort in range(10)] + [item(1, 0)]
    service = Service(items, random.Random(1))
    found, stalls = walk(service, hop=True, limit=3)
    assert found == ["0", "1"]
    assert stalls == 1


def test_hopping_takes_one_page_a_collection() -> None:
    items = [item(collection, sort) for collection in range(50) for sort in range(20)]
    service = Service(items, random.Random(1))
    assert len(walk(service, hop=True, limit=1)[0]) == 50
    assert service.requests <= 51


@pytest.mark.parametrize("keys", [[], [{"pk": {"S": "0"}}]])
def test_only_an_absent_last_key_ends_a_segment(keys) -> None:
    there = item(1, 3)
    assert advance(SPACE, BEGINNING, Page(keys, [1] * len(keys), there, 0.5), True).position
    assert not advance(SPACE, BEGINNING, Page(keys, [1] * len(keys), None, 0.5), True).position


def test_a_key_that_was_not_reported_is_not_hopped_over() -> None:
    """The last key of an empty page may belong to a collection whose items are still to come."""
    step = advance(SPACE, BEGINNING, Page([], [], item(7, 0), 0.5), True)
    assert step.position == Position(item(7, 0))


def test_a_page_that_leads_to_itself_is_borne_but_not_for_ever() -> None:
    position: Position | None = Position(item(7, 0))
    for _ in range(MOST_STUCK):
        assert position is not None
        step = advance(SPACE, position, Page([], [], item(7, 0), 0.5), True)
        assert step.no_progress
        position = step.position
    assert position is not None
    with pytest.raises(BrokenPromise, match="whose last key is the start of the page"):
        advance(SPACE, position, Page([], [], item(7, 0), 0.5), True)
    moved = advance(SPACE, position, Page([], [], item(8, 0), 0.5), True)
    assert moved.position == Position(item(8, 0))


def test_collapse_with_several_partition_attributes() -> None:
    rows = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "y")]
    items = [{"p": {"S": p}, "q": {"S": q}, "z": {"N": "1"}} for p, q in rows]
    keys, runs = collapse(items, ("p", "q"))
    assert runs == [2, 1, 1]
    assert keys[1] == {"p": {"S": "a"}, "q": {"S": "y"}}
