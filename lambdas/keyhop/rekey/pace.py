"""The current write speed of a backfill: set by a person, and reduced for the stream. Pure.

The side table holds these figures:

    throttle     {"rate": write units a second of all workers, null as the run was started, or
                 "none" for no limit, "paused": true or false}
    backfill     {"run", "started", "began", "ended": null while it is running, "counts"}
    unmappable   {"count", "examples": [{"key": a digest, "why"}], "at", "run"}: the result of the
                 last backfill, or of the last verification of everything

All times are seconds since 1970.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

THROTTLE, BACKFILL, UNMAPPABLE = "throttle", "backfill", "unmappable"
"""Names of figures (side/table.SideTable.tell)."""

NO_LIMIT = "none"

SLOWS_AT_SECONDS = 30.0
"""Above this lag the backfill slows down, and more so for a larger lag."""

PAUSES_AT_SECONDS = 120.0

OLD_LAG_SECONDS = 300.0
"""A lag that was reported longer ago is ignored: a stream without records has none."""

LEAST_SHARE = 0.1
"""The smallest share of the rate before the backfill pauses."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a backfill, in write units a second of all workers (None: as the run was
    started), with the share that the stream leaves; 0 for a pause.
    """

    rate: float | None = None
    share: float = 1.0
    reason: str = ""

    @property
    def is_paused(self) -> bool:
        return self.share == 0.0


def pace_of(throttle: Mapping[str, Any] | None, lag: Mapping[str, Any] | None, now: float) -> Pace:
    """Return the pace that the figures of the side table allow at `now`, in seconds since 1970."""
    rate = None if throttle is None else throttle.get("rate")
    if rate == NO_LIMIT:
        rate = math.inf
    if throttle is not None and throttle.get("paused"):
        return Pace(rate, 0.0, "paused by hand")
    seconds = 0.0 if lag is None or now - lag["at"] > OLD_LAG_SECONDS else float(lag["seconds"])
    if seconds <= SLOWS_AT_SECONDS:
        return Pace(rate)
    reason = f"the stream is {seconds:.0f} s behind"
    if seconds >= PAUSES_AT_SECONDS:
        return Pace(rate, 0.0, reason)
    share = (PAUSES_AT_SECONDS - seconds) / (PAUSES_AT_SECONDS - SLOWS_AT_SECONDS)
    return Pace(rate, max(LEAST_SHARE, share), reason)


def why_not_mine(backfill: Mapping[str, Any] | None, run: str) -> str | None:
    """Return why this run's worker may not write any more, by the figure `backfill`."""
    if backfill is None or backfill["run"] != run:
        return "Another backfill was begun since"
    if backfill["ended"] is not None:
        return "This backfill has ended already"
    return None
