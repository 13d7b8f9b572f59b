"""How far a re-key is, what stands in its way, and what to do next. Pure.

Figures come from the side table's items `told`: each is a JSON object, by its name here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from keyhop.rekey.control import Control
from keyhop.rekey.pace import BACKFILL, THROTTLE
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import LAG, SHADOWED, Claim, Unmapped
from keyhop.wording import counted, duration

VERIFIED, FAILED, DEPLOYMENT = "verify", "failures", "deployment"
"""Names of figures.

backfill    run, began, ended (null while it is under way), counts (copied, there, claimed, ...)
throttle    rate: write units a second of the backfill (null: as it was begun), paused
verify      run, at, finished, share (1: of everything), items, what was found (compare/outcome.py),
            left: of that, what was not repaired
lag.D       seconds, at; D is forward or reverse
failures    count: batches that failed, and wait in a queue (seen, and not told)
deployment  stack: whose function follows the streams
"""
COPIED, ENDING = "copied", "ending"
"""Told by `create` at its end, and by whoever ends it all: how (life_cycle/create.py, end.py)."""

LAG_SECONDS = 2.0
VERIFY_SECONDS = 24 * 3600.0
STALE_SECONDS = 120.0
"""A lag that was told longer ago is none."""

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
    "changing": "a cutover or a rollback is under way: writes wait",
    "cut over": "the new table serves; the old one is kept true to it",
    "paused": "the copy stands still; live writes are followed",
    "ending": "what is Keyhop's is being removed",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """What the side table says. now: seconds since 1970. claims: in the direction that counts.

    figures: by their names. open_batches: when those under way have begun.
    """

    pair: Pair
    control: Control
    now: float
    claims: Sequence[Claim] = ()
    open_batches: Sequence[float] = ()
    clients: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stragglers: Sequence[Mapping[str, Any]] = ()
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unmapped: Sequence[Unmapped] = ()

    def figure(self, name: str) -> Mapping[str, Any]:
        """Empty if it was never told."""
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
        if control.shadow > 0:
            return "shadowing"
        if self.is_verified:
            return "verified"
        if copy.get("ended") is not None:
            return "copied"
        if not copy and not control.replicating:
            return "created" if self.figures.get(COPIED) is not None else "creating"
        return "paused" if self.figure(THROTTLE).get("paused") else "copying"

    @property
    def differences(self) -> int | None:
        """Left by the last verify that read everything, as the gate counts; None without one."""
        last = self.figure(VERIFIED)
        if not last.get("finished") or last.get("share", 1) < 1:
            return None
        return int(last.get("left", 0))

    @property
    def is_verified(self) -> bool:
        """Whether the last verify of everything left no difference, within a day."""
        age = self.now - float(self.figure(VERIFIED).get("at", 0))
        return self.differences == 0 and age < VERIFY_SECONDS

    @property
    def lag(self) -> float | None:
        """Seconds by which the other table is behind; None if nobody has told lately."""
        told = self.figure(f"{LAG}.{self.control.direction}")
        if not told or self.now - float(told.get("at", 0)) > STALE_SECONDS:
            return None
        return float(told["seconds"])

    @property
    def unmappable(self) -> int:
        """As they are noted now, or as verify has counted them; at least so many."""
        return max(len(self.unmapped), int(self.figure(VERIFIED).get("unmappable", 0)))

    @property
    def failed(self) -> int:
        return int(self.figure(FAILED).get("count", 0))

    @property
    def alive(self) -> list[str]:
        """Routers that have told lately what they go by."""
        return sorted(name for name, told in self.clients.items() if told["until"] > self.now)

    @property
    def shadowed(self) -> dict[str, int]:
        """Shadow reads of all routers, by what came of them."""
        told = self.clients.values()
        return {
            name.removeprefix("shadow_"): sum(int(one.get(name, 0)) for one in told)
            for name in SHADOWED
        }

    @property
    def troubles(self) -> list[str]:
        """What a person should look at, in words; a link into docs/rekey.md each."""
        found = []
        if self.failed:
            found.append(
                f"{counted(self.failed, 'batch', 'batches')} could not be worked and wait in the "
                "failure queue: keyhop rekey redrive"
            )
        if self.unmappable:
            found.append(
                f"{counted(self.unmappable, 'item')} cannot be mapped: mend them, or the template"
            )
        if self.claims:
            found.append(
                f"{counted(len(self.claims), 'item')} want a place that another item has: they "
                "collide, or are settled within a minute"
            )
        if self.lag is not None and self.lag > LAG_SECONDS:
            found.append(f"the other table is {duration(self.lag)} behind: slow the copy down")
        if self.stragglers:
            found.append(
                f"{counted(len(self.stragglers), 'write')} went past the router: find their writers"
            )
        if self.shadowed["real"]:
            found.append("shadow reads have found real differences: verify")
        return found

    @property
    def todo(self) -> str:
        """The command that comes next, with why."""
        act = _COMMANDS[self.phase]
        if self.phase == "ending":
            return f"{act}{self.figure(ENDING)['how']}, again: it goes on"
        if self.phase == "cut over":
            return f"{act} ends it after a week or more; keyhop rekey rollback goes back"
        if self.phase == "changing":
            return f"{act}: it is over within seconds, or goes back by itself"
        if self.phase in ("verified", "shadowing") and self.troubles:
            return "see to what is named above; then keyhop rekey cutover --dry-run"
        return act


_COMMANDS: Mapping[Phase, str] = {
    "creating": "keyhop rekey create, again: it goes on",
    "ending": "keyhop rekey ",
    "created": "keyhop rekey start",
    "copying": "wait until the copy is finished; keyhop rekey throttle slows it down",
    "paused": "keyhop rekey resume",
    "copied": "keyhop rekey verify",
    "verified": "keyhop rekey shadow, then keyhop rekey cutover --dry-run",
    "shadowing": "keyhop rekey shadow with a larger share, or keyhop rekey cutover --dry-run",
    "changing": "keyhop rekey status",
    "cut over": "keyhop rekey complete",
}
