"""Shares, and how rules compare them with a threshold. Pure."""

import math

from keyhop.report.estimate import Estimate
from keyhop.report.facts import SampleFacts
from keyhop.report.findings import Evidence, Origin, Price
from keyhop.report.statistics import shares as statistics

MORE = 4
"""The factor of units that halves an interval."""


def share_of(hits: float, n: int, method: str) -> Estimate:
    """Return a share of n > 0 observations, with its interval."""
    share = statistics.share_of(round(min(hits, n)), n, method)
    if share is None:
        raise ValueError("a share of nothing")
    return share


def evidence(
    origin: Origin,
    signal: str,
    estimate: Estimate,
    threshold: float | None = None,
    *,
    window: float | None = None,
    rru: float = 0.0,
    where: str = "",
) -> Evidence:
    """Return an estimate as evidence."""
    return Evidence(
        origin,
        signal,
        estimate.value,
        estimate.low,
        None if math.isinf(estimate.high) else estimate.high,
        threshold,
        window,
        estimate.n,
        rru,
        where,
    )


def percent(share: float) -> str:
    """Write a share as a percentage (0.4 as 40 %), small ones with one more digit."""
    if 0 < share < 0.0995:
        return f"{share * 100:.1f} %"
    return f"{share * 100:.0f} %"


def interval(estimate: Estimate) -> str:
    """Write a share with its interval, such as `80 % [76, 84]`."""
    if estimate.low == estimate.high:
        return percent(estimate.value)
    digits = 1 if estimate.high < 0.0995 else 0
    low, high = estimate.low * 100, estimate.high * 100
    return f"{percent(estimate.value)} [{low:.{digits}f}, {high:.{digits}f}]"


def more(sample: SampleFacts, rru: float) -> Price:
    """Return the price of an answer that the sample could not give.

    Where all partition keys have been found already, a sample with more read units reads no more
    until it has enough of them to read every item.

    Args:
        sample: The sample without an answer.
        rru: The read units that the rule needs in a usual table.
    """
    if sample.all_items:
        return Price(0.0, "nothing: all of the table was read")
    units = math.ceil(max(rru, MORE * sample.rru))
    if sample.all_keys:
        units = max(units, math.ceil(sample.all_units))
    return Price(units, f"--max-read-units {units}")
