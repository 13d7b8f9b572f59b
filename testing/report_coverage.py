"""The coverage of the intervals of a report, measured by runs of a sampler on known tables."""

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate

from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import beyond, gini, quantiles, unseen
from keyhop.report.statistics.shares import top

from testing.report_population import MAKERS, Population, Sample, population, sample

QUANTILES = {0.5: "median", 0.9: "p90", 0.99: "p99"}
ALARM = 0.05
"""The share of giants from which a report mentions them."""


@dataclass
class Cell:
    """The results of the runs with one population and budget.

    Attributes:
        given, covered: The runs with a figure, and those whose interval contains the truth.
        alarms: The runs that report giants with a share of more than ALARM.
        false: The false ones of these.
        spent: The maximum of read units.
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
        """Return the share of runs with a figure whose interval contains the truth, or 1."""
        return self.covered[name] / self.given[name] if self.given[name] else 1.0


def cell(name: str, budget: float, runs: int, with_gini: bool = False) -> Cell:
    """Return the results of so many runs with one population."""
    table = population(name)
    truth = table.gini() if with_gini else 0.0
    results = Cell()
    first = 10_000 * (1 + list(MAKERS).index(name))
    for run in range(first, first + runs):
        chance = random.Random(run)
        data = sample(table, budget, chance)
        results.runs += 1
        results.spent = max(results.spent, data.rru)
        _note(results, table, data)
        if with_gini:
            results.note("Gini", gini(data.lengths, data.keys, data.item_count, chance), truth)
    return results


def _note(results: Cell, table: Population, data: Sample) -> None:
    results.note("keys", data.keys, table.keys)
    lengths = quantiles(data.lengths, QUANTILES)
    for level, name in QUANTILES.items():
        results.note(name, lengths.get(level), table.quantile(level))
    unseen_share = unseen(data.lengths, data.keys, data.item_count)
    alarm = false = False
    if unseen_share is not None:
        largest = max(length.value for length in data.lengths)
        truth = table.share_from(largest * (1 + 1e-9))
        results.note("unseen", unseen_share, truth)
        alarm = unseen_share.low > ALARM
        false = alarm and truth <= ALARM
    shares = beyond(data.lengths, data.keys, data.item_count)
    if shares:
        threshold, share = max(shares.items(), key=lambda pair: pair[0])
        truth = table.share_from(threshold)
        results.note("giants", share, truth)
        alarm |= share.low > ALARM
        false |= share.low > ALARM and truth <= ALARM
    results.alarms += alarm
    results.false += false


@dataclass(frozen=True)
class Recall:
    """The share of the true ten largest keys that were named, and of intervals with the truth."""

    recall: float
    covered: float
    draws: int


ENTRIES_PER_PAGE = 20
"""The index entries of 200 bytes in a block, which costs 0.5 read units."""

PAGES_PER_SEGMENT = 8


def recall(exponent: float, budget: float, runs: int, keys: int = 200_000, k: int = 10) -> Recall:
    """Measure the recall for a Zipf table, from segments of an index with an unrelated key.

    A segment costs one page more than it fills, for its end.
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
