"""Digests, rows, buckets and looks of a comparison, and the pace of the copy; no database."""

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
def test_digests_are_equal_if_and_only_if_items_are(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    assert (item_digest(first) == item_digest(second)) == same_item(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
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
def test_different_items_have_different_digests(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    assert item_digest(first) != item_digest(second)


def test_a_number_has_one_digest_whatever_its_form() -> None:
    assert key_digest({"pk": {"N": "1.50"}}) == key_digest({"pk": {"N": "15E-1"}})


def rows_of(*items: tuple[str, str, str | None]) -> list[Any]:
    """Return the rows of items: their place, content, and owner, or None in the destination."""
    return [
        row_of(
            {"pk": {"S": place}, "x": {"S": content}},
            {"pk": {"S": place}},
            None if owner is None else {"pk": {"S": owner}},
            4,
        )
        for place, content, owner in items
    ]


def test_a_row_without_exactly_one_match_is_a_candidate() -> None:
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
    candidates = unmatched.candidates(rows, 0, 10)
    assert {c.place["pk"]["S"]: [owner["pk"]["S"] for owner in c.owners] for c in candidates} == {
        "changed": ["o2"],
        "missing": ["o3"],
        "surplus": [],
        "two": ["o4", "o5"],
    }
    by_windows = [c.place for first in (0, 3) for c in unmatched.candidates(rows, first, 3)]
    assert by_windows == [c.place for c in candidates], "windows do not change the result"


def test_buckets_grow_with_the_items() -> None:
    assert [buckets_for(n) for n in (0, 10, 1_400_000, 2e9)] == [1, 1, 1, 2_000]


def test_a_look_names_the_difference() -> None:
    transform = ByTenant()
    source = order(1)
    image = transform.forward(source)
    assert image is not None
    place = transform.destination.of(image)
    elsewhere = {**source, "tenant": {"S": "t9"}}
    changed = {**image, "total": {"N": "9"}}
    cases: list[tuple[Any, list[Any], str]] = [
        (image, [source], "equal"),
        (None, [], "equal"),
        (None, [elsewhere], "equal"),
        (None, [source], "missing"),
        (image, [], "surplus"),
        (image, [elsewhere], "surplus"),
        (changed, [source], "changed"),
    ]
    for item, sources, finding in cases:
        assert look_at(transform, place, item, sources).finding == finding
    orders = ByOrder()
    contenders = [{"pk": {"S": user}, "sk": {"S": "o"}} for user in ("u1", "u2")]
    image = orders.forward(contenders[0])
    assert image is not None
    look = look_at(orders, orders.destination.of(image), image, contenders)
    assert look.finding == "contended"


def test_a_look_ignores_a_source_item_with_another_place() -> None:
    """Otherwise its changes would make a stale item look like one that is being written."""
    transform = ByTenant()
    image = transform.forward(order(1))
    assert image is not None
    elsewhere = {**order(1), "tenant": {"S": "t9"}}
    looks = [
        look_at(
            transform,
            transform.destination.of(image),
            image,
            [{**elsewhere, "visits": {"N": visits}}],
        )
        for visits in "12"
    ]
    assert looks[0] == looks[1]


def test_an_item_that_names_no_owner_is_foreign() -> None:
    orders = ByOrder()
    item = {"pk": {"S": "x"}, "sk": {"S": "-"}}
    assert look_at(orders, item, item, []) == Look(item_digest(item), (), is_foreign=True)


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


def test_the_copy_slows_down_when_the_stream_lags() -> None:
    at = 1_000.0
    assert pace_of(None, None, at) == Pace()
    assert pace_of({"rate": 50, "paused": False}, None, at) == Pace(50)
    assert pace_of({"rate": 50, "paused": True}, None, at).is_paused
    assert pace_of(None, {"seconds": 10, "at": at}, at).share == 1.0
    slowed = [pace_of(None, {"seconds": lag, "at": at}, at) for lag in (60, 90, 119)]
    assert [round(pace.share, 2) for pace in slowed] == [0.67, 0.33, 0.1]
    assert "behind" in slowed[0].reason
    assert pace_of(None, {"seconds": 500, "at": at}, at).is_paused
    assert pace_of(None, {"seconds": 500, "at": at - 1_000}, at) == Pace(), "the lag is old"


def test_only_the_running_backfill_writes() -> None:
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
        settles: Whether a repair succeeds, or None for a verification without repair.
        is_foreign: Whether the item at the place names no owner.
    """

    def __init__(self, settles: bool | None, is_foreign: bool = False) -> None:
        self.now, self.settled_keys = 0.0, list[Any]()
        transform = ByOrder()
        key: dict[str, Any] = {"pk": {"S": "user"}, "sk": {"S": "o"}}
        image = transform.forward(key)
        assert image is not None
        place = transform.destination.of(image)

        def settle(pairs: Any) -> list[bool]:
            self.settled_keys.extend(pairs)
            return [bool(settles)] * len(pairs)

        def source(keys: Any) -> dict[str, Any]:
            return {} if is_foreign else {key_text(key): self._at(key)}

        def destination(keys: Any) -> dict[str, Any]:
            item = place if is_foreign else image
            return {key_text(place): {**self._at(item), "side": {"S": "destination"}}}

        self.expected = (key, place)
        self.looks = Looks(
            transform,
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
        return dict(counts), [difference.finding for difference in reported]


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


def test_the_owners_of_a_place_do_not_settle_its_foreign_item() -> None:
    changing = Changing(True, is_foreign=True)
    changing.candidate.add({"pk": {"S": "user"}, "sk": {"S": "o"}})
    assert changing.settled() == ({"surplus": 1, "foreign": 1}, ["surplus"])


@pytest.mark.parametrize(
    ("counts", "remaining"),
    [
        ({"in_flight": 3}, 0),
        ({"surplus": 2, "repaired": 2}, 0),
        ({"surplus": 2, "repaired": 1}, 1),
        ({"unsettled": 1}, 1),
    ],
)
def test_remaining_differences_keep_a_verification_from_being_clean(
    counts: dict[str, int], remaining: int
) -> None:
    plan = SimpleNamespace(id="run", options={"began": "2026-11-23T00:00:00+00:00"})
    report = told_of(cast(Any, plan), counts, 1.0)
    assert (report["left"], report["is_clean"]) == (remaining, remaining == 0)


class Stream:
    """Two tables with one item, which the stream copies to the destination at some time."""

    def __init__(self, comes_at: float, lags: Callable[[float], float]) -> None:
        self.now = 0.0
        self.comes_at = comes_at
        transform, item = ByTenant(), order(1)
        key, image = transform.source.of(item), transform.forward(item)
        assert image is not None
        place = transform.destination.of(image)
        source, destination = (
            SimpleNamespace(items=lambda keys, contents=contents: self._items(*contents))
            for contents in ((key, item, 0.0), (place, image, comes_at))
        )
        self.looks = Looks(
            transform, cast(Any, source), cast(Any, destination), lag=lambda: lags(self.now)
        )
        self.candidate = Candidate(place, [key])

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
def test_an_item_that_the_stream_has_not_copied_yet_is_in_flight(
    comes_at: float, lag: float, finding: str, ended: float
) -> None:
    stream = Stream(comes_at, lambda now: lag)
    assert stream.settled() == {finding: 1}
    assert stream.now == ended


def test_an_owner_counts_once_whatever_the_form_of_its_number() -> None:
    """If 1E+1 in a row and 10 in the item were two owners, they would contend for one place."""
    candidate = Candidate({"pk": {"S": "p"}}, [{"n": {"N": "1E+1"}, "a": {"S": "x"}}])
    candidate.add({"a": {"S": "x"}, "n": {"N": "10"}})
    assert len(candidate.owners) == 1
    candidate.add({"a": {"S": "x"}, "n": {"N": "100"}})
    assert len(candidate.owners) == 2


def test_equal_keys_are_frozen_alike_in_any_order() -> None:
    """A key that was JSON has its attributes sorted; other keys begin with the partition key."""
    first = {"tenant": {"S": "t"}, "id": {"N": "10"}}
    second = {"id": {"N": "1E1"}, "tenant": {"S": "t"}}
    assert frozen(first) == frozen(second)
    assert frozen(thawed(frozen(first))) == frozen(second)


def test_a_verification_also_waits_for_a_lag_that_grows_while_it_waits() -> None:
    stream = Stream(35.0, lambda now: 20.0 if now < 15 else 38.0)
    assert stream.settled() == {"in_flight": 1}


def test_looks_fit_into_a_slice_whatever_the_lag_is() -> None:
    """Otherwise each slice would restart them, and the job would never end."""
    stream = Stream(1e9, lambda now: 1e6)
    stream.settled()
    assert stream.now < 0.75 * max(CALM_SLICES)


def test_no_repair_writes_an_item_with_an_unsettled_straggler() -> None:
    stream = Stream(1e9, lambda now: 0.0)
    settled: list[Any] = []
    stream.looks.settle = lambda pairs: [bool(settled.append(pair)) or True for pair in pairs]
    stream.looks.may_settle = lambda candidates: []
    assert stream.settled() == {"missing": 1, "bypassed": 1}
    assert settled == []


@pytest.mark.parametrize(("equal_after", "repaired"), [(1, 1), (2, 1), (MOST_REPAIRS + 1, 0)])
def test_a_quiet_place_that_changes_while_it_is_settled_is_settled_again(
    equal_after: int, repaired: int
) -> None:
    stream = Stream(1e9, lambda now: 0.0)
    settled: list[Any] = []

    def settle(pairs: Any) -> list[bool]:
        settled.extend(pairs)
        if len(settled) == equal_after:
            stream.comes_at = stream.now
        return [True] * len(pairs)

    stream.looks.settle = settle
    place = stream.candidate.place
    image = ByTenant().forward(order(1))
    stream.looks.destination.items = lambda keys, page=None: (  # type: ignore[method-assign]
        {key_text(place): image} if stream.now >= stream.comes_at else {}
    )
    assert stream.settled() == {"missing": 1, **({"repaired": 1} if repaired else {})}
    assert len(settled) == min(equal_after, MOST_REPAIRS)
