"""Digests, rows, buckets, looks and the pace of the copy, without a database."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.values import same_item, to_json
from keyhop.jobs.worker import CALM_SLICES
from keyhop.rekey.compare.looks import MOST_REPAIRS, Looks
from keyhop.rekey.compare.rows import (
    Candidate,
    Look,
    Unmatched,
    Verdict,
    buckets_for,
    look_at,
    row_of,
    verdict,
)
from keyhop.rekey.compare.task import told_of
from keyhop.rekey.standing import Pace, pace_of, why_not_mine
from keyhop.rekey.transform import item_digest, key_digest, key_text
from keyhop.rekey.worker.images import frozen, thawed

from testing.rekey_pairs import ByOrder, ByTenant, order
from testing.rekey_tasks import looked_at

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
    assert look_at(orders, orders.destination.of(there), there, two).finding == "contended"


def test_a_source_item_that_lies_elsewhere_is_no_part_of_a_look() -> None:
    """So that its changes do not make a stale item look like one that is being written."""
    by = ByTenant()
    there = by.forward(order(1))
    assert there is not None
    elsewhere = {**order(1), "tenant": {"S": "t9"}}
    looks = [
        look_at(by, by.destination.of(there), there, [{**elsewhere, "visits": {"N": visits}}])
        for visits in "12"
    ]
    assert looks[0] == looks[1]


def test_an_item_that_names_no_owner_is_foreign() -> None:
    orders = ByOrder()
    there = {"pk": {"S": "x"}, "sk": {"S": "-"}}
    assert look_at(orders, there, there, []) == Look(item_digest(there), (), is_foreign=True)


@pytest.mark.parametrize(
    ("before", "last", "expected"),
    [
        (Look("x", ()), Look("x", ()), "difference"),
        (Look("x", ()), Look("y", ()), "changing"),
        (Look("x", ("y",)), Look("x", ("z",)), "changing"),
        (Look("x", ("y",)), Look("x", ()), "changing"),
        (Look(None, ("y",)), Look(None, ("y",)), "difference"),
        (Look("x", ()), Look("x", ("x",)), "in flight"),
        (Look("x", ()), Look(None, ()), "in flight"),
        (Look("x", (), is_foreign=True), Look("y", (), is_foreign=True), "difference"),
        (Look("x", ("y",), is_foreign=True), Look("z", ("y",), is_foreign=True), "changing"),
    ],
)
def test_the_last_two_looks_decide(before: Look, last: Look, expected: Verdict) -> None:
    assert verdict(before, last) == expected


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


class Changing:
    """A destination place whose item, or whose source item, has changed at every look.

    Attributes:
        settles: Whether a repair succeeds; None for a verification without repair.
        is_foreign: Whether the item at the place names no owner.
    """

    def __init__(self, settles: bool | None, is_foreign: bool = False) -> None:
        self.now, self.settled_keys = 0.0, list[Any]()
        self._is_foreign = is_foreign
        by = ByOrder()
        self._mine: dict[str, Any] = {"pk": {"S": "user"}, "sk": {"S": "o"}}
        there = by.forward(self._mine)
        assert there is not None
        place = by.destination.of(there)

        def settle(pairs: Any) -> list[bool]:
            self.settled_keys.extend(pairs)
            return [bool(settles)] * len(pairs)

        def source(keys: Any) -> dict[str, Any]:
            wanted = {"pk": {"S": "user"}, "sk": {"S": "o"}}
            return {} if is_foreign else {key_text(wanted): self._at(self._mine)}

        def destination(keys: Any) -> dict[str, Any]:
            names = place if is_foreign else there
            return {key_text(place): {**self._at(names), "side": {"S": "destination"}}}

        self.expected = ({"pk": {"S": "user"}, "sk": {"S": "o"}}, place)
        self.looks = Looks(
            by,
            cast(Any, SimpleNamespace(items=source)),
            cast(Any, SimpleNamespace(items=destination)),
            settle=None if settles is None else settle,
        )
        self.candidate = Candidate(place, [])

    def _at(self, item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "at": {"N": str(self.now)}}

    def settled(self) -> tuple[dict[str, int], list[str]]:
        def pause(seconds: float) -> None:
            self.now += seconds

        counts, reported = self.looks.settled(looked_at(self.looks, [self.candidate], pause))
        return dict(counts), [one.finding for one in reported]


def test_a_changing_place_that_was_settled_is_no_difference() -> None:
    changing = Changing(settles=True)
    assert changing.settled() == ({"in_flight": 1}, [])
    assert changing.settled_keys == [changing.expected]


@pytest.mark.parametrize("settles", [False, None])
def test_a_changing_place_that_was_not_settled_is_counted_and_named(settles: bool | None) -> None:
    changing = Changing(settles)
    assert changing.settled() == ({"unsettled": 1}, ["unsettled"])
    assert changing.settled_keys == ([] if settles is None else [changing.expected])


@pytest.mark.parametrize("settles", [True, None])
def test_a_foreign_item_that_changes_is_a_difference(settles: bool | None) -> None:
    changing = Changing(settles, is_foreign=True)
    assert changing.settled() == ({"surplus": 1, "foreign": 1}, ["surplus"])


def test_a_foreign_item_is_not_settled_by_the_owners_that_wanted_its_place() -> None:
    changing = Changing(True, is_foreign=True)
    changing.candidate.add({"pk": {"S": "user"}, "sk": {"S": "o"}})
    assert changing.settled() == ({"surplus": 1, "foreign": 1}, ["surplus"])


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ({"in_flight": 3}, 0),
        ({"surplus": 2, "repaired": 2}, 0),
        ({"surplus": 2, "repaired": 1}, 1),
        ({"unsettled": 1}, 1),
    ],
)
def test_what_is_left_keeps_a_verify_from_being_clean(counts: dict[str, int], left: int) -> None:
    plan = SimpleNamespace(id="run", options={"began": "2026-11-23T00:00:00+00:00"})
    told = told_of(cast(Any, plan), counts, 1.0)
    assert (told["left"], told["is_clean"]) == (left, left == 0)


class Stream:
    """Two tables as a verification looks at them: one item, which the stream brings some time."""

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
        counts, _ = self.looks.settled(looked_at(self.looks, [self.candidate], self.pause))
        return dict(counts)


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


def test_no_repair_writes_an_item_with_an_unsettled_straggler() -> None:
    stream = Stream(1e9, lambda now: 0.0)
    asked: list[Any] = []
    stream.looks.settle = lambda pairs: [bool(asked.append(pair)) or True for pair in pairs]
    stream.looks.may_settle = lambda candidates: []
    assert stream.settled() == {"missing": 1, "bypassed": 1}
    assert asked == []


@pytest.mark.parametrize(("equal_after", "repaired"), [(1, 1), (2, 1), (MOST_REPAIRS + 1, 0)])
def test_a_quiet_place_that_changes_while_it_is_settled_is_settled_again(
    equal_after: int, repaired: int
) -> None:
    stream = Stream(1e9, lambda now: 0.0)
    asked: list[Any] = []

    def settle(pairs: Any) -> list[bool]:
        asked.extend(pairs)
        if len(asked) == equal_after:
            stream.comes_at = stream.now
        return [True] * len(pairs)

    stream.looks.settle = settle
    place = stream.candidate.place
    there = ByTenant().forward(order(1))
    stream.looks.destination.items = lambda keys, page=None: (  # type: ignore[method-assign]
        {key_text(place): there} if stream.now >= stream.comes_at else {}
    )
    assert stream.settled() == {"missing": 1, **({"repaired": 1} if repaired else {})}
    assert len(asked) == min(equal_after, MOST_REPAIRS)
