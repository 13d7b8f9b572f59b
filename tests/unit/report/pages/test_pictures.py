"""Tests of the data of pictures, and of the pictures that are drawn from them."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from keyhop.report.estimate import Estimate
from keyhop.report.facts import Absent, HotKey, InsightFacts, SampleFacts, Tag
from keyhop.report.pages.document import MINUTES, PLACES, key_map, pictures
from keyhop.report.pages.pictures import (
    LEVELS,
    bar,
    by_powers,
    coarse,
    hatched,
    lorenz,
    powers,
    shares,
    sizes,
)
from keyhop.report.pages.pictures import key_map as draw_key_map

from tests.unit.report.pages.example import AT, facts


def test_a_key_map_sums_write_units_by_minute_and_place() -> None:
    data = key_map([(600.0, 0, 60.0), (600.0, 1, 60.0), (660.0, 255, 30.0)])
    assert data["began"] == 600
    assert data["columns"] == 2
    assert data["cells"] == [[0, 0, 2.0], [1, PLACES - 1, 0.5]]


def test_tags_are_shown_unless_there_are_so_many_that_they_may_be_names() -> None:
    half = Estimate(0.5, 0.4, 0.6, 100, "test")
    kinds = [Tag(f"KIND{number}", half, f"KIND{number}#") for number in range(15)]
    names = [Tag(f"name{number}", half) for number in range(16)]
    example = facts()
    assert isinstance(example.sample, SampleFacts)
    sample = replace(example.sample, tags=(*kinds, *names))
    tags = pictures(replace(example, sample=sample))["tags"]
    assert {row["name"] for row in tags} < {kind.name for kind in kinds}
    sample = replace(example.sample, tags=tuple(names))
    assert "tags" not in pictures(replace(example, sample=sample))


def test_a_long_window_has_columns_of_several_minutes() -> None:
    data = key_map([(60.0 * minute, 0, 60.0) for minute in range(1000)])
    assert data["columns"] <= MINUTES
    assert data["column_seconds"] == 360
    assert data["cells"][0] == [0, 0, 1.0]


def test_a_hot_cell_stays_hot_in_a_coarse_map() -> None:
    data = key_map([(0.0, 8, 60 * 1500.0), (0.0, 9, 60.0), (60.0, 200, 60.0)])
    small = coarse(data, 1, 64)
    assert [cell[2] for cell in small["cells"]] == [1500.0, 1.0]


def test_cells_at_the_limit_of_a_partition_have_the_last_colour() -> None:
    below, at = (draw_key_map(key_map([(0.0, 8, 60.0 * units)])).svg() for units in (999, 1000))
    cell = f'<path d="M0.5 4v1" class="kh-{len(LEVELS) - 1}"'
    assert cell in at
    assert cell not in below


def test_pictures_of_absent_sources_are_left_out() -> None:
    absent = Absent("not looked at")
    bare = replace(facts(), sample=absent, stream=absent, metrics=absent, candidates=())
    assert set(pictures(bare)) == {"indexes"}


def test_without_a_stream_insights_give_the_most_written_keys() -> None:
    hot = InsightFacts(0, 60, {"": (HotKey("#a", 180_000, 1e6),)})
    example = replace(facts(), stream=Absent("off"), insights=hot)
    assert pictures(example)["writers"] == [{"key": "#a", "peak": 1000.0, "by": "insights"}]


def test_sizes_are_in_items_if_the_table_has_no_bytes() -> None:
    example = facts()
    assert isinstance(example.sample, SampleFacts)
    table, sample = replace(example.table, bytes=0), replace(example.sample, top=())
    bare = replace(example, table=table, sample=sample)
    picture = sizes(pictures(bare)["sizes"])
    assert picture.desc.startswith("Items of a collection: median 38 [33, 43]")
    assert "10 GB" not in picture.svg()


def test_the_limit_of_a_collection_is_drawn_if_there_is_an_lsi() -> None:
    example = facts()
    without_lsi = replace(example, table=replace(example.table, indexes=()))
    assert "10 GB" not in sizes(pictures(without_lsi)["sizes"]).svg()
    assert "10 GB" in sizes(pictures(example)["sizes"]).svg()


def test_the_unseen_share_is_hatched_and_described() -> None:
    picture = sizes(pictures(facts())["sizes"])
    assert "kh-hatch" in picture.svg()
    assert picture.desc.endswith(
        "40 % [32, 48] of all items are in collections larger than any that was sampled."
    )


def test_an_unseen_share_of_zero_is_not_hatched() -> None:
    data = pictures(facts())["sizes"]
    data["unseen"]["share"] = Estimate(0.0, 0.0, 0.004, 400, "").to_json()
    picture = sizes(data)
    assert "kh-hatch" not in picture.svg()
    assert "unseen" not in picture.svg()
    assert "0 % [0, 0.4] of all items" in picture.desc


def test_hatching_stays_in_its_box() -> None:
    d = ElementTree.fromstring(hatched(10, 20, 33, 47)).get("d") or ""
    points = [pair.split() for move in d.split("M")[1:] for pair in move.split("L")]
    assert points
    assert all(10 <= float(x) <= 43 and 20 <= float(y) <= 67 for x, y in points)


def test_an_open_interval_reaches_the_end_of_its_bar() -> None:
    assert "H100.00" in bar(Estimate.at_least(0.2, 3, "m").to_json(), shares())
    assert "H100.00" not in bar({"value": 0.2}, shares())


def test_the_lorenz_curve_states_the_share_of_the_largest_tenth() -> None:
    data = {"points": [[0.5, 0.1], [0.9, 0.4], [1.0, 1.0]], "gini": None}
    assert lorenz(data).desc == "The largest 10 % of keys have 60 % of the items."
    with_gini = lorenz({**data, "gini": Estimate(0.5, 0.4, 0.6, 9, "m").to_json()})
    assert with_gini.desc.startswith("Gini 0.50 [0.40, 0.60]. ")


def test_a_logarithmic_scale_of_the_smallest_number_is_valid() -> None:
    smallest = Estimate(5e-324, 5e-324, 5e-324, 1, "m").to_json()
    assert by_powers([smallest])(5e-324) == 0
    assert powers(0, 1, 10)


def test_ticks_are_round() -> None:
    assert powers(2, 3e9, 1024) == [1024, 1024**2, 1024**3]
    assert len(powers(1, 1e15, 10)) <= 6


def test_the_key_map_of_the_example_has_two_hours() -> None:
    data = pictures(facts())["key_map"]
    assert (data["columns"], data["began"]) == (120, AT - 7200)
