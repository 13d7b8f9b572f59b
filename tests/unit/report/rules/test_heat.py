"""A8, H1, H2, H4, H5, H6, H7: what is hot, and what only seems to be."""

from typing import Any

import pytest
from keyhop.report.facts import HotKey, KeyTraffic, Throttles

from tests.unit.report.rules.test_indexes import throttled
from tests.unit.report.rules.world import DAY, NOW, facts, gsi, says, share, verdict

CALM = {"throttles": throttled(events=0), "peak": {("read", ""): 10.0, ("write", ""): 10.0}}


def metrics(way: str, cause: str, events: float, ago: float) -> dict[str, Any]:
    return {"throttles": throttled(way, cause, "", events, ago)}


@pytest.mark.parametrize(
    ("events", "ago", "expected"),
    [
        (1, 60, ("found", "high")),
        (500, 3_599, ("found", "high")),
        (500, 3_600, ("found", "medium")),
        (10, 5 * DAY, ("found", "medium")),
        (9, 5 * DAY, ("found", "info")),
    ],
)
def test_throttles_of_a_key_range(events: float, ago: float, expected: tuple[str, str]) -> None:
    for way in ("read", "write"):
        assert verdict("H1", facts(metrics=metrics(way, "key range", events, ago))) == expected


@pytest.mark.parametrize(
    ("peak", "records", "ago", "expected"),
    [
        (499.0, 385, 60, "clear"),
        (500.0, 385, 60, "found"),
        (499.0, 384, 60, "found"),
        (499.0, 385, 3_600, "found"),  # the stream was read later
    ],
)
def test_a_hot_range_without_a_hot_key_in_the_stream(
    peak: float, records: int, ago: float, expected: str
) -> None:
    traffic = (KeyTraffic("k", 900, 900, 9e4, peak),)
    stream = {"records": records, "traffic": traffic, "hash_rho": share(0.8, 0.7, 0.9)}
    of = facts(metrics=metrics("write", "key range", 50, ago), stream=stream)
    assert verdict("H1", of)[0] == expected
    reads = facts(metrics=metrics("read", "key range", 50, ago), stream=stream)
    assert verdict("H1", reads)[0] == "found"
    even = facts(
        metrics=metrics("write", "key range", 50, ago),
        stream={**stream, "hash_rho": share(0.1, 0.0, 0.2)},
    )
    assert verdict("H1", even)[0] == "found"


@pytest.mark.parametrize(("peak", "expected"), [(4_001.0, "unknown"), (4_000.0, "found")])
def test_a_table_that_takes_more_than_it_is_warm_for(peak: float, expected: str) -> None:
    cold = metrics("write", "key range", 50, 5 * DAY) | {
        "peak": {("read", ""): 9.0, ("write", ""): peak}
    }
    of = facts({"warm": (12_000, 4_000)}, metrics=cold)
    assert verdict("H1", of)[0] == expected
    assert verdict("H5", of)[0] == ("found" if expected == "unknown" else "unknown")


def test_reads_want_copies_and_writes_shards() -> None:
    patterns = {
        way: says("H1", facts(metrics=metrics(way, "key range", 9, 60))).advice.patterns[0]  # type: ignore[union-attr]
        for way in ("read", "write")
    }
    assert patterns == {"read": "P18", "write": "P17"}


@pytest.mark.parametrize(
    ("units", "expected"),
    [(90_001.0, ("found", "medium")), (90_000.0, ("clear", "info")), (9e5, ("found", "medium"))],
)
def test_a_key_in_contributor_insights(units: float, expected: tuple[str, str]) -> None:
    insights = {"accessed": {"": (HotKey("k", units, units), HotKey("c", 1.0, 1.0))}}
    busy = {**CALM, "peak": {("read", ""): 9_000.0, ("write", ""): 9_000.0}}
    assert verdict("H1", facts(metrics=busy, insights=insights)) == expected


@pytest.mark.parametrize(
    ("peak", "units", "expected"),
    [
        (500.0, 5_000.0, ("found", "medium")),
        (500.0, 4_999.0, ("found", "info")),  # a short burst
        (499.0, 90_000.0, ("unknown", "info")),
    ],
)
def test_a_key_second_in_the_stream(peak: float, units: float, expected: tuple[str, str]) -> None:
    traffic = (KeyTraffic("a", 1, 1, 9e9, 1.0), KeyTraffic("k", 900, 900, units, peak))
    assert verdict("H1", facts(stream={"traffic": traffic})) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"metrics": CALM}, "clear"),
        ({"metrics": {**CALM, "period": 300}}, "unknown"),
        ({"metrics": {**CALM, "peak": {("write", ""): 10.0}}}, "unknown"),
        ({"metrics": {**CALM, "peak": {("read", ""): 9.0, ("write", ""): 500.0}}}, "unknown"),
        ({"metrics": {**CALM, "peak": {("read", ""): 1500.0, ("write", ""): 9.0}}}, "unknown"),
        ({"metrics": {**CALM, "throttles": {}}}, "unknown"),
        ({"insights": {"throttled": {"": ()}}, "metrics": {**CALM, "peak": {}}}, "unknown"),
        ({"insights": {"accessed": {"": (HotKey("k", 9.0, 9.0),)}}}, "unknown"),
    ],
)
def test_no_hot_key_is_clear_only_if_none_can_be(seen: dict[str, Any], expected: str) -> None:
    assert verdict("H1", facts(**seen))[0] == expected
    assert verdict("H1", facts({"created": NOW - 60}, **seen))[0] == "unknown"


def test_a_hot_key_of_an_index_is_the_indexs() -> None:
    insights = {"accessed": {"by-status": (HotKey("k", 1e5, 1e5),)}}
    of = facts({"indexes": (gsi(),)}, insights=insights, metrics=CALM)
    assert verdict("H1", of, "by-status") == ("found", "medium")
    assert verdict("H1", of) == ("clear", "info")


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        (share(0.3, 0.2, 0.4), ("found", "low")),
        (share(0.3, 0.19, 0.4), ("unknown", "info")),
        (share(0.0, 0.0, 0.199), ("clear", "info")),
        (None, ("unknown", "info")),
    ],
)
def test_a_counter(counter: object, expected: tuple[str, str]) -> None:
    assert verdict("A8", facts(stream={"counter": counter})) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(1_996, "clear"), (1_995, "found")])
def test_a_counter_that_is_seldom_written(seconds: int, expected: str) -> None:
    seldom = {"counter": share(0.9, 0.8, 1.0), "records": 399, "seconds": seconds}
    assert verdict("A8", facts(stream=seldom))[0] == expected


def test_a_counter_that_is_nearly_too_hot_is_worse() -> None:
    hot = {"counter": share(0.9), "traffic": (KeyTraffic("k", 9, 0, 9e4, 500.0),)}
    assert verdict("A8", facts(stream=hot)) == ("found", "medium")


def test_a_status_item_is_no_counter() -> None:
    """Contributor Insights sees a hot item; that no number changes, the stream."""
    insights = {"items": {"": (HotKey("i", 95_000.0, 1.0),)}}
    assert verdict("A8", facts(insights=insights)) == ("found", "low")
    both = facts(insights=insights, stream={"counter": share(0.0, 0.0, 0.01)})
    assert verdict("A8", both) == ("clear", "info")
    cool = {"items": {"": (HotKey("i", 90_000.0, 1.0),)}}
    assert verdict("A8", facts(insights=cool)) == ("unknown", "info")


def log(inserts: int, newest: int, peak: float = 9.0) -> tuple[KeyTraffic, ...]:
    return (KeyTraffic("log", inserts, inserts, 900.0, peak, newest), KeyTraffic("x", 9, 9, 9, 1))


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ({"inserts": 1000, "traffic": log(1000, 999)}, ("found", "low")),
        ({"inserts": 1000, "traffic": log(1000, 999, 500.0)}, ("found", "medium")),
        ({"inserts": 9000, "traffic": log(1000, 999, 500.0)}, ("found", "medium")),
        # One of many that are written at their ends: partitions split between them.
        ({"inserts": 9000, "traffic": log(1000, 999)}, ("clear", "info")),
        ({"inserts": 1000, "traffic": log(1000, 100)}, ("clear", "info")),
        ({"inserts": 1000, "traffic": log(1000, 905)}, ("unknown", "info")),
        ({"inserts": 59, "traffic": log(59, 59)}, ("unknown", "info")),
        ({"inserts": 1000, "traffic": ()}, ("unknown", "info")),
    ],
)
def test_the_end_of_one_collection(stream: dict[str, Any], expected: tuple[str, str]) -> None:
    assert verdict("H2", facts(stream=stream)) == expected
    assert verdict("H2", facts({"sort": None}, stream=stream)) == ("clear", "info")


@pytest.mark.parametrize("cause", ["provisioned", "maximum", "account"])
def test_throttled_and_not_by_keys(cause: str) -> None:
    assert verdict("H4", facts(metrics=metrics("write", cause, 50, 60))) == ("found", "medium")
    assert verdict("H4", facts(metrics=metrics("read", cause, 50, 9e4))) == ("found", "medium")
    assert verdict("H4", facts(metrics=metrics("read", cause, 5, 9e4))) == ("found", "info")
    assert verdict("H1", facts(metrics=metrics("write", cause, 50, 60))) == ("unknown", "info")


def test_if_keys_are_hot_too_they_come_first() -> None:
    both = metrics("write", "provisioned", 50, 60)
    both["throttles"]["write", "key range", ""] = Throttles(50, NOW - 60)
    assert verdict("H4", facts(metrics=both)) == ("found", "info")
    assert verdict("H4", facts(metrics=CALM)) == ("clear", "info")
    assert verdict("H4", facts(metrics={})) == ("unknown", "info")
    assert verdict("H4", facts({"created": NOW - 60}, metrics=CALM)) == ("unknown", "info")


@pytest.mark.parametrize(
    ("table", "peak", "expected"),
    [
        ({}, 4_001.0, ("found", "medium")),
        ({}, 4_000.0, ("clear", "info")),
        ({}, None, ("unknown", "info")),
        ({"warm": None}, 100.0, ("unknown", "info")),
        ({"warm": None, "throughput": (5, 5)}, 100.0, ("found", "medium")),
        ({"maximum": (-1, 50)}, 100.0, ("found", "medium")),
        ({"maximum": (50, -1)}, 100.0, ("clear", "info")),
    ],
)
def test_cold(table: dict[str, Any], peak: float | None, expected: tuple[str, str]) -> None:
    assert verdict("H5", facts(table, peak_writes=peak)) == expected


@pytest.mark.parametrize(
    ("rho", "expected"),
    [
        (share(0.97, 0.95, 0.98), ("found", "low")),
        (share(-0.97, -0.98, -0.95), ("found", "low")),
        (share(0.5, 0.45, 0.55), ("unknown", "info")),
        (share(0.0, -0.1, 0.1), ("clear", "info")),
        (share(-0.5, -0.55, -0.4), ("unknown", "info")),
        (None, ("unknown", "info")),
    ],
)
def test_hash_order(rho: object, expected: tuple[str, str]) -> None:
    assert verdict("H6", facts(stream={"hash_rho": rho})) == expected


@pytest.mark.parametrize(
    ("shards", "expected"),
    [
        ((850, 30, 30, 30, 30, 30), ("found", "low")),
        ((250, 250, 250, 250), ("clear", "info")),
        ((520, 160, 160, 160), ("unknown", "info")),
        ((980, 20), ("found", "info")),  # one may just have rolled over
        ((1000,), ("unknown", "info")),
        ((90, 3, 3, 3), ("unknown", "info")),
    ],
)
def test_partition_heat(shards: tuple[int, ...], expected: tuple[str, str]) -> None:
    counts = {f"s{number}": count for number, count in enumerate(shards)}
    assert verdict("H7", facts(stream={"shards": counts})) == expected
