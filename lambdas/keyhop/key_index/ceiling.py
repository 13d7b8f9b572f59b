"""Whether an action on a key index may cost as much as it will, asked before it is begun."""

import math
from collections.abc import Mapping
from typing import Any

from keyhop.jobs.price import check_within
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.sentinel import INDEX
from keyhop.scan.statistics import Interval


def check_cost(
    life_cycle: LifeCycle, given: Mapping[str, Any], state: Mapping[str, Any], limit: float
) -> None:
    """Raises TooExpensive if the upper end of the estimate is over maxCost; reads a sample.

    given: the input. state: that of the step; one that was taken before, and is repeated, has said
    what follows. limit: dollars, where the input does not say. DynamoDB's part alone is reckoned.
    """
    order = life_cycle.order
    is_skipped = order.scheduled and life_cycle.table.index(INDEX) is None
    if order.plan_only or is_skipped or "next" in state:
        return
    if (expected := life_cycle.expected()) is None:
        return
    high = expected["dollars_high"]
    dollars = Interval(expected["dollars"], 0.0, math.inf if high is None else high)
    own = order.max_cost
    check_within(lambda some: some, dollars, limit if own is None else own, given, own is not None)
