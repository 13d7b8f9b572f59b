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
from dataclasses import dataclass, field, replace

from keyhop.report.estimate import Estimate
from keyhop.report.facts import CandidateSample
from keyhop.report.statistics.shares import Item, effective, weighted_share, widened
from keyhop.scan.statistics import (
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

    def add(
        self,
        key: str | None,
        weight: float,
        collection: Hashable,
        size: int = 0,
        whole: bool = True,
    ) -> None:
        """Add an item that was read.

        Args:
            key: A digest of the candidate key that the item would have; None if it cannot have it.
            weight: For how many items it stands.
            collection: The collection of which it is.
            size: Its bytes.
            whole: Whether all items of its collection were read.
        """
        one = self.collections.setdefault(collection, _Collection())
        one.items += 1
        one.weight += weight
        one.whole = one.whole and whole and weight == 1.0
        self.items.append(Item(collection, weight, float(key is not None)))
        if key is not None:
            one.keys[key] = one.keys.get(key, 0.0) + weight
            one.counts[key] += 1
            self.units += weight * max(1, math.ceil(size / WRITE_UNIT_BYTES))
            self.covered += weight

    def facts(
        self, fraction: float = 1.0, items: float = 0.0, unrepresented: float = 0.0
    ) -> CandidateSample | None:
        """Return what the items say of the candidate; None if nothing was read.

        Args:
            fraction: The part of the collections that were drawn; 1 for all.
            items: The number of items of the table; 0 if it is not known.
            unrepresented: The share of them for which none of those that were read stands, at most.
                All of these might have one key, or none.
        """
        coverage = weighted_share(self.items, METHOD)
        if coverage is None:
            return None
        largest = self._largest(fraction, len({*self._keys()}))
        effective_keys = self._effective(fraction, items * coverage.value)
        if fraction >= 1 and self._all_whole:
            coverage = Estimate.exactly(coverage.value, len(self.items), "all items")
        elif unrepresented > 0:
            coverage = widened(coverage, unrepresented)
            largest = widened(largest, unrepresented)
            effective_keys = _with_others(effective_keys, unrepresented)
        keys = {*self._keys()}
        n = len(self.items)
        return CandidateSample(
            self.template,
            coverage,
            largest,
            effective_keys,
            Estimate.exactly(len(keys), n, "all items")
            if coverage.level == 1.0
            else Estimate.at_least(len(keys), n, METHOD),
            self.units / self.covered if self.covered else 1.0,
        )

    def _keys(self) -> Iterable[str]:
        return (key for one in self.collections.values() for key in one.keys)

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


def _with_others(effective_keys: Estimate, unrepresented: float) -> Estimate:
    """Return the effective number of keys of all items, if so many of them were not represented.

    They may all have the largest key, or each a key of its own.
    """
    represented = 1 - unrepresented
    least = represented / math.sqrt(effective_keys.low) if effective_keys.low > 0 else math.inf
    return replace(
        effective_keys,
        low=1 / (least + unrepresented) ** 2,
        high=effective_keys.high / represented**2 if represented > 0 else math.inf,
    )


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
