"""Explore every interleaving of adds, looks, folds and a change of the shard count of a counter.

As in sharding_explorer.py, a world is a value and each step is one request. A part of the counter
is the set of its adds, which shows each add that is lost or counted twice. Each adds 1: the
condition of a fold compares their number, as the service does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from keyhop.sharding.key.counting import is_folded, is_stranded, reads_of, shards_to_add
from keyhop.sharding.key.shards import Phase, Shards

from testing.worlds import with_broken

Part = tuple[str, ...]
"""The adds in a shard. It is empty if there is no item."""
BEGIN = -1


class Adder(NamedTuple):
    """A process that adds 1 to the counter.

    Attributes:
        add: The name of its add. None after it is acknowledged.
        token: Whether it puts a marker.
        lost: How many responses may still be lost, after each of which it retries.
        slow: Whether its request may arrive after any time.
        phase: The phase of the metadata with which it sent its add, or BEGIN.
        target: The shard of a request in flight.
        counted_in: The shard in which the add took effect; its response is in flight.
        folds_late: Whether it folds a part that came too late.
        read_count: How many adds it has read in that part. 0 before it has read any.
    """

    add: str | None
    token: bool = False
    lost: int = 0
    slow: bool = False
    phase: int = BEGIN
    target: int = 0
    counted_in: int = 0
    folds_late: bool = False
    read_count: int = 0


class Reader(NamedTuple):
    """A process that reads the counter.

    looks: the parts that it has read, shard by shard, in up to three looks. due: the adds that it
    must count.
    """

    reads: int
    phase: int = BEGIN
    looks: tuple[tuple[tuple[int, Part], ...], ...] = ()
    due: Part = ()


class Mover(NamedTuple):
    """A process that folds parts. read_part: a shard, and the part that the mover read there."""

    phase: int = BEGIN
    read_part: tuple[int, Part] | tuple[()] = ()


class World(NamedTuple):
    """The parts by shard, the actors, and the markers of tokens with the shard of each."""

    parts: tuple[Part, ...]
    adders: tuple[Adder, ...]
    readers: tuple[Reader, ...] = ()
    movers: tuple[Mover, ...] = ()
    markers: tuple[tuple[str, int], ...] = ()
    acknowledged: Part = ()
    now: int = 0


@dataclass
class Rules:
    """The rules. The defaults are those of counters; other values show that each is needed.

    path: the metadata, phase by phase. behind: how many phases old it may be when it is used.
    again: whether shards that are folded are read before and after the other shards. conditional:
    whether a fold has a condition. reunited: whether an add that came too late is folded. once:
    whether an add without a token, too, must be counted only once.
    """

    path: tuple[Shards, ...]
    behind: int = 1
    again: bool = True
    conditional: bool = True
    reunited: bool = True
    once: bool = False

    def explore(self, world: World, max_worlds: int = 2_000_000) -> tuple[int, list[World]]:
        """Return the number of reachable worlds, and some of those that break a promise."""

        def steps(world: World) -> Iterator[tuple[World, bool]]:
            for after, is_right in self._successors(world):
                yield after, is_right and self._is_right(after)

        return with_broken(world, steps, max_worlds)

    def _is_right(self, world: World) -> bool:
        """Return whether readers find each acknowledged add, and no add more often than allowed."""
        counted = [add for part in world.parts for add in part]
        single = {add for add, _ in world.markers}
        for add in set(counted):
            if counted.count(add) > 1 and (self.once or add in single):
                return False
        readable = world.parts[: self.path[world.now].readable]
        return set(world.acknowledged) <= {add for part in readable for add in part}

    def _successors(self, world: World) -> Iterator[tuple[World, bool]]:
        if self._may_advance(world):
            yield self._advanced(world), True
        for n, adder in enumerate(world.adders):
            if adder.add is not None:
                for after in self._add(world, adder, _swap(world.adders, n)):
                    yield after, True
        for n, reader in enumerate(world.readers):
            if reader.reads:
                yield from self._read(world, reader, _swap(world.readers, n))
        for n, mover in enumerate(world.movers):
            for after in self._move(world, mover, _swap(world.movers, n)):
                yield after, True

    def _may_advance(self, world: World) -> bool:
        if world.now + 1 >= len(self.path):
            return False
        shards, following = self.path[world.now : world.now + 2]
        must_be_empty = Phase.MOVED in (shards.phase, following.phase)
        return not (must_be_empty and any(world.parts[shards.writable :]))

    def _advanced(self, world: World) -> World:
        """Restart each actor whose metadata is too old, unless its request is in flight."""
        now = world.now + 1
        oldest = now - self.behind
        readers = [r if r.phase >= oldest else Reader(r.reads) for r in world.readers]
        adders = [
            a._replace(phase=BEGIN, target=0) if a.target and not a.slow and a.phase < oldest else a
            for a in world.adders
        ]
        movers = [m if m.phase >= oldest else Mover() for m in world.movers]
        return world._replace(
            now=now, readers=tuple(readers), adders=tuple(adders), movers=tuple(movers)
        )

    def _usable_phases(self, world: World, phase: int = BEGIN) -> range:
        if phase != BEGIN:
            return range(phase, phase + 1)
        return range(max(0, world.now - self.behind), world.now + 1)

    def _add(
        self, world: World, adder: Adder, swap: Callable[[Adder], tuple[Adder, ...]]
    ) -> Iterator[World]:
        if adder.folds_late:
            yield from self._fold_late(world, adder, swap)
        elif adder.counted_in:
            yield from self._receive(world, adder, swap)
        elif not adder.target:
            for phase in self._usable_phases(world):
                for shard in shards_to_add(self.path[phase]):
                    yield world._replace(adders=swap(adder._replace(phase=phase, target=shard)))
        else:
            yield from self._take_effect(world, adder, swap)

    def _take_effect(
        self, world: World, adder: Adder, swap: Callable[[Adder], tuple[Adder, ...]]
    ) -> Iterator[World]:
        assert adder.add is not None
        markers = dict(world.markers)
        shard = adder.target
        if adder.token and adder.add in markers:  # refused: the marker says where it was counted
            yield world._replace(
                adders=swap(adder._replace(target=0, counted_in=markers[adder.add], phase=BEGIN))
            )
            return
        after = world._replace(parts=_with(world.parts, shard, (adder.add,)))
        if adder.token:
            after = after._replace(markers=(*world.markers, (adder.add, shard)))
        yield after._replace(adders=swap(adder._replace(target=0, counted_in=shard)))
        if adder.lost:
            restarted = adder._replace(target=0, phase=BEGIN, lost=adder.lost - 1)
            yield after._replace(adders=swap(restarted))

    def _receive(
        self, world: World, adder: Adder, swap: Callable[[Adder], tuple[Adder, ...]]
    ) -> Iterator[World]:
        """Receive the response: at once, or late, and then read the current metadata."""
        assert adder.add is not None
        in_time = adder.phase != BEGIN and world.now - adder.phase <= self.behind
        # An adder that found a marker has read the metadata for its own attempt.
        for phase in [None] if in_time else self._usable_phases(world):
            shards = self.path[world.now if phase is None else phase]
            if phase is None or not self.reunited or not is_stranded(shards, adder.counted_in):
                yield self._acknowledged(world, adder, swap)
            else:
                yield world._replace(adders=swap(adder._replace(phase=phase, folds_late=True)))

    def _fold_late(
        self, world: World, adder: Adder, swap: Callable[[Adder], tuple[Adder, ...]]
    ) -> Iterator[World]:
        """Read the late part, then fold it, both with fresh metadata."""
        restarted = adder._replace(phase=BEGIN, folds_late=False, read_count=0)
        part = world.parts[adder.counted_in - 1]
        if world.now - adder.phase > self.behind:
            yield world._replace(adders=swap(restarted))
        elif not part:
            yield self._acknowledged(world, adder, swap)
        elif not adder.read_count:
            yield world._replace(adders=swap(adder._replace(read_count=len(part))))
        elif len(part) == adder.read_count:
            for target in shards_to_add(self.path[adder.phase]):
                after = world._replace(parts=_folded(world.parts, adder.counted_in, target))
                yield self._acknowledged(after, adder, swap)
        else:
            yield world._replace(adders=swap(restarted))

    def _acknowledged(
        self, world: World, adder: Adder, swap: Callable[[Adder], tuple[Adder, ...]]
    ) -> World:
        assert adder.add is not None
        acknowledged = tuple(sorted((*world.acknowledged, adder.add)))
        return world._replace(adders=swap(Adder(None)), acknowledged=acknowledged)

    def _read(
        self, world: World, reader: Reader, swap: Callable[[Reader], tuple[Reader, ...]]
    ) -> Iterator[tuple[World, bool]]:
        """Read one more shard of a look, in any order."""
        for phase in self._usable_phases(world, reader.phase):
            readable, folding = reads_of(self.path[phase])
            if not self.again:
                folding = folding[:0]
            below = readable[: len(readable) - len(folding)]
            plan = [folding, below, folding] if folding else [below]
            started = reader._replace(phase=phase, looks=reader.looks or ((),))
            if reader.phase == BEGIN:
                started = started._replace(due=world.acknowledged)
            look = len(started.looks) - 1
            for shard in set(plan[look]) - {number for number, _ in started.looks[-1]}:
                contents = tuple(sorted((*started.looks[-1], (shard, world.parts[shard - 1]))))
                looks = (*started.looks[:-1], contents)
                if len(contents) < len(plan[look]):
                    yield world._replace(readers=swap(started._replace(looks=looks))), True
                elif look + 1 < len(plan):
                    yield world._replace(readers=swap(started._replace(looks=(*looks, ())))), True
                else:
                    reported, is_right = self._report(world, started._replace(looks=looks))
                    yield world._replace(readers=swap(reported)), is_right

    def _report(self, world: World, reader: Reader) -> tuple[Reader, bool]:
        """Report a value, and return whether it is right; or look again."""
        looks = [dict(look) for look in reader.looks]
        if len(looks) == 3:
            holding = [[shard for shard, part in look.items() if part] for look in looks]
            if is_folded(holding[0], holding[2]):
                return Reader(reader.reads), True
            looks.pop()
        counted = [add for look in looks for part in look.values() for add in part]
        stored = [add for part in world.parts for add in part]
        twice = any(counted.count(add) > max(1, stored.count(add)) for add in counted)
        return Reader(reader.reads - 1), set(reader.due) <= set(counted) and not twice

    def _move(
        self, world: World, mover: Mover, swap: Callable[[Mover], tuple[Mover, ...]]
    ) -> Iterator[World]:
        for phase in self._usable_phases(world, mover.phase):
            shards = self.path[phase]
            if shards.phase is not Phase.MOVING:
                continue
            if not mover.read_part:
                for shard in range(shards.readable, shards.writable, -1):
                    part = world.parts[shard - 1]
                    if part:
                        yield world._replace(movers=swap(Mover(phase, (shard, part))))
                continue
            source, read = mover.read_part
            current, after = world.parts[source - 1], world
            if not self.conditional:  # it adds the part that it read, and removes the current one
                parts = _with(world.parts, 1, read)
                after = world._replace(parts=(*parts[: source - 1], (), *parts[source:]))
            elif len(current) == len(read):
                after = world._replace(parts=_folded(world.parts, source, 1))
            yield after._replace(movers=swap(Mover()))
            yield after._replace(movers=swap(mover))  # its response is lost: it retries


def _swap(actors: tuple, number: int) -> Callable:
    """Return a function that returns the actors, with another one in this place."""
    return lambda actor: (*actors[:number], actor, *actors[number + 1 :])


def _with(parts: tuple[Part, ...], shard: int, adds: Part) -> tuple[Part, ...]:
    part = tuple(sorted((*parts[shard - 1], *adds)))
    return (*parts[: shard - 1], part, *parts[shard:])


def _folded(parts: tuple[Part, ...], source: int, target: int) -> tuple[Part, ...]:
    added = _with(parts, target, parts[source - 1])
    return (*added[: source - 1], (), *added[source:])
