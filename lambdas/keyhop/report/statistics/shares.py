"""Shares of items, quantiles of their sizes and the largest collections, from sampled items.

An item of a window represents 1/P items. Items of one collection are alike, so an observation is a
collection: intervals are by a jackknife that leaves out one collection at a time.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from keyhop.report.estimate import Estimate
from keyhop.scan.statistics import Z, proportion_limits, t_quantile

METHOD = "weighted windows"

FEWEST = 3
"""The hits from which a key counts as found: two may be chance among many small keys."""

K = TypeVar("K", bound=Hashable)


class Item(NamedTuple):
    """One item that was read.

    Attributes:
        collection: Its collection.
        weight: The number of items that it represents.
        value: 1 or 0 for a share, otherwise a size.
    """

    collection: Hashable
    weight: float
    value: float


def share_of(count: int, n: int, method: str = "random sample") -> Estimate | None:
    """Return a share of independent draws, with limits by Clopper and Pearson; None for 0 draws."""
    if not n:
        return None
    low, high = proportion_limits(count, n)
    return Estimate(count / n, low, high, n, method)


def effective(weights: Iterable[float]) -> float:
    """Return the number of equal observations that are worth as much as these weighted ones.

    By Kish: (sum w)^2 / sum w^2.
    """
    terms = list(weights)
    squares = sum(weight**2 for weight in terms)
    return sum(terms) ** 2 / squares if squares else 0.0


def weighted_share(items: Sequence[Item], method: str = METHOD) -> Estimate | None:
    """Return the share of all items for which `value` is 1; None without items.

    The effective number of draws is the jackknife's, and at most Kish's of the collections. The
    limits are Clopper and Pearson's for that number (Korn and Graubard 1998).
    """
    return share_of_sums(_sums(items).values(), len(items), method)


def share_of_sums(
    sums: Collection[Sequence[float]], n_items: int, method: str = METHOD
) -> Estimate | None:
    """Return `weighted_share` from the weight, and the weight of the hits, of each collection."""
    total = sum(weight for weight, _ in sums)
    if total <= 0:
        return None
    hits = sum(hit for _, hit in sums)
    share = min(1.0, hits / total)
    n = effective(weight for weight, _ in sums)
    groups = len(sums)
    if groups > 1:
        rest = [(hits - hit) / (total - weight) for weight, hit in sums if weight < total]
        variance = (groups - 1) / groups * sum((part - share) ** 2 for part in rest)
        if variance > 0:
            n = min(n, share * (1 - share) / variance * (Z / t_quantile(groups - 1)) ** 2)
    low, high = proportion_limits(share * n, n)
    return Estimate(share, min(low, share), max(high, share), n_items, method)


def widened(share: Estimate, unrepresented: float) -> Estimate:
    """Return a share of all items, from a share of the items that the sample represents.

    Nothing is known about the part `unrepresented` of all items: none of them may belong to the
    share, or all of them. The value stays.
    """
    represented = 1 - unrepresented
    return replace(
        share, low=share.low * represented, high=share.high * represented + unrepresented
    )


def weighted_mean(items: Sequence[Item]) -> Estimate | None:
    """Return the mean of `value` over the items that the sample represents; None without items.

    The interval is that of a jackknife that leaves out one collection at a time, and has no upper
    end where there is only one collection.
    """
    sums = _sums(items)
    total = math.fsum(weight for weight, _ in sums.values())
    values = math.fsum(value for _, value in sums.values())
    if total <= 0:
        return None
    mean, groups = values / total, len(sums)
    rest = [(values - part) / (total - weight) for weight, part in sums.values() if weight < total]
    if groups < 2 or not rest:
        return Estimate(mean, 0.0, math.inf, len(items), METHOD)
    variance = (groups - 1) / groups * math.fsum((part - mean) ** 2 for part in rest)
    margin = t_quantile(groups - 1) * math.sqrt(variance)
    return Estimate(mean, max(0.0, mean - margin), mean + margin, len(items), METHOD)


def weighted_quantiles(
    items: Sequence[Item], levels: Iterable[float], beyond: int = 10, unrepresented: float = 0.0
) -> dict[float, Estimate]:
    """Return quantiles of `value` over all items.

    The limits of a quantile are the quantiles at the limits of the share that lies below (Woodruff
    1952). A high level with fewer than `beyond` effective draws past it has only its low limit. It
    is omitted with fewer than one draw, and so is a low level with fewer than `beyond`. The part
    `unrepresented` of all items may lie below all values of the sample, or above them.
    """
    order = sorted(items, key=lambda item: item.value)
    total = sum(item.weight for item in order)
    results: dict[float, Estimate] = {}
    for level in levels:
        value = _at(order, total, level)
        share = weighted_share(
            [Item(item.collection, item.weight, float(item.value <= value)) for item in order]
        )
        draws = effective(item.weight for item in order)
        past = draws * min(level, 1 - level) + 1e-9
        if share is None or past < (beyond if level <= 0.5 else 1):
            continue
        represented = 1 - unrepresented
        lowest = (level - unrepresented) / represented if represented > 0 else 0.0
        highest = level / represented if represented > 0 else math.inf
        low = _at(order, total, max(0.0, lowest - (share.value - share.low)))
        high = _at(order, total, min(1.0, highest + (share.high - share.value)))
        if unrepresented > 0 and lowest <= 0:
            low = 0.0
        if past < beyond or highest > 1:
            high = math.inf
        results[level] = Estimate(value, min(low, value), max(high, value), len(order), METHOD)
    return results


def _at(order: Sequence[Item], total: float, level: float) -> float:
    reached = 0.0
    for item in order:
        reached += item.weight
        if reached >= level * total:
            return item.value
    return order[-1].value if order else math.nan


def _sums(items: Iterable[Item]) -> Mapping[Hashable, Sequence[float]]:
    """Return the weight and the weighted value of each collection."""
    sums: dict[Hashable, list[float]] = {}
    for collection, weight, value in items:
        if (known := sums.get(collection)) is None:
            sums[collection] = [weight, weight * value]
        else:
            known[0] += weight
            known[1] += weight * value
    return sums


def top(draws: Sequence[Sequence[K]], k: int, method: str) -> dict[K, Estimate]:
    """Return the shares of the k keys with the most hits, the largest first.

    Collections drawn uniformly never include giants. Items drawn uniformly do: random segments of
    an index with an unrelated key, or the records of a stream (where the shares are of writes, not
    of stored items). A key's hits among the draws are its share.

    Args:
        draws: Partition keys of the table, by cluster (page or segment). The draws of one cluster
            are dependent if the index's key is related to the table's, so the intervals are wider
            by as much as the clusters differ.
        k: The number of keys.
        method: The method of the estimates.
    """
    total = sum(map(len, draws))
    hits = Counter(key for cluster in draws for key in cluster)
    by_cluster = [Counter(cluster) for cluster in draws]
    ranked: dict[K, Estimate] = {}
    for key, count in hits.most_common(k):
        if count < FEWEST:
            break
        n = total / _design_effect([cluster[key] for cluster in by_cluster], list(map(len, draws)))
        share = count / total
        low, high = proportion_limits(share * n, n)
        ranked[key] = Estimate(share, low, high, total, method)
    return ranked


def _design_effect(hits: Sequence[int], sizes: Sequence[int]) -> float:
    """Return how much clusters inflate a share's variance, by the ratio estimator; at least 1."""
    clusters, total = len(sizes), sum(sizes)
    share = sum(hits) / total
    if clusters < 2 or not 0 < share < 1:
        return 1.0
    squares = sum((hit - share * size) ** 2 for hit, size in zip(hits, sizes, strict=True))
    variance = clusters / (clusters - 1) * squares / total**2
    return max(1.0, variance / (share * (1 - share) / total)) if math.isfinite(variance) else 1.0
