"""A7, A9, H3, I1, I2, I3, I4: indexes."""

from typing import Any

import pytest
from keyhop.report.facts import Cause, SampleFacts, Throttles

from tests.unit.report.rules.world import (
    DAY,
    METRICS,
    NOW,
    facts,
    gsi,
    lsi,
    sampled,
    says,
    share,
    verdict,
)

NAME = "by-status"
ONE = {"indexes": (gsi(),)}
CAUSES: tuple[Cause, ...] = ("key range", "provisioned", "maximum", "account")


def throttled(
    way: str = "write",
    cause: str = "key range",
    target: str = NAME,
    events: float = 50.0,
    ago: float = 60.0,
) -> dict[Any, Throttles]:
    """All known, and one of them not none."""
    known = {
        (one, other, at): Throttles(0, None)
        for one in ("read", "write")
        for other in CAUSES
        for at in ("", NAME)
    }
    return {**known, (way, cause, target): Throttles(events, NOW - ago)}


QUIET = {"throttles": throttled(events=0)}


def seen(top: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"indexes": sampled(NAME, top_share=share(top, low, high), top_key="p", **more)}


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (seen(0.8, 0.76, 0.84), ("found", "medium")),
        (seen(0.5, 0.49, 0.6), ("found", "low")),
        (seen(0.3, 0.2, 0.4), ("found", "low")),
        (seen(0.3, 0.19, 0.4), ("unknown", "info")),
        (seen(0.1, 0.05, 0.199), ("clear", "info")),
        (seen(0.1, 0.05, 0.2), ("unknown", "info")),
        ({}, ("unknown", "info")),
    ],
)
def test_a_constant_key(sample: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("A9", facts(ONE, sample=sample), NAME) == expected


def test_a_tiny_index_may_have_one_key() -> None:
    few = SampleFacts(300, 40, 40, indexes={NAME: sampled(NAME, top_share=share(1.0))[NAME]})
    index = {"indexes": (gsi(items=99),)}
    read = few.indexes[NAME]
    tiny = SampleFacts(300, 40, 40, indexes={NAME: type(read)(20, read.top_share, "p")})
    assert verdict("A9", facts(index, sample=tiny), NAME) == ("clear", "info")
    assert verdict("A9", facts({"indexes": (gsi(items=100),)}, sample=tiny), NAME) == (
        "found",
        "low",
    )
    # Counts may be six hours old: what was read counts as well.
    assert verdict("A9", facts({"indexes": (gsi(items=0),)}, sample=few), NAME)[0] == "found"


def test_how_much_is_written_decides_how_bad_it_is() -> None:
    large = seen(0.8, 0.76, 0.84)
    for peak, severity in ((900.0, "medium"), (100.0, "medium"), (10.0, "low")):
        metrics = {"peak": {("write", NAME): peak}}
        assert verdict("A9", facts(ONE, sample=large, metrics=metrics), NAME)[1] == severity


def test_throttles_of_its_key_range_are_enough() -> None:
    def of(ago: float, events: float = 50.0, **more: Any) -> tuple[str, str]:
        metrics = {"throttles": throttled(ago=ago, events=events)}
        return verdict("A9", facts(ONE, metrics=metrics, **more), NAME)

    assert of(3_599) == ("found", "high")
    assert of(3_600) == ("found", "medium")
    assert of(3 * DAY, events=9) == ("found", "info")
    assert of(60, sample=seen(0.1, 0.05, 0.15)) == ("clear", "info")
    assert verdict("A9", facts(ONE, metrics=QUIET), NAME) == ("unknown", "info")


def test_an_index_of_the_tables_own_partition_key_is_no_matter_of_this_rule() -> None:
    of = facts({"indexes": (gsi(partition=("pk",)), lsi())})
    assert verdict("A9", of) == ("clear", "info")


def test_many_indexes_and_two_where_one_would_do() -> None:
    ten = tuple(gsi(f"i{n}", partition=(f"a{n}",)) for n in range(10))
    assert verdict("A7", facts({"indexes": ten})) == ("found", "low")
    assert verdict("A7", facts({"indexes": ten[:9]})) == ("clear", "info")
    same = (gsi("one", sort=("day",)), gsi("two", sort=("day",)))
    assert verdict("A7", facts({"indexes": same})) == ("found", "low")
    longer = (gsi("one"), gsi("two", sort=("day",)))
    assert verdict("A7", facts({"indexes": longer})) == ("found", "low")
    empty = (gsi("one", items=0), gsi("two", sort=("day",), items=0))
    assert verdict("A7", facts({"indexes": empty})) == ("clear", "info")
    # Without its sort key an item is not in the longer one: they hold different items.
    other = (gsi("one"), gsi("two", sort=("day",), items=9))
    assert verdict("A7", facts({"indexes": other})) == ("clear", "info")
    assert verdict(
        "A7", facts({"indexes": (gsi("one", sort=("a",)), gsi("two", sort=("b",)))})
    ) == (
        "clear",
        "info",
    )


@pytest.mark.parametrize(
    ("days", "written", "created", "expected"),
    [
        (0, 1e9, NOW - 90 * DAY, ("found", "medium")),
        (0, 10.0, NOW - 90 * DAY, ("found", "low")),
        (0, 1e9, NOW - 29 * DAY, ("found", "low")),
        (1, 1e9, NOW - 90 * DAY, ("clear", "info")),
        (None, 1e9, NOW - 90 * DAY, ("unknown", "info")),
    ],
)
def test_an_index_that_nobody_reads(
    days: int | None, written: float, created: float, expected: tuple[str, str]
) -> None:
    """A job that runs once a month reads it on one day: that is told to be confirmed."""
    metrics = {"read_days": {NAME: days}, "consumed": {("write", NAME): written}}
    of = facts({**ONE, "created": created}, metrics=metrics)
    assert verdict("A7", of, NAME) == expected
    advice = says("A7", of, NAME).advice
    if advice is not None:
        assert "Confirm" in advice.steps[0]
        assert advice.cost is not None
        assert advice.cost.priced == "on demand, us-east-1, 2026-08"


@pytest.mark.parametrize(
    ("cause", "ago", "events", "expected"),
    [
        ("key range", 60, 1, ("found", "high")),
        ("key range", 7_200, 500, ("found", "medium")),
        ("provisioned", 60, 500, ("found", "medium")),
        ("provisioned", 7_200, 5, ("found", "info")),
    ],
)
def test_an_index_that_refuses_writes(
    cause: str, ago: float, events: float, expected: tuple[str, str]
) -> None:
    metrics = {"throttles": throttled(cause=cause, ago=ago, events=events)}
    assert verdict("H3", facts(ONE, metrics=metrics), NAME) == expected
    assert verdict("H4", facts(ONE, metrics=metrics)) == ("clear", "info")


def test_no_throttles_are_clear_only_where_all_were_counted() -> None:
    assert verdict("H3", facts(ONE, metrics=QUIET), NAME) == ("clear", "info")
    assert verdict("H3", facts(ONE, metrics={}), NAME) == ("unknown", "info")
    young = {"created": NOW - 3_600, **ONE}
    assert verdict("H3", facts(young, metrics=QUIET), NAME) == ("unknown", "info")
    assert verdict("H3", facts({"indexes": (lsi(),)})) == ("clear", "info")


@pytest.mark.parametrize(
    ("items", "top", "expected"),
    [
        (410_000, seen(0.8, 0.7, 0.9), ("found", "low")),
        (400_000, seen(0.8, 0.7, 0.9), ("clear", "info")),
        (1_000_000, seen(0.1, 0.05, 0.15), ("clear", "info")),
        (1_000_000, seen(0.2, 0.15, 0.25), ("unknown", "info")),
        (1_000_000, {}, ("unknown", "info")),
        (0, seen(0.8, 0.7, 0.9), ("unknown", "info")),
    ],
)
def test_an_index_that_could_be_sparse(
    items: int, top: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert verdict("I1", facts({"indexes": (gsi(items=items),)}, sample=top), NAME) == expected


def test_the_sample_tells_better_than_counts_that_are_six_hours_old() -> None:
    sparse = seen(0.8, 0.7, 0.9, sparse=share(0.1, 0.05, 0.2))
    assert verdict("I1", facts(ONE, sample=sparse), NAME) == ("clear", "info")
    young = {"indexes": (gsi(items=1000),), "created": NOW - 3_600}
    assert verdict("I1", facts(young, sample={}), NAME) == ("unknown", "info")


WHOLE = {"indexes": (gsi(projection="ALL", bytes=3_000_000_000),)}


@pytest.mark.parametrize(
    ("table", "read", "written", "expected"),
    [
        (WHOLE, 1e5, 1e9, ("found", "medium")),
        (WHOLE, 10.0, 1e4, ("found", "low")),
        (WHOLE, 1e8, 1e9, ("clear", "info")),
        (WHOLE, 0.0, 0.0, ("unknown", "info")),
        ({"indexes": (gsi(projection="ALL", bytes=10**9),)}, 1e5, 1e9, ("clear", "info")),
        (ONE, 1e5, 1e9, ("clear", "info")),
    ],
)
def test_whole_items_in_an_index(
    table: dict[str, Any], read: float, written: float, expected: tuple[str, str]
) -> None:
    metrics = {"consumed": {("read", NAME): read, ("write", NAME): written}}
    assert verdict("I2", facts(table, metrics=metrics), NAME) == expected


@pytest.mark.parametrize(
    ("index", "table", "expected"),
    [
        (1.5e6, 1e6, ("found", "low")),
        (1.49e6, 1e6, ("clear", "info")),
        (1.5e6, 0.0, ("unknown", "info")),
    ],
)
def test_writes_of_indexes(index: float, table: float, expected: tuple[str, str]) -> None:
    metrics = {"consumed": {("write", ""): table, ("write", NAME): index}}
    assert verdict("I3", facts(ONE, metrics=metrics)) == expected
    assert METRICS.seconds == 14 * DAY


STATUS_AND_DATE = ("status", "placed")


def joins(low: float, high: float | None = None, index: Any = None) -> Any:
    """A GSI1 whose sort key joins two attributes, in a share of its items."""
    index = index or gsi("GSI1", partition=("GSI1PK",), sort=("GSI1SK",))
    estimate = share((low + (high or low)) / 2, low, high or low)
    composed = {"": ((), estimate), "GSI1SK": (STATUS_AND_DATE, estimate)}
    return facts({"indexes": (index,)}, sample={"indexes": sampled("GSI1", composed=composed)})


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.9, 1.0, "found"),
        (0.89, 1.0, "unknown"),
        (0.2, 0.899, "clear"),
        (0.2, 0.9, "unknown"),
    ],
)
def test_a_key_that_joins_attributes(low: float, high: float, expected: str) -> None:
    assert verdict("I4", joins(low, high), "GSI1")[0] == expected


def test_the_advice_names_the_attributes_of_a_new_index() -> None:
    finding = says("I4", joins(0.95), "GSI1")
    assert finding.summary == "GSI1: GSI1SK only joins status and placed."
    assert finding.advice is not None
    assert "partition key GSI1PK and the sort key status and placed" in finding.advice.steps[0]
    both = gsi("GSI1", partition=("GSI1SK",), sort=("placed",))
    advice = says("I4", joins(0.95, index=both), "GSI1").advice
    assert advice is not None
    assert advice.steps[0].startswith(
        "Make a second index with the partition key status and placed:"
    )


def test_an_index_of_which_no_item_was_read_is_unknown_and_one_of_plain_attributes_clear() -> None:
    assert verdict("I4", facts({"indexes": (gsi("GSI1"),)}, sample={}), "GSI1")[0] == "unknown"
    assert verdict("I4", facts({"indexes": (gsi("GSI1"),)}), "GSI1")[0] == "unknown"
    for high, expected in ((0.89, "clear"), (0.9, "unknown")):
        none = sampled("GSI1", composed={"": ((), share(0.0, 0.0, high))})
        read = facts({"indexes": (gsi("GSI1"),)}, sample={"indexes": none})
        assert verdict("I4", read, "GSI1")[0] == expected
    assert verdict("I4", facts({"indexes": ()}, sample={}))[0] == "clear"


def test_an_index_whose_key_begins_as_another_one_replaces_it() -> None:
    first = gsi("a", partition=("status",), sort=("placed",))
    longer = gsi("b", partition=("status",), sort=("placed", "city"))
    other = gsi("c", partition=("status",), sort=("city",))
    assert verdict("A7", facts({"indexes": (first, longer)}, metrics={}))[0] == "found"
    assert verdict("A7", facts({"indexes": (first, other)}, metrics={}))[0] == "clear"
    fewer = gsi("b", partition=("status",), sort=("placed", "city"), items=999)
    assert verdict("A7", facts({"indexes": (first, fewer)}, metrics={}))[0] == "clear"
