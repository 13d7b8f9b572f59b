"""Every interleaving of clients, batches of both directions, cutovers, aborts and rollbacks.

What is explored is `keyhop.rekey.control.Control`, which says who may do what and when,
`keyhop.rekey.standing.RekeyStatus`, which says when a change may begin, and in it
`keyhop.rekey.worker.protocol.Protocol`, over one item: it lies in the source at its key and in the
destination at its place, as a value or None. `truth` is what the last write has made of it.

A client is the read of the control item that it goes by (its *view*), or nothing. It may act by it
at any moment, and as long as it is there; so a strong read is no step: in each world, the table
that any view reads from must hold the truth. A client may also choose a table and be paused before
it sends; its write is not acknowledged, and arrives when that table does not serve any more. It is
a straggler: a batch that passes its record notes it, when the other worker has come to the item.
Clients with the same view are alike, so views are sorted; so are batches. Leases are stated as
order: a change that must let them pass waits until there is no view of before. A decision to go on
is one step, its swap another one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from keyhop.rekey.control import Control, Direction, Evidence, Side, other_side
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import Straggler
from keyhop.rekey.standing import RekeyStatus, are_open
from keyhop.rekey.worker.protocol import Kind, Protocol

from testing.worlds import Numbers, explored, with_more

World = tuple[Any, ...]
"""(control, decided, views, truth, tables, script, records, slots, late, left, paused, straggler)

control: a number; views: -1 for none, or twice a control's number, and 1 if it is the present one;
tables: source and destination; records, slots, late: numbers, sorted; left: turns, aborts, copies,
crashes that may yet be; paused: tables that a client has chosen and will yet write to; straggler:
the table with an unsettled one, None for none.
"""

STALE = 99
"""What a client has written that was paused."""

Doing = Literal["begun", "work", "pass", "later", "noting"]


@dataclass(frozen=True, slots=True)
class Record:
    """again: its batch was killed, and its note is there. copy: it comes once more than the drain
    knows of."""

    direction: Direction
    value: int | None
    again: bool = False
    copy: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """script: what clients write, one after the other. turns: how many changes may be begun.
    bypassed: it is written by others, into the source, whatever the stage is; then each change is
    called off, as nothing else is promised. pauses: clients that are paused before they send."""

    script: tuple[int | None, ...]
    control: Control = field(default_factory=lambda: Control(replicating=True))
    clients: int = 2
    workers: int = 1
    turns: int = 1
    aborts: int = 0
    copies: int = 0
    crashes: int = 0
    bypassed: bool = False
    pauses: int = 0


class CutoverExplorer:
    """A subclass that does otherwise is a mutant; so is a subclass of Control in the scenario."""

    note_first = True
    keeps_note = True
    """Whether a batch that is to come later leaves the note that was there before."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.protocol = Protocol(lambda value: 0)
        self.controls, self.records, self.slots = Numbers(), Numbers(), Numbers()
        self.works, self.lates = Numbers(), Numbers()
        self.known: dict[Any, Any] = {}

    gate = True
    """Whether an unsettled straggler shuts the gate of a change."""
    examines = True
    """Whether a change begins only when all records of the other table were examined."""

    def explore(self) -> tuple[int, World | None]:
        """How many worlds there are, and one that is wrong; None if none is."""
        it = self.scenario
        left = (it.turns, it.aborts, it.copies, it.crashes)
        views = (-1,) * it.clients
        start = self.controls(it.control)
        first = (start, False, views, 0, (0, 0), 0, (), (), (), left, (), None)
        return explored(first, self.nexts, self.is_right)

    def is_right(self, world: World) -> bool:
        """Whoever reads now, reads the truth; and at rest both tables hold it."""
        number, decided, views, truth, tables, at, records, slots, late, _, paused, stray = world
        for view in views:
            if view >= 0 and tables[self._table(self.controls.values[view >> 1])] != truth:
                return False
        if records or slots or late or decided or at < len(self.scenario.script):
            return True
        if paused or stray is not None:
            return True
        return self.controls.values[number].stage != "open" or tables == (truth, truth)

    def _once(self, work: Callable[..., Any], *of: Any) -> Any:
        """What this comes to, computed once."""
        key = (work.__name__, of)
        if key not in self.known:
            self.known[key] = work(*of)
        return self.known[key]

    @staticmethod
    def _table(control: Control) -> int:
        return 0 if control.serving == "source" else 1

    def nexts(self, world: World) -> Iterator[World]:
        yield from self._clients(world)
        yield from self._changes(world)
        yield from self._delivered(world)
        slots, late = world[7], world[8]
        for place, slot in enumerate(slots):
            if not place or slot != slots[place - 1]:
                yield from self._worked(world, slot, slots[:place] + slots[place + 1 :])
        for place, number in enumerate(late):
            after = (*world[:8], late[:place] + late[place + 1 :], *world[9:])
            yield after
            record, call = self.lates.values[number]
            yield self._effect(after, record.direction, call)[0]

    def _clients(self, world: World) -> Iterator[World]:
        """One of them reads the control item, lets its lease pass, or writes."""
        number, decided, views, _truth, tables, at, records, *rest = world
        stray = world[11]
        present: Control = self.controls.values[number]
        for place, table in enumerate(world[10]):
            if present.stage == "open" and self._table(present) != table:
                landed = self._put(world, table, STALE)
                yield (*landed[:10], world[10][:place] + world[10][place + 1 :], stray)
        bypassed = self.scenario.bypassed and at < len(self.scenario.script)
        if bypassed:
            value = self.scenario.script[at]
            written = (number, decided, views, value, tables, at + 1, records, *rest)
            yield self._put(written, 0, value)
        for place, view in enumerate(views):
            if place and view == views[place - 1]:
                continue
            others = views[:place] + views[place + 1 :]
            if view != 2 * number + 1:
                now = -1 if view >= 0 else 2 * number + 1
                yield (number, decided, with_more(others, now), *world[3:])
            if view < 0:
                continue
            if self.scenario.pauses > len(world[10]) and not world[5]:
                yield (
                    *world[:10],
                    (*world[10], self._table(self.controls.values[view >> 1])),
                    stray,
                )
            if at == len(self.scenario.script):
                continue
            control: Control = self.controls.values[view >> 1]
            if control.takes_writes and not bypassed:
                value = self.scenario.script[at]
                written = (number, decided, views, value, tables, at + 1, records, *rest)
                yield self._put(written, self._table(control), value)

    def _put(self, world: World, table: int, value: int | None) -> World:
        """A write of a table, and its record if it changes anything."""
        tables, records = world[4], world[6]
        if tables[table] == value:
            return world
        now = (value, tables[1]) if table == 0 else (tables[0], value)
        record = self.records(Record("forward" if table == 0 else "reverse", value))
        return (*world[:4], now, world[5], with_more(records, record), *world[7:])

    def _changes(self, world: World) -> Iterator[World]:
        """A change begins, or goes on, or is called off."""
        number, decided, *_ = world
        control: Control = self.controls.values[number]
        turns, aborts, copies, crashes = world[9]
        if control.stage == "open":
            stray = world[11]
            if stray is not None:
                yield self._settled(world)
            may_begin = not self.gate or self._once(self.may_begin, number, stray)
            if self.examines and self._of_other(world):
                may_begin = False
            if turns and may_begin:
                closed = self._once(self.closed, number)
                yield self._swapped(world, closed, (turns - 1, aborts, copies, crashes))
            return
        if not decided:
            if self._once(self.following, number, *self.standing(world)) >= 0:
                yield (number, True, *world[2:])
        elif not (self.scenario.bypassed and control.stage == "fenced"):
            swapped = self._once(self.following, number, float("inf"), True, 0)
            yield self._swapped(world, swapped, world[9])
        if aborts and self.may_abort(control):
            aborted = self._once(self.aborted, number)
            yield self._swapped(world, aborted, (turns, aborts - 1, copies, crashes))

    def _of_other(self, world: World) -> bool:
        """Whether records of the table that does not serve have not been examined."""
        serving = self._table(self.controls.values[world[0]])
        other = "reverse" if serving == 0 else "forward"
        waiting = [self.records.values[it] for it in world[6]]
        busy = [self.slots.values[it][0] for it in world[7]]
        return any(record.direction == other for record in (*waiting, *busy))

    def _settled(self, world: World) -> World:
        """The straggler is overwritten with what the serving table says, as is accepted."""
        serving = self._table(self.controls.values[world[0]])
        after = self._put(world, 1 - serving, world[4][serving])
        return (*after[:11], None)

    def may_begin(self, number: int, stray: int | None) -> bool:
        """Whether the gates that concern this world are open."""
        control: Control = self.controls.values[number]
        side: Side = "destination" if stray else "source"
        stragglers = () if stray is None else (Straggler(side, {}, (), 0.0),)
        status = RekeyStatus(Pair("Old", "New", {}), control, 0.0, stragglers=stragglers)
        gates = status.gates(other_side(control.serving))
        return are_open([it for it in gates if it.name in ("stage", "stragglers")])

    def number_of(self, control: Control) -> int:
        return self.controls(replace(control, revision=0, turns=0))

    def closed(self, number: int) -> int:
        return self.number_of(self.controls.values[number].closed())

    def following(self, number: int, seen_for: float, drained: bool, open_batches: int) -> int:
        """The next stage; -1: not yet."""
        control: Control = self.controls.values[number]
        following = control.following(Evidence(seen_for, drained, open_batches))[0]
        return -1 if following is None else self.number_of(following)

    def may_abort(self, control: Control) -> bool:
        return control.stage in ("closing", "frozen", "fenced")

    def aborted(self, number: int) -> int:
        return self.number_of(self.controls.values[number].aborted())

    def standing(self, world: World) -> tuple[float, bool, int]:
        """What a look at everything finds: seen_for, drained, open_batches."""
        number, _, views, *_ = world
        control: Control = self.controls.values[number]
        direction = "forward" if control.serving == "source" else "reverse"
        waiting = [self.records.values[it] for it in world[6]]
        busy = [self.slots.values[it] for it in world[7]]
        mine = [it for it in waiting if it.direction == direction]
        under_way = [it for it in busy if it[0].direction == direction]
        originals = [it for it in (*mine, *(it[0] for it in under_way)) if not it.copy]
        notes = [it for it in mine if it.again] + [it for it in under_way if it[1] != "noting"]
        settled = all(view < 0 or view == 2 * number + 1 for view in views)
        return float("inf") if settled else 0.0, not originals, len(notes)

    def _swapped(self, world: World, number: int, left: Any) -> World:
        """The control item is changed: nobody's view is the present one any more."""
        views = tuple(sorted(view & ~1 if view >= 0 else view for view in world[2]))
        return (number, False, views, *world[3:9], left, *world[10:])

    def _delivered(self, world: World) -> Iterator[World]:
        records, slots = world[6], world[7]
        for place, number in enumerate(records):
            if place and number == records[place - 1]:
                continue
            record: Record = self.records.values[number]
            busy = sum(self.slots.values[it][0].direction == record.direction for it in slots)
            if busy == self.scenario.workers:
                continue
            doing = "begun" if self.note_first or record.again else "noting"
            more = with_more(slots, self.slots((record, doing, -1)))
            left = records[:place] + records[place + 1 :]
            yield (*world[:6], left, more, *world[8:])
            turns, aborts, copies, crashes = world[9]
            if copies and not record.again and not record.copy:
                again = with_more(left, self.records(replace(record, copy=True)))
                fewer = (turns, aborts, copies - 1, crashes)
                yield (*world[:6], again, more, world[8], fewer, *world[10:])

    def _worked(self, world: World, slot: int, others: Any) -> Iterator[World]:
        """A batch: its note is written; it reads the control item; it works, or ends."""
        record, doing, number = self.slots.values[slot]
        call = self._once(self.call, number) if number >= 0 else None
        waiting = any(self.lates.values[it][0] == record for it in world[8])
        idle = (*world[:7], others, *world[8:])
        if world[9][3]:
            back = with_more(idle[6], self.records(replace(record, again=doing != "noting")))
            left = (*world[9][:3], world[9][3] - 1)
            dead = (*idle[:6], back, others, world[8], left, *world[10:])
            if doing == "work" and call is not None and call.kind in (Kind.WRITE, Kind.REMOVE):
                late = self.lates((replace(record, again=True), call))
                dead = (*dead[:8], with_more(world[8], late), left, *world[10:])
            yield dead
        if doing in ("begun", "noting"):
            yield from self._looked(world, idle, record, doing, number)
        elif doing == "pass":
            yield from self._examined(idle, record)
        elif doing == "later":
            back = self.records(replace(record, again=record.again and self.keeps_note))
            yield (*idle[:6], with_more(idle[6], back), *idle[7:])
        elif call is None:
            yield idle
        elif call.kind is not Kind.WAIT or not waiting:
            after, answer = self._effect(idle, record.direction, call)
            then = self._once(self.answered, number, answer)
            yield (*after[:7], with_more(others, self.slots((record, doing, then))), *after[8:])

    def _examined(self, idle: World, record: Record) -> Iterator[World]:
        """End a batch of the table that does not serve, when the other worker has come to the item;
        a difference is then a straggler.
        """
        if not self.scenario.pauses:
            yield idle
            return
        busy = [self.slots.values[it][0] for it in idle[7]]
        others = [*(self.records.values[it] for it in idle[6]), *busy]
        if any(one.direction != record.direction for one in others):
            return
        table = 0 if record.direction == "forward" else 1
        differs = idle[4][0] != idle[4][1]
        yield (*idle[:11], table if differs else idle[11])

    def call(self, number: int) -> Any:
        return self.protocol.call(self.works.values[number])

    def answered(self, number: int, answer: int | None) -> int:
        return self.works(self.protocol.answered(self.works.values[number], answer))

    def begun(self, value: int | None, again: bool) -> int:
        return self.works(self.protocol.begin(0, (0,), value, again, waits=again))

    def _looked(
        self, world: World, idle: World, record: Record, doing: str, number: int
    ) -> Iterator[World]:
        """The control item is read; or it was read before, and the note is written now."""
        control: Control = self.controls.values[world[0]]
        share = control.share_of(record.direction)
        work = self._once(self.begun, record.value, record.again)
        now: tuple[Any, ...] = (record, share, work if share == "work" else -1)
        if doing == "noting":
            now = (record, "work", work) if number >= 0 else (record, "noting", work)
            if number < 0 and share != "work":
                now = (record, share, -1)
        yield (*idle[:7], with_more(idle[7], self.slots(now)), *idle[8:])

    def _effect(self, world: World, direction: Direction, call: Any) -> tuple[World, int | None]:
        """A request of a batch, at one instant; and its answer."""
        of, to = (0, 1) if direction == "forward" else (1, 0)
        if call.kind is Kind.LOOK:
            return world, world[4][of]
        if call.kind is Kind.WAIT:
            return world, None
        return self._put(world, to, call.image if call.kind is Kind.WRITE else None), None
