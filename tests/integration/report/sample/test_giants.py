"""Tests of a giant collection with two fifths of the items, which an unrelated index reveals."""

import random

import pytest

from testing.databases import BY_DAY, Database
from tests.integration.report.sample.tables import collections, sampled

GIANT = 4_000


def items(sizes: list[int]):
    """Yield items of these sizes with days for an index.

    The stand-in segments an index by the index's key, as the service does. DynamoDB Local segments
    it by the table's key.
    """
    chance = random.Random(5)
    for item in collections(sizes, filling=100):
        yield {**item, "day": {"S": f"{chance.randrange(4_000)}"}}


@pytest.fixture
def giant_table(strict: Database, table_name: str) -> str:
    chance = random.Random(3)
    sizes = [GIANT, 600, 400, *(chance.choice([1, 2, 3, 5]) for _ in range(1_800))]
    strict.create(table_name, **BY_DAY)
    strict.fill(table_name, items(sizes))
    return table_name


def test_an_index_reveals_a_giant_for_a_few_units(strict: Database, giant_table: str) -> None:
    facts = sampled(strict, giant_table, 150, seed="1")
    assert facts.biased == ("GSI by-day",)
    giant, second = facts.top[:2]
    assert giant.items.low <= GIANT <= giant.items.high
    assert second.items.low <= 600 <= second.items.high
    assert giant.place is not None
    assert giant.items.high < 1.5 * giant.items.value
    assert giant.bytes is not None
    assert facts.rru <= 150 + 1


@pytest.mark.prove
def test_without_an_index_the_unseen_share_of_the_items_reveals_a_giant(
    dynamodb: Database, table_name: str
) -> None:
    sizes = [GIANT, *([2] * 2_500)]
    dynamodb.create(table_name)
    dynamodb.fill(table_name, collections(sizes, filling=50))
    facts = sampled(dynamodb, table_name, 120, seed="0")
    assert facts.biased == ()
    assert facts.seen_largest is not None
    assert facts.seen_largest < GIANT / 2
    assert facts.unseen.low <= GIANT / sum(sizes) <= facts.unseen.high
    assert facts.unseen.low > 0.05


@pytest.mark.prove
def test_an_index_with_one_key_is_not_used_and_its_top_share_is_reported(
    strict: Database, table_name: str
) -> None:
    strict.create(table_name, **BY_DAY)
    strict.fill(
        table_name,
        ({**item, "day": {"S": "PENDING"}} for item in collections([3] * 1_500, filling=100)),
    )
    facts = sampled(strict, table_name, 300, seed="1")
    assert facts.biased == ()
    share = facts.indexes["by-day"].top_share
    assert share.value == 1.0
    assert share.low > 0.8
