"""Explore every interleaving of writers, keepers, crashes and duplicates in one item collection.

The next call of a keeper is decided by protocol.py, which production runs as well.

A world is a value: the items of the table, the remaining writes of users, the waiting records, and
the state of each keeper. `Rules.nexts` yields each world that one atomic call, delivery or crash
leads to.
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
"""Kinds of records: INSERT by a user, CHANGED for the item in the sentinel's place, or OTHER.

WALKED is not a record: a walk has read the collection earlier. It is not delivered again if the
walker is killed.
"""

Working = tuple[str, Call, bool]
"""A keeper's record, the call that it is about to make, and whether it has seen items."""


@dataclass(frozen=True, slots=True)
class World:
    """An item collection with its writers, keepers and records.

    Attributes:
        writers: The remaining writes of each user, in order: "+a" and "-a"; "-!" deletes the item
            in the sentinel's place, "+!" puts an item there, "~!" removes a sentinel's marker.
        occupied: Whether a user's item is in the sentinel's place.
        trusted: Whether `auto` reads the index.
        before: The items that sort before the sentinel.
        crashes, copies: How many crashes and duplicate records may still happen.
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
        """Whether writes have stopped, and all records have been processed."""
        return not any(self.writers) and not self.records and not any(self.keepers)

    @property
    def is_right(self) -> bool:
        """Whether there is a sentinel if there is an item, or else the index is not trusted."""
        if self.occupied:
            return not self.trusted
        return self.sentinel == bool(self.items)

    @property
    def place(self) -> Place:
        """The result of a read of the sentinel's place."""
        if self.occupied:
            return Place.OCCUPIED
        return Place.SENTINEL if self.sentinel else Place.FREE

    def without_crashes(self) -> "World":
        """Return the same world without crashes and duplicates."""
        return replace(self, crashes=0, copies=0)

    def look(self) -> tuple[bool, bool | None]:
        """Return what the first two items of the collection show."""
        first = [False] * len(self.items & self.before)
        middle = [self.sentinel] if self.place is not Place.FREE else []
        last = [False] * len(self.items - self.before)
        return shown_by([*first, *middle, *last][:2])

    def recorded(self, record: str) -> "World":
        """Return the world with one more record, sorted because their order has no meaning."""
        return replace(self, records=tuple(sorted((*self.records, record))))


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the stream and the keepers; mutants show which rules the protocol needs.

    Attributes:
        own_inserts, own_deletes: Whether the stream has records of the keepers' writes.
        looks_again: Whether a keeper looks again after a write, until nothing is wrong.
        passes_changes: Whether the filter passes changes of the item in the sentinel's place.
        withdraws: Whether a keeper withdraws trust in the index if that place is occupied.
    """

    own_inserts: bool = True
    own_deletes: bool = True
    looks_again: bool = False
    passes_changes: bool = True
    withdraws: bool = True

    def nexts(self, world: World) -> Iterator[World]:
        """Yield all worlds that are one step away."""
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
                idle = idle if working[0] == WALKED else idle.recorded(working[0])
                yield replace(idle, crashes=world.crashes - 1)

    def explore(self, world: World) -> tuple[int, list[World]]:
        """Return the number of reachable worlds, and those that are quiet but not right."""
        worlds = [*reachable(world, self.nexts)]
        return len(worlds), [each for each in worlds if each.is_quiet and not each.is_right]

    def wander(self, world: World, chance: random.Random) -> World:
        """Return the last world of a history that is chosen at random."""
        while not world.is_quiet:
            world = chance.choice(list(self.nexts(world)))
        return world

    def _worked(self, world: World, number: int, working: Working) -> World:
        """Make one call of a keeper, which is atomic like a request for one item collection."""
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
        keeper = None if following is None else (record, following, items)
        return replace(world, keepers=_with(world.keepers, number, keeper))

    def _written(self, world: World, operation: str) -> World:
        """Apply a user's write, and add its record if it has an effect and the filter passes it."""
        kind, name = operation[0], operation[1:]
        if name == SENTINEL:
            return self._written_to_the_place(world, kind)
        if (kind == "+") == (name in world.items):
            return world
        items = world.items | {name} if kind == "+" else world.items - {name}
        return replace(world, items=items).recorded(INSERT if kind == "+" else OTHER)

    def _written_to_the_place(self, world: World, kind: str) -> World:
        place = world.place
        if kind == "-":
            freed = replace(world, sentinel=False, occupied=False)
            return world if place is Place.FREE else freed.recorded(OTHER)
        if place is Place.OCCUPIED or (kind == "~" and place is Place.FREE):
            return world
        world = replace(world, sentinel=False, occupied=True)
        if place is Place.FREE:
            return world.recorded(OTHER)
        return world.recorded(CHANGED) if self.passes_changes else world


def _deliveries(world: World, number: int) -> Iterator[World]:
    """Deliver any waiting record; it may be delivered again later."""
    for record in set(world.records):
        remaining = list(world.records)
        remaining.remove(record)
        working = (record, protocol.first_call(only_inserts=record == INSERT), False)
        busy = _with(world.keepers, number, working)
        yield replace(world, keepers=busy, records=tuple(remaining))
        if world.copies:
            yield replace(world, keepers=busy, copies=world.copies - 1)


def _with(values: tuple[Any, ...], number: int, value: Any) -> tuple[Any, ...]:
    return (*values[:number], value, *values[number + 1 :])
