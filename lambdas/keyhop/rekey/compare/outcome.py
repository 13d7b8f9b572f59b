"""The outcome of a verification, as the side table records it for the cutover's gate. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keyhop.jobs.journal import RunPlan
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
    """Return the outcome of a verification that has ended, with all counts, for the side table.

    `left` are differences that were not repaired, and changing places that were not settled. The
    times `began`, that of the digests, and `ended` are in seconds since 1970. The verification is
    clean if everything was compared and no difference remains. Items that cannot be mapped, or
    mapped back, are counted, but a verification can be clean with them.
    """
    totals = {name: counts.get(name, 0) for name in _COUNTS}
    totals[SOURCE_ITEMS] += totals[IRREVERSIBLE]
    share = plan.options.get("share")
    remaining = sum(totals[kind] for kind in NOT_EQUAL) - totals[REPAIRED]
    return {
        "run": plan.id,
        "began": datetime.fromisoformat(plan.options["began"]).timestamp(),
        "ended": ended,
        "at": ended,
        "finished": True,
        "items": totals[SOURCE_ITEMS],
        "share": 1.0 if share is None else share,
        "repair": bool(plan.options.get("repair")),
        **totals,
        "left": remaining,
        "is_clean": share is None and remaining == 0,
    }
