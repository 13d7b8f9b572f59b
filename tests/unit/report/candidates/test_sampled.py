"""Tests of the facts that a sample gives about a candidate key, against known populations."""

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from keyhop.report.candidates import Tally
from keyhop.report.facts import CandidateSample

from testing.marks import prove

Collection = list[str | None]
"""The candidate key of each item in one collection."""


def uniform(chance: random.Random) -> list[Collection]:
    """Return 500 equally frequent keys that are independent of the current key."""
    return [
        [f"k{chance.randrange(500)}" for _ in range(chance.randint(1, 9))] for _ in range(8_000)
    ]


def skewed(chance: random.Random) -> list[Collection]:
    """Return keys of which one has 30 % of the items."""
    return [
        ["hot" if chance.random() < 0.3 else f"k{chance.randrange(3_000)}" for _ in range(5)]
        for _ in range(8_000)
    ]


def the_same(chance: random.Random) -> list[Collection]:
    """Return the current key."""
    return [[f"c{at}"] * chance.randint(1, 9) for at in range(8_000)]


def finer(chance: random.Random) -> list[Collection]:
    """Return keys that divide collections of 60 items into tens."""
    return [[f"c{at}-{item // 10}" for item in range(60)] for at in range(4_000)]


def partly(chance: random.Random) -> list[Collection]:
    """Return keys of four fifths of the items. The others lack an attribute."""
    return [
        [None if chance.random() < 0.2 else f"k{chance.randrange(500)}" for _ in range(5)]
        for _ in range(8_000)
    ]


POPULATIONS = [uniform, skewed, the_same, prove(finer), partly]


def truth(population: list[Collection]) -> tuple[float, float, float]:
    """Return the coverage, the largest share, and the number of effective keys."""
    counts = Counter(key for keys in population for key in keys if key is not None)
    covered, items = sum(counts.values()), sum(map(len, population))
    squares = sum((count / covered) ** 2 for count in counts.values())
    return covered / items, max(counts.values()) / covered, 1 / squares


def sampled(
    population: list[Collection], collections: int, chance: random.Random, window: int = 1_000
) -> CandidateSample:
    """Sample collections with equal chances, and read one window of each."""
    tally = Tally("t")
    for at in chance.sample(range(len(population)), collections):
        keys = population[at]
        start = chance.randrange(max(1, len(keys) - window + 1))
        read = keys[start : start + window]
        for key in read:
            tally.add(key, len(keys) / len(read), at, size=700)
    facts = tally.facts(collections / len(population), sum(map(len, population)))
    assert facts is not None
    return facts


@pytest.mark.parametrize("make", POPULATIONS, ids=lambda make: make.__name__)
def test_intervals_contain_the_truth(make: Callable[[random.Random], list[Collection]]):
    """Check that intervals of nominally 95 % contain the truth in at least 27 of 30 samples."""
    chance = random.Random(18)
    population = make(chance)
    coverage, largest, effective = truth(population)
    covered = Counter[str]()
    for _ in range(30):
        facts = sampled(population, 250, chance)
        covered["coverage"] += facts.coverage.low <= coverage <= facts.coverage.high
        covered["largest"] += facts.largest.low <= largest <= facts.largest.high
        covered["effective"] += facts.effective.low <= effective <= facts.effective.high
    assert min(covered["coverage"], covered["largest"], covered["effective"]) >= 27, covered


def test_a_hot_key_is_found_with_its_share():
    chance = random.Random(1)
    facts = sampled(skewed(chance), 400, chance)
    assert 0.18 < facts.largest.low < 0.3 < facts.largest.high < 0.36
    assert 9 < facts.effective.low < facts.effective.high < 14


def test_the_current_key_is_not_reported_as_a_few_keys():
    """A sample of 60 collections has 60 different keys, so the table has many."""
    chance = random.Random(2)
    facts = sampled(the_same(chance), 60, chance)
    assert facts.effective.value > 1_000
    assert facts.largest.value < 0.001
    assert facts.distinct.value == 60
    assert math.isinf(facts.distinct.high)


def test_intervals_contain_the_truth_if_windows_are_read():
    chance = random.Random(3)
    population = [[f"c{at}-{item // 10}" for item in range(600)] for at in range(1_000)]
    _, largest, effective = truth(population)
    for _ in range(10):
        facts = sampled(population, 100, chance, window=20)
        assert facts.effective.low <= effective <= facts.effective.high
        assert facts.largest.low <= largest <= facts.largest.high


def test_a_sample_of_the_whole_table_is_exact():
    population: list[Collection] = [["a", "a"], ["a", "b"], [None, "c"]]
    facts = sampled(population, 3, random.Random(4))
    assert (facts.coverage.low, facts.coverage.high) == (5 / 6, 5 / 6)
    assert (facts.largest.low, facts.largest.high) == (3 / 5, 3 / 5)
    assert facts.effective.value == pytest.approx(25 / 11)
    assert facts.distinct.high == 3


def test_write_units_are_those_of_the_items_that_have_the_key():
    tally = Tally("t")
    tally.add("a", 1.0, 1, size=1_024)
    tally.add("b", 3.0, 2, size=1_025)
    tally.add(None, 9.0, 3, size=90_000)
    facts = tally.facts()
    assert facts.write_units == 7 / 4


def test_a_sample_without_the_key_covers_nothing():
    assert Tally("t").facts() is None
    tally = Tally("t")
    tally.add(None, 1.0, 1)
    facts = tally.facts(0.1, 1_000)
    assert (facts.coverage.value, facts.largest.high, facts.effective.low) == (0.0, 1.0, 0.0)
