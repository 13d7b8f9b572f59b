"""The progress of a re-key, by the side table's figures, obstacles and the next command. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from keyhop.rekey.control import Control, Stage, other_side
from keyhop.rekey.pace import BACKFILL, THROTTLE
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import (
    COPIED,
    ENDING,
    FAILED,
    LAG,
    SHADOWED,
    VERIFIED,
    Claim,
    Straggler,
    Unmapped,
)
from keyhop.wording import counted, duration

LAG_SECONDS = 2.0
VERIFY_SECONDS = 24 * 3600.0
STALE_SECONDS = 120.0
"""A lag that was reported longer ago is ignored."""

Phase = Literal[
    "creating",
    "created",
    "copying",
    "paused",
    "copied",
    "verified",
    "shadowing",
    "changing",
    "cut over",
    "ending",
]

MEANS: Mapping[Phase, str] = {
    "creating": "the new table is not yet as it is to be",
    "created": "the new table is there and empty",
    "copying": "items are copied, and live writes followed",
    "copied": "all items were copied; the two tables were not compared since",
    "verified": "the two tables were equal when they were compared",
    "shadowing": "a share of the reads is made on both tables, and compared",
    "changing": "a cutover or a rollback is under way",
    "cut over": "the new table serves; the old one is kept true to it",
    "paused": "the copy stands still; live writes are followed",
    "ending": "what is Keyhop's is being removed",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a re-key, as the side table holds it, with the claims of the direction that
    replicates. Times, also the starts in `open_batches`, are in seconds since 1970.
    """

    pair: Pair
    control: Control
    now: float
    claims: Sequence[Claim] = ()
    open_batches: Sequence[float] = ()
    clients: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stragglers: Sequence[Straggler] = ()
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unmapped: Sequence[Unmapped] = ()

    def figure(self, name: str) -> Mapping[str, Any]:
        """Return a figure of the side table; empty if it was never reported."""
        return self.figures.get(name) or {}

    @property
    def phase(self) -> Phase:
        control, copy = self.control, self.figure(BACKFILL)
        if self.figure(ENDING):
            return "ending"
        if control.stage != "open":
            return "changing"
        if control.serving == "destination":
            return "cut over"
        if copy and copy.get("ended") is None:
            return self._copying
        if self.is_verified:
            return "shadowing" if control.shadow > 0 else "verified"
        if copy.get("ended") is not None:
            return "copied"
        if not copy and not control.replicating:
            return "created" if self.figures.get(COPIED) is not None else "creating"
        return self._copying

    @property
    def _copying(self) -> Phase:
        return "paused" if self.figure(THROTTLE).get("paused") else "copying"

    @property
    def means(self) -> str:
        """Return the phase in words."""
        if self.phase == "changing":
            waits = "reads and writes go on" if self.control.takes_writes else "writes wait"
            return f"{MEANS['changing']} ({self.control.stage}): {waits}"
        if self.phase == "copied" and self.differences:
            return "all items were copied; the two tables differed when they were compared"
        return MEANS[self.phase]

    @property
    def differences(self) -> int | None:
        """Return the differences that the last full verification left; None without one."""
        last = self.figure(VERIFIED)
        if not last.get("finished") or last.get("share", 1) < 1:
            return None
        return int(last.get("left", 0))

    @property
    def is_verified(self) -> bool:
        """Return whether a cutover may rely on the last verification."""
        verified, copied = self.figure(VERIFIED), self.figures.get(BACKFILL)
        return not why_not_verified(verified, copied, self.control, self.stragglers, self.now)

    @property
    def unsettled(self) -> list[Straggler]:
        """Return the stragglers that still have to be settled."""
        return [straggler for straggler in self.stragglers if straggler.settled is None]

    @property
    def lag(self) -> float | None:
        """Return the seconds by which the other table is behind; None without a recent report."""
        figure = self.figure(f"{LAG}.{self.control.direction}")
        if not figure or self.now - float(figure.get("at", 0)) > STALE_SECONDS:
            return None
        return float(figure["seconds"])

    @property
    def unmappable(self) -> int:
        """Return a lower bound for the unmappable items: those recorded now, or counted by verify.
        After the cutover, it counts the items that cannot be mapped back.
        """
        if self.control.serving == "destination":
            return len(self.unmapped)
        return max(len(self.unmapped), int(self.figure(VERIFIED).get("unmappable", 0)))

    @property
    def failed(self) -> int:
        return int(self.figure(FAILED).get("count", 0))

    @property
    def alive(self) -> list[str]:
        """Return the names of the routers whose last report is still valid."""
        return sorted(name for name, report in self.clients.items() if report["until"] > self.now)

    @property
    def unguarded(self) -> list[str]:
        """Return the names of the routers that are alive and do not guard any client."""
        return [name for name in self.alive if not self.clients[name].get("guarded")]

    @property
    def shadowed(self) -> dict[str, int]:
        """Return the numbers of shadow reads of all routers, by outcome."""
        reports = self.clients.values()
        return {
            name.removeprefix("shadow_"): sum(int(report.get(name, 0)) for report in reports)
            for name in SHADOWED
        }

    @property
    def troubles(self) -> list[str]:
        """Return the problems that somebody should solve, a text for each."""
        problems = []
        if self.failed:
            problems.append(
                f"{counted(self.failed, 'batch', 'batches')} could not be worked and wait in the "
                "failure queue: keyhop rekey redrive"
            )
        if self.unmappable:
            problems.append(self._about_unmappables())
        if self.refused:
            problems.append(
                refused_items(len(self.refused), self.refused[0].refusal, self._follows)
            )
        if colliding := len(self.claims) - len(self.refused):
            wants = "wants" if colliding == 1 else "want"
            problems.append(
                f"{counted(colliding, 'item')} {wants} a place that another item has: they "
                "collide, or are settled within a minute"
            )
        if self.lag is not None and self.lag > LAG_SECONDS:
            behind = f"the other table is {duration(self.lag)} behind"
            problems.append(f"{behind}: {catch_up(self.figures.get(BACKFILL))}")
        if self.unsettled:
            problems.append(
                f"{counted(len(self.unsettled), 'write')} bypassed the routers: find the writers, "
                "and make the writes that count again through a router. A verification does not "
                f"touch these items; a {self._next_change} settles them, with --accept stragglers"
            )
        if self.shadowed["real"]:
            problems.append("shadow reads have found real differences: verify")
        if self.unguarded:
            problems.append(_about_unguarded(len(self.unguarded)))
        return problems

    @property
    def refused(self) -> list[Claim]:
        """Return the claims of items that DynamoDB refused in the table that does not serve."""
        return [claim for claim in self.claims if claim.refusal]

    @property
    def _follows(self) -> str:
        return self.pair.table(other_side(self.control.serving))

    @property
    def _next_change(self) -> str:
        return "cutover" if self.control.serving == "source" else "rollback"

    def _about_unmappables(self) -> str:
        items = counted(self.unmappable, "item")
        if self.control.serving == "destination":
            return f"{items} cannot go back: a rollback would lose them, unless they are mended"
        if not self.unmapped:
            when = "when the tables were compared last"
            return f"{items} could not be mapped {when}: if they are mended, verify again"
        return f"{items} cannot be mapped: mend them, or the template"

    @property
    def todo(self) -> str:
        """Return the next command, with the reason for it."""
        act = _COMMANDS[self.phase]
        if self.phase == "ending":
            return f"{act}{self.figure(ENDING)['how']}, again: it goes on"
        if self.phase == "cut over":
            return f"{act} ends it after a week or more; keyhop rekey rollback goes back"
        if self.phase == "changing":
            stage = self.control.stage
            forth, back = ("cutover", "rollback")
            if self.control.serving == "destination":
                forth, back = back, forth
            return _TO_DO_OF_A_CHANGE["frozen" if stage == "fenced" else stage].format(forth, back)
        if self.phase in ("verified", "shadowing") and self.troubles:
            return "see to what is named above; then keyhop rekey cutover --dry-run"
        return act


def catch_up(backfill: Mapping[str, Any] | None) -> str:
    """Return what to do about a table that is behind; `backfill` is None if there was no copy."""
    if backfill and backfill.get("ended") is None:
        return "slow the copy down (keyhop rekey throttle), or wait"
    return "wait; if it stays behind, look at the throttles and the capacity of that table"


def refused_items(count: int, refusal: str, table: str) -> str:
    """Return the message about items of `table` that DynamoDB refused, with one item's refusal."""
    return (
        f"{counted(count, 'item')} cannot be written to {table} ({refusal}), so it cannot serve "
        "until they are changed or deleted: keyhop rekey status --show-keys full names them"
    )


def why_not_verified(
    verified: Mapping[str, Any] | None,
    backfill: Mapping[str, Any] | None,
    control: Control,
    stragglers: Sequence[Straggler],
    now: float,
) -> str:
    """Return why a cutover may not rely on the last verification at `now` (seconds since 1970).

    The reason is empty if it may. `verified` and `backfill` are figures, and `stragglers` includes
    settled ones.
    """
    last = verified or {}
    if not last.get("finished"):
        return "the tables were not compared to the end yet"
    if float(last.get("share", 1)) < 1:
        return "only a sample was compared last"
    copied = backfill or {"ended": 0.0}
    if copied["ended"] is None:
        return "items are still copied: when that has ended, the tables must be compared"
    began = float(last.get("began", last["at"]))
    if began < int(copied["ended"]):  # it began at a whole second
        return "items were copied after the tables were compared"
    if int(last.get("turns", 0)) != control.turns:
        return "another table served after the tables were compared"
    if any(straggler.at >= int(began) for straggler in stragglers):
        return "a write has bypassed the routers after the tables were compared"
    age = now - float(last.get("at", 0))
    if differing := int(last.get("left", 0)):
        return f"{counted(differing, 'difference')} {duration(max(0.0, age))} ago"
    if age >= VERIFY_SECONDS:
        return f"the tables were compared {duration(age)} ago, which is more than a day"
    return ""


def _about_unguarded(count: int) -> str:
    has = "has" if count == 1 else "have"
    return (
        f"{counted(count, 'router')} {has} no guard: a write that is paused before it is sent can "
        "reach the table that no longer serves, and is a straggler then. "
        "Make each router with the clients that it writes with: Router(..., clients=[dynamodb])"
    )


_TO_DO_OF_A_CHANGE: Mapping[Stage, str] = {
    "closing": "wait half a minute; if whoever makes it is gone: keyhop rekey {0}, again, goes on, "
    "and keyhop rekey {1} calls it off",
    "frozen": "wait some seconds; if whoever makes it is gone: keyhop rekey {0}, again, calls it "
    "off, and so does any router",
    "turned": "wait some seconds; if whoever makes it is gone: keyhop rekey {1}, again, ends it, "
    "and so does any router",
}

_COMMANDS: Mapping[Phase, str] = {
    "creating": "keyhop rekey create, again: it goes on",
    "ending": "keyhop rekey ",
    "created": "keyhop rekey start",
    "copying": "wait until the copy is finished; keyhop rekey throttle slows it down; if whoever "
    "copies is gone: keyhop rekey start, again",
    "paused": "keyhop rekey resume",
    "copied": "keyhop rekey verify",
    "verified": "keyhop rekey shadow, then keyhop rekey cutover --dry-run",
    "shadowing": "keyhop rekey shadow with a larger share, or keyhop rekey cutover --dry-run",
    "changing": "",
    "cut over": "keyhop rekey complete",
}
