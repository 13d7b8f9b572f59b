"""The pictures' data, and what is drawn of it."""

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
from keyhop.report.pages.pictures import key_map as drawn

from tests.unit.report.pages.example import AT, facts


def test_a_key_map_sums_write_units_by_minute_and_place() -> None:
    data = key_map([(600.0, 0, 60.0), (600.0, 1, 60.0), (660.0, 255, 30.0)])
    assert data["began"] == 600
    assert data["columns"] == 2
    assert data["cells"] == [[0, 0, 2.0], [1, PLACES - 1, 0.5]]


def test_words_of_keys_are_shown_unless_they_are_so_many_that_they_may_be_names() -> None:
    half = Estimate(0.5, 0.4, 0.6, 100, "test")
    kinds = [Tag(f"KIND{number}", half, f"KIND{number}#") for number in range(15)]
    names = [Tag(f"name{number}", half) for number in range(16)]
    world = facts()
    assert isinstance(world.sample, SampleFacts)
    sample = replace(world.sample, tags=(*kinds, *names))
    shown = pictures(replace(world, sample=sample))["tags"]
    assert {row["name"] for row in shown} < {kind.name for kind in kinds}
    sample = replace(world.sample, tags=tuple(names))
    assert "tags" not in pictures(replace(world, sample=sample))


def test_a_long_time_has_columns_of_several_minutes() -> None:
    data = key_map([(60.0 * minute, 0, 60.0) for minute in range(1000)])
    assert data["columns"] <= MINUTES
    assert data["column_seconds"] == 360
    assert data["cells"][0] == [0, 0, 1.0]


def test_what_is_hot_stays_hot_in_a_coarse_map() -> None:
    data = key_map([(0.0, 8, 60 * 1500.0), (0.0, 9, 60.0), (60.0, 200, 60.0)])
    small = coarse(data, 1, 64)
    assert [cell[2] for cell in small["cells"]] == [1500.0, 1.0]


def test_cells_at_a_partitions_limit_have_a_colour_of_their_own() -> None:
    below, at = (drawn(key_map([(0.0, 8, 60.0 * units)])).svg() for units in (999, 1000))
    last = f'class="kh-{len(LEVELS) - 1}"'
    cells = '<path d="M0.5 4v1" '
    assert f"{cells}{last}" in at
    assert f"{cells}{last}" not in below


def test_sources_that_are_absent_leave_pictures_out() -> None:
    nothing = Absent("not looked at")
    bare = replace(facts(), sample=nothing, stream=nothing, metrics=nothing, candidates=())
    assert set(pictures(bare)) == {"indexes"}


def test_the_most_written_keys_are_those_of_insights_where_there_is_no_stream() -> None:
    hot = InsightFacts(0, 60, {"": (HotKey("#a", 180_000, 1e6),)})
    seen = replace(facts(), stream=Absent("off"), insights=hot)
    assert pictures(seen)["writers"] == [{"key": "#a", "peak": 1000.0, "by": "insights"}]


def test_sizes_are_told_in_items_where_the_table_does_not_tell_bytes() -> None:
    seen = facts()
    assert isinstance(seen.sample, SampleFacts)
    bare = replace(seen, table=replace(seen.table, bytes=0), sample=replace(seen.sample, top=()))
    picture = sizes(pictures(bare)["sizes"])
    assert picture.desc.startswith("Items of a collection: median 38 [33, 43]")
    assert "10 GB" not in picture.svg()


def test_the_limit_is_drawn_where_an_lsi_makes_it_one() -> None:
    seen = facts()
    without = replace(seen, table=replace(seen.table, indexes=()))
    assert "10 GB" not in sizes(pictures(without)["sizes"]).svg()
    assert "10 GB" in sizes(pictures(seen)["sizes"]).svg()


def test_what_nobody_saw_is_hatched_and_said() -> None:
    picture = sizes(pictures(facts())["sizes"])
    assert "kh-hatch" in picture.svg()
    assert picture.desc.endswith(
        "40 % [32, 48] of all items are in collections larger than any that was sampled."
    )


def test_an_unseen_share_of_nothing_is_not_hatched() -> None:
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


def test_an_open_interval_goes_to_the_end_of_its_bar() -> None:
    assert "H100.00" in bar(Estimate.at_least(0.2, 3, "m").to_json(), shares())
    assert "H100.00" not in bar({"value": 0.2}, shares())


def test_the_lorenz_curve_says_what_the_largest_tenth_has() -> None:
    data = {"points": [[0.5, 0.1], [0.9, 0.4], [1.0, 1.0]], "gini": None}
    assert lorenz(data).desc == "The largest 10 % of keys have 60 % of the items."
    told = lorenz({**data, "gini": Estimate(0.5, 0.4, 0.6, 9, "m").to_json()})
    assert told.desc.startswith("Gini 0.50 [0.40, 0.60]. ")


def test_a_logarithmic_scale_of_next_to_nothing_is_one_all_the_same() -> None:
    smallest = Estimate(5e-324, 5e-324, 5e-324, 1, "m").to_json()
    assert by_powers([smallest])(5e-324) == 0
    assert powers(0, 1, 10)


def test_ticks_are_round() -> None:
    assert powers(2, 3e9, 1024) == [1024, 1024**2, 1024**3]
    assert len(powers(1, 1e15, 10)) <= 6


def test_the_window_of_the_example_is_as_long_as_it_says() -> None:
    assert pictures(facts())["key_map"]["columns"] == 120
    assert pictures(facts())["key_map"]["began"] == AT - 7200
