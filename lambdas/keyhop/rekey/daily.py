"""Decide whether a scheduled comparison has anything to compare. Pure but for its reads."""

from collections.abc import Mapping
from typing import Any

from keyhop.errors import CannotStart, TableNotFound
from keyhop.rekey.control import Control
from keyhop.rekey.pace import BACKFILL
from keyhop.rekey.side.table import SideTable


def why_not_today(control: Control, backfill: Mapping[str, Any] | None) -> str | None:
    """Return why there is nothing to compare, or None if there is. Before the end of the backfill,
    a verification would report all items that are not yet copied as missing.
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
    """Return the same as why_not_today, and also report a re-key that does not exist."""
    try:
        return why_not_today(side.control(), side.told(BACKFILL))
    except (TableNotFound, CannotStart):
        return "there is no re-key under way"
