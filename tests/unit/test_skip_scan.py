"""Check the skip-scan against a fake service that ends pages at any place.

A collection with only an ignored item does not count as a key, wherever pages begin and end.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import GREATEST_SORT_KEY, KeyAttribute, KeySpace
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise
from keyhop.scan.skip_scan import (
    BEGINNING,
    MOST_STUCK,
    Page,
    Position,
    advance,
    collapse,
    without_ignored,
)

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "N"))
BEYOND = 10**6
"""Sort keys from this number on follow the greatest one. Only an emulator has such items."""


def place(key) -> tuple[int, float]:
    number = key["sk"]["N"]
    sort = BEYOND - 0.5 if number == GREATEST_SORT_KEY["N"]["N"] else float(number)
    return int(key["pk"]["S"]), sort


def item(collection: int, sort: int):
    return {"pk": {"S": str(collection)}, "sk": {"N": str(sort)}}


class Service:
    """Sorted items in pages of up to `limit`, shortened, emptied and ended early at random."""

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
        items = rest[:take]
        more = len(rest) > take or (items and self.chance.random() < 0.5)
        keys, runs = collapse(items, SPACE.names)
        return Page(keys, runs, items[-1] if items and more else None, 0.5)


def walk(
    service: "Service | Segment", limits: Sequence[int], hop: bool, space: KeySpace = SPACE
) -> tuple[list[str], int, int]:
    """Walk with a checkpoint after each page.

    Returns:
        The keys in order, the number of left-out collections, and of hops without progress.
    """
    keys, left_out, stalls = [], 0, 0
    position: Position | None = BEGINNING
    while position is not None:
        assert service.requests < 20_000
        position = Position.from_json(position.to_json())
        limit = limits[service.requests % len(limits)]
        step = advance(space, position, service.page(position.start, limit), hop)
        keys += [key["pk"]["S"] for key in step.keys]
        left_out += step.left_out
        stalls += step.no_progress
        position = step.position
    return keys, left_out, stalls


@given(
    sizes=st.lists(st.integers(1, 12), max_size=25),
    beyond=st.sets(st.integers(0, 24)),
    hop=st.booleans(),
    limit=st.integers(1, 20),
    empty=st.sampled_from([0.0, 0.3, 0.8]),
    seed=st.integers(0, 1 << 32),
)
def test_each_key_is_reported_exactly_once(sizes, beyond, hop, limit, empty, seed) -> None:
    """There are short pages, empty pages, and items after the greatest sort key."""
    items = [
        item(collection, sort + (BEYOND if collection in beyond else 0))
        for collection, size in enumerate(sizes)
        for sort in range(size)
    ]
    service = Service(items, random.Random(seed), empty)
    assert walk(service, [limit], hop)[0] == [str(collection) for collection in range(len(sizes))]


def test_a_hop_without_progress_is_counted_and_the_collection_is_read() -> None:
    items = [item(0, BEYOND + sort) for sort in range(10)] + [item(1, 0)]
    service = Service(items, random.Random(1))
    assert walk(service, [3], hop=True) == (["0", "1"], 0, 1)


def test_hopping_takes_one_page_a_collection() -> None:
    items = [item(collection, sort) for collection in range(50) for sort in range(20)]
    service = Service(items, random.Random(1))
    assert len(walk(service, [1], hop=True)[0]) == 50
    assert service.requests <= 51


@pytest.mark.parametrize("keys", [[], [{"pk": {"S": "0"}}]])
def test_only_an_absent_last_key_ends_a_segment(keys) -> None:
    last = item(1, 3)
    assert advance(SPACE, BEGINNING, Page(keys, [1] * len(keys), last, 0.5), True).position
    assert not advance(SPACE, BEGINNING, Page(keys, [1] * len(keys), None, 0.5), True).position


def test_a_key_that_was_not_reported_is_not_hopped_over() -> None:
    """The last key of an empty page may belong to a collection whose items were not read yet."""
    step = advance(SPACE, BEGINNING, Page([], [], item(7, 0), 0.5), True)
    assert step.position == Position(item(7, 0))


def test_a_page_that_leads_to_itself_is_repeated_a_limited_number_of_times() -> None:
    position: Position | None = Position(item(7, 0))
    for _ in range(MOST_STUCK):
        step = advance(SPACE, position, Page([], [], item(7, 0), 0.5), True)
        assert step.no_progress
        position = step.position
    with pytest.raises(BrokenPromise, match="whose last key is the start of the page"):
        advance(SPACE, position, Page([], [], item(7, 0), 0.5), True)
    step_on = advance(SPACE, position, Page([], [], item(8, 0), 0.5), True)
    assert step_on.position == Position(item(8, 0))


def test_collapse_with_several_partition_attributes() -> None:
    rows = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "y")]
    items = [{"p": {"S": p}, "q": {"S": q}, "z": {"N": "1"}} for p, q in rows]
    keys, runs = collapse(items, ("p", "q"))
    assert runs == [2, 1, 1]
    assert keys[1] == {"p": {"S": "a"}, "q": {"S": "y"}}


STRINGS = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
IGNORES: Key = {"sk": {"S": "!"}, "mark": {"N": "1"}}
IGNORED = "!"
SORT_KEYS = ("\x01", IGNORED, "a", "b")
"""A sort key of a user sorts before that of the ignored item."""

COLLECTIONS = [
    "".join(sorts)
    for sorts in (
        (IGNORED,),
        ("a",),
        (IGNORED, "a"),
        ("\x01", IGNORED),
        ("\x01", IGNORED, "a", "b"),
        ("a", "b"),
    )
]


def row(partition: int, sort: str) -> Key:
    mark: Key = {"mark": {"N": "1.0"}} if sort == IGNORED else {}
    return {"pk": {"S": f"{partition:04}"}, "sk": {"S": sort}, **mark}


@dataclass
class Segment:
    """Items in the order of the service, in pages of `limit`.

    Attributes:
        is_coy: The last page has a LastEvaluatedKey, as the service's last full page has.
    """

    rows: list[Key]
    is_coy: bool = True
    requests: int = 0

    def page(self, start: Key | None, limit: int) -> Page:
        self.requests += 1
        place = ("", "") if start is None else place_of(start)
        remaining = [row for row in self.rows if place_of(row) > place]
        items = remaining[:limit]
        is_end = len(items) < limit if self.is_coy else len(remaining) <= limit
        last = None if is_end else {name: items[-1][name] for name in ("pk", "sk")}
        keys, runs = collapse(items, ["pk"])
        return without_ignored(Page(keys, runs, last, 0.5), items, IGNORES)


def place_of(key: Key) -> tuple[str, str]:
    return str(key["pk"]["S"]), str(key["sk"]["S"])


def rows_of(collections: tuple[str, ...]) -> list[Key]:
    return [row(number, sort) for number, sorts in enumerate(collections) for sort in sorts]


def expected(rows: list[Key]) -> tuple[list[str], int]:
    """Return the keys with an item that is not ignored, and the number of the other collections."""
    truth: list[str] = []
    left_out = 0
    for partition, group in groupby(rows, key=lambda row: str(row["pk"]["S"])):
        counts = any(row["sk"]["S"] != IGNORED for row in group)
        truth += [partition] * counts
        left_out += not counts
    return truth, left_out


@pytest.mark.parametrize("hop", [True, False])
@pytest.mark.parametrize("is_coy", [True, False])
def test_every_page_boundary(hop: bool, is_coy: bool) -> None:
    """Walk all tables with up to three collections of every kind, in pages of several sizes."""
    tables = [
        rows_of(kinds) for length in range(4) for kinds in product(COLLECTIONS, repeat=length)
    ]
    for rows, limits in product(tables, ([1], [2], [3], [7], [1, 2], [2, 1, 3])):
        segment = Segment(rows, is_coy)
        assert walk(segment, limits, hop, STRINGS)[:2] == expected(rows), (rows, limits)


@pytest.mark.parametrize("hop", [True, False])
def test_random_tables(hop: bool) -> None:
    chance = random.Random(12)
    for _ in range(300):
        kinds = tuple(chance.choices(COLLECTIONS, k=chance.randrange(30)))
        rows = rows_of(kinds)
        limits = [chance.randint(1, 9) for _ in range(5)]
        segment = Segment(rows, chance.random() < 0.5)
        assert walk(segment, limits, hop, STRINGS)[:2] == expected(rows)


def test_two_items_a_page_hop_from_each_collection_with_one_request() -> None:
    """A collection that begins with an ignored item costs two requests at one item a page."""
    rows = rows_of((IGNORED + "ab",) * 50)
    large_pages, small_pages = Segment(rows), Segment(rows)
    result = walk(large_pages, [2], True, STRINGS)
    assert result == walk(small_pages, [1], True, STRINGS)
    assert result[:2] == expected(rows)
    assert (large_pages.requests, small_pages.requests) == (51, 101)


@pytest.mark.parametrize(
    "item",
    [
        {"sk": {"S": "!"}},
        {"sk": {"S": "!"}, "mark": {"N": "5"}},
        {"sk": {"S": "!"}, "mark": {"S": "1"}},
        {"sk": {"S": "!!"}, "mark": {"N": "1"}},
    ],
)
def test_an_item_that_only_resembles_an_ignored_one_counts(item: Key) -> None:
    pk: Key = {"pk": {"S": "k"}}
    page = without_ignored(Page([pk], [1], None, 0.5), [{**pk, **item}], IGNORES)
    assert page.keys == [pk]


def test_a_page_holds_the_items_of_its_keys_only() -> None:
    rows = rows_of((IGNORED + "a", IGNORED, "ab"))
    keys, runs = collapse(rows, ["pk"])
    page = without_ignored(Page(keys, runs, None, 0.5, rows), rows, IGNORES)
    assert list(page.runs) == [2, 2]
    assert list(page.items) == [*rows[:2], *rows[3:]]


def test_a_page_keeps_the_runs_of_all_items() -> None:
    rows = rows_of((IGNORED + "a", IGNORED, "ab"))
    page = Segment(rows).page(None, 9)
    assert list(page.runs) == [2, 2]
    assert list(page.runs_of_all) == [2, 1, 2]


def test_a_collection_that_an_empty_page_leaves_undecided_is_counted_once() -> None:
    """An empty page with a LastEvaluatedKey is not the end, and decides about no collection."""
    rows = rows_of((IGNORED, "a"))
    first = Segment(rows).page(None, 1)
    step = advance(STRINGS, BEGINNING, first, True)
    assert step.position.undecided
    assert step.left_out == 0
    empty = Page([], [], {"pk": {"S": "0000"}, "sk": {"S": "zz"}}, 0.5)
    step = advance(STRINGS, step.position, empty, True)
    assert step.position.undecided
    assert step.left_out == 0
    step = advance(STRINGS, step.position, Segment(rows[1:]).page(None, 9), True)
    assert (len(step.keys), step.left_out, step.position) == (1, 1, None)
