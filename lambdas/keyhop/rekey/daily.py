"""Whether a comparison that a schedule starts has anything to compare. Pure but for its reads."""

from collections.abc import Mapping
from typing import Any

from keyhop.errors import CannotStart, TableNotFound
from keyhop.rekey.control import Control
from keyhop.rekey.pace import BACKFILL
from keyhop.rekey.side.table import SideTable


def why_not_today(control: Control, backfill: Mapping[str, Any] | None) -> str | None:
    """Why nothing is to be compared; None if it is. backfill: the figure of that name.

    Before the backfill has ended all items that it has not come to would be told as missing.
    """
    if control.serving == "destination":
        return "the destination serves already"
    if control.stage != "open":
        return "a cutover is under way"
    if not control.replicating:
        return "nothing replicates at the moment"
    if backfill is None or backfill.get("ended") is None:
        return "the backfill has not ended"
    return None


def nothing_to_compare(side: SideTable) -> str | None:
    """As why_not_today; of a re-key that is not there, too."""
    try:
        return why_not_today(side.control(), side.told(BACKFILL))
    except (TableNotFound, CannotStart):
        return "there is no re-key under way"
