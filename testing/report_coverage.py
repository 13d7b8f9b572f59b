"""How often the intervals of a report hold the truth: runs of a sampler over known tables."""

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate

from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import beyond, gini, quantiles, unseen
from keyhop.report.statistics.shares import top

from testing.report_population import MAKERS, Population, Seen, population, sample

QUANTILES = {0.5: "median", 0.9: "p90", 0.99: "p99"}
ALARM = 0.05
"""A share in giants is reported from here on."""


@dataclass
class Cell:
    """Of one population and budget. given, covered: runs that gave a figure, that held the truth;
    alarms: said that giants hold more than ALARM; false: and they did not. spent: the most.
    """

    runs: int = 0
    given: Counter[str] = field(default_factory=Counter)
    covered: Counter[str] = field(default_factory=Counter)
    widths: Counter[str] = field(default_factory=Counter)
    alarms: int = 0
    false: int = 0
    spent: float = 0.0

    def note(self, name: str, estimate: Estimate | None, truth: float) -> None:
        if estimate is None:
            return
        self.given[name] += 1
        self.widths[name] += (estimate.high - estimate.low) / 2
        self.covered[name] += estimate.low <= truth * (1 + 1e-9) and estimate.high >= truth * (
            1 - 1e-9
        )

    def share_given(self, name: str) -> float:
        return self.given[name] / self.runs

    def coverage(self, name: str) -> float:
        """Of the runs that gave a figure; 1 of none."""
        return self.covered[name] / self.given[name] if self.given[name] else 1.0


def cell(name: str, budget: float, runs: int, with_gini: bool = False) -> Cell:
    """So many runs over one population."""
    table = population(name)
    truth = table.gini() if with_gini else 0.0
    found = Cell()
    first = 10_000 * (1 + list(MAKERS).index(name))
    for run in range(first, first + runs):
        chance = random.Random(run)
        seen = sample(table, budget, chance)
        found.runs += 1
        found.spent = max(found.spent, seen.rru)
        _note(found, table, seen)
        if with_gini:
            found.note("Gini", gini(seen.lengths, seen.keys, seen.item_count, chance), truth)
    return found


def _note(found: Cell, table: Population, seen: Seen) -> None:
    found.note("keys", seen.keys, table.keys)
    lengths = quantiles(seen.lengths, QUANTILES)
    for level, name in QUANTILES.items():
        found.note(name, lengths.get(level), table.quantile(level))
    above = unseen(seen.lengths, seen.keys, seen.item_count)
    alarm = false = False
    if above is not None:
        largest = max(length.value for length in seen.lengths)
        truth = table.share_from(largest * (1 + 1e-9))
        found.note("unseen", above, truth)
        alarm = above.low > ALARM
        false = alarm and truth <= ALARM
    shares = beyond(seen.lengths, seen.keys, seen.item_count)
    if shares:
        threshold, share = max(shares.items(), key=lambda pair: pair[0])
        truth = table.share_from(threshold)
        found.note("giants", share, truth)
        alarm |= share.low > ALARM
        false |= share.low > ALARM and truth <= ALARM
    found.alarms += alarm
    found.false += false


@dataclass(frozen=True)
class Recall:
    """recall: share of the true ten largest that were named. covered: intervals with the truth."""

    recall: float
    covered: float
    draws: int


ENTRIES_PER_PAGE = 20
"""Of an index, 200 bytes each, in the 0.5 read units of a block."""

PAGES_PER_SEGMENT = 8


def recall(exponent: float, budget: float, runs: int, keys: int = 200_000, k: int = 10) -> Recall:
    """Of a Zipf table, by segments of an index whose key is unrelated to the table's.

    A segment costs a page more than it fills: its end.
    """
    weights = list(accumulate(rank**-exponent for rank in range(1, keys + 1)))
    pages = int(budget / 0.5 * PAGES_PER_SEGMENT / (PAGES_PER_SEGMENT + 1))
    named = covered = ranked = 0
    for run in range(runs):
        chance = random.Random(run)
        ranks = iter(chance.choices(range(keys), cum_weights=weights, k=pages * ENTRIES_PER_PAGE))
        draws = [[next(ranks) for _ in range(ENTRIES_PER_PAGE)] for _ in range(pages)]
        for key, share in top(draws, k, "draws").items():
            ranked += 1
            named += key < k
            truth = (key + 1) ** -exponent / weights[-1]
            covered += share.low <= truth <= share.high
    return Recall(named / (k * runs), covered / ranked, pages * ENTRIES_PER_PAGE)
