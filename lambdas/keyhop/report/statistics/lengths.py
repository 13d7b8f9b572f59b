"""Items per collection: quantiles over collections, each of which has the same chance. Pure.

A length is an Estimate: exact (counted), measured (by windows, report/statistics/window.py), or cut
(`at_least`: it may be any length from there on).
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from keyhop.report.estimate import Estimate
from keyhop.scan.statistics import Z, rank_limits

BEYOND = 10
"""So many sampled collections must lie beyond a quantile, or nothing is said of it."""

MARGIN = 1.25
"""Measured lengths are good for no better than this factor, whatever their number."""

METHOD = "random segments, order statistics"


@dataclass(frozen=True, slots=True)
class Measured(Estimate):
    """A length by windows. error: the square of its relative error, by what its windows differ.

    One such square says little; the mean over many collections is what measuring adds to the spread
    of lengths.
    """

    error: float = 0.0

    def scaled(self, factor: float) -> "Measured":
        """The same of another unit; factor > 0. The relative error stays."""
        low, high = self.low * factor, self.high * factor
        return replace(self, value=self.value * factor, low=low, high=high)


def is_cut(length: Estimate) -> bool:
    """Whether nothing is known but that the collection has at least so many."""
    return math.isinf(length.high)


def is_measured(length: Estimate) -> bool:
    """Whether it was estimated, and not counted."""
    return not is_cut(length) and length.high > length.low


def quantiles(lengths: Sequence[Estimate], levels: Iterable[float]) -> dict[float, Estimate]:
    """Of items per collection. A level of which too little was seen is left out.

    Where a quantile falls among collections that were cut it is `at least`: its high is infinite.
    """
    known = without_noise(lengths)
    order = sorted(range(len(lengths)), key=lambda at: (known[at], is_cut(lengths[at])))
    least = [known[at] for at in order]
    most = sorted(math.inf if is_cut(lengths[at]) else known[at] for at in order)
    margin = MARGIN if any(map(is_measured, lengths)) else 1.0
    n = len(lengths)
    found: dict[float, Estimate] = {}
    for level in levels:
        if n * min(level, 1 - level) < BEYOND - 1e-9:
            continue
        low, high = rank_limits(n, level)
        at = min(n - 1, int(n * level))
        value = least[at]
        bottom = least[low - 1] if low else 0.0
        top = most[high - 1] if high <= n else math.inf
        found[level] = Estimate(
            value=value,
            low=min(bottom, value / margin),
            high=max(top, value * margin),
            n=n,
            method=METHOD,
        )
    return found


def without_noise(lengths: Sequence[Estimate], times: float = 1.0) -> list[float]:
    """The lengths, with the spread that measuring added to them taken out again.

    The logarithms of measured lengths are drawn towards their median, until they vary by as much
    as is left when the mean square of their own errors (so many `times`) is taken off. A measured
    length is right on average, so its median is half that square too low. Others stay.
    """
    measured = [one for one in lengths if is_measured(one) and one.value > 0]
    if len(measured) < BEYOND:
        return [one.value for one in lengths]
    logs = [math.log(one.value) for one in measured]
    noise = times * statistics.fmean(map(error_of, measured))
    spread = statistics.pvariance(logs)
    kept = math.sqrt(max(0.0, 1 - noise / spread)) if spread > 0 else 1.0
    middle = statistics.median(logs)
    return [
        math.exp(middle + noise / 2 + kept * (math.log(one.value) - middle))
        if is_measured(one) and one.value > 0
        else one.value
        for one in lengths
    ]


def error_of(length: Estimate) -> float:
    """Return the variance of a measured length's logarithm; without one, by its interval."""
    if isinstance(length, Measured):
        return length.error
    return (math.log(max(1.0, length.high / max(1.0, length.low))) / (2 * Z)) ** 2
