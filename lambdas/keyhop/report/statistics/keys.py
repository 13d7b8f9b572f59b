"""How many distinct partition keys a table has, from whole random segments of it. Pure."""

import math
from collections.abc import Sequence

from keyhop.report.estimate import Estimate
from keyhop.scan.statistics import count_interval

METHOD = "random segments"


def distinct_keys(counts: Sequence[int], segments: int) -> Estimate | None:
    """Keys of a table of `segments` segments; counts: of those that were read to their end.

    Poisson limits, narrowed by what is not left to chance: of a table half of which was read, half
    the variance is gone. None if not one was read.
    """
    if not counts:
        return None
    found = sum(counts)
    if len(counts) >= segments:
        return Estimate.exactly(float(found), found, "complete count")
    scale = segments / len(counts)
    unread = math.sqrt(1 - 1 / scale)
    limits = count_interval(counts)
    return Estimate(
        value=found * scale,
        low=max(float(found), (found - unread * (found - limits.low)) * scale),
        high=(found + unread * (limits.high - found)) * scale,
        n=found,
        method=METHOD,
    )
