"""What a run will read at most, reckoned before it does; dearer ones are asked about, or refused.

The run's own first look tells enough of nearly every table. Only where that, or the reported size,
leaves it possible that the run costs too much, a sample of its own is read, as for a plan.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.errors import TooExpensive
from keyhop.jobs.estimate import estimate
from keyhop.jobs.layout import Method, Wishes
from keyhop.jobs.model import RunPlan, Totals
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval

MORE_THAN_A_SCAN = 1.1
"""What a skip-scan reads at most, as a part of the whole (docs/limits.md)."""

SEGMENTS_TO_GO_BY = 10
"""So many that have ended tell what the others will cost, within SPREAD."""

SPREAD = 1.5
ROOM = 1.2
"""The next estimate, by another sample, may be as much higher, and by the width of this one."""


Enough = Callable[[Interval], bool]
"""Whether an interval of read units tells that a run is cheap enough."""

Ahead = Callable[[Enough], Interval]
"""The read units that a run will cost, as exactly as has to be known for that."""


def ahead(
    reader: PageReader,
    method: Method,
    wishes: Wishes,
    known: Interval | None,
    share: float,
    is_enough: Enough,
) -> Interval:
    """Read units that `share` of a run still costs, and its check as a whole.

    known: what the first look, or the run so far, says of all of it. A sample is read only if that
    is not enough.
    """
    known = known or _reported(reader, wishes)
    if known is not None and is_enough(_with_check(reader, wishes, known, share)):
        return _with_check(reader, wishes, known, share)
    costs = estimate(reader, method, "", wishes).costs
    found = costs.get(method, costs["scan"]).units
    return _with_check(reader, wishes, found, share)


def of_the_rest(plan: RunPlan, totals: Totals) -> tuple[Interval | None, float]:
    """Of a run that goes on: what all of it costs, by what it has cost, and which share is left."""
    share = 1.0 - totals.ended / plan.segments
    if totals.ended < SEGMENTS_TO_GO_BY:
        return None, share
    each = (totals.usage.read_units - plan.planning.read_units) / totals.ended
    units = each * plan.segments
    return Interval(units, units / SPREAD, units * SPREAD), share


def check_within(
    dollars: Callable[[float], float],
    units: Interval,
    limit: float,
    given: Mapping[str, Any],
    is_own: bool,
) -> None:
    """Raises TooExpensive if the upper end of the estimate is more than `limit` dollars.

    dollars: of so many units, of whatever kind. given: the input; is_own: `limit` is in it.
    """
    high = dollars(units.high)
    if high <= limit:
        return
    most = "more than can be told" if math.isinf(high) else f"up to ${high:,.2f}"
    needed = (
        math.ceil(ROOM * (high + dollars(units.high - units.low)))
        if math.isfinite(high)
        else math.ceil(2 * limit)
    )
    whose = "as its input says" if is_own else "as this deployment is set (keyhop.json)"
    raise TooExpensive(
        f"This may cost {most}, about ${dollars(units.mean):,.2f} by a sample, and maxCost is "
        f"${limit:g}, {whose}. Nothing but a sample was read. To do it, start, under another name, "
        f"with {json.dumps({**given, 'maxCost': needed})}"
    )


def _reported(reader: PageReader, wishes: Wishes) -> Interval | None:
    """The most, by the size that the service reports; None if it reports none."""
    size = reader.source.size_bytes
    if not size:
        return None
    ends = UNITS_PER_BLOCK * (wishes.segments or 0)
    return Interval(_through(size), 0.0, MORE_THAN_A_SCAN * _through(size) + ends)


def _through(size: float) -> float:
    return UNITS_PER_BLOCK * size / BLOCK_BYTES


def _with_check(reader: PageReader, wishes: Wishes, units: Interval, share: float) -> Interval:
    """A check reads its share through, and may look for what it misses by hops."""
    checked = wishes.verify_share or 0.0
    through = checked * _through(reader.source.size_bytes)
    left = units.scaled(share + checked)
    return Interval(left.mean + through, left.low + through, left.high + through)
