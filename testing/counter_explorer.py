"""Every interleaving of adds, looks, folds and a change of the shard count, for one counter.

As sharding_explorer.py: a world is a value, each step is one request. A part of the counter is the
adds that are in it, so that an add that is lost, or counted twice, is seen whatever the numbers
are. All add 1: the condition of a fold compares how many there are, as the service does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from keyhop.sharding.key.counting import is_folded, is_stranded, reads_of, shards_to_add
from keyhop.sharding.key.shards import Phase, Shards

from testing.worlds import with_broken

Part = tuple[str, ...]
"""The adds in a shard; empty: there is no item."""
BEGIN = -1


class Adder(NamedTuple):
    """add: its name, None: done. known: the phase by which it has sent its add, or BEGIN.

    sent: the shard of an add that is on its way there; slow: it may get there after any time.
    answered: the shard of one that took effect, and whose answer is on its way, for any time. lost:
    so many answers may yet be lost, after which it tries again. token: it puts a marker.
    reunites: it folds what came late; held: how many adds it has read there, 0: none yet.
    """

    add: str | None
    token: bool = False
    lost: int = 0
    slow: bool = False
    known: int = BEGIN
    sent: int = 0
    answered: int = 0
    reunites: bool = False
    held: int = 0


class Reader(NamedTuple):
    """seen: what it has read, shard by shard, in up to three looks. due: adds it must count."""

    reads: int
    known: int = BEGIN
    seen: tuple[tuple[tuple[int, Part], ...], ...] = ()
    due: Part = ()


class Mover(NamedTuple):
    """held: the shard, and what it has read there."""

    known: int = BEGIN
    held: tuple[int, Part] | tuple[()] = ()


class World(NamedTuple):
    """parts: by shard. markers: of tokens, with the shard of each. acknowledged: adds."""

    parts: tuple[Part, ...]
    adders: tuple[Adder, ...]
    readers: tuple[Reader, ...] = ()
    movers: tuple[Mover, ...] = ()
    markers: tuple[tuple[str, int], ...] = ()
    acknowledged: Part = ()
    now: int = 0


@dataclass
class Rules:
    """What is kept; others than these show what is needed.

    path: the metadata, phase by phase. behind: how many phases old it may be. again: shards that
    are folded are read before the others and after. conditional: a fold is. reunited: what came
    late is folded. once: an add without a token must be counted once, too.
    """

    path: tuple[Shards, ...]
    behind: int = 1
    again: bool = True
    conditional: bool = True
    reunited: bool = True
    once: bool = False

    def explore(self, world: World, most: int = 2_000_000) -> tuple[int, list[World]]:
        """How many worlds can come of it, and some of those in which a promise is broken."""

        def steps(here: World) -> Iterator[tuple[World, bool]]:
            for there, is_right in self._nexts(here):
                yield there, is_right and self._is_right(there)

        return with_broken(world, steps, most)

    def _is_right(self, world: World) -> bool:
        """Each add that was acknowledged lies where readers look, and none is there too often."""
        counted = [add for part in world.parts for add in part]
        single = {add for add, _ in world.markers}
        for add in set(counted):
            if counted.count(add) > 1 and (self.once or add in single):
                return False
        readable = world.parts[: self.path[world.now].readable]
        return set(world.acknowledged) <= {add for part in readable for add in part}

    def _nexts(self, world: World) -> Iterator[tuple[World, bool]]:
        if self._may_advance(world):
            yield self._advanced(world), True
        for n, adder in enumerate(world.adders):
            if adder.add is not None:
                for after in self._added(world, adder, _set(world.adders, n)):
                    yield after, True
        for n, reader in enumerate(world.readers):
            if reader.reads:
                yield from self._read(world, reader, _set(world.readers, n))
        for n, mover in enumerate(world.movers):
            for after in self._moved(world, mover, _set(world.movers, n)):
                yield after, True

    def _may_advance(self, world: World) -> bool:
        if world.now + 1 >= len(self.path):
            return False
        shards, following = self.path[world.now : world.now + 2]
        must_be_empty = Phase.MOVED in (shards.phase, following.phase)
        return not (must_be_empty and any(world.parts[shards.writable :]))

    def _advanced(self, world: World) -> World:
        """Who acts by what is too old begins anew, unless his request is on its way."""
        now = world.now + 1
        oldest = now - self.behind
        readers = [r if r.known >= oldest else Reader(r.reads) for r in world.readers]
        adders = [
            a._replace(known=BEGIN, sent=0) if a.sent and not a.slow and a.known < oldest else a
            for a in world.adders
        ]
        movers = [m if m.known >= oldest else Mover() for m in world.movers]
        return world._replace(
            now=now, readers=tuple(readers), adders=tuple(adders), movers=tuple(movers)
        )

    def _fresh(self, world: World, known: int = BEGIN) -> range:
        if known != BEGIN:
            return range(known, known + 1)
        return range(max(0, world.now - self.behind), world.now + 1)

    def _added(
        self, world: World, adder: Adder, put: "Callable[[Adder], tuple[Adder, ...]]"
    ) -> Iterator[World]:
        if adder.reunites:
            yield from self._reunited(world, adder, put)
        elif adder.answered:
            yield from self._answered(world, adder, put)
        elif not adder.sent:
            for known in self._fresh(world):
                for shard in shards_to_add(self.path[known]):
                    yield world._replace(adders=put(adder._replace(known=known, sent=shard)))
        else:
            yield from self._took_effect(world, adder, put)

    def _took_effect(
        self, world: World, adder: Adder, put: "Callable[[Adder], tuple[Adder, ...]]"
    ) -> Iterator[World]:
        assert adder.add is not None
        markers = dict(world.markers)
        shard = adder.sent
        if adder.token and adder.add in markers:  # refused: it was counted, and where is known
            yield world._replace(
                adders=put(adder._replace(sent=0, answered=markers[adder.add], known=BEGIN))
            )
            return
        after = world._replace(parts=_with(world.parts, shard, (adder.add,)))
        if adder.token:
            after = after._replace(markers=(*world.markers, (adder.add, shard)))
        yield after._replace(adders=put(adder._replace(sent=0, answered=shard)))
        if adder.lost:
            again = adder._replace(sent=0, known=BEGIN, lost=adder.lost - 1)
            yield after._replace(adders=put(again))

    def _answered(
        self, world: World, adder: Adder, put: "Callable[[Adder], tuple[Adder, ...]]"
    ) -> Iterator[World]:
        """The answer comes: at once, or late, when it asks the metadata of now."""
        assert adder.add is not None
        in_time = adder.known != BEGIN and world.now - adder.known <= self.behind
        # Who goes by a marker has read the metadata for his own attempt.
        for known in [None] if in_time else self._fresh(world):
            shards = self.path[world.now if known is None else known]
            if known is None or not self.reunited or not is_stranded(shards, adder.answered):
                yield self._acknowledged(world, adder, put)
            else:
                yield world._replace(adders=put(adder._replace(known=known, reunites=True)))

    def _reunited(
        self, world: World, adder: Adder, put: "Callable[[Adder], tuple[Adder, ...]]"
    ) -> Iterator[World]:
        """Its part is read, then folded; both by metadata that is fresh."""
        again = adder._replace(known=BEGIN, reunites=False, held=0)
        there = world.parts[adder.answered - 1]
        if world.now - adder.known > self.behind:
            yield world._replace(adders=put(again))
        elif not there:
            yield self._acknowledged(world, adder, put)
        elif not adder.held:
            yield world._replace(adders=put(adder._replace(held=len(there))))
        elif len(there) == adder.held:
            for target in shards_to_add(self.path[adder.known]):
                after = world._replace(parts=_folded(world.parts, adder.answered, target))
                yield self._acknowledged(after, adder, put)
        else:
            yield world._replace(adders=put(again))

    def _acknowledged(
        self, world: World, adder: Adder, put: "Callable[[Adder], tuple[Adder, ...]]"
    ) -> World:
        assert adder.add is not None
        done = tuple(sorted((*world.acknowledged, adder.add)))
        return world._replace(adders=put(Adder(None)), acknowledged=done)

    def _read(
        self, world: World, reader: Reader, put: "Callable[[Reader], tuple[Reader, ...]]"
    ) -> Iterator[tuple[World, bool]]:
        """One shard more of a look, in no order."""
        for known in self._fresh(world, reader.known):
            whole, folding = reads_of(self.path[known])
            if not self.again:
                folding = folding[:0]
            below = whole[: len(whole) - len(folding)]
            looks = [folding, below, folding] if folding else [below]
            begun = reader._replace(known=known, seen=reader.seen or ((),))
            if reader.known == BEGIN:
                begun = begun._replace(due=world.acknowledged)
            look = len(begun.seen) - 1
            for shard in set(looks[look]) - {number for number, _ in begun.seen[-1]}:
                last = tuple(sorted((*begun.seen[-1], (shard, world.parts[shard - 1]))))
                seen = (*begun.seen[:-1], last)
                if len(last) < len(looks[look]):
                    yield world._replace(readers=put(begun._replace(seen=seen))), True
                elif look + 1 < len(looks):
                    yield world._replace(readers=put(begun._replace(seen=(*seen, ())))), True
                else:
                    told, stands = self._told(world, begun._replace(seen=seen))
                    yield world._replace(readers=put(told)), stands

    def _told(self, world: World, reader: Reader) -> tuple[Reader, bool]:
        """The value, and whether it is right; or it looks again."""
        looks = [dict(look) for look in reader.seen]
        if len(looks) == 3:
            held = [[shard for shard, part in look.items() if part] for look in looks]
            if is_folded(held[0], held[2]):
                return Reader(reader.reads), True
            looks.pop()
        counted = [add for look in looks for part in look.values() for add in part]
        stored = [add for part in world.parts for add in part]
        twice = any(counted.count(add) > max(1, stored.count(add)) for add in counted)
        return Reader(reader.reads - 1), set(reader.due) <= set(counted) and not twice

    def _moved(
        self, world: World, mover: Mover, put: "Callable[[Mover], tuple[Mover, ...]]"
    ) -> Iterator[World]:
        for known in self._fresh(world, mover.known):
            shards = self.path[known]
            if shards.phase is not Phase.MOVING:
                continue
            if not mover.held:
                for shard in range(shards.readable, shards.writable, -1):
                    part = world.parts[shard - 1]
                    if part:
                        yield world._replace(movers=put(Mover(known, (shard, part))))
                continue
            source, seen = mover.held
            there, after = world.parts[source - 1], world
            if not self.conditional:  # it adds what it has read, and takes away what is there
                parts = _with(world.parts, 1, seen)
                after = world._replace(parts=(*parts[: source - 1], (), *parts[source:]))
            elif len(there) == len(seen):
                after = world._replace(parts=_folded(world.parts, source, 1))
            yield after._replace(movers=put(Mover()))
            yield after._replace(movers=put(mover))  # its answer is lost: it tries again


def _set(those: tuple, number: int) -> Callable:
    return lambda one: (*those[:number], one, *those[number + 1 :])


def _with(parts: tuple[Part, ...], shard: int, adds: Part) -> tuple[Part, ...]:
    part = tuple(sorted((*parts[shard - 1], *adds)))
    return (*parts[: shard - 1], part, *parts[shard:])


def _folded(parts: tuple[Part, ...], source: int, target: int) -> tuple[Part, ...]:
    moved = _with(parts, target, parts[source - 1])
    return (*moved[: source - 1], (), *moved[source:])
