"""The state of a re-key, its phase, gates and problems, and the next step. Pure.

Commands, functions and explorers all ask `RekeyStatus`, so each decision is made in one place. So
is the current write speed of a copy, which a person sets and the lag of the stream reduces
(`Pace`).
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from keyhop.dynamodb.values import to_json
from keyhop.rekey.control import (
    ALIVE_SECONDS,
    NO_LIMIT,
    Control,
    Direction,
    Side,
    direction_from,
    other_side,
)
from keyhop.rekey.pair import Pair
from keyhop.rekey.request import STRAGGLERS, UNMAPPED
from keyhop.rekey.side.layout import (
    ALIVE,
    BACKFILL,
    COPIED,
    DEPLOYMENT,
    DESTINATION,
    END,
    ENDING,
    LAG,
    SHADOWED,
    THROTTLE,
    TURNED,
    VERIFIED,
    VERIFYING,
    Claim,
    Straggler,
    Unmapped,
)
from keyhop.rekey.transform import key_digest
from keyhop.wording import counted, duration

if TYPE_CHECKING:
    from keyhop.dynamodb.tables import Table
    from keyhop.rekey.cutover.deployed import Deployed, NotDeployed
    from keyhop.rekey.side.table import SideTable


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


LAG_SECONDS = 2.0
DAY_SECONDS = VERIFY_SECONDS = QUIET_SECONDS = 86_400.0
"""How long a verification counts, and how long no write must have bypassed the routers."""
WINDOW_DAYS = 7.0
"""Days from the cutover to `complete`, during which a rollback is possible."""
MOST_SHOWN = 10
MOST_NAMED = 5
MOST_LISTED = 1_000
"""The limit for counting claims, and items that cannot be mapped."""
STALE_SECONDS = 120.0
"""A lag that was reported longer ago is ignored."""
SILENT_SECONDS = 300.0
"""A run without a sign of life for this long has stopped; a worker gives one every 30 seconds."""

ACCEPTABLE = {"would lose": UNMAPPED, "stragglers": STRAGGLERS, "examined": STRAGGLERS}
"""The gates that open if the caller accepts a loss, with the word that accepts it."""

SETTLED_A_SECOND = 20.0
"""Claims that batches settle in a second: a lower bound, measured on a busy laptop."""
LEAST_SETTLING_SECONDS = 5.0
"""The time until the first batch has come and ended."""

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


ATTACHABLE = ("nobody follows the stream", "the mapping is Disabled")
"""The problems of an event source mapping that `start` solves (cutover/deployed.why_not)."""


def settling_seconds(stragglers: int) -> float:
    """Estimate how long it takes to settle so many stragglers, in seconds."""
    return LEAST_SETTLING_SECONDS + stragglers / SETTLED_A_SECOND


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition of a change: `says` describes the state, `remedy` what to do if it is shut."""

    name: str
    is_open: bool
    says: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        content = {"name": self.name, "open": self.is_open, "says": self.says}
        return content if self.is_open else {**content, "remedy": self.remedy}


def are_open(gates: Sequence[Gate]) -> bool:
    """Return whether all gates are open."""
    return all(gate.is_open for gate in gates)


def examined_gate(why_not: str, accept: Collection[str]) -> Gate:
    """Return the gate for unexamined writes to the other table; `why_not` is empty without any."""
    says = why_not or "all writes to the table that does not serve were checked for stragglers"
    remedy = (
        f'wait, or give accept="{STRAGGLERS}": then stragglers that are found later may overwrite '
        "items of the serving table"
    )
    return Gate("examined", STRAGGLERS in accept or not why_not, says, remedy)


@dataclass(frozen=True, slots=True)
class RekeyStatus:
    """The state of a re-key at `now`. `repr` shows no keys.

    Times, also the starts in `open_batches`, are in seconds since 1970. The claims and the unmapped
    items are those of the direction that replicates.

    Attributes:
        stragglers: All stragglers of both tables, including settled ones.
        failed: Messages in the failure queue; None if the queue is not accessible.
        mapped: For each direction, the problem of its event source mapping, or an empty text. The
            mapping itself is empty without event source mappings, as in a test.
        way_back: Why the serving table could not be written after a change; empty if it can; None
            if that was not tried.
        tables: The descriptions of the tables, None for one that does not exist; empty if nobody
            has looked at them.
    """

    pair: Pair = field(repr=False)
    control: Control
    now: float
    claims: Sequence[Claim] = field(default=(), repr=False)
    open_batches: Sequence[float] = ()
    clients: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stragglers: Sequence[Straggler] = field(default=(), repr=False)
    figures: Mapping[str, Any] = field(default_factory=dict)
    unmapped: Sequence[Unmapped] = field(default=(), repr=False)
    failed: int | None = 0
    mapped: Mapping[Direction, str] = field(default_factory=dict)
    way_back: str | None = None
    tables: Mapping[Side, "Table | None"] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        side: "SideTable",
        deployed: "Deployed | NotDeployed",
        now: float,
        control: Control | None = None,
        *,
        tries_way_back: bool = False,
        table_of: "Callable[[str], Table | None] | None" = None,
    ) -> "RekeyStatus":
        """Read the current state from a side table and a deployment.

        Args:
            control: The control item, if it was just read.
            tries_way_back: Have the function try to write the serving table, which starts it.
            table_of: Describe a table by its name; by default, nobody looks at the tables.
        """
        control = control or side.control(Control())
        direction = direction_from(control.serving)
        pair = side.plan()
        tables: dict[Side, Table | None] = {}
        if table_of is not None:
            tables = {"source": table_of(pair.source), "destination": table_of(pair.destination)}
        return cls(
            pair,
            control,
            now,
            claims=side.claims(direction, MOST_LISTED),
            open_batches=side.open_batches(direction),
            clients=side.clients(),
            stragglers=side.stragglers(),
            figures=side.all_told(),
            unmapped=side.all_unmapped(direction, MOST_LISTED),
            failed=deployed.failed(),
            mapped=deployed.mapped(),
            way_back=deployed.way_back(control.serving) if tries_way_back else None,
            tables=tables,
        )

    def to_json(self, show_keys: bool = False) -> dict[str, Any]:
        """Return all that is known, as `keyhop rekey status --format typed-json` prints it."""
        command, reason = self.next_step
        return {
            **(self.examples() if show_keys else {}),
            "source": self.pair.source,
            "destination": self.pair.destination,
            "phase": self.phase,
            "serving": self.control.serving,
            "stage": self.control.stage,
            "direction": self.control.direction,
            "revision": self.control.revision,
            "shadow": self.control.shadow,
            "lag_seconds": self.lag,
            "claims": len(self.claims),
            "refused_claims": len(self.refused),
            "unmappable": self.unmappable,
            "failures": self.failed,
            "clients": len(self.alive),
            "unguarded_clients": len(self.unguarded),
            "shadowed": self.shadowed,
            "expected_clients": self.control.expected_clients,
            "stragglers": len(self.stragglers),
            "unsettled_stragglers": len(self.unsettled),
            "open_batches": len(self.open_batches),
            "figures": dict(self.figures),
            "troubles": self.troubles,
            "safe": self.safe,
            "next": command,
            "reason": reason,
        }

    def examples(self) -> dict[str, list[dict[str, Any]]]:
        """Return some items that collide, that bypassed the routers, or that cannot be mapped."""
        claims = [*self.refused, *(claim for claim in self.claims if not claim.refusal)]
        return {
            "collide": [
                {
                    "owner": to_json(claim.owner),
                    "place": to_json(claim.place),
                    **({"refusal": claim.refusal} if claim.refusal else {}),
                }
                for claim in claims[:MOST_SHOWN]
            ],
            "bypassed": [
                {"key": to_json(straggler.key), "at": straggler.at, "side": straggler.side}
                for straggler in self.unsettled[:MOST_SHOWN]
            ],
            "without_place": [
                {"key": to_json(item.key), "why": item.reason}
                for item in self.unmapped[:MOST_SHOWN]
            ],
        }

    # --- facts ---

    def figure(self, name: str) -> Mapping[str, Any]:
        """Return a figure of the side table; empty if it was never reported."""
        return self.figures.get(name) or {}

    @property
    def serves(self) -> str:
        """Return the name of the table that serves."""
        return self.pair.table(self.control.serving)

    @property
    def follows(self) -> str:
        """Return the name of the other table."""
        return self.pair.table(other_side(self.control.serving))

    @property
    def is_copying(self) -> bool:
        """Return whether a copy was begun and has not ended; it may have been killed."""
        return self.is_begun(BACKFILL)

    def is_begun(self, name: str) -> bool:
        """Return whether the run in a figure was begun and has not ended."""
        run = self.figure(name)
        return bool(run) and run.get("ended") is None

    def silence(self, name: str) -> float:
        """Return how long ago the run in a figure gave its last sign of life, in seconds."""
        run, sign = self.figure(name), self.figure(f"{ALIVE}.{name}")
        last = float(sign["at"]) if sign.get("run") == run["run"] else float(run.get("began", 0.0))
        return max(0.0, self.now - last)

    def has_stopped(self, name: str) -> bool:
        """Return whether the run in a figure has not ended, and gives no sign of life."""
        return self.is_begun(name) and self.silence(name) > SILENT_SECONDS

    @property
    def ending(self) -> Mapping[str, Any]:
        """Return the end that cannot be stopped any more (layout.py); empty if there is none. If
        nothing replicates although it is not recorded yet, the process that makes it was killed.
        """
        if ending := self.figure(ENDING):
            return {**self.figure(END), **ending}
        return {} if self.control.replicating else self.figure(END)

    @property
    def unsettled(self) -> list[Straggler]:
        """Return the stragglers that still have to be settled."""
        return [straggler for straggler in self.stragglers if straggler.settled is None]

    @property
    def refused(self) -> list[Claim]:
        """Return the claims of items that DynamoDB refused in the table that does not serve."""
        return [claim for claim in self.claims if claim.refusal]

    @property
    def lag(self) -> float | None:
        """Return the seconds by which the other table is behind; None without a recent report."""
        figure = self.figure(f"{LAG}.{direction_from(self.control.serving)}")
        if not figure or self.now - float(figure.get("at", 0)) > STALE_SECONDS:
            return None
        return float(figure["seconds"])

    @property
    def unmappable(self) -> int:
        """Return a lower bound for the items that cannot be mapped: those recorded now, or counted
        by verify in either direction. After the cutover, those that cannot be mapped back.
        """
        if self.control.serving == "destination":
            return len(self.unmapped)
        last = self.figure(VERIFIED)
        unmapped = max(len(self.unmapped), int(last.get("unmappable", 0)))
        return unmapped + int(last.get("irreversible", 0))

    @property
    def alive(self) -> list[str]:
        """Return the names of the routers whose last report is still valid."""
        clients = self.clients.items()
        return sorted(name for name, report in clients if float(report.get("until", 0)) > self.now)

    @property
    def routers_of_last_day(self) -> dict[str, float]:
        """Return how many seconds ago each router reported, the latest first. A router reports when
        it is used, so one that was idle for a minute is not alive, but may be used again.
        """
        ages = {
            name: max(0.0, self.now + ALIVE_SECONDS - float(report.get("until", 0)))
            for name, report in self.clients.items()
        }
        recent = [(age, name) for name, age in ages.items() if age < DAY_SECONDS]
        return {name: age for age, name in sorted(recent)}

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

    # --- the tables ---

    def why_lost(self, side: Side) -> str:
        """Return why a table is not that of this re-key any more; empty if it is, or is unknown."""
        if side not in self.tables:
            return ""
        table, creation = self.tables[side], self.figure(DESTINATION)
        recorded = creation.get("identity" if side == "destination" else "source")
        if table is None:
            is_made = side == "source" or bool(recorded)
            return f"table {self.pair.table(side)} does not exist any more" if is_made else ""
        if recorded and table.identity != recorded:
            return (
                f"table {self.pair.table(side)} is another table than that of this re-key, which "
                "was deleted"
            )
        return ""

    @property
    def _lost(self) -> list[Side]:
        """Return the tables that are lost; none if the end of the re-key may have deleted them."""
        sides: tuple[Side, Side] = ("source", "destination")
        return [] if self.ending else [side for side in sides if self.why_lost(side)]

    @property
    def _without_stream(self) -> list[str]:
        """Return the names of tables whose streams are off, although `create` has turned them on.

        After the cutover the gate of the streams says so, as no command can then repair it.
        """
        is_before = self.control.serving == "source" and self.control.stage == "open"
        if not is_before or self.ending or self._lost or self.figures.get(COPIED) is None:
            return []
        tables = self.tables.items()
        off = [side for side, table in tables if table is not None and table.stream is None]
        return [self.pair.table(side) for side in off]

    def _troubles_of_tables(self) -> Iterator[str]:
        for side in self._lost:
            remaining = self.pair.table(other_side(side))
            if side == self.control.serving:
                remedy = f"{remaining} may hold the only copy of the items: do not delete it"
            elif side == "destination":
                remedy = "cancel, and create it again"
            else:
                remedy = "no rollback is possible any more; complete ends the re-key"
            yield f"{self.why_lost(side)}: {remedy}"
        for name in self._without_stream:
            yield (
                f"the stream of {name} is off, and no write to it is followed: create with the "
                "arguments of the first time turns it on; then start, and verify"
            )

    def _next_of_tables(self) -> tuple[str, str] | None:
        """Return the next step if a table is lost, or its stream is off."""
        lost, serving = self._lost, self.control.serving
        source, destination = self.pair.source, self.pair.destination
        if serving == "source" and "source" in lost:
            return f"cancel{self._keeps}", (
                f"it ends the re-key and keeps {destination}. If {source} does not exist, only the "
                f"Python process that has opened it can do this; else delete {self.pair.side} "
                "yourself"
            )
        if serving == "source" and lost:
            return f"cancel{self._keeps}", f"it keeps {source} as it is; then create again"
        if "destination" in lost:
            return "status", (
                f"first restore {destination} from a backup, or let your application use {source} "
                "without the router"
            )
        if self._without_stream:
            adopts = " --adopt" if self.figure(DESTINATION).get("adopted") else ""
            return f"create --template FILE{adopts}", (
                "with the other arguments of the first time, it turns the stream on; then start, "
                "and verify"
            )
        return None

    @property
    def _keeps(self) -> str:
        """Return the flag of `cancel` for a destination that it must not delete."""
        is_ours = not (self.figure(DESTINATION).get("adopted") or self._replaced)
        return "" if is_ours and "source" not in self._lost else " --keep-new"

    @property
    def _replaced(self) -> bool:
        return self.tables.get("destination") is not None and "destination" in self._lost

    # --- the phase ---

    @property
    def phase(self) -> Phase:
        control = self.control
        if self.ending:
            return "ending"
        if control.stage != "open":
            return "changing"
        if control.serving == "destination":
            return "cut over"
        if self.is_copying:
            return self._copying
        if not self.why_not_verified:
            return "shadowing" if control.shadow > 0 else "verified"
        if self.figure(BACKFILL):
            return "copied"
        if not control.replicating:
            return "created" if self.figures.get(COPIED) is not None else "creating"
        return self._copying

    @property
    def _copying(self) -> Phase:
        return "paused" if self.figure(THROTTLE).get("paused") else "copying"

    @property
    def means(self) -> str:
        """Return the phase in words."""
        source, destination = self.pair.source, self.pair.destination
        if lost := self._lost:
            return "; ".join(self.why_lost(side) for side in lost)
        if self.phase == "changing":
            stage = self.control.stage
            if stage == "turned":
                return f"{self._change} is in stage turned: {self.serves} serves; writes wait"
            waits = "reads and writes go on" if self.control.takes_writes else "writes wait"
            return f"{self._change} is in stage {stage}: {self.serves} serves; {waits}"
        if self.phase == "copied":
            return f"all items were copied, but {self.why_not_verified}"
        if self.phase == "copying":
            return self._about_copy()
        if self.phase == "ending":
            return f"{self.ending['how']} has begun, and has not removed everything of Keyhop's yet"
        return {
            "creating": f"create has not ended: {destination} is not complete yet",
            "created": f"{destination} exists and is empty",
            "paused": f"the copy is paused by hand; {self._about_writes}",
            "verified": "the two tables were equal when they were compared",
            "shadowing": f"the tables were equal, and {self.control.shadow * 100:g} % of the reads "
            "are made on both",
            "cut over": f"{destination} serves; {source} "
            + ("may not follow it" if any(self.mapped.values()) else "follows it, for a way back"),
        }[self.phase]

    def _about_copy(self) -> str:
        if not self.is_copying:
            return f"the copy has not begun to write; {self._about_writes}"
        if self.has_stopped(BACKFILL):
            return f"the copy has stopped before its end; {self._about_writes}"
        if self.pace.is_paused:
            return f"the copy waits until the writes are followed: {self.pace.reason}"
        slows = f", slowed because {self.pace.reason}" if self.pace.reason else ""
        return f"the copy is running{slows}; {self._about_writes}"

    @property
    def _about_writes(self) -> str:
        if not self.figure(DEPLOYMENT):
            return "nothing follows the writes"
        return "writes may not be followed" if any(self.mapped.values()) else "writes are followed"

    @property
    def pace(self) -> Pace:
        """Return the pace of a copy."""
        lag = self.figures.get(f"{LAG}.forward")
        return pace_of(self.figures.get(THROTTLE), lag, self.now)

    @property
    def _change(self) -> str:
        """Return the command of the change that is in progress, or would be the next one."""
        is_forth = (self.control.serving == "source") != (self.control.stage == "turned")
        return "cutover" if is_forth else "rollback"

    @property
    def why_not_verified(self) -> str:
        """Return why a cutover may not rely on the last verification; empty if it may."""
        last, copied = self.figure(VERIFIED), self.figure(BACKFILL) or {"ended": 0.0}
        if not last:
            return "the tables were not compared to the end yet"
        if float(last.get("share", 1)) < 1:
            return "only a sample was compared last"
        if copied["ended"] is None:
            return "items are still copied: when that has ended, the tables must be compared"
        began = float(last.get("began", last["at"]))
        if began < int(copied["ended"]):  # it began at a whole second
            return "items were copied after the tables were compared"
        if int(last.get("turns", 0)) != self.control.turns:
            return "another table served after the tables were compared"
        if any(straggler.at >= int(began) for straggler in self.stragglers):
            return "a write has bypassed the routers after the tables were compared"
        age = self.now - float(last.get("at", 0))
        if differing := int(last.get("left", 0)):
            return f"{counted(differing, 'difference')} remained {duration(max(0.0, age))} ago"
        if age >= VERIFY_SECONDS:
            return f"the tables were compared {duration(age)} ago, which is more than a day"
        return ""

    # --- the gates ---

    def gates(
        self, to: Side, accept: Collection[str] = (), expect: int | None = None
    ) -> list[Gate]:
        """Return all gates of a change to the table `to`.

        Args:
            accept: The losses that the caller accepts (words of ACCEPTABLE).
            expect: The expected number of routers, 0 for any; by default as it is recorded.
        """
        gates = [
            self._stage_gate(to),
            self._verified_gate() if to == "destination" else None,
            self._claims_gate(to),
            self._unmappable_gate(to, accept),
            self._stragglers_gate(to, accept),
            self._lag_gate(to),
            self._failures_gate(),
            self._streams_gate(),
            self._way_back_gate(),
            self._routers_gate(self.control.expected_clients if expect is None else expect),
        ]
        return [gate for gate in gates if gate is not None]

    def _stage_gate(self, to: Side) -> Gate:
        control = self.control
        is_ready = control.stage == "open" and control.replicating and control.serving != to
        remedy = "wait for the change to end"
        if control.stage != "open":
            says = f"a change is under way: {control.stage}"
        elif control.serving == to:
            says, remedy = f"the {to} serves already", "nothing: the change has been made"
        else:
            says = f"the {control.serving} serves, and writes to it are "
            says += "replicated" if control.replicating else "not replicated"
            remedy = "start"
        if self.ending:
            remedy = f"let {self.ending['how']} come to its end"
        return Gate("stage", is_ready, says, remedy)

    def _verified_gate(self) -> Gate:
        if why_not := self.why_not_verified:
            remedy = "verify, until it finds no difference"
            return Gate("verified", False, why_not, remedy)
        age = self.now - float(self.figure(VERIFIED)["at"])
        return Gate("verified", True, f"0 differences {duration(max(0.0, age))} ago")

    def _claims_gate(self, to: Side) -> Gate:
        count, refused = len(self.claims), self.refused
        colliding = count - len(refused)
        if not refused:
            wants = "wants" if count == 1 else "want"
            says = f"{counted(count, 'item')} {wants} a key that another item has"
            remedy = (
                "wait a minute, or until the next write to the table that serves; items that are "
                "still here then collide under the template: the status with keys names some"
            )
            if not self.figure(DEPLOYMENT):
                remedy = "start with remote=True: the function settles what does not collide"
            return Gate("claims", not count, says, remedy)
        says = (
            f"{counted(len(refused), 'item')} cannot be written to {self.pair.table(to)} "
            f"({refused[0].refusal}), so it cannot serve until they are changed or deleted"
        )
        if colliding:
            says += f"; {counted(colliding, 'other item')} collide, or will be settled soon"
        remedy = (
            "change or delete these items, which the status with keys names, and wait for a minute"
        )
        return Gate("claims", False, says, remedy)

    def _unmappable_gate(self, to: Side, accept: Collection[str]) -> Gate:
        items = counted(self.unmappable, "item")
        if to == "destination":
            says = f"{items} cannot be mapped"
            remedy = (
                "change these items, or the template (then the re-key starts from the beginning)"
            )
            if self.unmappable and not self.unmapped:
                says += ", as the last comparison has found"
            if not (self.unmapped and self.figure(DEPLOYMENT)):
                remedy += "; then verify"
            return Gate("unmappable", not self.unmappable, says, remedy)
        says = f"going back would lose {items}, which cannot be mapped back"
        remedy = (
            "add the attributes that the template's inverse needs, or accept that the items are "
            f'lost: accept="{UNMAPPED}"'
        )
        return Gate("would lose", UNMAPPED in accept or not self.unmappable, says, remedy)

    def _stragglers_gate(self, to: Side, accept: Collection[str]) -> Gate:
        unsettled, serving = self.unsettled, other_side(to)
        count = len(unsettled)
        if not count:
            return Gate("stragglers", True, "no unsettled write has bypassed the routers")
        named = ", ".join(key_digest(each.key).hex()[:12] for each in unsettled[:MOST_NAMED])
        more = f" and {count - MOST_NAMED:,} more" if count > MOST_NAMED else ""
        says = (
            f"{counted(count, 'write')} bypassed the routers (digests of keys: {named}{more}); "
            f"settling overwrites each of these items in the {to} with the item in the "
            f"{serving}, in about {counted(settling_seconds(count), 'second')}"
        )
        remedy = (
            f"the status with keys names them: repeat in the {serving} the writes that you need; "
            f'then accept="{STRAGGLERS}" settles them, and what only the {to} has is lost. '
            f"Without settling, what the {serving} has would be lost"
        )
        if formless := sum(not straggler.has_form for straggler in unsettled):
            says += f"; {formless:,} of them have no form in the {serving}, and cannot be settled"
            remedy = f"in the {to}, delete or correct the items without a form; {remedy}"
        return Gate("stragglers", STRAGGLERS in accept and not formless, says, remedy)

    def _lag_gate(self, to: Side) -> Gate:
        """Return the gate for how far the other table is behind; it never prevents a rollback.

        A rollback may be urgent, and the lag is the largest of the last seconds. The rehearsal of
        the drain measures what counts, and the freeze limit calls a drain off that takes too long.
        """
        lag = self.lag
        if lag is None:
            # A table without traffic reports no lag; the rehearsal of the drain is decisive.
            says = "no process has reported how far the other table is behind"
            was_reported = self.figure(f"{LAG}.{direction_from(self.control.serving)}")
            return Gate("lag", True, f"{says} recently" if was_reported else says)
        says = f"the other table is {lag:.1f} seconds behind"
        if to == "source" and lag >= LAG_SECONDS:
            says += "; the rehearsal of the drain shows whether a rollback can be tried"
            return Gate("lag", True, says)
        remedy = "wait; if it stays behind, look at the throttles and the capacity of that table"
        if self.is_copying:
            remedy = "slow the copy down (throttle), or wait"
            if self.pace.reason:
                remedy = "wait: the copy waits, too, or is slowed automatically"
        return Gate("lag", lag < LAG_SECONDS, says, remedy)

    def _failures_gate(self) -> Gate:
        if self.failed is None:
            says = "the failure queue cannot be read from here"
            return Gate("failures", False, says, "allow sqs:GetQueueAttributes on it")
        says = f"{counted(self.failed, 'batch', 'batches')} wait in the failure queue"
        remedy = "remove the cause, then redrive"
        return Gate("failures", not self.failed, says, remedy)

    def _streams_gate(self) -> Gate | None:
        if not self.mapped:
            return None
        wrong = [f"{direction}: {why}" for direction, why in self.mapped.items() if why]
        says = "; ".join(wrong) or "both streams are followed"
        remedy = "start with remote=True, which makes the functions follow the streams"
        if not self._can_attach:
            remedy = (
                "see to the event source mapping of the function Replicate on that stream; the "
                "function's log says what the problem is"
            )
        return Gate("streams", not wrong, says, remedy)

    @property
    def _can_attach(self) -> bool:
        """Return whether `start` makes the function follow the streams that it does not follow."""
        if self.control.serving == "destination" or self.control.stage != "open":
            return False  # where start is refused
        return all(why in ATTACHABLE for why in self.mapped.values() if why) or not self.figure(
            DEPLOYMENT
        )

    def _way_back_gate(self) -> Gate | None:
        if self.way_back is None:
            return None
        says = self.way_back or "a test write that must be refused was refused"
        remedy = "without this permission no rollback is possible: grant it to the function"
        return Gate("way back", not self.way_back, says, remedy)

    def _routers_gate(self, expected: int) -> Gate:
        revision = self.control.revision
        at_this = sum(self.clients[name].get("revision") == revision for name in self.alive)
        says = f"{counted(at_this, 'router')} of {len(self.alive)} that are alive use this revision"
        if not expected:
            return Gate("routers", True, f"{says}; no number is expected")
        says += f", {expected} are expected"
        remedy = (
            "see that all writers use the router (docs/reference/rekey-router.md), or give the "
            "number of those that do with expect="
        )
        return Gate("routers", at_this == len(self.alive) == expected, says, remedy)

    # --- other refusals ---

    def why_not_compare(self, repair: bool) -> str:
        """Return why a verification would prove nothing, or could not repair; empty if it could."""
        if self.control.serving != "source":
            return (
                f"Table {self.pair.destination!r} is served already: a verification compares it "
                "with a source that is."
            )
        if repair and not self.control.replicating:
            return (
                "Nothing replicates at the moment, and what repairs is what replicates: start, or "
                "resume, that first, or verify without repair."
            )
        if self.is_copying:
            return (
                f"The backfill {self.figure(BACKFILL)['run']!r} has not ended, so a verification "
                "would prove nothing: wait for it, or go on with it."
            )
        return ""

    def why_not_end(self, how: Literal["complete", "cancel"], window_days: float) -> str:
        """Return why `complete` or `cancel` cannot begin now; empty if it can."""
        control, ending = self.control, self.ending
        if ending:
            is_other = ending["how"] != how
            return f"{ending['how']} has begun: wait until it has ended." if is_other else ""
        if control.stage != "open":
            return f"The serving table is being changed ({control.stage}): wait."
        if how == "cancel":
            return (
                ""
                if control.serving == "source"
                else "The destination serves, so nothing can be cancelled: roll back, and then "
                "cancel; or complete."
            )
        if control.serving != "destination":
            return "The source serves, so there is nothing to complete: cut over first, or cancel."
        return self._why_not_complete(window_days)

    @property
    def turned_at(self) -> float | None:
        """Return when the serving table began to serve; None if that was not recorded."""
        turned = self.figure(TURNED)
        is_of_this = turned.get("serving") == self.control.serving
        return float(turned["at"]) if is_of_this else None

    def _why_not_complete(self, window_days: float) -> str:
        window, turned = window_days * DAY_SECONDS, self.turned_at
        if turned is None:
            return (
                "It was not noted when the cutover was, so the window of "
                f"{duration(window)} begins now."
            )
        if turned + window > self.now:
            return (
                f"The cutover was {duration(self.now - turned)} ago: complete comes "
                f"{duration(window)} after it (window_days=), as until then there is a way back."
            )
        late = [each for each in self.stragglers if each.at > self.now - QUIET_SECONDS]
        if late:
            return (
                f"{counted(len(late), 'item')} of the source "
                f"{'was' if len(late) == 1 else 'were'} written past the router in the last 24 "
                "hours: find who does that (stragglers), as it is lost when the source is no "
                "longer looked at."
            )
        if alive := self.alive:
            return (
                f"{counted(len(alive), 'router')} {'goes' if len(alive) == 1 else 'go'} by this "
                f"re-key still: {', '.join(alive[:MOST_NAMED])}; take the router out of the "
                "application first, as its reads and writes fail when the side table is gone; a "
                "minute after the last one has ended, complete."
            )
        return ""

    # --- advice ---

    @property
    def _shut(self) -> dict[str, Gate]:
        """Return the shut gates of the next change, which are problems in any phase."""
        gates = self.gates(other_side(self.control.serving))
        return {gate.name: gate for gate in gates if not gate.is_open}

    @property
    def troubles(self) -> list[str]:
        """Return the problems that somebody should solve, a text for each."""
        shut = self._shut
        if not self.figure(DEPLOYMENT):
            shut.pop("streams", None)  # a copy without a deployment is a choice
        if self._without_stream:
            shut.pop("streams", None)  # for that reason
        problems = list(self._troubles_of_tables())
        problems += [
            f"{gate.says}: {gate.remedy}"
            for name in _TROUBLES
            if (gate := shut.get(name)) is not None
        ]
        problems += [self._about_foreign] * bool(self.foreign)
        if self.shadowed["real"]:
            problems.append("shadow reads have found real differences: run verify")
        if self.unguarded:
            has = "has" if len(self.unguarded) == 1 else "have"
            problems.append(
                f"{counted(len(self.unguarded), 'router')} {has} no guard: a write that is paused "
                "before it is sent can reach the table that no longer serves, and is a straggler "
                "then. Make each router with the clients that it writes with: Router(..., "
                "clients=[dynamodb])"
            )
        return problems

    @property
    def foreign(self) -> int:
        """Return how many foreign items the last verification left in the destination."""
        last = self.figure(VERIFIED)
        counts = self.control.serving == "source" and int(last.get("left", 0))
        return int(last.get("foreign", 0)) if counts else 0

    @property
    def _about_foreign(self) -> str:
        source, destination = self.pair.source, self.pair.destination
        is_one = self.foreign == 1
        items, them = counted(self.foreign, "item"), "it" if is_one else "them"
        where = "the parts of the directory that verify writes with output="
        if self.figure(DEPLOYMENT):
            where = "the parts of the verification's run"
        return (
            f"{items} of {destination} {'is' if is_one else 'are'} foreign: no key of {source} "
            f"follows from {them}, so no repair deletes {them}. Delete {them}, or write {them} to "
            f"{source}; then verify. The keys are in {where}"
        )

    @property
    def safe(self) -> str:
        """Return which actions are safe now."""
        source, destination = self.pair.source, self.pair.destination
        if self.phase == "ending":
            if self.ending["how"] == "cancel":
                return f"{source} serves as before; reads and writes of it go on"
            return f"{destination} serves; reads and writes of it go on. No rollback is possible"
        if self.phase == "changing":
            return self._safe_in_change()
        if self.control.serving in self._lost:
            kept = self.pair.table(other_side(self.control.serving))
            return f"{kept} is as it was. It may hold the only copy of the items: do not delete it"
        if self.control.turns and self.control.serving == "source" and self.why_not_verified:
            return (
                f"{source} serves again, and waiting harms nothing. Do not cancel before a "
                f"verification without differences: {destination} has served, and may have writes "
                f"that {source} lacks"
            )
        if self.phase != "cut over":
            keeps, does = self._keeps, f"deletes {destination} with its items"
            if keeps:
                does = f"ends the re-key, and keeps {destination}"
            elif "destination" in self._lost:
                does = "ends the re-key"
            writes = ""
            if self.is_copying and not self.figure(DEPLOYMENT):
                writes = "; only a verify copies the writes that it gets now"
            return (
                f"{source} serves as before{writes}. Waiting harms nothing; "
                f"{self.command('cancel' + keeps)} {does}, and leaves {source} as it was"
            )
        shut = [gate for gate in self.gates("source") if not gate.is_open]
        if not shut and (self.lag or 0.0) >= LAG_SECONDS:
            return (
                f"reads and writes of {destination} go on. {self.command('rollback --dry-run')} "
                f"shows whether {source}, which is {duration(self.lag or 0.0)} behind, can serve"
            )
        if not shut:
            return (
                f"reads and writes of {destination} go on. {self.command('rollback')} lets "
                f"{source} serve again, and loses nothing"
            )
        return (
            f"reads and writes of {destination} go on. A rollback would be refused now, by these "
            f"gates: {', '.join(gate.name for gate in shut)}. {self.command('rollback --dry-run')} "
            "shows them"
        )

    def _safe_in_change(self) -> str:
        stage, change = self.control.stage, self._change
        back = "rollback" if change == "cutover" else "cutover"
        if stage == "closing":
            return f"nothing has changed for clients. {self.command(back)} calls the {change} off"
        if stage == "turned":
            return (
                f"no write is lost, and the {change} cannot be called off any more: any router "
                f"completes it when it is used. {self.command(back)} is possible after it"
            )
        return (
            f"no write is lost: writes wait for at most {self.control.freeze_limit:g} seconds, and "
            f"then each router that is used calls the {change} off"
        )

    @property
    def next_step(self) -> tuple[str, str]:
        """Return the one command to run next, and the reason for it."""
        action, reason = self._next()
        if action.partition(" ")[0] == "start" and self.figure(THROTTLE).get("paused"):
            action, reason = "resume", "the copy is paused by hand: start would wait for this"
        return self.command(action), reason

    def command(self, action: str) -> str:
        """Return the command line of an action, such as "verify" or "cutover --dry-run"."""
        name, _, flags = action.partition(" ")
        line = f"keyhop rekey {name} {self.pair.source} --to {self.pair.destination}"
        return f"{line} {flags}" if flags else line

    def _next(self) -> tuple[str, str]:
        phase, change = self.phase, self._change
        if phase == "ending":
            return self._next_of_end()
        if phase == "changing":
            return change, {
                "closing": f"wait half a minute first; if the process that makes the {change} is "
                "gone, this continues it",
                "turned": "wait some seconds first; if the process that makes the "
                f"{change} is gone, this completes it",
            }.get(
                self.control.stage,
                f"wait {self.control.freeze_limit:g} seconds first; if the process that makes the "
                f"{change} is gone, this calls it off, so that writes go on",
            )
        if step := self._next_of_tables():
            return step
        if phase == "creating":
            adopts = " --adopt" if self.figure(DESTINATION).get("adopted") else ""
            return f"create --template FILE{adopts}", (
                "if create is no longer running, with its other arguments, too: it continues"
            )
        if phase == "created" and self.figure(DEPLOYMENT):
            return self._start, "if start is no longer running: it continues, and copies the items"
        if phase == "created":
            return "start", (
                "it copies the items. With remote=True a deployment follows the writes in the "
                "meantime; without it nobody may write"
            )
        return next(self._repairs(), None) or self._next_of_phase()

    def _repairs(self) -> Iterator[tuple[str, str]]:
        """Yield the repairs that come before the next step, in this order."""
        shut, is_followed = self._shut, bool(self.figure(DEPLOYMENT))
        if is_followed and "streams" in shut and self._can_attach:
            copies = "" if self.is_copying else "; it also copies again what the other table lacks"
            yield self._start, f"the writes are not followed: {shut['streams'].says}{copies}"
        if is_followed and self.failed:
            yield "redrive", "first remove the cause, which the log of the function shows"
        if self.phase in ("copying", "paused"):
            return
        for name in ("claims", "unmappable", "stragglers", "would lose"):
            if name == "unmappable" and name in shut and not (is_followed and self.unmapped):
                yield self._next_of_unmappable()
            elif name in shut and (is_followed or name != "claims"):
                yield "status --show-keys full", "it names the items that the trouble is about"

    def _next_of_unmappable(self) -> tuple[str, str]:
        """Return the next step if only a verification reduces the count of unmappable items."""
        action, reason = self._next_of_comparison()
        if self.unmapped:
            names = f"which {self.command('status --show-keys full')} names"
        else:
            names = "which the last comparison has counted"
        if action == "verify" and not self.is_begun(VERIFYING):
            reason = (
                f"first change or delete the items that cannot be mapped, {names}; this counts "
                "those that remain"
            )
        return action, reason

    def _next_of_phase(self) -> tuple[str, str]:
        phase, shut = self.phase, self._shut
        if phase == "paused":
            return "resume", "the copy goes on at its last rate"
        if phase == "copying":
            if not self.is_copying:
                return self._start, "if no start is running any more: it begins the copy"
            return self._next_of_copy()
        if phase == "copied" and "lag" in shut:
            return "status", "wait until it is not far behind, and look again; then verify"
        if phase == "copied":
            return self._next_of_comparison()
        if phase == "cut over":
            return self._next_after_cutover()
        if self.shadowed["real"]:
            return "verify", "shadow reads have found real differences"
        if "streams" in shut and not self.figure(DEPLOYMENT):
            return "start --remote", "a cutover needs a deployment that follows the streams"
        if "stage" in shut:
            return self._start, "writes are not followed"
        for name, gate in shut.items():
            why = "the trouble" if name in _TROUBLES else f"this: {gate.says}. Do: {gate.remedy}"
            return "status", f"look again later; a cutover is refused because of {why}"
        reason = "all gates are open that can be checked from here"
        return "cutover --dry-run", reason + ("; see to the trouble first" * bool(self.troubles))

    def _next_of_copy(self) -> tuple[str, str]:
        if not self.has_stopped(BACKFILL):
            return "status", (
                "wait, and look again: from five minutes after the copy's last sign of life on, "
                "the next command is the one that continues it"
            )
        ago = f"the copy gave its last sign of life {duration(self.silence(BACKFILL))} ago"
        if self.figure(DEPLOYMENT):
            return self._start, f"{ago}: this continues it"
        return "start", (
            f"{ago}: this begins again, and keeps all items that are copied. If the copy had an "
            f"output directory, {self.command('start --resume DIR')} continues it"
        )

    def _next_of_comparison(self) -> tuple[str, str]:
        if not self.is_begun(VERIFYING):
            if self.foreign:
                return "verify", (
                    f"first delete the foreign items of {self.pair.destination}, or write them to "
                    f"{self.pair.source}; this compares the tables again"
                )
            return "verify", self.why_not_verified
        if not self.has_stopped(VERIFYING):
            return "status", "the tables are being compared: wait, and look again"
        ago = f"the verification gave its last sign of life {duration(self.silence(VERIFYING))} ago"
        if self.figure(DEPLOYMENT):
            run = self.figure(VERIFYING)["run"]
            return f"verify --resume {run}", f"{ago}: this continues it"
        return "verify", (
            f"{ago}: this begins again. If it had an output directory, "
            f"{self.command('verify --resume DIR')} continues it"
        )

    def _next_of_end(self) -> tuple[str, str]:
        ending = self.ending
        flags = ""
        if ending["how"] == "cancel" and ending.get("delete") == "":
            flags = " --keep-new"
        elif ending["how"] == "complete" and ending.get("delete"):
            flags = f" --delete-source {ending['delete']}"
        flags += f" --export {ending['export']}" if ending.get("export") else ""
        return f"{ending['how']}{flags}", "if it is no longer running: it continues"

    def _next_after_cutover(self) -> tuple[str, str]:
        if not (why_not := self.why_not_end("complete", WINDOW_DAYS)):
            return "complete --dry-run", "the days in which a rollback is possible are over"
        if self.turned_at is None:
            return "complete", (
                "the time of the cutover was not recorded: this starts the window of "
                f"{duration(WINDOW_DAYS * DAY_SECONDS)}, and ends nothing before that is over"
            )
        if (ends := self.turned_at + WINDOW_DAYS * DAY_SECONDS) > self.now:
            moment = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%d %H:%M")
            why_not = f"complete is possible from {moment} UTC on"
        first = "see to the trouble; " * bool(self.troubles)
        return "status", f"{first}watch your alarms, and look again. {why_not}"

    @property
    def _start(self) -> str:
        stack = self.figure(DEPLOYMENT).get("stack")
        if stack is None:
            return "start"
        resumes = f" --resume {self.figure(BACKFILL)['run']}" if self.is_copying else ""
        return f"start --remote --stack {stack}{resumes}"


_TROUBLES = ("streams", "failures", "claims", "unmappable", "would lose", "stragglers", "lag")
"""The gates whose closing is a problem in every phase, the most urgent first."""
