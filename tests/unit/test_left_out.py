"""A collection that holds only an ignored item is no key, wherever pages begin and end."""

import random
from dataclasses import dataclass
from itertools import groupby, product

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import Key
from keyhop.scan.skip_scan import (
    BEGINNING,
    Page,
    Position,
    advance,
    collapse,
    without_ignored,
)

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
IGNORES: Key = {"sk": {"S": "!"}, "mark": {"N": "1"}}
IGNORED = "!"
SORT_KEYS = ("\x01", IGNORED, "a", "b")
"""One of a user sorts before the ignored one."""

COLLECTIONS = [
    "".join(one)
    for one in (
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
    """Items in the order of the service; a page of `limit` items after a key.

    is_coy: at its end, it hands on a LastEvaluatedKey once more, as the service does.
    """

    rows: list[Key]
    is_coy: bool = True
    requests: int = 0

    def page(self, start: Key | None, limit: int) -> Page:
        self.requests += 1
        place = ("", "") if start is None else place_of(start)
        after = [one for one in self.rows if place_of(one) > place]
        shown = after[:limit]
        is_end = len(shown) < limit if self.is_coy else len(after) <= limit
        last = None if is_end else {name: shown[-1][name] for name in ("pk", "sk")}
        keys, runs = collapse(shown, ["pk"])
        return without_ignored(Page(keys, runs, last, 0.5), shown, IGNORES)


def place_of(key: Key) -> tuple[str, str]:
    return str(key["pk"]["S"]), str(key["sk"]["S"])


def walked(segment: Segment, limits: list[int], hop: bool) -> tuple[list[str], int]:
    """The keys in order, and how many collections were left out; a checkpoint after each page."""
    keys: list[str] = []
    left_out = 0
    position: Position | None = BEGINNING
    while position is not None:
        position = Position.from_json(position.to_json())
        limit = limits[segment.requests % len(limits)]
        step = advance(SPACE, position, segment.page(position.start, limit), hop)
        keys += [str(key["pk"]["S"]) for key in step.keys]
        left_out += step.left_out
        position = step.position
    return keys, left_out


def rows_of(collections: tuple[str, ...]) -> list[Key]:
    return [row(number, sort) for number, sorts in enumerate(collections) for sort in sorts]


def expected(rows: list[Key]) -> tuple[list[str], int]:
    """By the definition: a key is one with an item that is not ignored."""
    truth: list[str] = []
    left_out = 0
    for partition, group in groupby(rows, key=lambda one: str(one["pk"]["S"])):
        counts = any(one["sk"]["S"] != IGNORED for one in group)
        truth += [partition] * counts
        left_out += not counts
    return truth, left_out


@pytest.mark.parametrize("hop", [True, False])
@pytest.mark.parametrize("is_coy", [True, False])
def test_every_page_boundary(hop: bool, is_coy: bool) -> None:
    """All tables of up to three collections of every kind, in pages of 1, 2, 3 and mixed sizes."""
    tables = [
        rows_of(kinds) for length in range(4) for kinds in product(COLLECTIONS, repeat=length)
    ]
    for rows, limits in product(tables, ([1], [2], [3], [7], [1, 2], [2, 1, 3])):
        segment = Segment(rows, is_coy)
        assert walked(segment, limits, hop) == expected(rows), (rows, limits)


@pytest.mark.parametrize("hop", [True, False])
def test_random_tables(hop: bool) -> None:
    chance = random.Random(12)
    for _ in range(300):
        kinds = tuple(chance.choices(COLLECTIONS, k=chance.randrange(30)))
        rows = rows_of(kinds)
        limits = [chance.randint(1, 9) for _ in range(5)]
        assert walked(Segment(rows, chance.random() < 0.5), limits, hop) == expected(rows)


def test_two_items_a_page_hop_from_each_collection_with_one_request() -> None:
    """What one that begins with an ignored item would cost twice as many of."""
    rows = rows_of((IGNORED + "ab",) * 50)
    two, one = Segment(rows), Segment(rows)
    assert walked(two, [2], True) == walked(one, [1], True) == expected(rows)
    assert (two.requests, one.requests) == (51, 101)


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


def test_the_runs_of_all_items_remain_for_what_pages_teach() -> None:
    rows = rows_of((IGNORED + "a", IGNORED, "ab"))
    page = Segment(rows).page(None, 9)
    assert list(page.runs) == [2, 2]
    assert list(page.runs_of_all) == [2, 1, 2]


def test_a_collection_that_an_empty_page_leaves_undecided_is_counted_once() -> None:
    """An empty page with a LastEvaluatedKey is not the end, and says nothing of a collection."""
    rows = rows_of((IGNORED, "a"))
    first = Segment(rows).page(None, 1)
    step = advance(SPACE, BEGINNING, first, True)
    assert step.position is not None
    assert step.position.undecided
    assert step.left_out == 0
    empty = Page([], [], {"pk": {"S": "0000"}, "sk": {"S": "zz"}}, 0.5)
    step = advance(SPACE, step.position, empty, True)
    assert step.position is not None
    assert step.position.undecided
    assert step.left_out == 0
    step = advance(SPACE, step.position, Segment(rows[1:]).page(None, 9), True)
    assert (len(step.keys), step.left_out, step.position) == (1, 1, None)
