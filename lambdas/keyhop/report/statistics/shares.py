"""Shares of items, and quantiles of their sizes, by items met with unequal chances. Pure.

An item of a window stands for 1/P others. Items of one collection are alike, so what counts as an
observation is the collection: intervals are by a jackknife that leaves out one at a time.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from keyhop.report.estimate import Estimate
from keyhop.scan.statistics import Z, proportion_limits, t_quantile

METHOD = "weighted windows"


@dataclass(frozen=True, slots=True)
class Item:
    """One item that was read. collection: of which it is. weight: for how many items it stands.

    value: 1 or 0 where a share is asked for, else a size.
    """

    collection: Hashable
    weight: float
    value: float


def share_of(count: int, n: int, method: str = "random sample") -> Estimate | None:
    """A share of independent draws, with Clopper and Pearson's limits; None of none."""
    if not n:
        return None
    low, high = proportion_limits(count, n)
    return Estimate(count / n, low, high, n, method)


def effective(weights: Iterable[float]) -> float:
    """As how many equal ones so many weighted observations count (Kish): (sum w)^2 / sum w^2."""
    kept = list(weights)
    squares = sum(weight**2 for weight in kept)
    return sum(kept) ** 2 / squares if squares else 0.0


def weighted_share(items: Sequence[Item], method: str = METHOD) -> Estimate | None:
    """Share of all items for which value is 1, by the items that were met; None of none.

    The effective number of draws is what the jackknife leaves of them, and at most Kish's of the
    collections; Clopper and Pearson's limits for that many (Korn and Graubard 1998).
    """
    sums = _sums((item.collection, item.weight, item.weight * item.value) for item in items)
    whole = sum(weight for weight, _ in sums.values())
    if whole <= 0:
        return None
    hits = sum(hit for _, hit in sums.values())
    share = min(1.0, hits / whole)
    n = effective(weight for weight, _ in sums.values())
    groups = len(sums)
    if groups > 1:
        rest = [(hits - hit) / (whole - weight) for weight, hit in sums.values() if weight < whole]
        variance = (groups - 1) / groups * sum((one - share) ** 2 for one in rest)
        if variance > 0:
            n = min(n, share * (1 - share) / variance * (Z / t_quantile(groups - 1)) ** 2)
    low, high = proportion_limits(share * n, n)
    return Estimate(share, min(low, share), max(high, share), len(items), method)


def widened(share: Estimate, unrepresented: float) -> Estimate:
    """Return a share of all items, made of a share of those for which the sample stands.

    Of the others, which are the part `unrepresented` of all items, nothing is known: none of them
    may belong to the share, or all of them. The value stays.
    """
    represented = 1 - unrepresented
    return replace(
        share, low=share.low * represented, high=share.high * represented + unrepresented
    )


def weighted_mean(items: Sequence[Item]) -> Estimate | None:
    """Return the mean of `value` over the items for which the sample stands; None without items.

    The interval is that of a jackknife that leaves out one collection at a time, and has no upper
    end where there is only one collection.
    """
    sums = _sums((item.collection, item.weight, item.weight * item.value) for item in items)
    whole, total = (math.fsum(one[at] for one in sums.values()) for at in (0, 1))
    if whole <= 0:
        return None
    mean, groups = total / whole, len(sums)
    rest = [(total - part) / (whole - weight) for weight, part in sums.values() if weight < whole]
    if groups < 2 or not rest:
        return Estimate(mean, 0.0, math.inf, len(items), METHOD)
    variance = (groups - 1) / groups * math.fsum((one - mean) ** 2 for one in rest)
    margin = t_quantile(groups - 1) * math.sqrt(variance)
    return Estimate(mean, max(0.0, mean - margin), mean + margin, len(items), METHOD)


def weighted_quantiles(
    items: Sequence[Item], levels: Iterable[float], beyond: int = 10, unrepresented: float = 0.0
) -> dict[float, Estimate]:
    """Return quantiles of `value` over all items.

    The limits of a quantile are the quantiles at the limits of the share that lies below (Woodruff
    1952). A high level with fewer than `beyond` effective draws past it has only its low limit;
    with fewer than one, or of a low level, it is left out. The part `unrepresented` of all items,
    for which the sample does not stand, may lie below all values of the sample, or above them.
    """
    order = sorted(items, key=lambda item: item.value)
    whole = sum(item.weight for item in order)
    found: dict[float, Estimate] = {}
    for level in levels:
        value = _at(order, whole, level)
        share = weighted_share(
            [Item(item.collection, item.weight, float(item.value <= value)) for item in order]
        )
        draws = effective(item.weight for item in order)
        past = draws * min(level, 1 - level) + 1e-9
        if share is None or past < (beyond if level <= 0.5 else 1):
            continue
        represented = 1 - unrepresented
        least = (level - unrepresented) / represented if represented > 0 else 0.0
        most = level / represented if represented > 0 else math.inf
        low = _at(order, whole, max(0.0, least - (share.value - share.low)))
        high = _at(order, whole, min(1.0, most + (share.high - share.value)))
        if unrepresented > 0 and least <= 0:
            low = 0.0
        if past < beyond or most > 1:
            high = math.inf
        found[level] = Estimate(value, min(low, value), max(high, value), len(order), METHOD)
    return found


def _at(order: Sequence[Item], whole: float, level: float) -> float:
    reached = 0.0
    for item in order:
        reached += item.weight
        if reached >= level * whole:
            return item.value
    return order[-1].value if order else math.nan


def _sums(
    weighted: Iterable[tuple[Hashable, float, float]],
) -> Mapping[Hashable, tuple[float, float]]:
    """By collection: weight, and weight of hits."""
    sums: defaultdict[Hashable, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for collection, weight, hit in weighted:
        before, hits = sums[collection]
        sums[collection] = (before + weight, hits + hit)
    return sums
