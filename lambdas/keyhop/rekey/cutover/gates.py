"""The conditions for the beginning of a cutover or a rollback. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.rekey.control import Control, Direction, Side, other_side
from keyhop.rekey.digest import key_digest
from keyhop.rekey.request import STRAGGLERS, UNMAPPED
from keyhop.rekey.side.layout import Straggler
from keyhop.rekey.standing import (
    LAG_SECONDS,
    STALE_SECONDS,
    catch_up,
    refused_items,
    why_not_verified,
)
from keyhop.wording import counted, duration

ACCEPTABLE = {"would lose": UNMAPPED, "stragglers": STRAGGLERS, "examined": STRAGGLERS}
"""The gates that open if the caller accepts a loss, with the word that accepts it."""

MOST_NAMED = 5
"""The number of stragglers that a gate names."""

SETTLED_A_SECOND = 20.0
"""Claims that batches settle in a second: a lower bound, measured on a busy laptop."""

LEAST_SETTLING_SECONDS = 5.0
"""The time until the first batch has come and ended."""


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
        return {**content, "remedy": self.remedy} if self.remedy else content


@dataclass(frozen=True, slots=True)
class Seen:
    """The state that the gates judge, at `now` in seconds since 1970.

    Attributes:
        claims: The number of claims, up to a limit, in the direction that replicates.
        unmappable: Items that cannot be mapped to the table that will serve, or not back from it.
        failed: Messages in the failure queue; None if the queue is not accessible.
        verified, backfill, lag: The figures of the last verification, the copy and the lag.
        expected: The expected number of routers; 0 if it is not checked.
        way_back: Why the current serving table could not be written after the change; empty if it
            can; None if that was not tried.
        mapped: For each direction, the problem of its event source mapping, or an empty text. The
            mapping itself is empty without event source mappings, as on a laptop.
    """

    control: Control
    now: float
    claims: int = 0
    unmappable: int = 0
    failed: int | None = None
    verified: Mapping[str, Any] | None = None
    backfill: Mapping[str, Any] | None = None
    lag: Mapping[str, Any] | None = None
    clients: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    expected: int = 0
    way_back: str | None = None
    mapped: Mapping[Direction, str] = field(default_factory=dict)
    stragglers: Sequence[Straggler] = ()
    """All stragglers of both tables, including settled ones."""
    refusals: Sequence[str] = ()
    """The reasons why DynamoDB refused the items of some claims."""


def gates_of(state: Seen, to: Side, accept: Collection[str] = ()) -> list[Gate]:
    """Return all gates of a change to `to`; `accept` has accepted losses (words of ACCEPTABLE)."""
    gates = [
        _stage(state, to),
        *([_verified(state)] if to == "destination" else []),
        _claims(state, to),
        _unmappable(state) if to == "destination" else _would_lose(state, accept),
        _stragglers(state, to, accept),
        _lag(state, to),
        _failures(state),
        _mapped(state),
        _way_back(state),
        _clients(state),
    ]
    return [gate for gate in gates if gate is not None]


def are_open(gates: list[Gate]) -> bool:
    """Return whether all gates are open."""
    return all(gate.is_open for gate in gates)


def _gate(name: str, is_open: bool, says: str, remedy: str) -> Gate:
    return Gate(name, is_open, says, "" if is_open else remedy)


def _stage(state: Seen, to: Side) -> Gate:
    control = state.control
    is_ready = control.stage == "open" and control.replicating and control.serving != to
    if control.stage != "open":
        says = f"a change is under way: {control.stage}"
    elif control.serving == to:
        says = f"the {to} serves already"
    else:
        says = f"the {control.serving} serves, and writes to it are "
        says += "replicated" if control.replicating else "not replicated"
    return _gate("stage", is_ready, says, "keyhop rekey start, or wait for the change to end")


def _verified(state: Seen) -> Gate:
    remedy = "keyhop rekey verify, until it finds no difference"
    why_not = why_not_verified(
        state.verified, state.backfill, state.control, state.stragglers, state.now
    )
    if why_not:
        return Gate("verified", False, why_not, remedy)
    age = state.now - float((state.verified or {})["at"])
    return Gate("verified", True, f"0 differences {duration(max(0.0, age))} ago")


def _claims(state: Seen, to: Side) -> Gate:
    wants = "wants" if state.claims == 1 else "want"
    says = f"{counted(state.claims, 'item')} {wants} a key that another item has"
    remedy = (
        "items that stay here collide under the template: keyhop rekey status --show-keys full "
        "names some"
    )
    if state.refusals:
        says = refused_items(len(state.refusals), state.refusals[0], f"the {to}")
        if colliding := state.claims - len(state.refusals):
            says += f"; {counted(colliding, 'other item')} collide, or will be settled soon"
        remedy = "change or delete these items, and wait for a minute"
    return _gate("claims", not state.claims, says, remedy)


def _unmappable(state: Seen) -> Gate:
    says = f"{counted(state.unmappable, 'item')} cannot be mapped"
    remedy = "change these items, or the template (then the re-key starts from the beginning)"
    return _gate("unmappable", not state.unmappable, says, remedy)


def _would_lose(state: Seen, accept: Collection[str]) -> Gate:
    says = f"going back would lose {counted(state.unmappable, 'item')}, which cannot be mapped back"
    remedy = (
        "add the attributes that the template's inverse needs, or accept that the items are "
        f"lost: --accept {UNMAPPED}"
    )
    return _gate("would lose", UNMAPPED in accept or not state.unmappable, says, remedy)


def _stragglers(state: Seen, to: Side, accept: Collection[str]) -> Gate:
    unsettled = [straggler for straggler in state.stragglers if straggler.settled is None]
    count = len(unsettled)
    if not count:
        return Gate("stragglers", True, "no unsettled write has bypassed the routers")
    named = ", ".join(key_digest(straggler.key).hex()[:12] for straggler in unsettled[:MOST_NAMED])
    more = f" and {count - MOST_NAMED:,} more" if count > MOST_NAMED else ""
    serving, target = other_side(to), to
    says = (
        f"{counted(count, 'write')} bypassed the routers (digests of keys: {named}{more}); "
        f"settling overwrites each of these items in the {target} with the item in the "
        f"{serving}, in about {counted(settling_seconds(count), 'second')}"
    )
    remedy = (
        f"keyhop rekey status --show-keys full names them: repeat in the {serving} the writes "
        f"that you need; then --accept {STRAGGLERS} settles them, and what only the {target} has "
        f"is lost. Without settling, what the {serving} has would be lost"
    )
    if formless := sum(not straggler.has_form for straggler in unsettled):
        says += f"; {formless:,} of them have no form in the {serving}, and cannot be settled"
        remedy = f"in the {target}, delete or correct the items without a form; {remedy}"
    return _gate("stragglers", STRAGGLERS in accept and not formless, says, remedy)


def examined_gate(why_not: str, accept: Collection[str]) -> Gate:
    """Return the gate for unexamined writes to the other table; `why_not` is empty without any."""
    says = why_not or "all writes to the table that does not serve were checked for stragglers"
    remedy = (
        f"wait, or --accept {STRAGGLERS}: then stragglers that are found later may overwrite "
        "items of the serving table"
    )
    return _gate("examined", STRAGGLERS in accept or not why_not, says, remedy)


def _lag(state: Seen, to: Side) -> Gate:
    """Return the gate for how far the other table is behind; it never prevents a rollback.

    A rollback may be urgent, and the lag is the largest of the last seconds. The rehearsal of the
    drain measures what counts, and the freeze limit calls a drain off that takes too long.
    """
    lag = state.lag or {}
    age = state.now - float(lag.get("at", 0))
    if age > STALE_SECONDS:
        # A table without traffic reports no lag; the rehearsal of the drain is decisive.
        says = "no process has reported how far the other table is behind"
        return Gate("lag", True, f"{says} recently" if lag else says)
    seconds = float(lag["seconds"])
    says = f"the other table is {seconds:.1f} seconds behind"
    if to == "source" and seconds >= LAG_SECONDS:
        return Gate(
            "lag", True, f"{says}; the rehearsal of the drain shows whether a rollback can be tried"
        )
    return _gate("lag", seconds < LAG_SECONDS, says, catch_up(state.backfill))


def _failures(state: Seen) -> Gate:
    if state.failed is None:
        says = "the failure queue cannot be read from here"
        return Gate("failures", False, says, "allow sqs:GetQueueAttributes on it")
    says = f"{counted(state.failed, 'batch', 'batches')} wait in the failure queue"
    return _gate("failures", not state.failed, says, "remove the cause, then keyhop rekey redrive")


def _mapped(state: Seen) -> Gate | None:
    if not state.mapped:
        return None
    wrong = [f"{direction}: {why}" for direction, why in state.mapped.items() if why]
    says = "; ".join(wrong) or "both streams are followed"
    return _gate(
        "streams",
        not wrong,
        says,
        "run keyhop rekey start, which makes the functions follow the streams",
    )


def _way_back(state: Seen) -> Gate | None:
    if state.way_back is None:
        return None
    says = state.way_back or "a test write that must be refused was refused"
    remedy = "without this permission no rollback is possible: grant it to the function"
    return _gate("way back", not state.way_back, says, remedy)


def _clients(state: Seen) -> Gate:
    control = state.control
    alive = [
        report for report in state.clients.values() if float(report.get("until", 0)) > state.now
    ]
    at_this = sum(report.get("revision") == control.revision for report in alive)
    says = f"{counted(at_this, 'router')} of {len(alive)} that are alive use this revision"
    if not state.expected:
        return Gate("routers", True, f"{says}; no number is expected")
    is_open = at_this == len(alive) == state.expected
    says += f", {state.expected} are expected"
    remedy = "see that all writers use the router (docs/rekey-router.md), or give --expect"
    return _gate("routers", is_open, says, remedy)
