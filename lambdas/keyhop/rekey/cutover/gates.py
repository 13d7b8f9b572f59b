"""What must be true before a cutover, or a rollback, begins. Pure."""

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
"""Stragglers that a gate names."""

SETTLED_A_SECOND = 20.0
"""Claims that batches settle in a second: measured on a busy laptop, as a lower end."""

LEAST_SETTLING_SECONDS = 5.0
"""For the first batch to come and to end."""


def settling_seconds(stragglers: int) -> float:
    """Estimate how long it takes to settle so many stragglers, in seconds."""
    return LEAST_SETTLING_SECONDS + stragglers / SETTLED_A_SECOND


@dataclass(frozen=True, slots=True)
class Gate:
    """says: what was found, in a sentence. remedy: what to do; empty if it is open."""

    name: str
    is_open: bool
    says: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        told = {"name": self.name, "open": self.is_open, "says": self.says}
        return {**told, "remedy": self.remedy} if self.remedy else told


@dataclass(frozen=True, slots=True)
class Seen:
    """What the gates go by. now: seconds since 1970. claims: at most some, in the direction that
    replicates. unmappable: items that have no form in the table that is to serve, or none back.
    failed: messages in the failure queue, None if it cannot be seen. verified, backfill, lag: as
    the side table was told. expected: how many routers; 0: that is not checked.
    way_back: why the table that serves now could not be written once the other one serves; empty if
    it can; None if nobody has tried. mapped: of each direction, what is wrong with its event source
    mapping, empty for nothing; empty as a whole where there are none, as on a laptop.
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
    """All of both tables, also those that are settled."""
    refusals: Sequence[str] = ()
    """Of the claims, why DynamoDB refused the items of some."""


def gates_of(seen: Seen, to: Side, accept: Collection[str] = ()) -> list[Gate]:
    """Return all gates of a change that makes `to` serve.

    Args:
        accept: The losses that the caller accepts: words of ACCEPTABLE.
    """
    gates = [
        _stage(seen, to),
        *([_verified(seen)] if to == "destination" else []),
        _claims(seen, to),
        _unmappable(seen) if to == "destination" else _would_lose(seen, accept),
        _stragglers(seen, to, accept),
        _lag(seen, to),
        _failures(seen),
        _mapped(seen),
        _way_back(seen),
        _clients(seen),
    ]
    return [gate for gate in gates if gate is not None]


def are_open(gates: list[Gate]) -> bool:
    """Whether all are."""
    return all(gate.is_open for gate in gates)


def _gate(name: str, is_open: bool, says: str, remedy: str) -> Gate:
    return Gate(name, is_open, says, "" if is_open else remedy)


def _stage(seen: Seen, to: Side) -> Gate:
    control = seen.control
    is_ready = control.stage == "open" and control.replicating and control.serving != to
    if control.stage != "open":
        says = f"a change is under way: {control.stage}"
    elif control.serving == to:
        says = f"the {to} serves already"
    else:
        says = f"the {control.serving} serves, and writes to it are "
        says += "replicated" if control.replicating else "not replicated"
    return _gate("stage", is_ready, says, "keyhop rekey start, or wait for the change to end")


def _verified(seen: Seen) -> Gate:
    remedy = "keyhop rekey verify, until it finds no difference"
    why_not = why_not_verified(
        seen.verified, seen.backfill, seen.control, seen.stragglers, seen.now
    )
    if why_not:
        return Gate("verified", False, why_not, remedy)
    age = seen.now - float((seen.verified or {})["at"])
    return Gate("verified", True, f"0 differences {duration(max(0.0, age))} ago")


def _claims(seen: Seen, to: Side) -> Gate:
    wants = "wants" if seen.claims == 1 else "want"
    says = f"{counted(seen.claims, 'item')} {wants} a place that another one has"
    remedy = (
        "those that stay collide under the template: keyhop rekey status --show-keys full names "
        "some"
    )
    if seen.refusals:
        says = refused_items(len(seen.refusals), seen.refusals[0], f"the {to}")
        if colliding := seen.claims - len(seen.refusals):
            says += f"; {counted(colliding, 'other item')} collide, or will be settled soon"
        remedy = "change or delete these items, and wait for a minute"
    return _gate("claims", not seen.claims, says, remedy)


def _unmappable(seen: Seen) -> Gate:
    says = f"{counted(seen.unmappable, 'item')} cannot be mapped"
    remedy = "change these items, or the template (which begins anew)"
    return _gate("unmappable", not seen.unmappable, says, remedy)


def _would_lose(seen: Seen, accept: Collection[str]) -> Gate:
    says = f"going back would lose {counted(seen.unmappable, 'item')}, which cannot be mapped back"
    remedy = f"give them what the template's inverse needs, or lose them: --accept {UNMAPPED}"
    return _gate("would lose", UNMAPPED in accept or not seen.unmappable, says, remedy)


def _stragglers(seen: Seen, to: Side, accept: Collection[str]) -> Gate:
    unsettled = [one for one in seen.stragglers if one.settled is None]
    count = len(unsettled)
    if not count:
        return Gate("stragglers", True, "no write has bypassed the routers and is unsettled")
    named = ", ".join(key_digest(one.key).hex()[:12] for one in unsettled[:MOST_NAMED])
    more = f" and {count - MOST_NAMED:,} more" if count > MOST_NAMED else ""
    serving, other = other_side(to), to
    says = (
        f"{counted(count, 'write')} bypassed the routers (digests of keys: {named}{more}); "
        f"settling overwrites each of these items in the {other} with what the {serving} says, in "
        f"about {counted(settling_seconds(count), 'second')}"
    )
    remedy = (
        f"keyhop rekey status --show-keys full names them: make those writes that count again in "
        f"the {serving}; then --accept {STRAGGLERS} settles them, and what only the {other} has "
        "is lost. "
        f"Without settling, what the {serving} has would be lost"
    )
    if formless := sum(not one.has_form for one in unsettled):
        says += f"; {formless:,} of them have no form in the {serving}, and cannot be settled"
        remedy = f"delete those without a form in the {other}, or mend them there; {remedy}"
    return _gate("stragglers", STRAGGLERS in accept and not formless, says, remedy)


def examined_gate(why_not: str, accept: Collection[str]) -> Gate:
    """Return the gate for writes to the other table that nobody has examined yet.

    Args:
        why_not: Why they could not be examined; empty if they were.
    """
    says = why_not or "all writes to the table that does not serve were examined for stragglers"
    remedy = f"wait, or --accept {STRAGGLERS}: then later ones may overwrite what serves now"
    return _gate("examined", STRAGGLERS in accept or not why_not, says, remedy)


def _lag(seen: Seen, to: Side) -> Gate:
    """Return the gate for how far the other table is behind; it never prevents a rollback.

    A rollback may be urgent, and the lag is the largest of the last seconds. The rehearsal of the
    drain measures what counts, and the freeze limit calls a drain off that takes too long.
    """
    told = seen.lag or {}
    age = seen.now - float(told.get("at", 0))
    if age > STALE_SECONDS:
        # Of a table at rest nothing is to be told; the rehearsal of the drain tells.
        says = "nobody has told how far the other table is behind"
        return Gate("lag", True, f"{says} lately" if told else says)
    seconds = float(told["seconds"])
    says = f"the other table is {seconds:.1f} seconds behind"
    if to == "source" and seconds >= LAG_SECONDS:
        return Gate(
            "lag", True, f"{says}; the rehearsal of the drain tells whether it can be tried"
        )
    return _gate("lag", seconds < LAG_SECONDS, says, catch_up(seen.backfill))


def _failures(seen: Seen) -> Gate:
    if seen.failed is None:
        says = "the failure queue cannot be seen from here"
        return Gate("failures", False, says, "allow sqs:GetQueueAttributes on it")
    says = f"{counted(seen.failed, 'batch', 'batches')} wait in the failure queue"
    return _gate("failures", not seen.failed, says, "mend the cause, then keyhop rekey redrive")


def _mapped(seen: Seen) -> Gate | None:
    if not seen.mapped:
        return None
    wrong = [f"{direction}: {why}" for direction, why in seen.mapped.items() if why]
    says = "; ".join(wrong) or "both streams are followed"
    return _gate("streams", not wrong, says, "keyhop rekey start mends it")


def _way_back(seen: Seen) -> Gate | None:
    if seen.way_back is None:
        return None
    says = seen.way_back or "a write that must be refused was refused as it should be"
    remedy = "without it there is no way back: give the function that right"
    return _gate("way back", not seen.way_back, says, remedy)


def _clients(seen: Seen) -> Gate:
    control = seen.control
    alive = [one for one in seen.clients.values() if float(one.get("until", 0)) > seen.now]
    at_this = sum(one.get("revision") == control.revision for one in alive)
    says = f"{counted(at_this, 'router')} of {len(alive)} that are alive go by this revision"
    if not seen.expected:
        return Gate("routers", True, f"{says}; no number is expected")
    is_open = at_this == len(alive) == seen.expected
    says += f", {seen.expected} are expected"
    remedy = "see that all writers use the router (docs/rekey-router.md), or give --expect"
    return _gate("routers", is_open, says, remedy)
