"""A6, A13, A15, A16, A19: collections, items, what should have gone, and how many keys."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    Collection,
    KeyTraffic,
    RequestShape,
    SampleFacts,
    TtlFacts,
)
from keyhop.report.rules.judge import RULES
from keyhop.report.rules.rule import Rule

from tests.unit.report.pages.made import samples
from tests.unit.report.rules.world import DAY, GB, NOW, facts, lsi, says, share, verdict

KB = 1024
LSI = {"indexes": (lsi(bytes=250_000_000),), "bytes": 10**9}
"""With it a collection is a quarter larger."""


def large(size: float, low: float, high: float, items: float = 1000.0) -> dict[str, Any]:
    """A sample whose largest collection has so many bytes."""
    held = Estimate.exactly(items, 9, "counted")
    return {"top": (Collection("big", held, share(size, low, high)),)}


@pytest.mark.parametrize(
    ("gigabytes", "severity"),
    [
        ((6.88, 6.3, 7.5), "high"),  # 8.6 [7.9, 9.4] with the LSI
        ((6.4, 4.0, 8.0), "high"),
        ((6.4, 3.9, 9.9), "medium"),  # so wide that it may be half of the limit
        ((6.3, 6.2, 6.39), "medium"),
        ((4.0, 3.9, 4.1), "medium"),
        ((3.9, 3.8, 4.1), "low"),
    ],
)
def test_an_lsi_by_its_largest_collection(
    gigabytes: tuple[float, float, float], severity: str
) -> None:
    value, low, high = (one * GB for one in gigabytes)
    of = facts(
        {**LSI, "bytes": 40 * GB, "indexes": (lsi(bytes=10 * GB),)}, sample=large(value, low, high)
    )
    assert verdict("A6", of) == ("found", severity)


def test_an_lsi_is_seen_without_a_sample_and_is_a_matter_of_design() -> None:
    assert verdict("A6", facts(LSI)) == ("found", "low")
    assert "has more than 1.2 GB" in says("A6", facts(LSI)).summary
    assert verdict("A6", facts({"bytes": 0, "items": 0, "indexes": (lsi(),)})) == ("found", "low")


def test_without_an_lsi_it_is_clear() -> None:
    assert verdict("A6", facts()) == ("clear", "info")


def test_an_lsi_that_consistent_reads_need_and_that_stays_small_is_no_fault() -> None:
    shape = RequestShape("Query", "by-date", ("pk",), (), 500, 500, 500, 500.0, 500)
    seen = {"requests": {"shapes": (shape,)}, "stream": {"growth": {"k": 10.0}}}
    assert verdict("A6", facts(LSI, **seen)) == ("clear", "info")
    assert verdict("A6", facts(LSI, requests=seen["requests"])) == ("found", "low")
    growing = {**seen, "stream": {"growth": {"k": 9_000_000.0}}}
    assert verdict("A6", facts(LSI, **growing)) == ("found", "low")


def test_what_nobody_saw_may_be_near_the_limit() -> None:
    table = {"bytes": 100 * GB, "items": 10**8, "indexes": (lsi(bytes=10 * GB),)}
    assert verdict("A6", facts(table, sample={"unseen": share(0.4, 0.3, 0.5)})) == (
        "found",
        "medium",
    )
    assert verdict("A6", facts(table, sample={"unseen": share(0.1, 0.02, 0.3)})) == (
        "found",
        "low",
    )


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"unseen": share(0.4, 0.32, 0.48)}, ("found", "low")),
        ({"unseen": share(0.06, 0.05, 0.08)}, ("found", "low")),
        ({"unseen": share(0.06, 0.049, 0.08)}, ("unknown", "info")),
        ({"unseen": share(0.01, 0.0, 0.049), "seen_largest": 60.0}, ("clear", "info")),
        # The largest of the sample may itself be the giant.
        ({"unseen": share(0.01, 0.0, 0.049)}, ("unknown", "info")),
        ({"unseen": share(0.01, 0.0, 0.05), "seen_largest": 60.0}, ("unknown", "info")),
        ({"unseen": None, "seen_largest": 60.0}, ("unknown", "info")),
        ({"seen_largest": 400_000.0, "mean_items": share(10, 9, 11)}, ("found", "low")),
        # Of few collections each has a large share.
        ({"seen_largest": 400_000.0, "mean_items": share(2e5, 1e5, 3e5)}, ("unknown", "info")),
    ],
)
def test_collections_without_a_bound(sample: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("A15", facts(sample=sample)) == expected


def test_a_collection_that_stands_out_is_found_by_its_share() -> None:
    top = {**large(1e6, 1e6, 1e6, items=400_000), "mean_items": share(10, 9, 11)}
    of = facts(sample=top)
    assert verdict("A15", of) == ("found", "low")
    assert says("A15", of).evidence[0].where == "big"
    assert verdict("A15", facts({"bytes": 10 * GB}, sample=top)) == ("found", "medium")
    even = {
        **large(1e6, 1e6, 1e6, items=50),
        "mean_items": share(50),
        "all_keys": True,
        "all_items": True,
    }
    assert verdict("A15", facts(sample=even)) == ("clear", "info")


def load(writes: float, reads: float = 0.0) -> dict[str, Any]:
    """Metrics of two weeks with such peaks, in units a second."""
    return {"peak": {("write", ""): writes, ("read", ""): reads}}


SMALL = {"items": 10_000, "bytes": 5_000_000}
"""A table that a partition writes within ten seconds."""


@pytest.mark.parametrize(
    ("table", "sources", "expected"),
    [
        # Of 5 keys and 5 million items, whatever the load: one has a million of them at least.
        ({"items": 5_000_000}, {"sample": {"keys": share(5)}}, ("found", "low")),
        ({"bytes": 9 * GB}, {"sample": {"keys": share(5)}}, ("found", "medium")),
        (
            {"items": 5_000_000},
            {"sample": {"keys": share(5)}, "metrics": load(1)},
            ("found", "low"),
        ),
        # The quota of a table is what 40 keys take.
        ({"items": 5_000_000}, {"sample": {"keys": share(39)}}, ("found", "low")),
        ({"items": 5_000_000}, {"sample": {"keys": share(40)}}, ("clear", "info")),
        ({"items": 5_000_000}, {"sample": {"keys": share(38, 35, 41)}}, ("unknown", "info")),
        ({"items": 5_000_000}, {"sample": {"keys": None}}, ("unknown", "info")),
        # A minute of writing, 60,000 items of a KB, parts small from large.
        ({"items": 60_000, "bytes": 0}, {"sample": {"keys": share(1)}}, ("found", "low")),
        ({"items": 59_999, "bytes": 0}, {"sample": {"keys": share(1)}}, ("unknown", "info")),
        ({"items": 500, "bytes": 60_000 * KB}, {"sample": {"keys": share(1)}}, ("found", "low")),
        # A small table is clear if its load is known to be small, and not before.
        (SMALL, {"sample": {"keys": share(5)}}, ("unknown", "info")),
        (SMALL, {"sample": {"keys": share(5)}, "metrics": {}}, ("unknown", "info")),
        (SMALL, {"sample": {"keys": share(5)}, "metrics": load(2_499)}, ("clear", "info")),
        (SMALL, {"sample": {"keys": share(5)}, "metrics": load(2_500)}, ("found", "medium")),
        (SMALL, {"sample": {"keys": share(5)}, "metrics": load(9, 7_499)}, ("clear", "info")),
        (SMALL, {"sample": {"keys": share(5)}, "metrics": load(9, 7_500)}, ("found", "medium")),
        (SMALL, {"sample": {"keys": share(60)}, "metrics": load(30_000)}, ("found", "medium")),
        (SMALL, {"sample": {"keys": share(5)}, "peak_writes": 2_500.0}, ("found", "medium")),
        (SMALL, {"sample": {"keys": share(5)}, "peak_writes": 10.0}, ("unknown", "info")),
        # Ten keys, of which one has most: it may be large where a tenth of the items is not.
        (
            {"items": 90_000, "bytes": 0},
            {"sample": {**large(1e6, 1e6, 1e6, items=80_000), "keys": share(10)}},
            ("found", "low"),
        ),
        ({"items": 90_000, "bytes": 0}, {"sample": {"keys": share(10)}}, ("unknown", "info")),
    ],
)
def test_too_few_keys(
    table: dict[str, Any], sources: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert verdict("A19", facts(table, **sources)) == expected


def test_metrics_of_less_than_a_day_do_not_tell_the_load_of_few_keys() -> None:
    young = {"created": NOW - DAY / 2, **SMALL}
    of = facts(young, sample={"keys": share(5)}, metrics=load(1))
    assert verdict("A19", of) == ("unknown", "info")


@given(
    rule=st.sampled_from(RULES),
    sample=samples,
    all_lengths=st.booleans(),
)
def test_nobody_claims_to_have_read_all_where_only_all_keys_are_known(
    rule: Rule, sample: SampleFacts, all_lengths: bool
) -> None:
    unseen = share(0.0) if all_lengths else None
    seen = replace(sample, all_keys=True, all_items=False, unseen=unseen)
    for finding in rule(facts(sample=seen)):
        texts = [finding.summary, finding.price.remedy if finding.price else ""]
        assert not [text for text in texts if "was read" in text], finding


def test_without_a_sort_key_no_collection_grows() -> None:
    assert verdict("A15", facts({"sort": None})) == ("clear", "info")


@pytest.mark.parametrize(
    ("daily", "inserts", "expected"),
    [
        (10_000_000.0, 100, ("found", "low")),
        (10_000_000.0, 59, ("unknown", "info")),
        (100.0, 100, ("unknown", "info")),
    ],
)
def test_a_collection_that_grows(daily: float, inserts: int, expected: tuple[str, str]) -> None:
    stream = {"growth": {"k": daily}, "traffic": (KeyTraffic("k", inserts, inserts, 9.0, 1.0),)}
    assert verdict("A15", facts(stream=stream)) == expected
    if expected[0] == "found":
        assert verdict("A15", facts({"indexes": (lsi(),)}, stream=stream)) == ("found", "medium")


NONE = share(0.0, 0.0, 0.01)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"largest_item": 350 * KB, "large": share(0.01, 0.005, 0.02)}, ("found", "high")),
        ({"largest_item": 350 * KB}, ("found", "high")),
        (
            {
                "largest_item": 349 * KB,
                "large": NONE,
                "item_bytes": {0.99: share(90 * KB, 80 * KB, 99 * KB)},
            },
            ("clear", "info"),
        ),
        ({"item_bytes": {0.99: share(120 * KB, 100 * KB, 190 * KB)}}, ("found", "low")),
        ({"item_bytes": {0.99: share(250 * KB, 200 * KB, 300 * KB)}}, ("found", "medium")),
        (
            {"large": NONE, "item_bytes": {0.99: share(90 * KB, 80 * KB, 100 * KB)}},
            ("unknown", "info"),
        ),
        (
            {"large": share(0.0, 0.0, 0.0125), "item_bytes": {0.99: share(900, 800, 999)}},
            ("unknown", "info"),
        ),
        ({"large": NONE}, ("unknown", "info")),
        ({"item_bytes": {0.99: share(900, 800, 999)}}, ("unknown", "info")),
        ({"all_keys": True, "all_items": True, "largest_item": 9_000}, ("clear", "info")),
        ({"all_keys": True, "all_items": True}, ("unknown", "info")),
    ],
)
def test_large_items(sample: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("A13", facts(sample=sample)) == expected


TTL = {"ttl": "expires"}
SOME = share(0.05, 0.02, 0.1)
OPEN = share(0.02, 0.01, 0.03)


@pytest.mark.parametrize(
    ("ttl", "expected"),
    [
        (TtlFacts(SOME, NONE, NONE, NONE), ("found", "low")),
        (TtlFacts(NONE, SOME, NONE, NONE), ("found", "low")),
        (TtlFacts(NONE, NONE, SOME, NONE), ("found", "low")),
        (TtlFacts(OPEN, NONE, NONE, NONE), ("unknown", "info")),
        # Items without the attribute stay, as they should; so do a few days between.
        (TtlFacts(NONE, NONE, NONE, share(0.8)), ("clear", "info")),
        (None, ("unknown", "info")),
    ],
)
def test_time_to_live(ttl: object, expected: tuple[str, str]) -> None:
    assert verdict("A16", facts(TTL, sample={"ttl": ttl})) == expected


def test_time_to_live_that_is_off_is_clear_and_one_that_was_not_told_is_not() -> None:
    assert verdict("A16", facts()) == ("clear", "info")
    untold = {"untold": {"ttl": Absent("denied", "the right dynamodb:DescribeTimeToLive")}}
    assert verdict("A16", facts(untold)) == ("unknown", "info")
    assert says("A16", facts(untold)).price.remedy.endswith("DescribeTimeToLive")  # type: ignore[union-attr]
