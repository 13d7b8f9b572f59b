"""What a sample shows of one candidate key: the items that can have it, and its evenness. Pure.

Collections are drawn, each with a chance of `fraction`; an item that was read counts for `weight`
items of its collection. The chance that two items of the table share a key, the sum of all p
squared, has two parts. The part of items in different collections is estimated from the pairs of
drawn collections (a U-statistic). The part of items in one collection is exact if all of it was
read. If only windows of it were read, the part lies between "no two share a key" and "each pair is
as similar as those in its windows": neighbours are more similar than others, so the pairs of a
window give the upper end.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from keyhop.dynamodb.units import WRITE_UNIT_BYTES
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


@dataclass(slots=True)
class _Collection:
    """The items of a collection that were read.

    Attributes:
        whole: Whether all of its items were read.
        items: The number of items that were read.
        weight: The number of items for which they count.
        keys: The weight of each candidate key.
        counts: The number of items that were read with each candidate key.
    """

    whole: bool = True
    items: int = 0
    weight: float = 0.0
    keys: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def covered(self) -> float:
        return sum(self.keys.values())

    def most_seen(self) -> float:
        """Return the number of items that were read with the most frequent key."""
        return max(self.keys.values() if self.whole else self.counts.values(), default=0.0)

    def same(self) -> tuple[float, float, float]:
        """Return the number of ordered pairs of its items with one key: value, low and high.

        Each item also forms a pair with itself.
        """
        maximum = sum(weight**2 for weight in self.keys.values())
        if self.whole:
            return maximum, maximum, maximum
        read, covered = sum(self.counts.values()), self.covered
        if read < 2:
            return covered, covered, maximum
        similarity = sum(count * (count - 1) for count in self.counts.values()) / (
            read * (read - 1)
        )
        return min(maximum, max(covered, covered**2 * similarity)), covered, maximum


@dataclass(slots=True)
class Tally:
    """The tally of one candidate key.

    Keys are given as digests. The tally is dropped with them and with the values.
    """

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
            weight: The number of items for which it counts.
            collection: The collection that contains it.
            size: Its bytes.
            whole: Whether all items of its collection were read.
        """
        entry = self.collections.setdefault(collection, _Collection())
        entry.items += 1
        entry.weight += weight
        entry.whole = entry.whole and whole and weight == 1.0
        self.items.append(Item(collection, weight, float(key is not None)))
        if key is not None:
            entry.keys[key] = entry.keys.get(key, 0.0) + weight
            entry.counts[key] += 1
            self.units += weight * max(1, math.ceil(size / WRITE_UNIT_BYTES))
            self.covered += weight

    def facts(
        self, fraction: float = 1.0, items: float = 0.0, unrepresented: float = 0.0
    ) -> CandidateSample | None:
        """Return what the items show of the candidate; None if nothing was read.

        Args:
            fraction: The part of the collections that was drawn; 1 for all.
            items: The number of items of the table; 0 if it is not known.
            unrepresented: The maximum share of the items that no item of the sample represents. All
                of these might have one key, or none.
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
        return (key for collection in self.collections.values() for key in collection.keys)

    def _largest(self, fraction: float, distinct: int) -> Estimate:
        """Return the share of the largest key.

        A key in several collections is estimated from these. A key in one collection is taken to be
        in no other. The low end allows for the choice of the largest among `distinct` keys, the
        high end for keys that the sample does not contain.
        """
        by_key: defaultdict[str, list[float]] = defaultdict(list)
        for collection in self.collections.values():
            for key, weight in collection.keys.items():
                by_key[key].append(weight)
        total, n = self.covered, len(self.items)
        if not total:
            return Estimate(0.0, 0.0, 1.0, n, METHOD)
        draws = effective(
            collection.covered for collection in self.collections.values() if collection.keys
        )
        spread = {key: sum(weights) / total for key, weights in by_key.items() if len(weights) > 1}
        alone = max((fraction * max(weights) / total for weights in by_key.values()), default=0.0)
        widest = max(spread.values(), default=0.0)
        value = max(alone, widest)
        if fraction >= 1 and self._all_whole:
            return Estimate.exactly(value, n, "all items")
        most_read = max(collection.most_seen() for collection in self.collections.values())
        low = fraction * most_read / total / 2  # the number of items may be wrong by this factor
        if widest >= alone:
            count = widest * draws
            low = beta_quantile(TAIL / max(1, distinct), count, max(1e-9, draws - count + 1))
        highest = max((sum(weights) / total for weights in by_key.values()), default=0.0)
        _, high = proportion_limits(highest * draws, draws)
        return Estimate(value, min(low, value), max(high, value), n, METHOD)

    @property
    def _all_whole(self) -> bool:
        return all(collection.whole for collection in self.collections.values())

    def _effective(self, fraction: float, items: float) -> Estimate:
        """Return the effective number of keys, 1 / sum of p squared.

        The interval is that of a jackknife over collections, and at least as wide as Poisson's for
        the pairs of collections that share a key.
        """
        collections = [collection for collection in self.collections.values() if collection.keys]
        covered, n = self.covered, len(self.items)
        minimum = 1.0 / items if items > 0 else 0.0
        if not covered:
            return Estimate(0.0, 0.0, math.inf, n, METHOD)
        totals = self._totals(collections)
        between = sum(total**2 for total in totals.values())
        between -= sum(
            weight**2 for collection in collections for weight in collection.keys.values()
        )
        within = [collection.same() for collection in collections]
        inside = [sum(each[at] for each in within) for at in range(3)]
        value, low, high = ((max(0.0, between) + fraction * each) / covered**2 for each in inside)
        if fraction >= 1 and self._all_whole:
            return Estimate.exactly(1 / value, n, "all items")
        rest = []
        for collection, same in zip(collections, within, strict=True):
            remaining = covered - collection.covered
            shared = sum(w * (totals[key] - w) for key, w in collection.keys.items())
            if remaining > 0:
                rest.append(
                    (between - 2 * shared + fraction * (inside[0] - same[0])) / remaining**2
                )
        error = t_quantile(len(rest) - 1) * _jackknife(rest)
        draws = effective(collection.covered for collection in collections)
        pairs = draws * (draws - 1) / 2
        shared_pairs = max(0.0, between) / covered**2 * pairs
        low -= error
        few, many = _poisson(shared_pairs)
        if pairs > 0:
            low = min(low, few / pairs)
            high = max(high + error, many / pairs + fraction * inside[2] / covered**2)
        else:
            high = 1.0
        low, value, high = (min(1.0, max(each, minimum, 1e-18)) for each in (low, value, high))
        top = math.inf if low <= 1e-18 else 1 / low
        return Estimate(1 / value, 1 / high, top, n, METHOD)

    def _totals(self, collections: Iterable[_Collection]) -> Mapping[str, float]:
        totals: defaultdict[str, float] = defaultdict(float)
        for collection in collections:
            for key, weight in collection.keys.items():
                totals[key] += weight
        return totals


def _with_others(effective_keys: Estimate, unrepresented: float) -> Estimate:
    """Return the effective number of keys of all items, including those not represented.

    The others may all have the largest key, or each a different key.
    """
    represented = 1 - unrepresented
    largest_share = (
        represented / math.sqrt(effective_keys.low) if effective_keys.low > 0 else math.inf
    )
    return replace(
        effective_keys,
        low=1 / (largest_share + unrepresented) ** 2,
        high=effective_keys.high / represented**2 if represented > 0 else math.inf,
    )


def _jackknife(rest: list[float]) -> float:
    """Return the standard error from the values that each leave one collection out."""
    n = len(rest)
    if n < 2:
        return math.inf
    mean = sum(rest) / n
    return math.sqrt((n - 1) / n * sum((value - mean) ** 2 for value in rest))


def _poisson(count: float) -> tuple[float, float]:
    """Return 95 % limits of a mean from a count, by Byar's approximation."""
    if count <= 0:
        return 0.0, 3.689
    low = count * (1 - 1 / (9 * count) - 1.96 / (3 * math.sqrt(count))) ** 3
    more = count + 1
    return max(0.0, low), more * (1 - 1 / (9 * more) + 1.96 / (3 * math.sqrt(more))) ** 3
