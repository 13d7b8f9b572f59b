"""A1, A2, A3, A18, E1, E2: how keys are written."""

import pytest
from keyhop.report.facts import Facts, KeyTraffic, MetricFacts, Tag

from tests.unit.report.rules.world import (
    METRICS,
    facts,
    gsi,
    sampled,
    says,
    share,
    verdict,
)

FEW = share(0.0, 0.0, 0.009)
ALL = share(1.0, 0.991, 1.0)
FOUND, CLEAR, UNKNOWN = "found", "clear", "unknown"


def numbers(density: float, low: float, high: float, **more: object) -> dict[str, object]:
    return {"numbered": ALL, "density": share(density, low, high), **more}


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (numbers(0.8, 0.74, 0.86), (FOUND, "low")),
        (numbers(0.5, 0.5, 0.5), (FOUND, "low")),
        (numbers(1.0, 0.9, 1.2), (FOUND, "low")),
        # The numbers of days, or of shards, which several keys have.
        (numbers(18.0, 1.1, 20.0), (CLEAR, "info")),
        (numbers(0.47, 0.45, 0.499), (CLEAR, "info")),
        (numbers(0.5, 0.45, 0.55), (UNKNOWN, "info")),
        ({"numbered": share(0.3, 0.25, 0.49), "density": share(0.9)}, (CLEAR, "info")),
        ({"numbered": share(0.5, 0.4, 0.6), "density": share(0.9)}, (UNKNOWN, "info")),
        ({"numbered": ALL}, (UNKNOWN, "info")),
        ({}, (UNKNOWN, "info")),
        # Some dozen of them are rooms or shops.
        (numbers(0.9, 0.8, 1.0, keys=share(60, 50, 70)), (FOUND, "info")),
    ],
)
def test_sequential_ids(sample: dict[str, object], expected: tuple[str, str]) -> None:
    assert verdict("A1", facts(sample=sample)) == expected


def test_numbers_that_do_not_come_in_order_are_natural_ones() -> None:
    dense = numbers(0.8, 0.74, 0.86)
    assert verdict("A1", facts(sample=dense, stream={"tau": share(0.0, -0.1, 0.1)})) == (
        FOUND,
        "info",
    )
    assert verdict("A1", facts(sample=dense, stream={"tau": share(0.7, 0.6, 0.8)})) == (
        FOUND,
        "low",
    )
    assert verdict("A1", facts({"partition": "zip"}, sample=dense)) == (FOUND, "info")


def test_order_in_time_is_enough() -> None:
    """Ids in steps of seven are no dense ones."""
    rising = {"tau": share(0.95, 0.93, 0.97)}
    assert verdict("A1", facts(sample=numbers(0.1, 0.09, 0.12), stream=rising)) == (FOUND, "low")
    assert verdict("A1", facts(stream=rising)) == (FOUND, "low")
    assert verdict("A1", facts(stream={"tau": share(0.7, 0.69, 0.71)})) == (UNKNOWN, "info")


TWO_KINDS = {
    "cents,paid,pk,sk": share(0.6, 0.56, 0.64),
    "email,name,pk,sk": share(0.4, 0.36, 0.44),
}
WORDS = tuple(Tag(f"D{number}", share(0.16)) for number in range(6))
ONE_KIND = {
    "city,name,pk,sk": share(0.5, 0.49, 0.52),
    "city,name,phone,pk,sk": share(0.3, 0.28, 0.32),
    "city,fax,name,pk,sk": share(0.2, 0.19, 0.21),
}


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"tagged": FEW, "shapes": TWO_KINDS}, (FOUND, "low")),
        # A table of one kind of item needs no tag.
        ({"tagged": FEW, "shapes": {"cents,pk,sk": ALL}}, (CLEAR, "info")),
        ({"tagged": FEW, "shapes": ONE_KIND}, (CLEAR, "info")),
        ({"tagged": FEW, "shapes": {"cents,pk,sk": share(0.9, 0.7, 1.0)}}, (UNKNOWN, "info")),
        ({"tagged": FEW}, (UNKNOWN, "info")),
        ({"tagged": share(0.1, 0.05, 0.2), "shapes": TWO_KINDS}, (CLEAR, "info")),
        ({"tagged": share(0.1, 0.049, 0.2), "shapes": TWO_KINDS}, (UNKNOWN, "info")),
        ({"tagged": share(0.04, 0.0, 0.099), "shapes": TWO_KINDS}, (FOUND, "low")),
        ({"tagged": share(0.04, 0.0, 0.1), "shapes": TWO_KINDS}, (UNKNOWN, "info")),
        ({"shapes": TWO_KINDS}, (UNKNOWN, "info")),
    ],
)
def test_type_tags(sample: dict[str, object], expected: tuple[str, str]) -> None:
    assert verdict("A2", facts(sample=sample)) == expected


def test_attributes_that_all_kinds_have_do_not_make_them_one() -> None:
    shapes = {
        "createdAt,name,pk,sk,type": share(0.5, 0.46, 0.54),
        "cents,createdAt,pk,sk,type": share(0.5, 0.46, 0.54),
    }
    assert verdict("A2", facts(sample={"tagged": FEW, "shapes": shapes})) == (FOUND, "low")


DATES = {"dated": share(0.99, 0.97, 1.0)}


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
    ("dated", "expected"),
    [
        (share(0.99, 0.97, 1.0), (FOUND, "low")),
        (share(1.0, 0.85, 1.0), (FOUND, "low")),
        (share(1.0, 0.84, 1.0), (UNKNOWN, "info")),
        (share(0.94, 0.90, 0.97), (UNKNOWN, "info")),
        (share(0.90, 0.87, 0.949), (CLEAR, "info")),
        (None, (UNKNOWN, "info")),
    ],
)
def test_dates_as_keys(dated: object, expected: tuple[str, str]) -> None:
    assert verdict("A3", facts(sample={**DATES, "dated": dated})) == expected


def test_an_archive_by_date_is_no_harm() -> None:
    nothing = MetricFacts(
        METRICS.began, METRICS.ended, {("read", ""): 9.0, ("write", ""): 0.0}, calls={"Query": 9.0}
    )
    for sources in (
        {"stream": {"inserts": 0, "records": 0}},
        {"stream": {"date_share": share(0.0, 0.0, 0.1)}},
        {"metrics": nothing},
    ):
        assert verdict("A3", facts(sample=DATES, **sources)) == (FOUND, "info"), sources
    unseen = {"metrics": {"consumed": {}}}
    assert verdict("A3", facts(sample=DATES, **unseen)) == (FOUND, "low")


def test_what_goes_to_todays_key_is_found_by_the_stream_alone() -> None:
    today = {"date_share": share(0.9, 0.87, 0.93)}
    assert verdict("A3", facts(stream=today)) == (FOUND, "low")
    hot = {**today, "traffic": (KeyTraffic("d", 900, 900, 9e3, 600.0),)}
    assert verdict("A3", facts(stream=hot)) == (FOUND, "medium")
    assert verdict("A3", facts(stream={"date_share": share(0.5, 0.45, 0.55)})) == (
        UNKNOWN,
        "info",
    )


ONE_KIND = {"a,b,pk,sk": ALL}
TWO_KINDS = {"a,pk,sk": share(0.5, 0.46, 0.54), "b,pk,sk": share(0.5, 0.46, 0.54)}
TAGS = (Tag("ORDER", share(0.7)), Tag("USER", share(0.3)))


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"typed": share(0.66, 0.6, 0.949), "tags": TAGS}, (FOUND, "low")),
        ({"typed": share(0.97, 0.95, 0.99), "tags": TAGS}, (CLEAR, "info")),
        ({"typed": share(0.95, 0.94, 0.96), "tags": TAGS}, (UNKNOWN, "info")),
        ({"tags": TAGS}, (UNKNOWN, "info")),
        # One kind of item: a tag in each key, and one in each sort key.
        ({"typed": FEW, "tags": (Tag("USER", ALL), Tag("ORDER", ALL))}, (CLEAR, "info")),
        (
            {"typed": FEW, "tags": (Tag("USER", share(1.0, 0.6, 1.0)), Tag("ORDER", ALL))},
            (UNKNOWN, "info"),
        ),
        ({"typed": FEW, "tags": (Tag("USER", ALL),)}, (CLEAR, "info")),
        ({"typed": FEW, "tags": (Tag("USER", share(0.6)),)}, (UNKNOWN, "info")),
        ({"typed": FEW, "tags": (), "tagged": FEW, "shapes": ONE_KIND}, (CLEAR, "info")),
        ({"typed": FEW, "tags": WORDS[:5], "shapes": ONE_KIND}, (FOUND, "low")),
        ({"typed": FEW, "tags": WORDS, "shapes": ONE_KIND}, (CLEAR, "info")),
        ({"typed": FEW, "tags": (), "tagged": FEW, "shapes": TWO_KINDS}, (FOUND, "low")),
        ({"typed": FEW, "tags": (), "tagged": FEW, "shapes": {}}, (UNKNOWN, "info")),
        ({"typed": FEW, "tags": ()}, (UNKNOWN, "info")),
    ],
)
def test_the_kind_as_an_attribute(sample: dict[str, object], expected: tuple[str, str]) -> None:
    assert verdict("A18", facts(sample=sample)) == expected


def test_another_name_of_the_type_is_told() -> None:
    finding = says("A18", facts(sample={"typed": ALL, "type_name": "entity", "tags": TAGS}))
    assert "entity" in finding.summary


@pytest.mark.parametrize(
    ("unpadded", "expected"),
    [
        (share(0.9, 0.8, 1.0), (FOUND, "low")),
        (share(0.1, 0.05, 0.2), (FOUND, "low")),
        (share(0.1, 0.04, 0.2), (UNKNOWN, "info")),
        (share(0.0, 0.0, 0.049), (CLEAR, "info")),
        (None, (UNKNOWN, "info")),
    ],
)
def test_padding(unpadded: object, expected: tuple[str, str]) -> None:
    assert verdict("E1", facts(sample={"unpadded": unpadded})) == expected


def test_a_sort_key_that_is_a_number_or_none_needs_no_padding() -> None:
    assert verdict("E1", facts({"sort": None})) == (CLEAR, "info")
    assert verdict("E1", facts({"types": {"pk": "S", "sk": "N"}})) == (CLEAR, "info")


@pytest.mark.parametrize(
    ("orphans", "expected"),
    [
        (share(0.2, 0.16, 0.24), (FOUND, "low")),
        (share(0.03, 0.02, 0.05), (FOUND, "low")),
        (share(0.03, 0.01, 0.05), (UNKNOWN, "info")),
        (share(0.0, 0.0, 0.019), (CLEAR, "info")),
        (None, (UNKNOWN, "info")),
    ],
)
def test_constraints_without_their_primary(orphans: object, expected: tuple[str, str]) -> None:
    assert verdict("E2", facts(sample={"orphans": orphans})) == expected
