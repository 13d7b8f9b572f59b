"""Behaviour that only the stand-in has: empty pages, composite keys, and pages without progress."""

import itertools
import random

import pytest

from testing.databases import Database, hashable, index_of
from testing.standin.server import StandIn


@pytest.mark.parametrize("method", ["skip", "scan"])
@pytest.mark.parametrize("sort", ["S", "N", "B"])
def test_empty_pages_with_a_last_key_lose_nothing(
    strict: Database, stand_in: StandIn, table_name: str, method: str, sort: str
) -> None:
    strict.create(table_name, ("pk", "S"), ("sk", sort))
    values = {"S": ["b", "c"], "N": ["1", "2"], "B": [b"b", b"c"]}[sort]
    keys = [{"pk": {"S": f"k{n}"}} for n in range(120)]
    strict.fill(table_name, ({**key, "sk": {sort: v}} for key in keys for v in values))
    chance = random.Random(3)
    stand_in.service.has_empty_page = lambda request: chance.random() < 0.4
    for segments in ("1", "7"):
        result = strict.keys(table_name, "--segments", segments, "--method", method)
        assert result.status == 0
        assert hashable(result.keys) == hashable(keys)


def test_the_command_gives_up_on_a_service_that_makes_no_progress(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.collections(table_name, [9] * 40, filling=3_000)
    count = itertools.count()
    stand_in.service.has_empty_page = lambda request: next(count) > 10
    result = strict.keys(table_name, "--segments", "1")
    assert result.status == 2
    assert "pages in a row whose last key is the start of the page" in result.err
    assert next(count) < 200


def test_an_empty_table_costs_one_request(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.create(table_name)
    assert strict.keys(table_name).status == 0
    assert (stand_in.requests["Scan"], stand_in.units) == (1, 0.5)


def test_a_reported_item_count_of_zero_is_not_trusted(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    """The reported count can be six hours old."""
    expected = strict.collections(table_name, [1, 5] * 600, filling=900)
    stand_in.service.tables[table_name].reported = (0, 0)
    result = strict.keys(table_name)
    assert sorted(key["pk"]["S"] for key in result.keys) == sorted(expected)
    plan = strict.keys(table_name, "--dry-run", "--format", "json")
    assert plan.status == 0


def test_a_reported_item_count_that_is_far_too_small_is_not_trusted(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    expected = strict.collections(table_name, [1, 5] * 600, filling=900)
    stand_in.service.tables[table_name].reported = (3, 300)
    assert len(strict.keys(table_name).keys) == len(expected)


def test_a_small_table_takes_two_scans_and_one_description(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.collections(table_name, [1] * 10, filling=200)
    strict.keys(table_name)
    assert stand_in.requests["Scan"] <= 2
    assert stand_in.requests["DescribeTable"] - stand_in.requests["CreateTable"] <= 1


def test_an_index_with_several_partition_attributes(strict: Database, table_name: str) -> None:
    """The service supports them since 2025; the local databases do not."""
    keys = [{"AttributeName": name, "KeyType": "HASH"} for name in ("city", "year", "raw")]
    strict.create(
        table_name,
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": type_}
            for name, type_ in (("city", "S"), ("year", "N"), ("raw", "B"))
        ],
        GlobalSecondaryIndexes=[{**index_of("several"), "KeySchema": keys}],
    )
    rows = [(city, year, raw) for city in "abc" for year in ("1", "2") for raw in (b"x", b"y")]
    strict.fill(
        table_name,
        (
            {
                "pk": {"S": f"{number}{copy}"},
                "sk": {"S": "s"},
                "city": {"S": city},
                "year": {"N": year},
                "raw": {"B": raw},
            }
            for number, (city, year, raw) in enumerate(rows)
            for copy in range(5)
        ),
    )
    expected = [{"city": {"S": c}, "year": {"N": y}, "raw": {"B": r}} for c, y, r in rows]
    for segments in ("1", "13"):
        result = strict.keys(table_name, "--index", "several", "--segments", segments)
        assert hashable(result.keys) == hashable(expected)


def test_the_units_of_a_run_are_within_the_bound_of_the_ledger(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    """The bound is 1.02 times the published method, plus 4 read units for each segment."""
    sizes = [1, 1, 2, 60, 1, 8] * 60
    strict.collections(table_name, sizes, filling=400)
    for segments in (1, 8, 32):
        before = stand_in.units
        strict.keys(table_name, "--segments", str(segments))
        assert stand_in.units - before <= 1.02 * 0.5 * len(sizes) + 4 * segments
