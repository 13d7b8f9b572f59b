"""Mutants of the rules of re-keying, each of which lacks one part.

Each is a subclass of the protocol, of the control item or of an explorer, or another effect of a
request. `MUTANTS` pairs each with a scenario in which its exploration finds a wrong world.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from keyhop.rekey.compare.rows import Look, Verdict
from keyhop.rekey.control import (
    Control,
    Direction,
    Evidence,
    Share,
    direction_from,
    other_side,
)
from keyhop.rekey.worker.protocol import Call, Kind, Protocol, Work

from testing import rekey_cutover_explorer as cutover
from testing.rekey_cutover_explorer import CutoverExplorer
from testing.rekey_explored import Scenario, effect, place_of
from testing.rekey_explorer import Explorer, World
from testing.rekey_joint_explorer import JointExplorer
from testing.rekey_scenarios import ONE
from testing.worlds import with_more

# --- the worker ---


class NoSecondLook(Protocol):
    def look_again_after(self, work: Work, image: Hashable) -> Work:
        return super().look_again_after(work, image) if work.first else replace(work, step=None)


class NoClaims(Protocol):
    def seen_owner(self, work: Work, image: Hashable) -> Work:
        then = super().seen_owner(work, image)
        return self._at(then, then.at + 1) if then.step is Kind.CLAIM else then


class ClaimApart(Protocol):
    """A worker that claims for the owner in a separate request, before the takeover."""

    def seen_owner(self, work: Work, image: Hashable) -> Work:
        then = super().seen_owner(work, image)
        if then.step is not Kind.TAKE_OVER:
            return then
        return replace(then, step=Kind.CLAIM, owner=work.owner)

    def call(self, work: Work) -> Call | None:
        call = super().call(work)
        if call and call.kind is Kind.CLAIM and work.owner is not None:
            return replace(call, source=work.owner)
        return call

    def answered(self, work: Work, answer: Hashable) -> Work:
        if work.step is Kind.CLAIM and work.owner is not None:
            return replace(work, step=Kind.TAKE_OVER)
        return super().answered(work, answer)


class OtherPlaces(Protocol):
    """A worker that also writes at the image's place if that is none of the record's places."""

    def look_again_after(self, work: Work, image: Hashable) -> Work:
        then = super().look_again_after(work, image)
        place = None if image is None else self.place_of(image)
        if then.step is None or place is None or place in then.places:
            return then
        return self._at(replace(then, places=(*then.places, place)), 0)


class NoWait(Protocol):
    def begin(self, *arguments: Any, waits: bool = False) -> Work:
        return super().begin(*arguments, waits=False)


class NoWaitUnanswered(Protocol):
    def unanswered(self, work: Work) -> Work:
        return replace(super().unanswered(work), waits=False)


class LeavesAtOnce(Protocol):
    """A worker that claims what it leaves while its request may still take effect."""

    def leave(self, work: Work) -> Work:
        return super().leave(replace(work, waits=False))


class LeavesWithoutAWord(Protocol):
    def leave(self, work: Work) -> Work:
        return replace(work, step=None)


class WaitsForTheLook(Protocol):
    """A worker that waits before its second look, and not before it writes."""

    def call(self, work: Work) -> Call | None:
        if work.waits and work.step is Kind.LOOK and not work.first:
            return Call(Kind.WAIT, work.source)
        return super().call(replace(work, waits=False))

    def answered(self, work: Work, answer: Hashable) -> Work:
        if work.waits and work.step is Kind.LOOK and not work.first:
            return replace(work, waits=False)
        return replace(super().answered(replace(work, waits=False), answer), waits=work.waits)


def write_any_item(step: Any, source: Any, destination: Any, claims: Any) -> Any:
    """Write without the owner condition."""
    kind, key, place, image, *_ = step
    if kind is not Kind.WRITE:
        return effect(step, source, destination, claims)
    return (*destination[:place], (key, image), *destination[place + 1 :]), claims, None


def take_over_without_claim(step: Any, source: Any, destination: Any, claims: Any) -> Any:
    """Take over without a claim."""
    then, claimed, answer = effect(step, source, destination, claims)
    return then, claims if step[0] is Kind.TAKE_OVER else claimed, answer


def unfenced(step: Any, source: Any, destination: Any, claims: Any) -> Any:
    """Let a worker that settles a claim write even if another worker has taken the claim."""
    return effect((*step[:5], None), source, destination, claims)


def unfenced_rows(step: Any, source: Any, destination: Any, claims: Any) -> Any:
    """Let a worker that settles the claims of a shared row write even if the row is gone."""
    is_shared = step[5] is not None and step[5] < 0
    return (unfenced if is_shared else effect)(step, source, destination, claims)


class VerifiesAtOnce(Explorer):
    """A verification that starts while a write of the backfill may still take effect."""

    def may_verify(self, late: tuple[int, ...]) -> bool:
        return True


class LooksWithoutAWait(Explorer):
    """A backfill that looks while its put may still take effect."""

    def is_copy_late(self, late: tuple[int, ...], key: int) -> bool:
        return False


class LeavesOutWhatChanges(Explorer):
    """A verification that takes a changing place for one with a write in flight."""

    def verdict(self, before: Look, last: Look) -> Verdict:
        verdict = super().verdict(before, last)
        return "in flight" if verdict == "changing" else verdict


@dataclass(frozen=True)
class WiderLook(Look):
    """A look that also has the source items that belong to other places."""

    elsewhere: Any = ()


class LooksElsewhere(Explorer):
    def look_of(self, place: int, item: Any, images: Any) -> Look:
        look = super().look_of(place, item, images)
        return WiderLook(look.current, look.expected, look.is_foreign, images)


class LeavesOutWhatChangesElsewhere(LooksElsewhere, LeavesOutWhatChanges):
    pass


class StaleLooks(Explorer):
    """An explorer in which assumption A1 fails: a look may show an item before its last change.

    Each such look uses one of the scenario's `crashes`. By default it only shows images that differ
    from the written one, so that a further look would notice.
    """

    agreeing = False
    """Whether such a look may also show the written image."""

    def _worked(self, world: World, slot: int, other_slots: Any) -> Iterator[World]:
        yield from super()._worked(world, slot, other_slots)
        source, destination, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, sweeps = self.slots.values[slot]
        step = self._step(work)
        if not crashes or step is None or step[0] not in (Kind.LOOK, Kind.LOOK_AT_OWNER):
            return
        key = step[1] if step[0] is Kind.LOOK else step[4]
        past = [self.scenario.before[key]]
        past += [image for changed, image in self.scenario.script[:at] if changed == key]
        noticed = step[0] is Kind.LOOK_AT_OWNER or past[-2:-1] != [self.works.values[work].image]
        if past[-2:-1] and past[-2] != past[-1] and (noticed or self.agreeing):
            then = self._answered(work, past[-2])
            busy = with_more(other_slots, self.slots((number, then, sweeps)))
            rest = (copies, crashes - 1, fill, verify)
            yield (source, destination, at, records, busy, late, claims, *rest)


# --- a change of the serving table ---


@dataclass(frozen=True)
class WritesGoOn(Control):
    """No freeze."""

    @property
    def takes_writes(self) -> bool:
        return self.stage != "turned"


class NoTurned(Control):
    def turned(self) -> Control:
        return replace(super().turned(), stage="open")


class NoSettle(Control):
    """A change that does not wait for leases to expire."""

    @property
    def settle(self) -> float:
        return 0.0


class NoFence(Control):
    """A change in which batches write until the turn, and notes are looked for before it."""

    @property
    def direction(self) -> Direction | None:
        return None if self.stage == "turned" else direction_from(self.serving)


class NotesAfterTheTurn(NoFence):
    """A change that also looks for notes before it opens."""

    def following(self, standing: Evidence) -> tuple[Control | None, str]:
        if self.stage == "turned" and standing.open_batches:
            return None, "batches"
        return super().following(standing)


class BothDirections(Control):
    def share_of(self, direction: Direction) -> Share:
        return "work"


class Drops(Control):
    """A change in which a batch that reaches a fence drops its records."""

    def share_of(self, direction: Direction) -> Share:
        share = super().share_of(direction)
        return "pass" if share == "later" else share


class NoDrain(CutoverExplorer):
    def standing(self, world: Any) -> tuple[float, bool, int]:
        seen_for, _, notes = super().standing(world)
        return seen_for, True, notes


class NoNotes(CutoverExplorer):
    """A change that does not look for notes behind the fence."""

    def standing(self, world: Any) -> tuple[float, bool, int]:
        return (*super().standing(world)[:2], 0)


class AbortsTheTurned(CutoverExplorer):
    """A change that can be aborted after readers have turned."""

    def may_abort(self, control: Control) -> bool:
        return control.stage != "open"

    def aborted(self, number: int) -> int:
        control: Control = self.controls.values[number]
        if control.stage != "turned":
            return super().aborted(number)
        return self.number_of(replace(control, stage="open", serving=other_side(control.serving)))


# --- scenarios ---

Exploration = Callable[[], tuple[int, object]]
A, B, AGAIN = (0, 1), (0, 2), (0, 3)
ELSEWHERE = (1, 1)

TWICE = Scenario(((0, A), (0, B)))
CONTENDED = Scenario(((0, A), (1, B)))
LEFT = Scenario(((0, ELSEWHERE), (1, B), (0, AGAIN)), before=ONE)
"""The owner leaves a place, another item takes it, and the owner returns."""
SWEPT_TWICE = Scenario(((1, A), (0, None), (1, B)), before=ONE, workers=1, sweepers=1, crashes=1)
LATE = replace(TWICE, crashes=1)
LEFT_LATE = replace(TWICE, sweepers=1, crashes=2)
BACK = Scenario(((0, A), (0, (1, 2)), (0, AGAIN)), crashes=1)
FILLED = Scenario(((0, B),), before=(A, None), backfill=True, loses=True, verify=True)
FILLED_LATE = replace(FILLED, script=((0, None),), workers=1, crashes=1)
MOVED = Scenario(((0, ELSEWHERE),), before=(A, None), backfill=True, copy_dies=False)
"""An item moves while it is copied; without loss of records and without a verification."""
MOVED_LATE = replace(MOVED, crashes=1)
STALE = Scenario((), before=(ELSEWHERE, None), destination=((0, A), (0, ELSEWHERE)), verify=True)
"""An item was copied to a place that it had left."""
MOVED_ON = replace(STALE, script=((0, (1, 2)), (0, (1, 3))))
"""The item also changes at its present place."""
VISITED = replace(STALE, script=((1, B), (1, None)), merges=True)
"""Another item moves to the stale item's place, and leaves it."""
SHARED = Scenario(
    (),
    before=(A, (1, 8)),
    destination=((0, B), (1, (1, 5))),
    verify=True,
    joint=True,
    workers=1,
    sweepers=1,
    crashes=1,
)
"""The items at both places are wrong."""
SHARED_LATE = replace(SHARED, script=((0, AGAIN),), destination=((0, B), (1, (1, 8))))

CHANGED = cutover.Scenario((1, 2))
COPIED = replace(CHANGED, copies=1)
KILLED = replace(COPIED, crashes=1, clients=1)
CALLED_OFF = replace(CHANGED, turns=2, aborts=1)
PAUSED = replace(CHANGED, turns=2, clients=1, pauses=1)
BYPASSED = replace(CHANGED, clients=0, aborts=1, bypassed=True)


def but(explorer: type, **rules: bool) -> Any:
    """Return a subclass of the explorer with these rules."""
    return type("Mutant", (explorer,), rules)


def worker(
    scenario: Scenario, protocol: type[Protocol] = Protocol, request_effect: Any = effect
) -> Exploration:
    return lambda: Explorer(scenario, protocol(place_of), request_effect).explore()


def copy(
    scenario: Scenario, explorer: type[Explorer], request_effect: Any = effect, **rules: bool
) -> Exploration:
    return lambda: but(explorer, **rules)(scenario, effect=request_effect).explore()


def change(
    scenario: cutover.Scenario,
    control: type[Control] = Control,
    explorer: type[CutoverExplorer] = CutoverExplorer,
    **rules: bool,
) -> Exploration:
    scenario = replace(scenario, control=control(replicating=True))
    return lambda: but(explorer, **rules)(scenario).explore()


MUTANTS: dict[str, Exploration] = {
    "no second look": worker(TWICE, NoSecondLook),
    "no owner condition": worker(CONTENDED, request_effect=write_any_item),
    "no claims": worker(CONTENDED, NoClaims),
    "no claim for the owner": worker(LEFT, request_effect=take_over_without_claim),
    "a claim ahead, as a separate request": worker(
        replace(LEFT, sweepers=1), ClaimApart, take_over_without_claim
    ),
    "claims without tokens": worker(SWEPT_TWICE, request_effect=unfenced),
    "left without claims": worker(LATE, LeavesWithoutAWord),
    "left without a wait": worker(LEFT_LATE, LeavesAtOnce),
    "other places too": worker(BACK, OtherPlaces),
    "no wait of a retry": worker(LATE, NoWait),
    "no wait after no answer": worker(LATE, NoWaitUnanswered),
    "a wait before the look only": worker(LATE, WaitsForTheLook),
    "no verification": worker(replace(FILLED, verify=False)),
    "a verification too early": copy(FILLED_LATE, VerifiesAtOnce),
    "a copy that does not look again": copy(MOVED, Explorer, looks_again=False),
    "a copy that looks without a wait": copy(MOVED_LATE, LooksWithoutAWait),
    "a verification that leaves out what changes": copy(VISITED, LeavesOutWhatChanges),
    "a verification that leaves out what changes elsewhere": copy(
        MOVED_ON, LeavesOutWhatChangesElsewhere
    ),
    "a verification without repair that calls what changes clean": copy(
        replace(VISITED, repairs=False), LeavesOutWhatChanges
    ),
    "a shared row that no write checks": copy(SHARED_LATE, JointExplorer, unfenced_rows),
    "a shared row dropped when one is done": copy(
        SHARED, JointExplorer, drops_when_all_are_done=False
    ),
    "a shared row dropped with remaining work": copy(
        SHARED, JointExplorer, claims_what_is_left=False
    ),
    "a shared row dropped before its claims have separate rows": copy(
        SHARED, JointExplorer, claims_before_the_drop=False
    ),
    "a shared row that is settled and not dropped": copy(
        SHARED_LATE, JointExplorer, drops_before_settling=False
    ),
    "no freeze": change(CHANGED, WritesGoOn),
    "no turned": change(CHANGED, NoTurned),
    "leases do not pass": change(CHANGED, NoSettle),
    "no drain": change(CHANGED, explorer=NoDrain),
    "no fence": change(COPIED, NoFence),
    "no fence, and notes looked for after the turn": change(COPIED, NotesAfterTheTurn),
    "no look for notes": change(COPIED, explorer=NoNotes),
    "control read before the note": change(COPIED, note_first=False),
    "both directions": change(CHANGED, BothDirections),
    "a note forgotten at the fence": change(KILLED, keeps_note=False),
    "records dropped at the fence": change(BYPASSED, Drops),
    "stragglers shut no gate": change(PAUSED, gate=False),
    "stragglers are not looked for": change(PAUSED, examines=False),
    "an abort after the turn": change(CALLED_OFF, explorer=AbortsTheTurned),
}

RIGHT: dict[str, Exploration] = {
    **{str(n): worker(s) for n, s in enumerate((TWICE, CONTENDED, LEFT, SWEPT_TWICE))},
    **{str(n): worker(s) for n, s in enumerate((LATE, LEFT_LATE, BACK, FILLED, FILLED_LATE), 4)},
    **{str(n): change(s) for n, s in enumerate((CHANGED, COPIED, CALLED_OFF, BYPASSED, PAUSED), 9)},
    **{str(n): worker(s) for n, s in enumerate((MOVED, MOVED_LATE, MOVED_ON, VISITED), 14)},
    "without repair": worker(replace(VISITED, repairs=False)),
    "claims in a shared row": copy(SHARED, JointExplorer),
    "late writes and claims in a shared row": copy(SHARED_LATE, JointExplorer),
    "a look elsewhere is harmless": copy(MOVED_ON, LooksElsewhere),
    "a look elsewhere without repair is harmless": copy(
        replace(MOVED_ON, repairs=False), LooksElsewhere
    ),
}
"""The same scenarios with the complete rules, and harmless variants.

A look with the items of other places is harmless, because each difference at the last look is
settled, or keeps a verification from being clean.
"""
