"""Tests that a sample reads every item of a table if that costs less, and only then."""

import pytest

from testing.clustered import ClusteredTable, sampled
from testing.marks import prove

MANY = [1, 2, 3, 10] * 500
"""2,000 keys with 8,000 items of about 300 bytes: 300 read units."""


def test_a_table_that_costs_less_than_its_sample_is_read_through() -> None:
    table = ClusteredTable(MANY)
    facts = sampled(table, "1", 600.0)
    assert facts.all_items
    assert facts.keys.low == facts.keys.high == 2_000
    assert facts.items_read >= table.items
    assert facts.rru < 1.3 * table.bytes / 8_192 + 20
    assert facts.length[0.9].low == facts.length[0.9].high == 10
    assert facts.coverage["mail"].value == pytest.approx(table.true["share with an attribute"])


def test_a_table_that_costs_more_is_not_read_through() -> None:
    facts = sampled(ClusteredTable(MANY), "1", 300.0)
    assert not facts.all_items
    assert facts.rru <= 300.0


@pytest.mark.parametrize("grown", [prove(8.0), 2_000.0])
def test_a_table_that_has_grown_since_its_size_was_reported_is_sampled(grown: float) -> None:
    """The sample reads some random segments to their end."""
    table = ClusteredTable(MANY * 8, grown=grown)
    facts = sampled(table, "2", 600.0)
    assert facts.rru <= 600.0
    assert not facts.all_items
    assert facts.keys.low <= 16_000 <= facts.keys.high
    assert facts.keys_read > 100
