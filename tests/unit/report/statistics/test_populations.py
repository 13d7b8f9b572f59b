"""Intervals hold the truth as often as they say, over tables that are known (bars 2, 3 and 4)."""

import random

import pytest
from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import beyond, gini, unseen
from keyhop.report.statistics.shares import Item, top, weighted_quantiles, weighted_share

from testing.marks import prove
from testing.report_coverage import ALARM, cell, recall
from testing.report_population import MAKERS, population, sample, stale

FAST = ("equal", "Zipf 1.0", "one key of 40 %")
CLEAN = ("equal", "lognormal, sigma 1")


@pytest.mark.parametrize(
    ("name", "runs"), [*[(name, 20) for name in FAST], *[prove(name, 200) for name in MAKERS]]
)
def test_what_three_thousand_units_say_holds(name: str, runs: int) -> None:
    """Bar 2, and of one key with 40 %, bar 3. A few runs allow for what chance makes of them."""
    slack = 0.08 if runs < 100 else 0.0
    found = cell(name, 3_000, runs)
    assert found.spent <= 3_000
    for figure in ("keys", "median", "giants"):
        assert found.share_given(figure) >= 0.9, figure
    for figure in ("keys", "median", "p90"):
        assert found.coverage(figure) >= 0.92 - slack, figure
    assert found.coverage("giants") >= 0.9 - slack
    if name == "one key of 40 %":
        assert found.alarms >= 0.99 * runs
    if name in CLEAN:
        assert found.false <= 0.02 * runs


@pytest.mark.parametrize(("name", "runs"), [("Zipf 1.0", 30), *[prove(n, 200) for n in MAKERS]])
def test_what_three_hundred_units_say_holds_or_is_silent(name: str, runs: int) -> None:
    slack = 0.08 if runs < 100 else 0.0
    found = cell(name, 300, runs)
    for figure in ("keys", "median", "p90"):
        assert found.coverage(figure) >= 0.92 - slack, figure
    assert found.coverage("giants") >= 0.9 - slack
    if name == "lognormal, sigma 2":
        assert found.share_given("p90") == 0
    if name in CLEAN:
        assert found.false <= 0.02 * runs


def test_a_stale_count_is_no_giant_if_it_is_told_how_stale() -> None:
    seen = stale(sample(population("equal"), 3_000, random.Random(1)), 1.3)
    fooled = unseen(seen.lengths, seen.keys, seen.item_count)
    told = unseen(seen.lengths, seen.keys, seen.item_count, drift=0.3 * seen.item_count)
    assert told is not None
    assert fooled.low > ALARM >= told.low


def test_giants_of_a_clean_table_are_excluded_and_of_cut_collections_nothing_is_said() -> None:
    seen = sample(population("equal"), 30_000, random.Random(1))
    found = beyond(seen.lengths, seen.keys, seen.item_count)
    assert found[max(found)].against(ALARM) == "below"
    cut = [Estimate.at_least(7, 7, "one page") for _ in seen.lengths]
    assert beyond(cut, seen.keys, seen.item_count) == {}
    assert gini(cut, seen.keys, seen.item_count, random.Random(1)) is None


def test_the_gini_coefficient_of_a_zipf_table() -> None:
    found = cell("Zipf 1.0", 300, 15, with_gini=True)
    assert found.coverage("Gini") >= 0.8


@pytest.mark.parametrize(("exponent", "runs"), [(1.0, 4), prove(1.0, 60), prove(1.5, 60)])
def test_the_ten_largest_by_an_unrelated_index(exponent: float, runs: int) -> None:
    """Bar 4: 1,200 read units."""
    found = recall(exponent, 1_200, runs)
    assert found.recall >= (0.95 if runs > 10 else 0.9)
    assert found.covered >= 0.92


def test_a_related_index_draws_in_clusters_and_the_interval_knows() -> None:
    """Pages of an index that holds all items of a key together."""
    chance = random.Random(3)
    names = [f"k{at}" for at in range(200)]
    draws = [[chance.choice(names)] * 20 for _ in range(200)]
    found = top(draws, 10, "draws")
    alike = top([[key] for page in draws for key in page], 10, "draws")
    for clustered, single in zip(found.values(), alike.values(), strict=True):
        assert clustered.value == single.value
        assert clustered.high - clustered.low > 3 * (single.high - single.low)


@pytest.mark.parametrize("runs", [40, prove(300)])
def test_shares_and_sizes_of_items_met_with_unequal_chances(runs: int) -> None:
    """Collections of which some have the attribute in all items, most in none, a few in half."""
    held = sized = 0
    for run in range(runs):
        chance = random.Random(run)
        items: list[Item] = []
        for collection in range(120):
            length = chance.lognormvariate(0, 1)
            likely = chance.choice((0.0, 0.0, 0.0, 0.5, 1.0))
            for _ in range(8):
                weight = length * chance.gammavariate(6, 1 / 6)
                items.append(Item(collection, weight, float(chance.random() < likely)))
        found = weighted_share(items)
        held += found.low <= 0.3 <= found.high
        sizes = [Item(one.collection, one.weight, chance.expovariate(1.0)) for one in items]
        median = weighted_quantiles(sizes, (0.5, 0.9999))
        assert set(median) == {0.5}
        sized += median[0.5].low <= 0.6931 <= median[0.5].high
    assert held >= 0.9 * runs
    assert sized >= 0.9 * runs
