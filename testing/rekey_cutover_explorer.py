"""Explore every interleaving of clients, batches both ways, cutovers, aborts and rollbacks.

The explorer runs `keyhop.rekey.control.Control`, which decides what each process may do,
`keyhop.rekey.standing.RekeyStatus`, which decides when a change may begin, and
`keyhop.rekey.worker.protocol.Protocol`. There is one item: each of the source and the destination
has a value of it, or None. `truth` is the value of the last write.

A client is represented by its *view*, which is the control item that it has read, or by nothing. It
may act on its view at any moment while it has one. So a strong read is not a step: in each world,
the table that any view reads from must hold the truth. A client may also choose a table and be
paused before it sends; its write is not acknowledged, and arrives when that table no longer serves.
Such a write is a straggler: a batch that passes its record notes it after the other worker has
processed the item. Views and batches are sorted, because equal ones are interchangeable. Leases are
stated as order: a change that must let them expire waits until no earlier view remains. The
decision to continue is one step, and its swap is another one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.rekey.control import Control, Direction, Evidence, Side, other_side
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import Straggler
from keyhop.rekey.standing import RekeyStatus, are_open
from keyhop.rekey.worker.protocol import Kind, Protocol

from testing.worlds import Numbers, explored, with_more

World = tuple[Any, ...]
"""(control, decided, views, truth, tables, at, records, slots, late, budget, paused, stray)

control: a number; views: -1 for none, or twice a control's number, plus 1 if it is the current one;
tables: the values in source and destination; at: the number of writes of the script that have
happened; records, slots, late: sorted numbers; budget: the turns, aborts, copies and crashes that
may still happen; paused: the tables that paused clients will write to; stray: the table with an
unsettled straggler, or None.
"""

STALE = 99
"""The value that a paused client writes."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a stream.

    Attributes:
        is_retry: Whether an earlier batch with this record was killed and left its note.
        copy: Whether this is a second delivery, of which the drain does not know.
    """

    direction: Direction
    value: int | None
    is_retry: bool = False
    copy: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """A script of writes, and the events that may interfere with it.

    Attributes:
        script: The values that clients write, in order.
        turns: How many changes may begin.
        bypassed: Whether writers without a router write to the source, at any stage. Then each
            change is aborted, because nothing else is promised.
        pauses: How many clients may be paused before they send.
    """

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
    """An explorer of the cutover; its subclasses, and those of Control, are mutants."""

    note_first = True
    """Whether a batch writes its note before it reads the control item."""
    keeps_note = True
    """Whether a batch that is postponed leaves the note of an earlier attempt."""
    gate = True
    """Whether an unsettled straggler shuts the gate of a change."""
    examines = True
    """Whether a change begins only when all records of the other table were examined."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.protocol = Protocol(lambda value: 0)
        self.controls, self.records, self.slots = Numbers(), Numbers(), Numbers()
        self.works, self.lates = Numbers(), Numbers()
        self.cache: dict[Any, Any] = {}

    def explore(self) -> tuple[int, World | None]:
        """Return the number of worlds, and one that is wrong, or None."""
        scenario = self.scenario
        budget = (scenario.turns, scenario.aborts, scenario.copies, scenario.crashes)
        views = (-1,) * scenario.clients
        control = self.controls(scenario.control)
        first = (control, False, views, 0, (0, 0), 0, (), (), (), budget, (), None)
        return explored(first, self.nexts, self.is_right)

    def is_right(self, world: World) -> bool:
        """Return whether each client would read the truth, and, at rest, both tables hold it."""
        number, decided, views, truth, tables, at, records, slots, late, _, paused, stray = world
        for view in views:
            if view >= 0 and tables[self._table(self.controls.values[view >> 1])] != truth:
                return False
        if records or slots or late or decided or at < len(self.scenario.script):
            return True
        if paused or stray is not None:
            return True
        return self.controls.values[number].stage != "open" or tables == (truth, truth)

    def _cached(self, function: Callable[..., Any], *arguments: Any) -> Any:
        key = (function.__name__, arguments)
        if key not in self.cache:
            self.cache[key] = function(*arguments)
        return self.cache[key]

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
        """Let a client read the control item, lose its lease, or write."""
        number, decided, views, _truth, tables, at, records, *rest = world
        stray = world[11]
        current: Control = self.controls.values[number]
        for place, table in enumerate(world[10]):
            if current.stage == "open" and self._table(current) != table:
                after = self._put(world, table, STALE)
                yield (*after[:10], world[10][:place] + world[10][place + 1 :], stray)
        bypassed = self.scenario.bypassed and at < len(self.scenario.script)
        if bypassed:
            value = self.scenario.script[at]
            written = (number, decided, views, value, tables, at + 1, records, *rest)
            yield self._put(written, 0, value)
        for place, view in enumerate(views):
            if place and view == views[place - 1]:
                continue
            other_views = views[:place] + views[place + 1 :]
            if view != 2 * number + 1:
                new_view = -1 if view >= 0 else 2 * number + 1
                yield (number, decided, with_more(other_views, new_view), *world[3:])
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
        """Write to a table, and add the record of a write that changes anything."""
        tables, records = world[4], world[6]
        if tables[table] == value:
            return world
        written = (value, tables[1]) if table == 0 else (tables[0], value)
        record = self.records(Record("forward" if table == 0 else "reverse", value))
        return (*world[:4], written, world[5], with_more(records, record), *world[7:])

    def _changes(self, world: World) -> Iterator[World]:
        """Begin, continue or abort a change."""
        number, decided, *_ = world
        control: Control = self.controls.values[number]
        turns, aborts, copies, crashes = world[9]
        if control.stage == "open":
            stray = world[11]
            if stray is not None:
                yield self._settled(world)
            may_begin = not self.gate or self._cached(self.may_begin, number, stray)
            if self.examines and self._is_unexamined(world):
                may_begin = False
            if turns and may_begin:
                closed = self._cached(self.closed, number)
                yield self._swapped(world, closed, (turns - 1, aborts, copies, crashes))
            return
        if not decided:
            if self._cached(self.following, number, *self.standing(world)) >= 0:
                yield (number, True, *world[2:])
        elif not (self.scenario.bypassed and control.stage == "fenced"):
            swapped = self._cached(self.following, number, float("inf"), True, 0)
            yield self._swapped(world, swapped, world[9])
        if aborts and self.may_abort(control):
            aborted = self._cached(self.aborted, number)
            yield self._swapped(world, aborted, (turns, aborts - 1, copies, crashes))

    def _is_unexamined(self, world: World) -> bool:
        """Return whether records of the table that does not serve have not been examined."""
        serving = self._table(self.controls.values[world[0]])
        direction = "reverse" if serving == 0 else "forward"
        waiting = [self.records.values[number] for number in world[6]]
        busy = [self.slots.values[number][0] for number in world[7]]
        return any(record.direction == direction for record in (*waiting, *busy))

    def _settled(self, world: World) -> World:
        """Overwrite the straggler with the value in the serving table, as a user accepts it."""
        serving = self._table(self.controls.values[world[0]])
        after = self._put(world, 1 - serving, world[4][serving])
        return (*after[:11], None)

    def may_begin(self, number: int, stray: int | None) -> bool:
        """Return whether the gates that concern this world are open."""
        control: Control = self.controls.values[number]
        side: Side = "destination" if stray else "source"
        stragglers = () if stray is None else (Straggler(side, {}, (), 0.0),)
        status = RekeyStatus(Pair("Old", "New", {}), control, 0.0, stragglers=stragglers)
        gates = status.gates(other_side(control.serving))
        return are_open([gate for gate in gates if gate.name in ("stage", "stragglers")])

    def number_of(self, control: Control) -> int:
        return self.controls(replace(control, revision=0, turns=0))

    def closed(self, number: int) -> int:
        return self.number_of(self.controls.values[number].closed())

    def following(self, number: int, seen_for: float, drained: bool, open_batches: int) -> int:
        """Return the number of the control item at the next stage, or -1 if it is too early."""
        control: Control = self.controls.values[number]
        following = control.following(Evidence(seen_for, drained, open_batches))[0]
        return -1 if following is None else self.number_of(following)

    def may_abort(self, control: Control) -> bool:
        return control.stage in ("closing", "frozen", "fenced")

    def aborted(self, number: int) -> int:
        return self.number_of(self.controls.values[number].aborted())

    def standing(self, world: World) -> tuple[float, bool, int]:
        """Return the evidence in this world: seen_for, drained and open_batches."""
        number, _, views, *_ = world
        control: Control = self.controls.values[number]
        direction = "forward" if control.serving == "source" else "reverse"
        waiting = [self.records.values[each] for each in world[6]]
        waiting = [record for record in waiting if record.direction == direction]
        busy = [self.slots.values[each] for each in world[7]]
        busy = [slot for slot in busy if slot[0].direction == direction]
        drained = all(record.copy for record in (*waiting, *(slot[0] for slot in busy)))
        notes = sum(record.is_retry for record in waiting) + sum(
            slot[1] != "noting" for slot in busy
        )
        settled = all(view < 0 or view == 2 * number + 1 for view in views)
        return float("inf") if settled else 0.0, drained, notes

    def _swapped(self, world: World, number: int, budget: Any) -> World:
        """Change the control item, so that no view is the current one."""
        views = tuple(sorted(view & ~1 if view >= 0 else view for view in world[2]))
        return (number, False, views, *world[3:9], budget, *world[10:])

    def _delivered(self, world: World) -> Iterator[World]:
        records, slots = world[6], world[7]
        for place, number in enumerate(records):
            if place and number == records[place - 1]:
                continue
            record: Record = self.records.values[number]
            busy = sum(self.slots.values[slot][0].direction == record.direction for slot in slots)
            if busy == self.scenario.workers:
                continue
            doing = "begun" if self.note_first or record.is_retry else "noting"
            new_slots = with_more(slots, self.slots((record, doing, -1)))
            other_records = records[:place] + records[place + 1 :]
            yield (*world[:6], other_records, new_slots, *world[8:])
            turns, aborts, copies, crashes = world[9]
            if copies and not record.is_retry and not record.copy:
                new_records = with_more(other_records, self.records(replace(record, copy=True)))
                budget = (turns, aborts, copies - 1, crashes)
                yield (*world[:6], new_records, new_slots, world[8], budget, *world[10:])

    def _worked(self, world: World, slot: int, other_slots: Any) -> Iterator[World]:
        """Let a batch write its note, read the control item, make a call, end, or be killed."""
        record, doing, number = self.slots.values[slot]
        call = self._cached(self.call, number) if number >= 0 else None
        is_late = any(self.lates.values[request][0] == record for request in world[8])
        idle = (*world[:7], other_slots, *world[8:])
        if world[9][3]:
            retry = self.records(replace(record, is_retry=doing != "noting"))
            new_records = with_more(idle[6], retry)
            budget = (*world[9][:3], world[9][3] - 1)
            dead = (*idle[:6], new_records, other_slots, world[8], budget, *world[10:])
            if doing == "work" and call is not None and call.kind in (Kind.WRITE, Kind.REMOVE):
                late = self.lates((replace(record, is_retry=True), call))
                dead = (*dead[:8], with_more(world[8], late), budget, *world[10:])
            yield dead
        if doing in ("begun", "noting"):
            yield from self._looked(world, idle, record, doing, number)
        elif doing == "pass":
            yield from self._examined(idle, record)
        elif doing == "later":
            retry = self.records(replace(record, is_retry=record.is_retry and self.keeps_note))
            yield (*idle[:6], with_more(idle[6], retry), *idle[7:])
        elif call is None:
            yield idle
        elif call.kind is not Kind.WAIT or not is_late:
            after, answer = self._effect(idle, record.direction, call)
            then = self._cached(self.answered, number, answer)
            yield (
                *after[:7],
                with_more(other_slots, self.slots((record, doing, then))),
                *after[8:],
            )

    def _examined(self, idle: World, record: Record) -> Iterator[World]:
        """End a batch of the table that does not serve, after the other worker has done the item.

        A difference is then a straggler.
        """
        if not self.scenario.pauses:
            yield idle
            return
        records = [self.records.values[number] for number in idle[6]]
        records += [self.slots.values[number][0] for number in idle[7]]
        if any(each.direction != record.direction for each in records):
            return
        table = 0 if record.direction == "forward" else 1
        differs = idle[4][0] != idle[4][1]
        yield (*idle[:11], table if differs else idle[11])

    def call(self, number: int) -> Any:
        return self.protocol.call(self.works.values[number])

    def answered(self, number: int, answer: int | None) -> int:
        return self.works(self.protocol.answered(self.works.values[number], answer))

    def begin(self, value: int | None, is_retry: bool) -> int:
        return self.works(self.protocol.begin(0, (0,), value, is_retry, waits=is_retry))

    def _looked(
        self, world: World, idle: World, record: Record, doing: str, number: int
    ) -> Iterator[World]:
        """Read the control item; or, if it was read before, write the note now."""
        control: Control = self.controls.values[world[0]]
        share = control.share_of(record.direction)
        work = self._cached(self.begin, record.value, record.is_retry)
        slot: tuple[Any, ...] = (record, share, work if share == "work" else -1)
        if doing == "noting":
            slot = (record, "work", work) if number >= 0 else (record, "noting", work)
            if number < 0 and share != "work":
                slot = (record, share, -1)
        yield (*idle[:7], with_more(idle[7], self.slots(slot)), *idle[8:])

    def _effect(self, world: World, direction: Direction, call: Any) -> tuple[World, int | None]:
        """Apply a request of a batch at one instant, and return the world and the answer."""
        source, destination = (0, 1) if direction == "forward" else (1, 0)
        if call.kind is Kind.LOOK:
            return world, world[4][source]
        if call.kind is Kind.WAIT:
            return world, None
        return self._put(world, destination, call.image if call.kind is Kind.WRITE else None), None
