"""What a sample says of one candidate key: who could have it, and how even it would be. Pure.

What is drawn are collections, each with a chance of `fraction`; an item that was read stands for
`weight` items of its collection. The chance that two items of the table share a key, the sum of
all p squared, has two parts. Items of different collections: by the pairs of collections that were
drawn (a U-statistic). Items of one collection: known if it was read whole. Of one that was read in
windows it lies between "no two share a key" and "all are as those of its windows": neighbours are
more alike than others, so the pairs of a window say the most that it can be.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from keyhop.report.estimate import Estimate
from keyhop.report.facts import CandidateSample
from keyhop.report.statistics.shares import Item, effective, weighted_share
from keyhop.scan.distributions import (
    TAIL,
    beta_quantile,
    proportion_limits,
    t_quantile,
)

METHOD = "sampled collections"
WRITE_UNIT_BYTES = 1024


@dataclass(slots=True)
class _Collection:
    """keys: of those that can have one, to weight. pairs: the same, in items read."""

    whole: bool = True
    items: int = 0
    weight: float = 0.0
    keys: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def covered(self) -> float:
        return sum(self.keys.values())

    def most_seen(self) -> float:
        """Items that were seen with one key."""
        return max(self.keys.values() if self.whole else self.counts.values(), default=0.0)

    def same(self) -> tuple[float, float, float]:
        """Ordered pairs of its items with one key, each with itself too: value, least, most."""
        most = sum(weight**2 for weight in self.keys.values())
        if self.whole:
            return most, most, most
        read, covered = sum(self.counts.values()), self.covered
        if read < 2:
            return covered, covered, most
        alike = sum(count * (count - 1) for count in self.counts.values()) / (read * (read - 1))
        return min(most, max(covered, covered**2 * alike)), covered, most


@dataclass(slots=True)
class Tally:
    """Of one candidate. Keys are taken as digests; neither they nor values are kept after it."""

    template: str
    collections: dict[Hashable, _Collection] = field(default_factory=dict)
    units: float = 0.0
    covered: float = 0.0
    items: list[Item] = field(default_factory=list)

    def add(self, key: str | None, weight: float, collection: Hashable, size: int = 0) -> None:
        """An item. key: a digest of the one that it would have, None if it cannot. size: bytes."""
        one = self.collections.setdefault(collection, _Collection())
        one.items += 1
        one.weight += weight
        one.whole = one.whole and weight == 1.0
        self.items.append(Item(collection, weight, float(key is not None)))
        if key is not None:
            one.keys[key] = one.keys.get(key, 0.0) + weight
            one.counts[key] += 1
            self.units += weight * max(1, math.ceil(size / WRITE_UNIT_BYTES))
            self.covered += weight

    def facts(self, fraction: float = 1.0, items: float = 0.0) -> CandidateSample | None:
        """fraction: of the collections, that were drawn; 1 for all. items: of the table, if known.
        None if nothing was read.
        """
        coverage = weighted_share(self.items, METHOD)
        if coverage is None:
            return None
        if fraction >= 1 and all(one.whole for one in self.collections.values()):
            coverage = Estimate.exactly(coverage.value, len(self.items), "all items")
        keys = {key for one in self.collections.values() for key in one.keys}
        n = len(self.items)
        return CandidateSample(
            self.template,
            coverage,
            self._largest(fraction, len(keys)),
            self._effective(fraction, items * coverage.value),
            Estimate.exactly(len(keys), n, "all items")
            if coverage.level == 1.0
            else Estimate.at_least(len(keys), n, METHOD),
            self.units / self.covered if self.covered else 1.0,
        )

    def _largest(self, fraction: float, distinct: int) -> Estimate:
        """Of keys seen in several collections by these; of one seen in one, as if it had no more.

        The low end allows for the choice of the largest among `distinct`; the high one for keys
        that nobody has seen.
        """
        by_key: defaultdict[str, list[float]] = defaultdict(list)
        for one in self.collections.values():
            for key, weight in one.keys.items():
                by_key[key].append(weight)
        whole, n = self.covered, len(self.items)
        if not whole:
            return Estimate(0.0, 0.0, 1.0, n, METHOD)
        draws = effective(one.covered for one in self.collections.values() if one.keys)
        spread = {key: sum(ones) / whole for key, ones in by_key.items() if len(ones) > 1}
        alone = max((fraction * max(ones) / whole for ones in by_key.values()), default=0.0)
        widest = max(spread.values(), default=0.0)
        value = max(alone, widest)
        if fraction >= 1 and self._all_whole:
            return Estimate.exactly(value, n, "all items")
        seen = max(one.most_seen() for one in self.collections.values())
        low = fraction * seen / whole / 2  # so far may the number of items be wrong
        if widest >= alone:
            count = widest * draws
            low = beta_quantile(TAIL / max(1, distinct), count, max(1e-9, draws - count + 1))
        most = max((sum(ones) / whole for ones in by_key.values()), default=0.0)
        _, high = proportion_limits(most * draws, draws)
        return Estimate(value, min(low, value), max(high, value), n, METHOD)

    @property
    def _all_whole(self) -> bool:
        return all(one.whole for one in self.collections.values())

    def _effective(self, fraction: float, items: float) -> Estimate:
        """1 / sum of p squared. The interval: a jackknife over collections, at least as wide as
        Poisson's for the pairs of collections that share a key.
        """
        drawn = [one for one in self.collections.values() if one.keys]
        whole, n = self.covered, len(self.items)
        least = 1.0 / items if items > 0 else 0.0
        if not whole:
            return Estimate(0.0, 0.0, math.inf, n, METHOD)
        totals = self._totals(drawn)
        between = sum(total**2 for total in totals.values())
        between -= sum(weight**2 for one in drawn for weight in one.keys.values())
        within = [one.same() for one in drawn]
        inside = [sum(each[at] for each in within) for at in range(3)]
        value, low, high = ((max(0.0, between) + fraction * each) / whole**2 for each in inside)
        if fraction >= 1 and self._all_whole:
            return Estimate.exactly(1 / value, n, "all items")
        rest = []
        for one, same in zip(drawn, within, strict=True):
            left = whole - one.covered
            shared = sum(w * (totals[key] - w) for key, w in one.keys.items())
            if left > 0:
                rest.append((between - 2 * shared + fraction * (inside[0] - same[0])) / left**2)
        error = t_quantile(len(rest) - 1) * _jackknife(rest)
        draws = effective(one.covered for one in drawn)
        pairs = draws * (draws - 1) / 2
        met = max(0.0, between) / whole**2 * pairs
        low -= error
        few, many = _poisson(met)
        if pairs > 0:
            low = min(low, few / pairs)
            high = max(high + error, many / pairs + fraction * inside[2] / whole**2)
        else:
            high = 1.0
        low, value, high = (min(1.0, max(each, least, 1e-18)) for each in (low, value, high))
        top = math.inf if low <= 1e-18 else 1 / low
        return Estimate(1 / value, 1 / high, top, n, METHOD)

    def _totals(self, drawn: Iterable[_Collection]) -> Mapping[str, float]:
        totals: defaultdict[str, float] = defaultdict(float)
        for one in drawn:
            for key, weight in one.keys.items():
                totals[key] += weight
        return totals


def _jackknife(rest: list[float]) -> float:
    """The standard error, of the values without one at a time."""
    n = len(rest)
    if n < 2:
        return math.inf
    mean = sum(rest) / n
    return math.sqrt((n - 1) / n * sum((one - mean) ** 2 for one in rest))


def _poisson(met: float) -> tuple[float, float]:
    """95 % limits of the mean of which `met` were seen, by Byar's approximation."""
    if met <= 0:
        return 0.0, 3.689
    low = met * (1 - 1 / (9 * met) - 1.96 / (3 * math.sqrt(met))) ** 3
    more = met + 1
    return max(0.0, low), more * (1 - 1 / (9 * more) + 1.96 / (3 * math.sqrt(more))) ** 3
