"""A candidate key, by a sample of a table; nothing of a value is in what is told of it."""

import random
from collections import Counter

import pytest
from keyhop.report.candidates import candidate

from testing.databases import Database
from tests.integration.report.sample.tables import collections, sampled

TEXT = "PK=CITY#{city}#{hash(sk)%2}"


@pytest.mark.parametrize("units", [60, 400])
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
    whole = sum(keys.values())
    dynamodb.create(table_name)
    dynamodb.fill(table_name, items)
    facts = sampled(dynamodb, table_name, units, seed="1", candidates=(TEXT,))
    (found,) = facts.candidates
    assert found.template == TEXT
    assert found.coverage.low <= 1 - missing / len(items) <= found.coverage.high
    assert found.largest.low <= max(keys.values()) / whole <= found.largest.high
    effective = 1 / sum((count / whole) ** 2 for count in keys.values())
    assert found.effective.low <= effective * 1.000001
    assert effective <= found.effective.high * 1.000001
    assert found.write_units == 1.0
    assert (found.coverage.level == 1.0) == (units == 400)
    assert "canary" not in repr(facts)
