"""Rules on what planted tables have taught them: keys of indexes, kinds, peaks, rare counters."""

from typing import Any

import pytest
from keyhop.report.facts import Facts, KeyTraffic, Tag, Throttles

from tests.unit.report.rules.world import DAY, NOW, THROTTLES, facts, gsi, sampled, share, verdict

FEW = share(0.0, 0.0, 0.009)
ALL = share(1.0, 0.991, 1.0)
FOUND, CLEAR, UNKNOWN = "found", "clear", "unknown"
DATES = {"dated": share(0.99, 0.97, 1.0)}
ONE_KIND = {"a,b,pk,sk": ALL}
TWO_KINDS = {"a,pk,sk": share(0.5, 0.46, 0.54), "b,pk,sk": share(0.5, 0.46, 0.54)}
WORDS = tuple(Tag(f"D{number}", share(0.16), f"D{number}#") for number in range(6))
IN_SORT_KEYS = tuple(Tag(word, share(0.5)) for word in ("signup", "reset"))


def metrics(way: str, cause: str, events: float, ago: float) -> dict[str, Any]:
    return {"throttles": {**THROTTLES, (way, cause, ""): Throttles(events, NOW - ago)}}


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


@pytest.mark.parametrize(("seconds", "expected"), [(1_996, "clear"), (1_995, "found")])
def test_a_counter_that_is_seldom_written(seconds: int, expected: str) -> None:
    seldom = {"counter": share(0.9, 0.8, 1.0), "records": 399, "seconds": seconds}
    assert verdict("A8", facts(stream=seldom))[0] == expected


def test_dates_of_one_item_each_are_no_hot_keys() -> None:
    assert verdict("A3", facts({"sort": None}, sample=DATES))[0] == CLEAR


def by_day(dated: object) -> Facts:
    entries = sampled("by-day", dated=dated)
    return facts({"indexes": (gsi("by-day", partition=("day",)),)}, sample={"indexes": entries})


def test_an_index_whose_key_is_a_date() -> None:
    assert verdict("A3", by_day(share(0.99, 0.97, 1.0)), "by-day") == (FOUND, "low")
    assert verdict("A3", by_day(share(0.5, 0.4, 0.6)), "by-day") == (CLEAR, "info")
    assert verdict("A3", by_day(share(1.0, 0.84, 1.0)), "by-day") == (UNKNOWN, "info")
    assert verdict("A3", by_day(None), "by-day") == (UNKNOWN, "info")


def test_an_index_whose_sort_key_has_numbers_of_several_widths() -> None:
    index = gsi("by-price", sort=("price",))
    table = {"indexes": (index,), "types": {"price": "S"}}
    for unpadded, expected in ((share(0.5, 0.4, 0.6), FOUND), (FEW, CLEAR), (None, UNKNOWN)):
        entries = sampled("by-price", unpadded=unpadded)
        assert verdict("E1", facts(table, sample={"indexes": entries}), "by-price")[0] == expected
    numbers = {"indexes": (index,), "types": {"price": "N"}}
    assert verdict("E1", facts(numbers), "by-price")[0] == CLEAR


def test_a_tag_in_each_sort_key_tells_the_kind() -> None:
    kinds = {"a,pk,sk": share(0.5, 0.46, 0.54), "b,pk,sk": share(0.5, 0.46, 0.54)}
    sample = {"tagged": FEW, "shapes": kinds}
    assert verdict("A2", facts(sample=sample))[0] == FOUND
    assert verdict("A2", facts(sample={**sample, "sort_tagged": ALL}))[0] == CLEAR
    assert verdict("A2", facts(sample={**sample, "sort_tagged": share(0.9)}))[0] == FOUND


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"shapes": ONE_KIND, "tagged": FEW}, CLEAR),
        ({"shapes": ONE_KIND, "tags": WORDS[:5]}, FOUND),
        ({"shapes": ONE_KIND, "tags": WORDS}, CLEAR),
        ({"shapes": ONE_KIND, "tags": IN_SORT_KEYS}, CLEAR),
        ({"shapes": ONE_KIND, "tags": (*IN_SORT_KEYS, WORDS[0])}, FOUND),
        ({"shapes": TWO_KINDS, "tagged": FEW}, FOUND),
        ({"shapes": {}, "tagged": FEW}, UNKNOWN),
    ],
)
def test_the_kinds_of_items_without_an_attribute_that_names_them(
    sample: dict[str, object], expected: str
) -> None:
    no_tags: dict[str, object] = {"typed": FEW, "tags": ()}
    assert verdict("A18", facts(sample={**no_tags, **sample}))[0] == expected
