"""What a sample of collections says of a candidate key, held to populations that are known."""

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from keyhop.report.candidates import Tally
from keyhop.report.facts import CandidateSample

from testing.marks import prove

Collection = list[str | None]
"""The candidate's key of each item of one collection."""


def uniform(chance: random.Random) -> list[Collection]:
    """A key that has nothing to do with today's: 500 alike."""
    return [
        [f"k{chance.randrange(500)}" for _ in range(chance.randint(1, 9))] for _ in range(8_000)
    ]


def skewed(chance: random.Random) -> list[Collection]:
    """One key has 30 % of the items."""
    return [
        ["hot" if chance.random() < 0.3 else f"k{chance.randrange(3_000)}" for _ in range(5)]
        for _ in range(8_000)
    ]


def the_same(chance: random.Random) -> list[Collection]:
    """Today's key once more."""
    return [[f"c{at}"] * chance.randint(1, 9) for at in range(8_000)]


def finer(chance: random.Random) -> list[Collection]:
    """Within today's: collections of 60, by tens."""
    return [[f"c{at}-{item // 10}" for item in range(60)] for at in range(4_000)]


def partly(chance: random.Random) -> list[Collection]:
    """Every fifth item has not all attributes."""
    return [
        [None if chance.random() < 0.2 else f"k{chance.randrange(500)}" for _ in range(5)]
        for _ in range(8_000)
    ]


POPULATIONS = [uniform, skewed, the_same, prove(finer), partly]


def truth(population: list[Collection]) -> tuple[float, float, float]:
    """Coverage, largest share, effective keys."""
    counts = Counter(key for one in population for key in one if key is not None)
    whole, items = sum(counts.values()), sum(map(len, population))
    squares = sum((count / whole) ** 2 for count in counts.values())
    return whole / items, max(counts.values()) / whole, 1 / squares


def sampled(
    population: list[Collection], collections: int, chance: random.Random, window: int = 1_000
) -> CandidateSample:
    """Collections drawn alike; of a long one a window of items is read."""
    tally = Tally("t")
    for at in chance.sample(range(len(population)), collections):
        one = population[at]
        start = chance.randrange(max(1, len(one) - window + 1))
        read = one[start : start + window]
        for key in read:
            tally.add(key, len(one) / len(read), at, size=700)
    facts = tally.facts(collections / len(population), sum(map(len, population)))
    assert facts is not None
    return facts


@pytest.mark.parametrize("make", POPULATIONS, ids=lambda one: one.__name__)
def test_intervals_hold_the_truth(make: Callable[[random.Random], list[Collection]]):
    """Of 30 samples of 250 collections each, what is nominally 95 % holds in 27 at least."""
    chance = random.Random(18)
    population = make(chance)
    coverage, largest, effective = truth(population)
    held = Counter[str]()
    for _ in range(30):
        facts = sampled(population, 250, chance)
        held["coverage"] += facts.coverage.low <= coverage <= facts.coverage.high
        held["largest"] += facts.largest.low <= largest <= facts.largest.high
        held["effective"] += facts.effective.low <= effective <= facts.effective.high
    assert min(held["coverage"], held["largest"], held["effective"]) >= 27, held


def test_a_hot_key_is_seen_with_its_share():
    chance = random.Random(1)
    facts = sampled(skewed(chance), 400, chance)
    assert 0.18 < facts.largest.low < 0.3 < facts.largest.high < 0.36
    assert 9 < facts.effective.low < facts.effective.high < 14


def test_todays_key_once_more_is_not_taken_for_a_few_keys():
    """60 collections have 60 keys: of 8,000 there are about as many."""
    chance = random.Random(2)
    facts = sampled(the_same(chance), 60, chance)
    assert facts.effective.value > 1_000
    assert facts.largest.value < 0.001
    assert facts.distinct.value == 60
    assert math.isinf(facts.distinct.high)


def test_of_windows_the_interval_holds_the_truth():
    chance = random.Random(3)
    population = [[f"c{at}-{item // 10}" for item in range(600)] for at in range(1_000)]
    _, largest, effective = truth(population)
    for _ in range(10):
        facts = sampled(population, 100, chance, window=20)
        assert facts.effective.low <= effective <= facts.effective.high
        assert facts.largest.low <= largest <= facts.largest.high


def test_all_that_there_is_is_exact():
    population: list[Collection] = [["a", "a"], ["a", "b"], [None, "c"]]
    facts = sampled(population, 3, random.Random(4))
    assert (facts.coverage.low, facts.coverage.high) == (5 / 6, 5 / 6)
    assert (facts.largest.low, facts.largest.high) == (3 / 5, 3 / 5)
    assert facts.effective.value == pytest.approx(25 / 11)
    assert facts.distinct.high == 3


def test_write_units_are_of_the_items_that_can_have_it():
    tally = Tally("t")
    tally.add("a", 1.0, 1, size=1_024)
    tally.add("b", 3.0, 2, size=1_025)
    tally.add(None, 9.0, 3, size=90_000)
    facts = tally.facts()
    assert facts.write_units == 7 / 4


def test_of_nothing_nothing_is_said():
    assert Tally("t").facts() is None
    tally = Tally("t")
    tally.add(None, 1.0, 1)
    facts = tally.facts(0.1, 1_000)
    assert (facts.coverage.value, facts.largest.high, facts.effective.low) == (0.0, 1.0, 0.0)
