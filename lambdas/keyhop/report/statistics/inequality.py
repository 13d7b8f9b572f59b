"""How unequal collections are: Lorenz curve and Gini coefficient, what was not seen last. Pure."""

import random
from collections.abc import Sequence
from itertools import pairwise

from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import BEYOND, is_cut, without_noise
from keyhop.scan.statistics import TAIL, Z

POINTS = 100
ROUNDS = 120
NOISIER = 1.25
"""How far the noise of measured lengths may be from what their windows say of it."""

METHOD = "random segments against ItemCount"

Point = tuple[float, float]


def lorenz(lengths: Sequence[Estimate], keys: Estimate, item_count: float) -> list[Point]:
    """Points (share of keys, share of items) from (0, 0) to (1, 1), the smallest collections first.

    What the sampled collections leave of item_count is in a few that nobody sampled: it is the
    jump at the end. At most about 100 points; none where a collection was cut.
    """
    if not lengths or any(map(is_cut, lengths)):
        return []
    return _curve(without_noise(lengths), _seen(lengths, keys.value, item_count))


def gini(
    lengths: Sequence[Estimate], keys: Estimate, item_count: float, chance: random.Random
) -> Estimate | None:
    """0 where all collections are equal, near 1 where one has all; None of fewer than 10 lengths or
    if one was cut. The interval is by the bootstrap of lengths and of the number of keys.
    """
    if len(lengths) < BEYOND or any(map(is_cut, lengths)):
        return None
    seen, error = _seen(lengths, keys.value, item_count), (keys.high - keys.low) / (2 * Z)
    value, more, less = (
        _gini(_curve(without_noise(lengths, times), seen)) for times in (1.0, NOISIER, 1 / NOISIER)
    )
    pairs = list(zip(without_noise(lengths), lengths, strict=True))
    drawn = []
    for _ in range(ROUNDS):
        again = chance.choices(pairs, k=len(pairs))
        count = max(1.0, chance.gauss(keys.value, error))
        seen = _seen([raw for _, raw in again], count, item_count)
        drawn.append(_gini(_curve([length for length, _ in again], seen)))
    drawn.sort()
    low = drawn[int(TAIL * ROUNDS)] - max(0.0, value - more)
    high = drawn[-1 - int(TAIL * ROUNDS)] + max(0.0, less - value)
    return Estimate(value, max(0.0, min(low, value)), max(high, value), len(lengths), METHOD)


def _seen(lengths: Sequence[Estimate], keys: float, item_count: float) -> float:
    """Share of all items in collections like those that were sampled."""
    if item_count <= 0:
        return 1.0
    return min(1.0, keys * sum(one.value for one in lengths) / len(lengths) / item_count)


def _curve(lengths: Sequence[float], seen: float) -> list[Point]:
    ordered, n, total = sorted(lengths), len(lengths), sum(lengths)
    if total <= 0:
        return []
    step = max(1, n // POINTS)
    points = [(0.0, 0.0)]
    reached = 0.0
    for at, length in enumerate(ordered, 1):
        reached += length
        if at % step == 0 or at == n:
            points.append((at / n, seen * reached / total))
    if seen < 1:
        points.append((1.0, 1.0))
    return points


def _gini(points: Sequence[Point]) -> float:
    area = sum((x - before) * (y + under) / 2 for (before, under), (x, y) in pairwise(points))
    return max(0.0, 1 - 2 * area)
