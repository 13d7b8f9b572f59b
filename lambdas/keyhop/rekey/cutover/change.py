"""A cutover, and a rollback: the same steps the other way. Each may be repeated at any time.

    closing   leases get short                                   wait until all long ones are over
    frozen    writes wait                                        then drain: markers (drain.py)
    fenced    no batch writes                                    until none is under way, no claim
    turned    the other table serves
    open      writes go to it

What has been done is told by the control item, and each step is a swap of it: so whoever is killed
is followed by whoever asks for the same again. A freeze that somebody has left behind is called
off: nobody knows how long writes have waited. Until `turned` also each router calls it off.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from keyhop.clock import Clock
from keyhop.errors import GaveUp, KeyhopError
from keyhop.rekey.control import (
    SHORT_LEASE_SECONDS,
    Control,
    Direction,
    Side,
    direction_from,
    other_side,
)
from keyhop.rekey.cutover.gates import Gate, are_open
from keyhop.rekey.cutover.markers import Rehearsal

POLL_SECONDS = 0.2
LOOK_SECONDS = 1.0
"""Between two looks at whether it is to end."""

MARGIN_SECONDS = 1.0
"""Between the turn's lease and the freeze limit: for the routers' own looks."""

MOST_OVERTAKEN = 20

OPENED_BY_BATCHES = {"claims", "lag"}
"""Gates that the next batches may open; in a quiet table the rehearsal's markers bring some.
"""

Action = Literal["wait", "done", "called off", "refused", "looked"]


class _Overdue(Exception):
    """Writes would wait for longer than the freeze limit."""


class _Overtaken(Exception):
    """Somebody else has changed the control item meanwhile."""


OVERTAKEN = "Somebody else has changed the control item meanwhile: called it off, or does the same."


class Beside(Protocol):
    """What a change needs of the side table (side/table.SideTable)."""

    def control(self) -> Control:
        """Strongly consistent."""

    def swap(self, old: Control | None, new: Control) -> bool:
        """Whether the item had the revision of `old`, and is `new` now."""

    def open_batches(self, direction: Direction) -> Sequence[Any]:
        """Those that may be under way."""

    def claims(self, direction: Direction, most: int | None = None) -> Sequence[Any]:
        """Work that is left to do."""


class Drain(Protocol):
    """What it needs of the table that serves (markers.Markers)."""

    def prepare(self) -> Rehearsal:
        """All that takes long."""

    def mark(self) -> Sequence[str]:
        """Put a marker into each shard."""

    def unseen(self, markers: Sequence[str]) -> int:
        """Of how many the batch is not done yet."""

    def check_shards(self) -> None:
        """Raises if there was a shard without a marker."""

    def forget(self, markers: Sequence[str]) -> None:
        """They are not looked for any more."""


@dataclass(frozen=True, slots=True)
class Next:
    """What follows. wait: do the same again in so many seconds, and hand this on. done: the table
    serves. called off: all is as it was before. refused: a gate is shut. looked: it was a dry run.
    """

    action: Action
    control: Control
    seconds: float = 0.0
    gates: Sequence[Gate] = ()
    why: str = ""
    pause: float | None = None
    """Seconds for which writes were frozen, of a change that was made."""

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"action": self.action, "seconds": self.seconds}
        told |= {"control": self.control.to_json(), "gates": [one.to_json() for one in self.gates]}
        told |= {"why": self.why} if self.why else {}
        return told if self.pause is None else {**told, "pause": round(self.pause, 3)}


@dataclass(slots=True, eq=False)
class Change:
    """One of a pair: that `to` serves. look: the gates as they are. told: each step, as it is made.

    drain: of the table that serves now. check: raises what ends it before the turn.
    """

    to: Side
    side: Beside
    drain: Drain
    clock: Clock
    look: Callable[[Control], list[Gate]]
    told: Callable[[str], None] = lambda step: None
    freeze_limit: float | None = None
    check: Callable[[], None] = lambda: None

    def dry_run(self) -> Next:
        """The gates; nothing is changed."""
        control = self.side.control()
        return Next("looked", control, gates=self.look(control))

    def step(self, last: Mapping[str, Any] | None = None) -> Next:
        """The next step. last: what the one before has told (Next.to_json), after its wait."""
        try:
            return self._step(last or {})
        except _Overtaken:
            return Next("called off", self.side.control(), why=OVERTAKEN)

    def _step(self, last: Mapping[str, Any]) -> Next:
        control = self.side.control()
        if control.stage == "turned":
            return self._open(control, None)
        if control.stage in ("frozen", "fenced"):
            return self.abort("Writes were found frozen by somebody who is gone.")
        if control.stage == "open":
            if control.serving == self.to:
                return Next("done", control)
            if last.get("action") == "wait":
                return Next("called off", control, why=OVERTAKEN)
            return self._close(control)
        if control.serving == self.to:
            return self.abort(f"A change to the {other_side(control.serving)} was under way.")
        settled = last.get("control", {}).get("revision") == control.revision
        return self._freeze(control) if settled else Next("wait", control, control.settle)

    def run(self) -> Next:
        """All steps."""
        last: dict[str, Any] | None = None
        while True:
            try:
                found = self.step(last)
                if found.action != "wait":
                    return found
                self._wait(found.seconds)
            except BaseException:
                self.abort()
                raise
            last = found.to_json()

    def abort(self, why: str = "") -> Next:
        """Back to where it began; what has turned is ended."""
        for _ in range(MOST_OVERTAKEN):
            control = self.side.control()
            if control.stage == "turned":
                return self._open(control, None)
            if control.stage == "open":
                action: Action = "done" if control.serving == self.to else "called off"
                return Next(action, control, why=why)
            if self.side.swap(control, control.aborted()):
                self.told(f"called off: writes go to the {control.serving} again")
                return Next("called off", control.aborted(), why=why)
        raise GaveUp("The control item changes all the time.")

    # --- steps ---

    def _close(self, control: Control) -> Next:
        gates, rehearsal = self.look(control), None
        shut_ones = {one.name for one in gates if not one.is_open}
        if shut_ones and shut_ones <= OPENED_BY_BATCHES:
            rehearsal = self.drain.prepare()
            gates = self.look(control)
        if not are_open(gates):
            shut = "; ".join(f"{one.name}: {one.says}" for one in gates if not one.is_open)
            return Next("refused", control, gates=gates, why=shut)
        rehearsal = rehearsal or self.drain.prepare()
        limit = control.freeze_limit if self.freeze_limit is None else self.freeze_limit
        most = _time_to_turn(limit) - SHORT_LEASE_SECONDS
        gate = _rehearsed(rehearsal, most)
        self.told(gate.says)
        if not gate.is_open:
            return Next("refused", control, gates=[*gates, gate], why=gate.says)
        if limit != control.freeze_limit:
            control = self._swap(control, control.changed(freeze_limit=limit))
        closing = self._swap(control, control.closed())
        self.told(f"closing: leases get short within {closing.settle:g} seconds")
        return Next("wait", closing, closing.settle, [*gates, gate])

    def _freeze(self, control: Control) -> Next:
        """From `closing`, once it has settled, to the end."""
        began = self.clock.monotonic()
        frozen = self._swap(control, control.froze())
        try:
            self.told("frozen: writes wait, reads go on")
            deadline = began + _time_to_turn(frozen.freeze_limit)
            self._wait(frozen.settle)
            self._drain(frozen, deadline)
            self.told(f"drained after {self.clock.monotonic() - began:.1f} seconds")
            fenced = self._swap(frozen, frozen.fenced())
            self._until(deadline, lambda: self._at_work(fenced))
            turned = self._swap(fenced, fenced.turned())
        except _Overtaken:
            return self.abort(OVERTAKEN)
        except (_Overdue, KeyhopError) as error:
            return self.abort(str(error))
        self.told(f"turned: the {turned.serving} serves reads")
        return self._open(turned, began)

    def _drain(self, frozen: Control, deadline: float) -> None:
        """Batches still work, and sweep: so here claims may end, and behind the fence not."""
        markers = self.drain.mark()
        self._until(deadline, lambda: self._unseen(markers))
        self.drain.check_shards()
        self._until(deadline, lambda: self._at_work(frozen))
        self.drain.forget(markers)

    def _open(self, turned: Control, began: float | None) -> Next:
        """Not to be called off any more; a router may do it as well."""
        self.clock.sleep(turned.settle)
        opened = turned.opened()
        if not self.side.swap(turned, opened):
            opened = self.side.control()
        pause = None if began is None else self.clock.monotonic() - began
        self.told(f"open: the {opened.serving} serves")
        action: Action = "done" if opened.serving == self.to else "called off"
        return Next(action, opened, pause=pause)

    # --- waits ---

    def _wait(self, seconds: float) -> None:
        ends = self.clock.monotonic() + seconds
        self.check()
        while (left := ends - self.clock.monotonic()) > 0:
            self.clock.sleep(min(left, LOOK_SECONDS))
            self.check()

    def _unseen(self, markers: Sequence[str]) -> str:
        left = self.drain.unseen(markers)
        return f"{left} of {len(markers)} shards have not shown their marker" if left else ""

    def _at_work(self, control: Control) -> str:
        direction = direction_from(control.serving)
        if batches := len(self.side.open_batches(direction)):
            return f"{batches} batches are under way"
        return "claims are left" if self.side.claims(direction, 1) else ""

    def _until(self, deadline: float, what_is_left: Callable[[], str]) -> None:
        while left := what_is_left():
            if self.clock.monotonic() + POLL_SECONDS >= deadline:
                raise _Overdue(f"Writes would have waited too long: {left}.")
            self._wait(POLL_SECONDS)
        if self.clock.monotonic() >= deadline:
            raise _Overdue("Writes would have waited too long.")

    def _swap(self, old: Control, new: Control) -> Control:
        if not self.side.swap(old, new):
            raise _Overtaken
        return new


def _time_to_turn(freeze_limit: float) -> float:
    """Seconds from the freeze to the last moment at which it may turn."""
    return freeze_limit - SHORT_LEASE_SECONDS - MARGIN_SECONDS


def _rehearsed(rehearsal: Rehearsal, most: float) -> Gate:
    says = (
        f"each of {rehearsal.shards} shards of the stream has shown a marker after "
        f"{rehearsal.seconds:.1f} seconds; {most:g} are left for it in a freeze"
    )
    remedy = "wait until it is quicker, or give a longer --freeze-limit"
    is_open = rehearsal.seconds <= most
    return Gate("drain", is_open, says, "" if is_open else remedy)
