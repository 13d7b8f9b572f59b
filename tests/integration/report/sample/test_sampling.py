"""Tests that the intervals of samples of planted tables contain the truth."""

import random

import pytest
from keyhop.dynamodb.usage import Usage

from testing.databases import Database
from tests.integration.report.sample.tables import collections, sampled


@pytest.mark.prove
def test_the_intervals_of_keys_and_lengths_contain_the_truth(
    dynamodb: Database, table_name: str
) -> None:
    chance = random.Random(1)
    sizes = [chance.choice([1, 2, 3, 5, 8, 40]) for _ in range(600)]
    dynamodb.create(table_name)
    dynamodb.fill(table_name, collections(sizes))
    usage = Usage()
    facts = sampled(dynamodb, table_name, 250, usage, seed="1")
    assert facts.keys.low <= len(sizes) <= facts.keys.high
    assert facts.keys.high < 1.5 * facts.keys.value
    assert facts.length[0.5].low <= 5
    assert facts.length[0.5].high >= 3
    assert usage.read_units <= 250 + 1
    assert facts.rru == usage.read_units
    assert facts.keys_read > 30
    assert {tag.name for tag in facts.tags} == {"USER", "ORDER"}
    assert set(facts.coverage) == {"pk", "sk", "data"}
    assert facts.coverage["data"].value == 1.0


def test_a_small_table_is_counted(dynamodb: Database, table_name: str) -> None:
    sizes = [3] * 20 + [300]
    dynamodb.create(table_name)
    dynamodb.fill(table_name, collections(sizes))
    facts = sampled(dynamodb, table_name)
    assert (facts.keys.low, facts.keys.value, facts.keys.high) == (21, 21, 21)


def test_a_table_without_a_sort_key_has_collections_of_one_item(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, sort=None)
    dynamodb.fill(table_name, ({"pk": {"S": f"k{n}"}} for n in range(400)))
    facts = sampled(dynamodb, table_name)
    assert facts.keys.low <= 400 <= facts.keys.high
    assert facts.length[0.5].high == 1


def test_an_empty_table_has_no_keys(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name)
    facts = sampled(dynamodb, table_name)
    assert facts.keys.value == 0
    assert facts.items_read == 0


def test_constraints_without_their_primary(strict: Database, table_name: str) -> None:
    def items():
        for number in range(120):
            user = f"USER#{number}"
            if number % 3:
                yield {"pk": {"S": user}, "sk": {"S": "PROFILE"}}
            mail = f"unique#email#{number}@example.org"
            yield {"pk": {"S": mail}, "sk": {"S": "-"}, "user": {"S": user}}

    strict.create(table_name)
    strict.fill(table_name, items())
    facts = sampled(strict, table_name, 800)
    assert facts.orphans.value == pytest.approx(1 / 3)
    assert facts.orphans.n == 120


def test_an_exhaustive_sample_reads_all_collections(strict: Database, table_name: str) -> None:
    chance = random.Random(1)
    sizes = [chance.choice([1, 2, 3, 120]) for _ in range(60)]
    strict.create(table_name)
    strict.fill(table_name, collections(sizes))
    facts = sampled(strict, table_name, exhaustive=True)
    assert facts.all_lengths
    assert (facts.keys.low, facts.keys.high) == (60, 60)
    assert facts.seen_largest is not None
    assert 60 <= facts.seen_largest <= 240


def test_ttl_in_milliseconds(dynamodb: Database, table_name: str) -> None:
    dynamodb.create(table_name)
    dynamodb.client.update_time_to_live(
        TableName=table_name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "gone"}
    )
    dynamodb.fill(
        table_name, ({**item, "gone": {"N": "1900000000000"}} for item in collections([2] * 40))
    )
    facts = sampled(dynamodb, table_name, 100)
    assert facts.ttl.milliseconds.low > 0.8
    assert facts.ttl.missing.value == 0
