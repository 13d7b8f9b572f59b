"""How much of a table is in collections that no sample found: the complement. Pure.

ItemCount counts all items, a sample of collections only those that it meets. What the sampled
collections, each standing for as many as it does, leave of ItemCount is in larger ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import BEYOND, is_cut, is_measured
from keyhop.scan.statistics import Z

LOUDEST = 0.06
"""If one sampled collection is more than this of the mass below, nothing is said: the next sample
might have met another such one, or none. At a tenth, intervals of heavy tails held the truth in
nine of ten samples only."""

BLUR = 1.5
"""A measured length may lie on the wrong side of a threshold: the interval is that of thresholds
from one such factor below it to one above."""

LADDER = tuple(float(base * 10**power) for power in range(1, 13) for base in (1, 2, 5))
"""Thresholds are not chosen by the data: that would choose by what chance has put in the sample."""

STALE = 1.1
"""ItemCount is up to six hours old. Where a sample shows so many times as many items, it is too old
to say how many were not seen."""

METHOD = "complement against ItemCount"


@dataclass(frozen=True, slots=True)
class Unseen:
    """share: of all items, in collections larger than `largest`, which is the largest sampled."""

    share: Estimate
    largest: float


def unseen(
    lengths: Sequence[Estimate], keys: Estimate, item_count: float, drift: float = 0.0
) -> Unseen | None:
    """What is in collections larger than all that were sampled; None where that must be silence.

    lengths: of collections drawn uniformly. item_count: as the table reports it. drift: items that
    may have come or gone since it was counted. None too if a collection was cut.
    """
    if len(lengths) < BEYOND or any(map(is_cut, lengths)):
        return None
    largest = max(one.value for one in lengths)
    share = _complement([one.value for one in lengths], keys, item_count, drift)
    return Unseen(share, largest) if share is not None else None


def share_beyond(
    lengths: Sequence[Estimate],
    keys: Estimate,
    item_count: float,
    threshold: float,
    drift: float = 0.0,
) -> Estimate | None:
    """Share of all items in collections of at least `threshold` items; None where nothing can be
    said. Collections that were cut need to have been cut at the threshold or above.
    """
    if len(lengths) < BEYOND:
        return None
    measured = any(map(is_measured, lengths))
    shares = []
    for at in (threshold, threshold / BLUR, threshold * BLUR) if measured else (threshold,):
        if any(is_cut(one) and one.value < at for one in lengths):
            return None
        below = [one.value if one.value < at else 0.0 for one in lengths]
        share = _complement(below, keys, item_count, drift)
        if share is None:
            return None
        shares.append(share)
    return Estimate(
        value=shares[0].value,
        low=min(share.low for share in shares),
        high=max(share.high for share in shares),
        n=len(lengths),
        method=METHOD,
    )


@dataclass(frozen=True, slots=True)
class Giants:
    """share: of all items, in collections of `threshold` items or more. sampled: how many of the
    collections that were sampled are among these.
    """

    share: Estimate
    threshold: float
    sampled: int


def giants(
    lengths: Sequence[Estimate], keys: Estimate, item_count: float, drift: float = 0.0
) -> Giants | None:
    """The share in collections that are as large as can be spoken of: above all that were sampled,
    or, where few of these outweigh the others, from a lower step of `LADDER` on.
    """
    top = max((one.value for one in lengths), default=0.0)
    above = next((step for step in LADDER if step > top * BLUR), None)
    for step in reversed(LADDER):
        if above is None or step > above:
            continue
        share = share_beyond(lengths, keys, item_count, step, drift)
        if share is not None:
            return Giants(share, step, sum(1 for one in lengths if one.value >= step))
    return None


def beyond(
    lengths: Sequence[Estimate], keys: Estimate, item_count: float, drift: float = 0.0
) -> dict[float, Estimate]:
    """share_beyond of each step of `LADDER` up to one that is above all, as far as it speaks."""
    found: dict[float, Estimate] = {}
    top = max((one.value for one in lengths), default=0.0)
    for step in LADDER:
        share = share_beyond(lengths, keys, item_count, step, drift)
        if share is not None:
            found[step] = share
        if step > top * BLUR:
            break
    return found


def unrepresented(
    weights: Sequence[float], errors: Sequence[float], keys: Estimate, item_count: float
) -> Estimate:
    """Return the share of all items for which no item of a sample stands.

    Unlike `unseen` it always says something, as the intervals of all shares of items depend on it:
    where the sample bounds nothing, its upper end is 1.

    Args:
        weights: Of each sampled collection, for how many items those that were read stand. The
            collections were drawn uniformly.
        errors: Of each, the square of the relative error of its weight; 0 if it was counted.
        keys: The number of collections of the table.
        item_count: The number of items that the table reports; 0 if it is not known.
    """
    n = len(weights)
    if not n or item_count <= 0:
        return Estimate(0.0, 0.0, 1.0, n, METHOD)
    pairs = sorted(zip(weights, errors, strict=True))
    total, loud = math.fsum(weights), 0
    # A collection that outweighs the others stands for itself alone: another sample meets none.
    while loud < n and n < keys.value and pairs[n - loud - 1][0] > LOUDEST * total:
        total -= pairs[n - loud - 1][0]
        loud += 1
    rest = [weight for weight, _ in pairs[: n - loud]]
    others = max(0.0, keys.value - loud)
    mass = variance = 0.0
    if len(rest) > 1:
        mean = math.fsum(rest) / len(rest)
        mass = mean * others
        chance = max(0.0, 1 - len(rest) / max(1.0, others))
        spread = math.fsum((one - mean) ** 2 for one in rest) / (len(rest) - 1) / len(rest)
        variance += chance * spread * others**2
        variance += ((keys.high - keys.low) / (2 * Z) * mean) ** 2
    else:
        mass = math.fsum(rest)
    scale = mass / math.fsum(rest) if math.fsum(rest) else 0.0
    variance += math.fsum(
        error * (weight * (scale if at < n - loud else 1.0)) ** 2
        for at, (weight, error) in enumerate(pairs)
    )
    mass += math.fsum(weight for weight, _ in pairs[n - loud :])
    if not mass:
        return Estimate(1.0, 0.0, 1.0, n, METHOD)
    factor = math.exp(Z * math.sqrt(variance) / mass)
    if mass / factor > STALE * item_count:  # The count is older than these items.
        return Estimate(0.0, 0.0, 1.0, n, METHOD)
    return Estimate(
        value=_share(1 - mass / item_count),
        low=_share(1 - mass * factor / item_count),
        high=_share(1 - mass / factor / item_count),
        n=n,
        method=METHOD,
    )


def _complement(
    below: Sequence[float], keys: Estimate, item_count: float, drift: float
) -> Estimate | None:
    n, total = len(below), sum(below)
    if item_count <= 0 or n < 2:
        return None
    if total <= 0 or max(below) > LOUDEST * total:
        return None
    mean = total / n
    spread = math.sqrt(sum((one - mean) ** 2 for one in below) / (n - 1) / n)
    of_mean = spread / mean if mean else 0.0
    of_keys = (keys.high - keys.low) / (2 * Z * keys.value) if keys.value else 0.0
    factor = math.exp(Z * math.hypot(of_mean, of_keys))
    mass = keys.value * mean
    return Estimate(
        value=_share(1 - mass / item_count),
        low=_share(1 - mass * factor / max(1.0, item_count - drift)),
        high=_share(1 - mass / factor / (item_count + drift)),
        n=n,
        method=METHOD,
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
