"""How fast a backfill may write at the moment: a person says so, and the stream comes first. Pure.

What is told in the side table, under these names:

    throttle     {"rate": write units a second of all workers, or null, "paused": true or false}
    lag.forward  {"seconds": how far the stream's slowest shard is behind, "at"}
    backfill     {"run", "started", "began", "ended": null while it is under way, "counts"}
    unmappable   {"count", "examples": [{"key": a digest, "why"}], "at", "run"}: as the last
                 backfill, or verify of everything, has found it

Moments are seconds since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

THROTTLE, LAG, BACKFILL, UNMAPPABLE = "throttle", "lag.forward", "backfill", "unmappable"
"""Names of figures (side/table.SideTable.tell)."""

SLOWS_AT_SECONDS = 30.0
"""Of lag: from here on the backfill writes the slower, the larger it is."""

PAUSES_AT_SECONDS = 120.0

OLD_LAG_SECONDS = 300.0
"""A lag that was told so long ago tells nothing: a stream without records has none."""

LEAST_SHARE = 0.1
"""Of the rate, before it pauses."""


@dataclass(frozen=True, slots=True)
class Pace:
    """rate: write units a second of all workers, None for what the run was begun with. share: of
    that, for the stream's sake; 0 for a pause. reason: why it is not the full rate.
    """

    rate: float | None = None
    share: float = 1.0
    reason: str = ""

    @property
    def is_paused(self) -> bool:
        return self.share == 0.0


def pace_of(throttle: Mapping[str, Any] | None, lag: Mapping[str, Any] | None, now: float) -> Pace:
    """From what is told; now: seconds since 1970."""
    rate = None if throttle is None else throttle.get("rate")
    if throttle is not None and throttle.get("paused"):
        return Pace(rate, 0.0, "paused by hand")
    seconds = 0.0 if lag is None or now - lag["at"] > OLD_LAG_SECONDS else float(lag["seconds"])
    if seconds <= SLOWS_AT_SECONDS:
        return Pace(rate)
    reason = f"the stream is {seconds:.0f} s behind"
    if seconds >= PAUSES_AT_SECONDS:
        return Pace(rate, 0.0, reason)
    left = (PAUSES_AT_SECONDS - seconds) / (PAUSES_AT_SECONDS - SLOWS_AT_SECONDS)
    return Pace(rate, max(LEAST_SHARE, left), reason)


def why_not_mine(told: Mapping[str, Any] | None, run: str) -> str | None:
    """Why a worker of this run may write no more; None if it may. told: of `backfill`."""
    if told is None or told["run"] != run:
        return "Another backfill was begun since"
    if told["ended"] is not None:
        return "This backfill has ended already"
    return None
