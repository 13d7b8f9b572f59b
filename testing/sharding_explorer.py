"""Every interleaving of writers, readers, a mover and a change of the shard count, for one item.

A world is a value: what lies in which shard, in which phase the metadata is, where everybody
stands. Each step is one request, as atomic as the service makes it. What the item should be is kept
beside: each request that takes effect changes it, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.sharding.key import protocol
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.protocol import Create, Fold, InPlace, Move, Order
from keyhop.sharding.key.shards import Phase, Shards

Copy = tuple[tuple[str, ...], int]
"""Content of an item (what puts and updates have left), and its fence."""
Copies = tuple[Copy | None, ...]
Content = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Writer:
    """script: what it will yet do: "put a", "update b", "delete". known: the phase it acts on.

    asked: the shards of its look that were read so far, and what was found there.
    """

    script: tuple[str, ...]
    known: int | None = None
    asked: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """reads: how many it will yet do. seen: of each shard read. legal: what may be reported."""

    reads: int
    known: int | None = None
    seen: tuple[tuple[int, Content], ...] = ()
    legal: frozenset[Content] = frozenset()


@dataclass(frozen=True, slots=True)
class Mover:
    """known: the phase it acts on. held: the shard and the copy that it has read."""

    known: int | None = None
    held: tuple[int, Copy] | None = None


@dataclass(frozen=True, slots=True)
class World:
    """copies: of the item, by shard. content: what it should be. now: the present phase."""

    copies: Copies
    content: Content
    writers: tuple[Writer, ...] = ()
    readers: tuple[Reader, ...] = ()
    movers: tuple[Mover, ...] = ()
    now: int = 0
    fences: int = 0
    wrong: str = ""


@dataclass(frozen=True)
class Rules:
    """One change of the shard count. path: the metadata, phase by phase.

    Others than the protocol's own show what it needs. behind: how many phases old the metadata
    may be that somebody acts on.
    """

    path: tuple[Shards, ...]
    placement: Placement
    places: Mapping[int, int]
    behind: int = 1
    ordered: bool = True
    fenced: bool = True
    checked: bool = True
    conditional: bool = True
    forgetful: bool = True
    _orders: dict[int, Order] = field(default_factory=dict)

    def place(self, count: int) -> int:
        return self.places[count]

    def explore(self, world: World, most: int = 3_000_000) -> tuple[int, list[World]]:
        """How many worlds can come of it, and some of those in which a promise is broken."""
        seen, waiting, wrong = {world}, [world], []
        while waiting and len(wrong) < 20:
            here = waiting.pop()
            if here.wrong:
                wrong.append(here)
                continue
            for there in self.nexts(here):
                if there not in seen:
                    seen.add(there)
                    waiting.append(there)
            assert len(seen) < most, "the scenario is too large"
        return len(seen), wrong

    def nexts(self, world: World) -> Iterator[World]:
        """All worlds that are one step away."""
        if self._may_advance(world):
            yield replace(world, now=world.now + 1)
        for number, writer in enumerate(world.writers):
            for there, stands in self._written(world, writer):
                yield replace(there, writers=_with(there.writers, number, stands))
        for number, reader in enumerate(world.readers):
            for stands, told in self._read(world, reader):
                wrong = "" if told is None else told
                yield replace(world, readers=_with(world.readers, number, stands), wrong=wrong)
        for number, mover in enumerate(world.movers):
            for there, stands in self._moved(world, mover):
                yield replace(there, movers=_with(there.movers, number, stands))

    def _may_advance(self, world: World) -> bool:
        if world.now + 1 >= len(self.path):
            return False
        shards = self.path[world.now]
        above = [copy for copy in world.copies[shards.writable :] if copy is not None]
        follows = self.path[world.now + 1].phase
        emptied = follows is Phase.MOVED or (shards.phase is Phase.MOVED)
        return not (emptied and above)

    def _looks(self, world: World) -> Iterator[int]:
        """The phases of metadata that somebody may begin with."""
        yield from range(max(0, world.now - self.behind), world.now + 1)

    def _is_fresh(self, world: World, known: int) -> bool:
        return known >= world.now - self.behind

    def _written(self, world: World, writer: Writer) -> Iterator[tuple[World, Writer]]:
        if not writer.script:
            return
        if writer.known is None:
            for known in self._looks(world):
                yield world, replace(writer, known=known)
            return
        again = Writer(writer.script)
        if not self._is_fresh(world, writer.known):
            yield world, again
            return
        shards = self.path[writer.known]
        done = Writer(writer.script[1:])
        act = writer.script[0]
        if self.placement.is_random:
            for shard in range(1, shards.writable + 1):
                yield self._applied(world, act, shard, fence=False), done
            return
        where = protocol.candidates(shards, self.placement, self.place)
        if protocol.needs_look(self.placement, where):
            unasked = set(where) - {shard for shard, _ in writer.asked}
            if unasked:
                for shard in unasked:  # a batch of reads is no snapshot
                    found = world.copies[shard - 1] is not None
                    asked = tuple(sorted((*writer.asked, (shard, found))))
                    yield world, replace(writer, asked=asked)
                return
        found_at = sorted(shard for shard, found in writer.asked if found)
        decide = protocol.step_of_put if act.startswith("put") else protocol.step_of_update
        if not protocol.needs_look(self.placement, where):
            yield self._applied(world, act, where[0], fence=False), done
            return
        match decide(shards, self.placement, self.place, found_at):
            case Create(shard, unless):
                elsewhere = any(world.copies[other - 1] is not None for other in unless)
                if elsewhere and self.checked:
                    yield world, again
                else:
                    yield self._applied(world, act, shard, fence=False), done
            case InPlace(shard, fence):
                if world.copies[shard - 1] is None and self.conditional:
                    yield world, again
                else:
                    yield self._applied(world, act, shard, fence and self.fenced), done
            case Move(source, target):
                if world.copies[source - 1] is None or world.copies[target - 1] is not None:
                    yield world, again
                else:
                    there = replace(world, copies=_with(world.copies, source - 1, None))
                    yield self._applied(there, act, target, fence=False), done
            case Fold(keep, drop):
                if world.copies[keep - 1] is not None:
                    copies = world.copies
                    for shard in drop:
                        copies = _with(copies, shard - 1, None)
                    world = self._checked(replace(world, copies=copies))
                yield world, again

    def _applied(self, world: World, act: str, shard: int, fence: bool) -> World:
        """A user's write takes effect at a shard, and so upon the item."""
        there = world.copies[shard - 1]
        fences = world.fences + fence
        content = _after(act, world.content)
        mark = fences if fence else (there[1] if there and act.startswith("update") else 0)
        after = _after(act, there[0] if there else None)
        copy = None if after is None else (after, mark)
        copies = _with(world.copies, shard - 1, copy)
        readers = tuple(
            replace(r, legal=r.legal | {content}) if r.known is not None else r
            for r in world.readers
        )
        return self._checked(
            replace(world, copies=copies, content=content, fences=fences, readers=readers)
        )

    @staticmethod
    def _checked(world: World) -> World:
        copies = [copy[0] for copy in world.copies if copy is not None]
        expected = [] if world.content is None else [world.content]
        return world if copies == expected else replace(world, wrong="copies")

    def _order(self, known: int) -> Order:
        if not self.ordered:
            return Order.ANY
        if known not in self._orders:
            self._orders[known] = protocol.order_of_reading(self.path[known], self.placement)
        return self._orders[known]

    def _read(self, world: World, reader: Reader) -> Iterator[tuple[Reader, str | None]]:
        if not reader.reads:
            return
        if reader.known is None:
            for known in self._looks(world):
                yield replace(reader, known=known, legal=frozenset({world.content})), None
            return
        fresh = self._is_fresh(world, reader.known)
        for known in self._looks(world) if not fresh else range(reader.known, world.now + 1):
            order = self._order(known)
            seen = reader.seen if known == reader.known or not self.forgetful else ()
            left = set(range(1, self.path[known].readable + 1)) - {shard for shard, _ in seen}
            if not left:  # the last shards were drained in the meantime
                yield self._told(reader, order, seen)
            for shard in _allowed(left, order):
                copy = world.copies[shard - 1]
                read = tuple(sorted((*seen, (shard, copy[0] if copy else None))))
                if len(left) > 1:
                    yield replace(reader, known=known, seen=read), None
                else:
                    yield self._told(reader, order, read)

    @staticmethod
    def _told(reader: Reader, order: Order, read: Sequence[tuple[int, Content]]) -> tuple[Any, Any]:
        """What the query reports, of copies in several shards one; and whether it was ever so."""
        told = dict(read)
        first = protocol.newest_first(order, told)
        answer = next((told[shard] for shard in first if told[shard] is not None), None)
        return Reader(reader.reads - 1), None if answer in reader.legal else "read"

    def _moved(self, world: World, mover: Mover) -> Iterator[tuple[World, Mover]]:
        if mover.known is None:
            for known in self._looks(world):
                if self.path[known].phase is Phase.MOVING:
                    yield world, Mover(known)
            return
        shards = self.path[mover.known]
        if not self._is_fresh(world, mover.known):
            yield world, Mover()
            return
        if mover.held is None:
            for shard in protocol.drained(shards):
                copy = world.copies[shard - 1]
                if copy is not None:
                    yield world, replace(mover, held=(shard, copy))
            return
        source, copy = mover.held
        target = protocol.home(shards, self.place)
        there = world.copies[source - 1]
        if there is not None and there[1] == copy[1] and world.copies[target - 1] is None:
            copies = _with(world.copies, source - 1, None)
            copies = _with(copies, target - 1, (copy[0], 0))
            world = self._checked(replace(world, copies=copies))
        yield world, Mover(mover.known)


def _allowed(left: set[int], order: Order) -> Iterator[int]:
    if order is Order.ANY:
        yield from left
    elif left:
        yield min(left) if order is Order.ASCENDING else max(left)


def _after(act: str, content: Content) -> Content:
    kind, _, value = act.partition(" ")
    match kind:
        case "put":
            return (value,)
        case "update":
            return (*(content or ()), value)
        case _:
            return None


def path_of(start: Shards, *changes: Callable[[Shards], Shards]) -> tuple[Shards, ...]:
    """The metadata, from change to change."""
    path = [start]
    for change in changes:
        path.append(change(path[-1]))
    return tuple(path)


def _with(values: tuple[Any, ...], number: int, value: Any) -> tuple[Any, ...]:
    return (*values[:number], value, *values[number + 1 :])
