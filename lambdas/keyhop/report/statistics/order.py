"""Rank correlations, samples of a stream for them, and the density of numeric keys."""

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from keyhop.report.estimate import Estimate
from keyhop.scan.statistics import Z

FEWEST = 5

T = TypeVar("T")


class Reservoir(list[T]):
    """A uniform sample of at most `maximum` of the values that were offered."""

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum, self._offered = maximum, 0
        self._random = Random(0)  # the same values lead to the same sample

    def offer(self, value: T) -> None:
        """Add a value to the sample, or replace a random one by it, or drop it."""
        self._offered += 1
        if len(self) < self._maximum:
            self.append(value)
        elif (slot := self._random.randrange(self._offered)) < self._maximum:
            self[slot] = value


def kendall(xs: Sequence[float], ys: Sequence[float]) -> Estimate | None:
    """Return Kendall's tau-b of pairs, with Fieller's interval (1957).

    The result is None for fewer than 5 pairs, or if one side does not vary.
    """
    n = len(xs)
    if n < FEWEST:
        return None
    pairs = n * (n - 1) / 2
    tied_x, tied_y = _tied(xs), _tied(ys)
    both = _tied(list(zip(xs, ys, strict=True)))
    room = math.sqrt((pairs - tied_x) * (pairs - tied_y))
    if not room:
        return None
    concordant = pairs - tied_x - tied_y + both - 2 * _discordant(xs, ys)
    return _correlation(concordant / room, n, math.sqrt(0.437 / (n - 4)), "Kendall's tau")


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Estimate | None:
    """Return Spearman's rho, with the interval of Bonett and Wright (2000); None as `kendall`."""
    n = len(xs)
    if n < FEWEST:
        return None
    rho = _pearson(_ranks(xs), _ranks(ys))
    if rho is None:
        return None
    return _correlation(rho, n, math.sqrt((1 + rho**2 / 2) / (n - 3)), "Spearman's rho")


def density(numbers: Sequence[int], keys: Estimate) -> Estimate | None:
    """Return the density of numeric keys: keys / (maximum - minimum + 1).

    It is 1 if each number is used, and more if each is used by several keys, as the days of a month
    or the numbers of shards are. The range is a little wider than the sample's: by one gap on each
    side. The result is None for fewer than 5 numbers.

    Args:
        numbers: The numbers of a random sample of the keys.
        keys: The number of keys.
    """
    n = len(numbers)
    if n < FEWEST:
        return None
    sampled = max(numbers) - min(numbers)
    missing = 2 * sampled / (n - 1) * max(0.0, 1 - n / max(1.0, keys.value))
    span = sampled + missing + 1
    return Estimate(
        value=keys.value / span,
        low=keys.low / (span + 2 * missing),
        high=keys.high / (sampled + 1),
        n=n,
        method="numbers of sampled keys",
    )


def _correlation(value: float, n: int, error: float, method: str) -> Estimate:
    """Return a correlation with its interval by Fisher's transformation."""
    middle = math.atanh(min(1 - 1e-9, max(-1 + 1e-9, value)))
    low, high = math.tanh(middle - Z * error), math.tanh(middle + Z * error)
    return Estimate(value, min(low, value), max(high, value), n, method)


def _discordant(xs: Sequence[float], ys: Sequence[float]) -> int:
    """Return the number of pairs in which x grows and y falls."""
    before: list[float] = []
    count = 0
    for _, y in sorted(zip(xs, ys, strict=True)):
        count += len(before) - bisect_right(before, y)
        insort(before, y)
    return count


def _tied(values: Sequence[object]) -> float:
    return sum(count * (count - 1) / 2 for count in Counter(values).values())


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for at in order[start:end]:
            ranks[at] = (start + end - 1) / 2
        start = end
    return ranks


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    product = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    room = math.sqrt(sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys))
    return product / room if room else None
