"""Tests of samples of small tables, from mistakes that the corpus revealed."""

from keyhop.report.estimate import Estimate
from keyhop.report.facts import SampleFacts
from keyhop.report.forms import KeyForm
from keyhop.report.sample.drawing import Population
from keyhop.report.sample.gather import counted, gather
from keyhop.report.sample.rows import CollectionRow, Observation, SegmentRow
from keyhop.report.statistics.shares import Item, weighted_quantiles


def rows_of(*keys: str) -> list[SegmentRow]:
    items = (Observation(100, ("pk",)),)
    rows = [CollectionRow(key, KeyForm.of({"S": key}), 1, True, None, items) for key in keys]
    return [SegmentRow(0, True, tuple(rows))]


def test_numbers_that_many_keys_share_are_not_ids():
    polls = [f"POLL#{poll:x}a#{shard}" for poll in range(40) for shard in range(10)]
    days = [f"DEVICE#{device:x}a#2026-11-{day:02}" for device in range(30) for day in range(1, 9)]
    for keys in (polls, days):
        facts = gather(rows_of(*keys), Population(1, len(keys)))
        assert facts.numbered.high < 0.05
        assert facts.density is None


def test_numbers_that_differ_between_keys_are_ids():
    facts = gather(rows_of(*(f"INV-{number:05}" for number in range(300))), Population(1, 300))
    assert facts.numbered.low > 0.95
    assert facts.density.low > 0.5


def test_long_numbers_are_ids_although_they_are_rounded():
    keys = [f"{5_000_000 + number}" for number in range(300)]
    facts = gather(rows_of(*keys), Population(1, 300))
    assert facts.numbered.low > 0.95


def test_figures_of_a_table_that_was_read_to_its_end_are_exact():
    share = Estimate(0.04, 0.02, 0.07, 100, "weighted windows")
    facts = SampleFacts(1.0, 3, 3, unpadded=share, item_bytes={0.5: share}, all_items=True)
    exact = counted(facts, rows_of("a", "b"))
    assert exact.unpadded == Estimate.exactly(0.04, 100, "complete count")
    assert exact.item_bytes[0.5].low == 0.04


def test_figures_are_estimates_if_not_every_item_was_observed():
    share = Estimate(0.04, 0.02, 0.07, 100, "weighted windows")
    facts = SampleFacts(1.0, 3, 3, unpadded=share, all_items=True)
    rows = [SegmentRow(0, True, (CollectionRow("a", KeyForm(), 9, True),))]
    assert counted(facts, rows) is facts


def test_a_high_quantile_may_have_a_low_limit_and_no_high_limit():
    items = [Item(number, 1.0, 120.0 if number < 20 else 1.0) for number in range(400)]
    levels = weighted_quantiles(items, (0.5, 0.99))
    assert levels[0.99].low == 120.0
    assert levels[0.99].high == float("inf")
    assert levels[0.5].high == 1.0
