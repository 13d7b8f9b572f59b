"""A cutover, and a rollback, which has the same stages in the other direction; both are repeatable.

`Control.following` decides when a change enters its next stage. This module collects the evidence
for it, waits, and swaps the control item. So when one process is killed, another one that asks for
the same change continues. A freeze that was abandoned is aborted, since nobody knows how long
writes have waited. Until `turned`, each router aborts it too.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import Connection
from keyhop.errors import CannotStart, GaveUp, KeyhopError
from keyhop.rekey.control import (
    SHORT_LEASE_SECONDS,
    Control,
    Evidence,
    Side,
    direction_from,
    other_side,
)
from keyhop.rekey.cutover.deployed import Deployed, NotDeployed
from keyhop.rekey.cutover.markers import Markers
from keyhop.rekey.request import STRAGGLERS
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import Gate, RekeyStatus, are_open, examined_gate, settling_seconds
from keyhop.rekey.task import side_table
from keyhop.wording import counted

POLL_SECONDS = 0.2
LEAST_WAIT_SECONDS = 0.001
"""The shortest wait. Rounding may leave less than a clock can show, and then no time would pass."""
LOOK_SECONDS = 1.0
"""Seconds between two checks for a request to stop."""

MARGIN_SECONDS = 1.0
"""Seconds between the turn's lease and the freeze limit, for the routers' own checks."""

MOST_OVERTAKEN = 20

MOST_TIMES_AS_LONG = 5.0
"""The limit for settling stragglers, times the estimate; after it a change is refused."""

OPENED_BY_BATCHES = {"claims", "lag"}
"""Gates that the next batches may open; in a quiet table, the rehearsal's markers cause batches."""

SHUT_BY_STRAGGLERS = {"verified"}
"""Gates that unsettled stragglers keep shut. A verification never writes their items, so it is not
clean before they are settled. So they are settled first, and the tables are compared again
afterwards."""

Action = Literal["wait", "done", "called off", "refused", "looked"]


class _Overdue(Exception):
    """Writes would have to wait longer than the freeze limit."""


class _Overtaken(Exception):
    """Another process has changed the control item."""


OVERTAKEN = (
    "Another process has changed the control item: it has called this change off, or makes it, too."
)


@dataclass(frozen=True, slots=True)
class Next:
    """The result of a step; `why` is the reason if the change was called off or refused.

    wait        repeat after `seconds`, and pass this result on
    done        the table serves
    called off  the tables are as they were before
    refused     a gate is shut
    looked      it was a dry run
    """

    action: Action
    control: Control
    seconds: float = 0.0
    gates: Sequence[Gate] = ()
    why: str = ""
    pause: float | None = None
    """Seconds for which writes were frozen, if the change was made."""

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {"action": self.action, "seconds": self.seconds}
        content |= {
            "control": self.control.to_json(),
            "gates": [gate.to_json() for gate in self.gates],
        }
        content |= {"why": self.why} if self.why else {}
        return content if self.pause is None else {**content, "pause": round(self.pause, 3)}


@dataclass(slots=True, eq=False)
class Change:
    """A change of the serving table of one pair, whose current serving table has this drain.

    Attributes:
        report: Receives a sentence about each step.
        check: Called often before the turn; an exception from it aborts the change.
        accept: The losses that the caller accepts (ACCEPTABLE). Settling the stragglers loses
            either their writes or the items that they overwrote.
        examine: Waits until the worker has examined the writes to the table that does not serve, so
            that stragglers are detected; raises GaveUp. None if stragglers cannot occur.
    """

    to: Side
    side: SideTable
    drain: Markers
    clock: Clock
    look: Callable[[Control], list[Gate]]
    report: Callable[[str], None] = lambda step: None
    freeze_limit: float | None = None
    check: Callable[[], None] = lambda: None
    accept: Collection[str] = ()
    examine: Callable[[], object] | None = None

    def dry_run(self) -> Next:
        """Return the gates without changing anything."""
        control = self.side.control()
        return Next("looked", control, gates=self.look(control))

    def step(self, last: Mapping[str, Any] | None = None) -> Next:
        """Make the next step; `last` is the previous result (Next.to_json), after its wait."""
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
        """Make all steps."""
        last: dict[str, Any] | None = None
        while True:
            try:
                result = self.step(last)
                if result.action != "wait":
                    return result
                self._wait(result.seconds)
            except BaseException:
                self.abort()
                raise
            last = result.to_json()

    def abort(self, why: str = "") -> Next:
        """Return to the beginning of the change, or end it if it has turned."""
        for _ in range(MOST_OVERTAKEN):
            control = self.side.control()
            if control.stage == "turned":
                return self._open(control, None)
            if control.stage == "open":
                action: Action = "done" if control.serving == self.to else "called off"
                return Next(action, control, why=why)
            if self.side.swap(control, control.aborted()):
                self.report(f"called off: writes go to the {control.serving} again")
                return Next("called off", control.aborted(), why=why)
        raise GaveUp("The control item is changing too often.")

    # --- steps ---

    def _close(self, control: Control) -> Next:
        examined = self._examined(control)
        gates, rehearsal = [*self.look(control), *examined], None
        shut_ones = {gate.name for gate in gates if not gate.is_open}
        settled = 0
        if shut_ones <= OPENED_BY_BATCHES | SHUT_BY_STRAGGLERS:
            settled = self._settle_stragglers(control)
        if settled or (shut_ones and shut_ones <= OPENED_BY_BATCHES):
            rehearsal = self._rehearse_until_settled(control, settled)
            gates = [*self.look(control), *examined]
        if not are_open(gates):
            shut = "; ".join(f"{gate.name}: {gate.says}" for gate in gates if not gate.is_open)
            return Next("refused", control, gates=gates, why=shut)
        rehearsal = rehearsal or self.drain.prepare()
        limit = control.freeze_limit if self.freeze_limit is None else self.freeze_limit
        maximum = _time_to_turn(limit) - SHORT_LEASE_SECONDS
        gate = _rehearsed(*rehearsal, maximum)
        self.report(gate.says)
        if not gate.is_open:
            return Next("refused", control, gates=[*gates, gate], why=gate.says)
        if limit != control.freeze_limit:
            control = self._swap(control, control.changed(freeze_limit=limit))
        closing = self._swap(control, control.closed())
        self.report(f"closing: leases get short within {closing.settle:g} seconds")
        return Next("wait", closing, closing.settle, [*gates, gate])

    def _examined(self, control: Control) -> list[Gate]:
        """Return the gate for stragglers that are not detected yet; none before a turn."""
        if not control.turns or self.examine is None:
            return []
        why_not = ""
        try:
            self.examine()
        except (CannotStart, GaveUp) as error:
            why_not = str(error)
        return [examined_gate(why_not, self.accept)]

    def _settle_stragglers(self, control: Control) -> int:
        """Have the workers settle all stragglers, if the caller accepts that; return how many."""
        if STRAGGLERS not in self.accept:
            return 0
        stragglers = [straggler for straggler in self.side.unsettled() if straggler.has_form]
        for straggler in stragglers:
            if not self.side.settle(straggler, control):
                raise _Overtaken  # perhaps the other table serves, and is right
        if stragglers:
            seconds = settling_seconds(len(stragglers))
            self.report(
                f"settling {counted(len(stragglers), 'straggler')}: about "
                f"{counted(seconds, 'second')}"
            )
        return len(stragglers)

    def _rehearse_until_settled(self, control: Control, settled: int) -> tuple[int, float]:
        """Rehearse the drain repeatedly while its batches settle the claims of stragglers."""
        direction = direction_from(control.serving)
        ends = self.clock.monotonic() + MOST_TIMES_AS_LONG * settling_seconds(settled)
        rehearsal = self.drain.prepare()
        while settled and self.side.claims(direction, 1) and self.clock.monotonic() < ends:
            self._wait(POLL_SECONDS)
            rehearsal = self.drain.prepare()
        return rehearsal

    def _freeze(self, closing: Control) -> Next:
        """Take a change from `closing`, whose leases have ended, to its end."""
        began = self.clock.monotonic()
        frozen, _ = closing.following(Evidence(closing.settle))
        assert frozen is not None
        control = self._swap(closing, frozen)
        try:
            self.report("frozen: writes wait, reads go on")
            deadline = began + _time_to_turn(control.freeze_limit)
            while control.stage != "turned":
                control = self._next_stage(control, deadline)
                self.report(f"{control.stage} after {self.clock.monotonic() - began:.1f} seconds")
        except _Overtaken:
            return self.abort(OVERTAKEN)
        except (_Overdue, KeyhopError) as error:
            return self.abort(str(error))
        self.report(f"the {control.serving} serves reads")
        return self._open(control, began)

    def _next_stage(self, control: Control, deadline: float) -> Control:
        """Swap in the next stage as soon as it is allowed; raise _Overdue for too long a wait."""
        seen_at, markers = self.clock.monotonic(), list[str]()
        while True:
            seen_for = self.clock.monotonic() - seen_at
            evidence, remains = self._evidence(control, seen_for, markers)
            following, waits_for = control.following(evidence)
            if following is not None:
                if self.clock.monotonic() >= deadline:
                    raise _Overdue("Writes would have waited too long.")
                self.drain.forget(markers)
                return self._swap(control, following)
            if waits_for == "leases":
                self._wait(max(LEAST_WAIT_SECONDS, control.settle - seen_for))
                continue
            if self.clock.monotonic() + POLL_SECONDS >= deadline:
                raise _Overdue(f"Writes would have waited too long: {remains}.")
            self._wait(POLL_SECONDS)

    def _evidence(
        self, control: Control, seen_for: float, markers: list[str]
    ) -> tuple[Evidence, str]:
        """Collect the evidence for the next stage, and describe what remains to be done. The
        markers of this freeze are written when its leases have ended.
        """
        if seen_for < control.settle:
            return Evidence(seen_for), "leases"
        if control.stage == "frozen":
            if not markers:
                markers += self.drain.mark()
            if unseen := self.drain.unseen(markers):
                remains = (
                    f"{unseen} of {counted(len(markers), 'shard')} "
                    f"{'has' if unseen == 1 else 'have'} not shown the marker"
                )
                return Evidence(seen_for), remains
            self.drain.check_shards()
        direction = direction_from(control.serving)
        # Settling a straggler first records claims and then marks its row, so rows are read first.
        stragglers = len(self.side.unsettled(1)) if control.turns else 0
        batches = len(self.side.open_batches(direction))
        claims = len(self.side.claims(direction, 1))
        remains = (
            f"{counted(batches, 'batch', 'batches')} {'is' if batches == 1 else 'are'} in flight"
            if batches
            else "claims remain"
        )
        if stragglers:
            remains = "a write has bypassed the routers: the status with keys names it"
        return Evidence(seen_for, True, batches, claims, stragglers), remains

    def _open(self, turned: Control, began: float | None) -> Next:
        """End a change that has turned and cannot be aborted. A router may end it too."""
        self.clock.sleep(turned.settle)
        opened, _ = turned.following(Evidence(turned.settle))
        assert opened is not None
        if not self.side.swap(turned, opened):
            opened = self.side.control()
        pause = None if began is None else self.clock.monotonic() - began
        self.report(f"open: the {opened.serving} serves")
        action: Action = "done" if opened.serving == self.to else "called off"
        return Next(action, opened, pause=pause)

    # --- waits ---

    def _wait(self, seconds: float) -> None:
        ends = self.clock.monotonic() + seconds
        self.check()
        while (remaining := ends - self.clock.monotonic()) > 0:
            self.clock.sleep(min(remaining, LOOK_SECONDS))
            self.check()

    def _swap(self, old: Control, new: Control) -> Control:
        if not self.side.swap(old, new):
            raise _Overtaken
        return new


def _time_to_turn(freeze_limit: float) -> float:
    """Return the seconds from the freeze to the last moment for the turn."""
    return freeze_limit - SHORT_LEASE_SECONDS - MARGIN_SECONDS


def _rehearsed(shards: int, seconds: float, maximum: float) -> Gate:
    says = (
        f"each of {counted(shards, 'shard')} of the stream has shown a marker after "
        f"{seconds:.1f} seconds; {maximum:g} are left for it in a freeze"
    )
    remedy = "wait until it is quicker, or give a larger freeze_limit="
    return Gate("drain", seconds <= maximum, says, remedy)


REQUEST_SECONDS = 2.0
"""The timeout of a request: a freeze has no time for slower ones."""

CONNECTIONS = 32

PATIENCE_SECONDS = 4.0
"""The time for retries of throttled requests. A freeze is aborted rather than to wait for long."""


def change_of(
    connection: Connection,
    destination: str,
    to: Side,
    streams: Any,
    *,
    deployed: Deployed | NotDeployed = NotDeployed(),  # noqa: B008 frozen
    accept: Collection[str] = (),
    expect: int | None = None,
    freeze_limit: float | None = None,
    report: Callable[[str], None] = lambda step: None,
    check: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    pool: Callable[[int], Executor] = ThreadPoolExecutor,
    **more: Any,
) -> Change:
    """Make a change of the serving table to `to`, of the re-key into `destination`.

    `streams` is boto3's client `dynamodbstreams`, `expect` is how many routers must have reported,
    and `accept` are the losses that the caller accepts (ACCEPTABLE). `more` are arguments of
    ItemCalls; see Change for `report` and `check`.
    """
    clock = clock or SystemClock()
    more = {"patience": PATIENCE_SECONDS, **more}
    side = side_table(connection, destination, now=clock.time, **more)
    pair = side.plan()
    serving = other_side(to)

    def markers(role: Side) -> Markers:
        arguments = (connection, pair.table(role), role, side, streams, clock)
        return Markers(*arguments, chance=chance, pool=pool, **more)

    def look(control: Control) -> list[Gate]:
        status = RekeyStatus.of(side, deployed, clock.time(), control, tries_way_back=True)
        return status.gates(to, accept, expect)

    examine = markers(to).prepare
    return Change(
        to, side, markers(serving), clock, look, report, freeze_limit, check, accept, examine
    )
