"""Test of a candidate key that is judged by a sample of a table, without any of its values."""

import random
from collections import Counter

import pytest
from keyhop.report.candidates import candidate

from testing.databases import Database
from testing.marks import prove
from tests.integration.report.sample.tables import collections, sampled

TEXT = "PK=CITY#{city}#{hash(sk)%2}"


@pytest.mark.parametrize("units", [60, prove(400)])
def test_a_candidate_is_judged_by_the_sample(
    dynamodb: Database, table_name: str, units: float
) -> None:
    chance = random.Random(9)
    cities = ["canary-hot"] * 4 + [f"canary-{at}" for at in range(6)]
    items = [
        {**item, "city": {"S": chance.choice(cities)}} if at % 10 else item
        for at, item in enumerate(collections([4] * 600))
    ]
    keys = Counter(candidate(TEXT).of(item) for item in items)
    missing = keys.pop(None)
    with_key = sum(keys.values())
    dynamodb.create(table_name)
    dynamodb.fill(table_name, items)
    facts = sampled(dynamodb, table_name, units, seed="1", candidates=(TEXT,))
    (judged,) = facts.candidates
    assert judged.template == TEXT
    assert judged.coverage.low <= 1 - missing / len(items) <= judged.coverage.high
    assert judged.largest.low <= max(keys.values()) / with_key <= judged.largest.high
    effective = 1 / sum((count / with_key) ** 2 for count in keys.values())
    assert judged.effective.low <= effective * 1.000001
    assert effective <= judged.effective.high * 1.000001
    assert judged.write_units == 1.0
    assert (judged.coverage.level == 1.0) == (units == 400)
    assert "canary" not in repr(facts)
