"""What a verify has come to, as the side table is told: the cutover's gate goes by it. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keyhop.jobs.model import RunPlan
from keyhop.rekey.compare.looks import BYPASSED, EQUAL, FOREIGN, IN_FLIGHT, NOT_EQUAL, REPAIRED
from keyhop.rekey.compare.sides import (
    DESTINATION_ITEMS,
    IRREVERSIBLE,
    LEFT_OUT,
    OURS,
    SOURCE_ITEMS,
    UNMAPPED,
)

VERIFY = "verify"
"""The figure's name (side.SideTable.tell)."""

_COUNTS = (
    SOURCE_ITEMS,
    DESTINATION_ITEMS,
    *NOT_EQUAL,
    FOREIGN,
    IN_FLIGHT,
    EQUAL,
    REPAIRED,
    BYPASSED,
    UNMAPPED,
    IRREVERSIBLE,
    LEFT_OUT,
    OURS,
)


def told_of(plan: RunPlan, counts: Mapping[str, int], ended: float) -> dict[str, Any]:
    """Return what the side table is told of a verify that has ended.

    Args:
        plan: The plan of the comparison.
        counts: The counts of both of its runs, by name.
        ended: Seconds since 1970.

    Returns:
        All counts by name, and beside them `left`: differences that were not repaired, and
        changing places that were not settled; `began` (of the digests) and `ended`: seconds since
        1970; `is_clean`: whether everything was compared and nothing is left. Items without a form
        under the other key, or without a way back, are counted, and make no verify unclean.
    """
    found = {name: counts.get(name, 0) for name in _COUNTS}
    found[SOURCE_ITEMS] += found[IRREVERSIBLE]
    share = plan.options.get("share")
    left = sum(found[kind] for kind in NOT_EQUAL) - found[REPAIRED]
    return {
        "run": plan.id,
        "began": datetime.fromisoformat(plan.options["began"]).timestamp(),
        "ended": ended,
        "at": ended,
        "finished": True,
        "items": found[SOURCE_ITEMS],
        "share": 1.0 if share is None else share,
        "repair": bool(plan.options.get("repair")),
        **found,
        "left": left,
        "is_clean": share is None and left == 0,
    }
