"""Every interleaving of writers, keepers, crashes and duplicates over one item collection.

What a keeper does next is decided by protocol.py, which production runs as well.

A world is a value: what lies in the table, what users will yet do, which records wait, where each
keeper stands. `Rules.nexts` gives all worlds that one atomic call, delivery or crash can lead to.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from keyhop.key_index import protocol
from keyhop.key_index.protocol import Call, Place, shown_by

from testing.worlds import reachable

SENTINEL = "!"
INSERT, OTHER, CHANGED, WALKED = "I", "R", "M", "W"
"""Records: of a user's insert; of a change of the item in the sentinel's place; and all others.
WALKED is no record, but what a walk has seen of the collection some time ago; it does not come
again when the walker is killed."""

Working = tuple[str, Call, bool]
"""A keeper's record, the call that it is about to make, and whether it has seen items."""


@dataclass(frozen=True, slots=True)
class World:
    """writers: what each will yet do, in order: "+a", "-a"; "-!" deletes what is in the sentinel's
    place, "+!" puts an item there, and "~!" takes the marker of a sentinel away.

    occupied: an item of a user is in the sentinel's place. trusted: `auto` reads the index. before:
    items that sort before the sentinel. crashes, copies: how many may yet happen.
    """

    writers: tuple[tuple[str, ...], ...]
    keepers: tuple[Working | None, ...]
    items: frozenset[str] = frozenset()
    sentinel: bool = False
    occupied: bool = False
    trusted: bool = True
    records: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()
    crashes: int = 0
    copies: int = 0

    @property
    def is_quiet(self) -> bool:
        """Writes have stopped, and all records have been worked on."""
        return not any(self.writers) and not self.records and not any(self.keepers)

    @property
    def is_right(self) -> bool:
        """Tell whether a sentinel is where an item is; if it cannot be, nobody trusts the index."""
        if self.occupied:
            return not self.trusted
        return self.sentinel == bool(self.items)

    @property
    def place(self) -> Place:
        """What a read of the sentinel's place finds."""
        if self.occupied:
            return Place.OCCUPIED
        return Place.SENTINEL if self.sentinel else Place.FREE

    def without_crashes(self) -> "World":
        """The same, where no keeper is killed and no record comes twice."""
        return replace(self, crashes=0, copies=0)

    def look(self) -> tuple[bool, bool | None]:
        """The first two items of the collection."""
        first = [False] * len(self.items & self.before)
        middle = [self.sentinel] if self.place is not Place.FREE else []
        last = [False] * len(self.items - self.before)
        return shown_by([*first, *middle, *last][:2])

    def recorded(self, record: str) -> "World":
        """With one more record in the stream; order says nothing."""
        return replace(self, records=tuple(sorted((*self.records, record))))


@dataclass(frozen=True, slots=True)
class Rules:
    """How the stream and the keepers behave; others than the protocol's show what it needs.

    own_inserts, own_deletes: whether keepers' own writes are records. looks_again: whether a keeper
    looks again after it has acted, until it sees that all is right. passes_changes: whether the
    stream's filter lets changes of the item in the sentinel's place pass. withdraws: whether a
    keeper withdraws the trust in the index when that place is occupied.
    """

    own_inserts: bool = True
    own_deletes: bool = True
    looks_again: bool = False
    passes_changes: bool = True
    withdraws: bool = True

    def nexts(self, world: World) -> Iterator[World]:
        """All worlds that are one step away."""
        for number, script in enumerate(world.writers):
            if script:
                rest = _with(world.writers, number, script[1:])
                yield self._written(replace(world, writers=rest), script[0])
        for number, working in enumerate(world.keepers):
            if working is None:
                yield from _deliveries(world, number)
                continue
            yield self._worked(world, number, working)
            if world.crashes:
                idle = replace(world, keepers=_with(world.keepers, number, None))
                again = idle if working[0] == WALKED else idle.recorded(working[0])
                yield replace(again, crashes=world.crashes - 1)

    def explore(self, world: World) -> tuple[int, list[World]]:
        """How many worlds can come of it, and those of them that are quiet but not right."""
        worlds = [*reachable(world, self.nexts)]
        return len(worlds), [one for one in worlds if one.is_quiet and not one.is_right]

    def wander(self, world: World, chance: random.Random) -> World:
        """One history, chosen at random, to its end."""
        while not world.is_quiet:
            world = chance.choice(list(self.nexts(world)))
        return world

    def _worked(self, world: World, number: int, working: Working) -> World:
        """One call of a keeper: atomic, as a request for one item collection is."""
        record, call, items = working
        following: Call | None = Call.LOOK if self.looks_again else None
        if call is Call.READ:
            following = protocol.after_read(world.place, items)
        elif call is Call.LOOK:
            items, sentinel = world.look()
            following = protocol.after_look(items, sentinel)
        elif call is Call.WITHDRAW:
            following = None
            world = replace(world, trusted=world.trusted and not self.withdraws)
        elif call is Call.PUT and world.place is Place.OCCUPIED:
            following = protocol.after_put(world.place)
        elif call is Call.PUT and not world.sentinel:
            world = replace(world, sentinel=True)
            world = world.recorded(OTHER) if self.own_inserts else world
        elif call is Call.DELETE and world.sentinel:
            world = replace(world, sentinel=False)
            world = world.recorded(OTHER) if self.own_deletes else world
        stands = None if following is None else (record, following, items)
        return replace(world, keepers=_with(world.keepers, number, stands))

    def _written(self, world: World, operation: str) -> World:
        """A user's write, and its record if it has changed anything and the filter lets it pass."""
        kind, name = operation[0], operation[1:]
        if name == SENTINEL:
            return self._written_to_the_place(world, kind)
        if (kind == "+") == (name in world.items):
            return world
        items = world.items | {name} if kind == "+" else world.items - {name}
        return replace(world, items=items).recorded(INSERT if kind == "+" else OTHER)

    def _written_to_the_place(self, world: World, kind: str) -> World:
        was = world.place
        if kind == "-":
            gone = replace(world, sentinel=False, occupied=False)
            return world if was is Place.FREE else gone.recorded(OTHER)
        if was is Place.OCCUPIED or (kind == "~" and was is Place.FREE):
            return world
        world = replace(world, sentinel=False, occupied=True)
        if was is Place.FREE:
            return world.recorded(OTHER)
        return world.recorded(CHANGED) if self.passes_changes else world


def _deliveries(world: World, number: int) -> Iterator[World]:
    """Any waiting record may come next; and it may come once more later."""
    for record in set(world.records):
        left = list(world.records)
        left.remove(record)
        working = (record, protocol.first_call(only_inserts=record == INSERT), False)
        busy = _with(world.keepers, number, working)
        yield replace(world, keepers=busy, records=tuple(left))
        if world.copies:
            yield replace(world, keepers=busy, copies=world.copies - 1)


def _with(values: tuple[Any, ...], number: int, value: Any) -> tuple[Any, ...]:
    return (*values[:number], value, *values[number + 1 :])
