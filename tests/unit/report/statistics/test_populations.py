"""Tests that intervals contain the truth of known tables often enough (bars 2, 3 and 4)."""

import random

import pytest
from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import beyond, gini, unseen
from keyhop.report.statistics.shares import Item, top, weighted_quantiles, weighted_share

from testing.marks import prove
from testing.report_coverage import ALARM, cell, recall
from testing.report_population import MAKERS, population, sample, stale

CLEAN = ("equal", "lognormal, sigma 1")


@pytest.mark.parametrize(("name", "runs"), [("Zipf 1.0", 20), *[prove(n, 200) for n in MAKERS]])
def test_a_sample_of_three_thousand_units_is_right(name: str, runs: int) -> None:
    """Check bar 2, and bar 3 for one key with 40 %. A few runs have some slack for chance."""
    slack = 0.08 if runs < 100 else 0.0
    results = cell(name, 3_000, runs)
    assert results.spent <= 3_000
    for figure in ("keys", "median", "giants"):
        assert results.share_given(figure) >= 0.9, figure
    for figure in ("keys", "median", "p90"):
        assert results.coverage(figure) >= 0.92 - slack, figure
    assert results.coverage("giants") >= 0.9 - slack
    if name == "one key of 40 %":
        assert results.alarms >= 0.99 * runs
    if name in CLEAN:
        assert results.false <= 0.02 * runs


@pytest.mark.parametrize(("name", "runs"), [("Zipf 1.0", 30), *[prove(n, 200) for n in MAKERS]])
def test_a_sample_of_three_hundred_units_is_right_or_silent(name: str, runs: int) -> None:
    slack = 0.08 if runs < 100 else 0.0
    results = cell(name, 300, runs)
    for figure in ("keys", "median", "p90"):
        assert results.coverage(figure) >= 0.92 - slack, figure
    assert results.coverage("giants") >= 0.9 - slack
    if name == "lognormal, sigma 2":
        assert results.share_given("p90") == 0
    if name in CLEAN:
        assert results.false <= 0.02 * runs


def test_a_stale_item_count_raises_no_alarm_if_its_drift_is_known() -> None:
    outdated = stale(sample(population("equal"), 3_000, random.Random(1)), 1.3)
    arguments = (outdated.lengths, outdated.keys, outdated.item_count)
    corrected = unseen(*arguments, drift=0.3 * outdated.item_count)
    assert corrected is not None
    assert unseen(*arguments).low > ALARM >= corrected.low


def test_a_clean_table_has_no_giants_and_partly_read_collections_give_no_figures() -> None:
    table = sample(population("equal"), 30_000, random.Random(1))
    shares = beyond(table.lengths, table.keys, table.item_count)
    assert shares[max(shares)].against(ALARM) == "below"
    partly_read = [Estimate.at_least(7, 7, "one page") for _ in table.lengths]
    assert beyond(partly_read, table.keys, table.item_count) == {}
    assert gini(partly_read, table.keys, table.item_count, random.Random(1)) is None


def test_the_gini_coefficient_of_a_zipf_table() -> None:
    assert cell("Zipf 1.0", 300, 15, with_gini=True).coverage("Gini") >= 0.8


@pytest.mark.parametrize(("exponent", "runs"), [(1.0, 4), prove(1.0, 60), prove(1.5, 60)])
def test_the_ten_largest_by_an_unrelated_index(exponent: float, runs: int) -> None:
    """Check bar 4, with 1,200 read units."""
    results = recall(exponent, 1_200, runs)
    assert results.recall >= (0.95 if runs > 10 else 0.9)
    assert results.covered >= 0.92


def test_draws_in_clusters_widen_the_interval() -> None:
    """Each page of the index has items of one key only."""
    chance = random.Random(3)
    names = [f"k{at}" for at in range(200)]
    draws = [[chance.choice(names)] * 20 for _ in range(200)]
    by_page = top(draws, 10, "draws")
    by_item = top([[key] for page in draws for key in page], 10, "draws")
    for clustered, single in zip(by_page.values(), by_item.values(), strict=True):
        assert clustered.value == single.value
        assert clustered.high - clustered.low > 3 * (single.high - single.low)


@pytest.mark.parametrize("runs", [40, prove(300)])
def test_shares_and_sizes_of_items_with_unequal_chances(runs: int) -> None:
    """All items of a collection have the attribute, or half of them, or none."""
    shares_covered = sizes_covered = 0
    for run in range(runs):
        chance = random.Random(run)
        items: list[Item] = []
        for collection in range(120):
            length = chance.lognormvariate(0, 1)
            likely = chance.choice((0.0, 0.0, 0.0, 0.5, 1.0))
            for _ in range(8):
                weight = length * chance.gammavariate(6, 1 / 6)
                items.append(Item(collection, weight, float(chance.random() < likely)))
        share = weighted_share(items)
        shares_covered += share.low <= 0.3 <= share.high
        sizes = [Item(item.collection, item.weight, chance.expovariate(1.0)) for item in items]
        levels = weighted_quantiles(sizes, (0.5, 0.9999))
        assert set(levels) == {0.5}
        sizes_covered += levels[0.5].low <= 0.6931 <= levels[0.5].high
    assert shares_covered >= 0.9 * runs
    assert sizes_covered >= 0.9 * runs
