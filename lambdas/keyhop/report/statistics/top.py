"""The largest collections, by draws that meet a collection as often as it has items. Pure.

Collections drawn uniformly never find giants. Items drawn uniformly do: random segments of an index
of an unrelated key, records of a stream (there: written, not stored). A key's hits among the draws
are its share.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from keyhop.report.estimate import Estimate
from keyhop.scan.statistics import proportion_limits

K = TypeVar("K", bound=Hashable)

METHOD = "size-biased draws"
FEWEST = 3
"""Hits from which a key counts as found: two may be chance among many small keys."""


@dataclass(frozen=True, slots=True)
class Ranked(Generic[K]):
    """A key, and its share of all items."""

    key: K
    share: Estimate


def top(draws: Sequence[Sequence[K]], k: int, method: str = METHOD) -> list[Ranked[K]]:
    """The k keys with most hits, the largest first; none without draws: that is to be said.

    draws: partition keys of the table, by cluster (page or segment): draws of one are dependent if
    the index's key is related to the table's, so shares are spread by as much as clusters differ.
    """
    total = sum(map(len, draws))
    hits = Counter(key for cluster in draws for key in cluster)
    by_cluster = [Counter(cluster) for cluster in draws]
    ranked = []
    for key, count in hits.most_common(k):
        if count < FEWEST:
            break
        n = total / _design_effect([one[key] for one in by_cluster], list(map(len, draws)))
        share = count / total
        low, high = proportion_limits(share * n, n)
        ranked.append(Ranked(key, Estimate(share, low, high, total, method)))
    return ranked


def _design_effect(hits: Sequence[int], sizes: Sequence[int]) -> float:
    """By how much clusters inflate a share's variance (ratio estimator); 1 at least."""
    clusters, total = len(sizes), sum(sizes)
    share = sum(hits) / total
    if clusters < 2 or not 0 < share < 1:
        return 1.0
    squares = sum((hit - share * size) ** 2 for hit, size in zip(hits, sizes, strict=True))
    variance = clusters / (clusters - 1) * squares / total**2
    return max(1.0, variance / (share * (1 - share) / total)) if math.isfinite(variance) else 1.0
