"""What a verify has come to, as the side table is told: the cutover's gate goes by it. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keyhop.jobs.model import RunPlan
from keyhop.rekey.compare.look import DIFFERENCES
from keyhop.rekey.compare.looks import BYPASSED, EQUAL, FOREIGN, IN_FLIGHT, REPAIRED, UNSETTLED
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
    *DIFFERENCES,
    FOREIGN,
    IN_FLIGHT,
    EQUAL,
    REPAIRED,
    UNSETTLED,
    BYPASSED,
    UNMAPPED,
    IRREVERSIBLE,
    LEFT_OUT,
    OURS,
)


def told_of(plan: RunPlan, counts: Mapping[str, int], ended: float) -> dict[str, Any]:
    """Return the figure of a verify.

    Args:
        counts: Outcomes by name, those of the digests too.
        ended: Seconds since 1970.

    Returns:
        The counts, and among others `left`: rows that differ and were not repaired, or were
        changing and not settled. `is_clean`: all was compared, and no such row is left; items
        without a form under the other key, or without a way back, are counted and judged by the
        reader.
    """
    found = {name: counts.get(name, 0) for name in _COUNTS}
    found[SOURCE_ITEMS] += found[IRREVERSIBLE]
    share = plan.options.get("sample")
    left = sum(found[kind] for kind in DIFFERENCES) - found[REPAIRED] + found[UNSETTLED]
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
