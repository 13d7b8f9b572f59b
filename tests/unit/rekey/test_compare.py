"""Digests, rows, buckets, looks and the pace of the copy, without a database."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.items import same_item
from keyhop.dynamodb.values import to_json
from keyhop.jobs.worker import CALM_SLICES
from keyhop.rekey.compare.look import DIFFERENCES, Look, look_at, verdict
from keyhop.rekey.compare.looks import Looks
from keyhop.rekey.compare.rows import Candidate, Unmatched, buckets_for, row_of
from keyhop.rekey.digest import item_digest, key_digest
from keyhop.rekey.pace import Pace, pace_of, why_not_mine
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.worker.images import frozen, thawed

from testing.rekey_pairs import ByOrder, ByTenant, order

numbers = st.sampled_from(["1", "1.0", "10", "1E1", "-0", "0", "0.10", "0.1"])
values = st.recursive(
    st.one_of(
        st.builds(lambda n: {"N": n}, numbers),
        st.builds(lambda s: {"S": s}, st.sampled_from(["", "a", "1", "ab"])),
        st.builds(lambda b: {"B": b}, st.sampled_from([b"a", b"", b"1"])),
        st.sampled_from([{"BOOL": True}, {"BOOL": False}, {"NULL": True}]),
        st.builds(
            lambda n: {"NS": n},
            st.lists(st.sampled_from(["1", "2.0", "2"]), min_size=1, max_size=1),
        ),
        st.builds(lambda s: {"SS": s}, st.lists(st.sampled_from("abc"), min_size=1, unique=True)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"L": items}, st.lists(inner, max_size=3)),
        st.builds(lambda items: {"M": items}, st.dictionaries(st.sampled_from("ab"), inner)),
    ),
    max_leaves=6,
)
items = st.dictionaries(st.sampled_from(["a", "b", "ab", ""]), values, max_size=3)


@given(items, items)
def test_digests_are_equal_as_items_are(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (item_digest(one) == item_digest(other)) == same_item(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": {"S": "1"}}, {"a": {"N": "1"}}),
        ({"a": {"S": "1"}}, {"a": {"B": b"1"}}),
        ({"a": {"L": [{"S": "x"}, {"S": "y"}]}}, {"a": {"L": [{"S": "y"}, {"S": "x"}]}}),
        ({"a": {"SS": ["x"]}}, {"a": {"L": [{"S": "x"}]}}),
        ({"a": {"M": {}}}, {"a": {"L": []}}),
        ({"a": {"S": "x"}, "b": {"S": "y"}}, {"a": {"S": "y"}, "b": {"S": "x"}}),
        ({"a": {"NULL": True}}, {}),
    ],
)
def test_what_differs_has_another_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert item_digest(one) != item_digest(other)


def test_a_number_has_one_digest_whatever_its_form() -> None:
    assert key_digest({"pk": {"N": "1.50"}}) == key_digest({"pk": {"N": "15E-1"}})


def rows_of(*told: tuple[str, str, str | None]) -> list[Any]:
    """(place, content, owner or None for the destination's)."""
    return [
        row_of(
            {"pk": {"S": place}, "x": {"S": content}},
            {"pk": {"S": place}},
            None if owner is None else {"pk": {"S": owner}},
            4,
        )
        for place, content, owner in told
    ]


def test_what_is_not_matched_by_exactly_one_other_is_a_candidate() -> None:
    rows = rows_of(
        ("same", "1", "o1"),
        ("changed", "1", "o2"),
        ("missing", "1", "o3"),
        ("two", "1", "o4"),
        ("same", "1", None),
        ("changed", "2", None),
        ("surplus", "1", None),
        ("two", "1", None),
        ("two", "1", "o5"),
    )
    unmatched = Unmatched()
    assert unmatched.take(rows[:4]) + unmatched.take(rows[4:]) == 9
    unmatched.end()
    found = unmatched.candidates(rows, 0, 10)
    assert {one.place["pk"]["S"]: [o["pk"]["S"] for o in one.owners] for one in found} == {
        "changed": ["o2"],
        "missing": ["o3"],
        "surplus": [],
        "two": ["o4", "o5"],
    }
    by_windows = [one.place for first in (0, 3) for one in unmatched.candidates(rows, first, 3)]
    assert by_windows == [one.place for one in found], "also if few are gathered at once"


def test_buckets_grow_with_the_items() -> None:
    assert [buckets_for(n) for n in (0, 10, 1_400_000, 2e9)] == [1, 1, 1, 2_000]


def test_a_look_tells_what_is_wrong() -> None:
    by = ByTenant()
    mine = order(1)
    there = by.forward(mine)
    assert there is not None
    place = by.destination.of(there)
    elsewhere = {**mine, "tenant": {"S": "t9"}}
    other = {**there, "total": {"N": "9"}}
    cases: list[tuple[Any, list[Any], str]] = [
        (there, [mine], "equal"),
        (None, [], "equal"),
        (None, [elsewhere], "equal"),
        (None, [mine], "missing"),
        (there, [], "surplus"),
        (there, [elsewhere], "surplus"),
        (other, [mine], "changed"),
    ]
    for item, sources, finding in cases:
        assert look_at(by, place, item, sources).finding == finding
    orders = ByOrder()
    two = [{"pk": {"S": user}, "sk": {"S": "o"}} for user in ("u1", "u2")]
    there = orders.forward(two[0])
    assert there is not None
    place = orders.destination.of(there)
    assert look_at(orders, place, there, two).finding == "contended"


def test_a_source_item_that_belongs_elsewhere_is_no_part_of_what_a_place_should_be() -> None:
    """However often it changes, the item at its old place is surplus, and does not change."""
    by, mine = ByTenant(), order(1)
    there = by.forward(mine)
    assert there is not None
    place = by.destination.of(there)
    moved = [{**mine, "tenant": {"S": "t9"}, "total": {"N": str(n)}} for n in range(2)]
    before, last = (look_at(by, place, there, [one]) for one in moved)
    assert (last.finding, verdict(before, last)) == ("surplus", "difference")


@pytest.mark.parametrize(
    ("before", "last", "comes_to"),
    [
        (Look("a", ()), Look(None, ()), "in flight"),
        (Look("a", ("b",)), Look("a", ("b",)), "difference"),
        (Look("a", ("b",)), Look("a", ("c",)), "changing"),
        (Look("a", ()), Look("b", ()), "changing"),
        (Look("a", (), True), Look("b", (), True), "difference"),
        (Look("a", (), True), Look("b", ("c",), True), "changing"),
        (Look(None, ("a",)), Look("a", ("b",)), "changing"),
    ],
)
def test_the_last_two_looks_decide(before: Look, last: Look, comes_to: str) -> None:
    assert verdict(before, last) == comes_to


def test_what_tells_no_owner_is_foreign_though_a_source_item_once_wanted_its_place() -> None:
    orders = ByOrder()
    there = {"pk": {"S": "o"}, "sk": {"S": "-"}, "total": {"N": "1"}}
    once = {"pk": {"S": "u1"}, "sk": {"S": "elsewhere"}}
    assert look_at(orders, orders.destination.of(there), there, [once]).is_foreign


def test_the_stream_comes_before_the_copy() -> None:
    at = 1_000.0
    assert pace_of(None, None, at) == Pace()
    assert pace_of({"rate": 50, "paused": False}, None, at) == Pace(50)
    assert pace_of({"rate": 50, "paused": True}, None, at).is_paused
    assert pace_of(None, {"seconds": 10, "at": at}, at).share == 1.0
    slowed = [pace_of(None, {"seconds": lag, "at": at}, at) for lag in (60, 90, 119)]
    assert [round(pace.share, 2) for pace in slowed] == [0.67, 0.33, 0.1]
    assert "behind" in slowed[0].reason
    assert pace_of(None, {"seconds": 500, "at": at}, at).is_paused
    assert pace_of(None, {"seconds": 500, "at": at - 1_000}, at) == Pace(), "told long ago"


def test_only_the_backfill_that_is_under_way_writes() -> None:
    assert why_not_mine({"run": "a", "ended": None}, "a") is None
    assert "ended" in str(why_not_mine({"run": "a", "ended": 1.0}, "a"))
    assert "Another" in str(why_not_mine({"run": "b", "ended": None}, "a"))
    assert "Another" in str(why_not_mine(None, "a"))


def test_a_row_is_plain_json() -> None:
    (row,) = rows_of(("p", "c", "o"))
    assert json.loads(json.dumps(to_json(row))) == row


class Stream:
    """Two tables as a verify looks at them: one item, which the stream brings at some moment."""

    def __init__(self, comes_at: float, lags: Callable[[float], float]) -> None:
        self.now = 0.0
        self.comes_at = comes_at
        by, mine = ByTenant(), order(1)
        there = by.forward(mine)
        assert there is not None
        place = by.destination.of(there)
        source, destination = (
            SimpleNamespace(items=lambda keys, one=one: self._items(*one))
            for one in ((by.source.of(mine), mine, 0.0), (place, there, comes_at))
        )
        self.looks = Looks(
            by, cast(Any, source), cast(Any, destination), lag=lambda: lags(self.now)
        )
        self.candidate = Candidate(place, [by.source.of(mine)])

    def _items(self, key: Any, item: Any, since: float) -> dict[str, Any]:
        return {key_text(key): item} if self.now >= since else {}

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def settled(self) -> dict[str, int]:
        counts, _ = self.looks.settled([self.candidate], self.pause)
        return dict(counts)


class Moving:
    """An item whose stale copy lies at its old place, while it changes at its new one.

    It changes at each look. settles: what a settle answers, and whether it clears the place.
    """

    def __init__(self, settles: bool | None, clears: bool = True, moves: bool = True) -> None:
        self.number, self.clears, self.answer = 0, clears, bool(settles)
        by, mine = ByTenant(), order(1)
        stale = by.forward(mine)
        assert stale is not None
        self.place = by.destination.of(stale)
        self.there: dict[str, Any] = {key_text(self.place): stale}
        self.mine, self.moves = mine, moves
        self.asked: list[Any] = []
        source = SimpleNamespace(items=lambda keys: self._source(list(keys)))
        destination = SimpleNamespace(items=lambda keys: dict(self.there))
        self.looks = Looks(by, cast(Any, source), cast(Any, destination))
        if settles is not None:
            self.looks.settle = self._settle
        self.key = by.source.of(mine)

    def _source(self, keys: list[Any]) -> dict[str, Any]:
        self.number += 1
        tenant = {"tenant": {"S": "t9"}} if self.moves else {}
        item = {**self.mine, "total": {"N": str(100 + self.number)}, **tenant}
        return {key_text(self.key): item} if keys else {}

    def _settle(self, owner: Any, places: Any) -> bool:
        self.asked.append((owner, list(places)))
        if self.clears:
            self.there.clear()
        return self.answer

    def settled(self) -> dict[str, int]:
        counts, found = self.looks.settled([Candidate(self.place, [])], lambda seconds: None)
        assert sum(1 for one in found) == sum(counts.get(n, 0) for n in (*DIFFERENCES, "unsettled"))
        return dict(counts)


def test_a_stale_item_is_settled_though_its_source_item_changes_elsewhere() -> None:
    world = Moving(settles=True)
    assert world.settled() == {"surplus": 1, "repaired": 1}
    assert world.asked == [(world.key, [world.place])]


def test_a_stale_item_is_counted_without_repair() -> None:
    assert Moving(settles=None).settled() == {"surplus": 1}


def test_a_row_that_changes_at_each_look_is_settled_and_then_no_difference() -> None:
    world = Moving(settles=True, clears=False, moves=False)
    assert world.settled() == {"in_flight": 1}
    assert len(world.asked) == 1


@pytest.mark.parametrize("settles", [None, False])
def test_a_row_that_changes_and_is_not_settled_is_not_equal(settles: bool | None) -> None:
    assert Moving(settles, clears=False, moves=False).settled() == {"unsettled": 1}


def test_what_a_repair_may_not_write_stays_a_difference() -> None:
    for moves, finding in ((True, "surplus"), (False, "unsettled")):
        world = Moving(settles=True, moves=moves)
        world.looks.may_settle = lambda candidates: []
        assert world.settled() == {finding: 1, "bypassed": 1}
        assert world.asked == []


@pytest.mark.parametrize(
    ("comes_at", "lag", "finding", "ended"),
    [
        (7.0, 0.0, "in_flight", 8.0),
        (30.0, 30.0, "in_flight", 32.0),
        (1e9, 0.0, "missing", 8.0),
        (1e9, 30.0, "missing", 32.0),
        (1e9, 1e6, "missing", 42.0),
    ],
)
def test_a_quiet_item_that_the_stream_has_not_brought_yet_is_in_flight(
    comes_at: float, lag: float, finding: str, ended: float
) -> None:
    stream = Stream(comes_at, lambda now: lag)
    assert stream.settled() == {finding: 1}
    assert stream.now == ended


def test_an_owner_counts_once_whatever_form_its_number_has() -> None:
    """A row has 1E+1 where the item has 10: two owners would contend for their place."""
    candidate = Candidate({"pk": {"S": "p"}}, [{"n": {"N": "1E+1"}, "a": {"S": "x"}}])
    candidate.add({"a": {"S": "x"}, "n": {"N": "10"}})
    assert len(candidate.owners) == 1
    candidate.add({"a": {"S": "x"}, "n": {"N": "100"}})
    assert len(candidate.owners) == 2


def test_equal_keys_are_frozen_alike_in_whatever_order_they_come() -> None:
    """Of a key that was JSON its attributes come by their names; else the partition key first."""
    one, other = (
        {"tenant": {"S": "t"}, "id": {"N": "10"}},
        {"id": {"N": "1E1"}, "tenant": {"S": "t"}},
    )
    assert frozen(one) == frozen(other)
    assert frozen(thawed(frozen(one))) == frozen(other)


def test_a_lag_that_grows_while_it_is_waited_for_is_waited_for_as_well() -> None:
    stream = Stream(35.0, lambda now: 20.0 if now < 15 else 38.0)
    assert stream.settled() == {"in_flight": 1}


def test_looks_fit_into_a_slice_whatever_the_lag_is() -> None:
    """Else they would be begun anew in each slice, and none would be the last."""
    stream = Stream(1e9, lambda now: 1e6)
    stream.settled()
    assert stream.now < 0.75 * max(CALM_SLICES)
