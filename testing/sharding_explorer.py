"""Every interleaving of writers, readers, a mover and a change of the shard count, for one item.

A world is a value: what lies in which shard, in which phase the metadata is, where everybody
stands. Each step is one request, as atomic as the service makes it. What the item should be is kept
beside: each request that takes effect changes it, too.

Worlds that differ in nothing that may follow are one:

- Metadata is read together with the first request that it is for. Whoever reads it earlier may act
  on it only if it is still fresh by then, so he could as well have read it just before; and a read
  that begins later may report less, so what is wrong of it is also wrong of the later one.
- Whoever acts on metadata that has expired can only begin anew, and is there already.
- A late answer that is believed is one that came at once, to somebody who went on later. So answers
  are late only where readers may leave the shard before they come.
- Readers are alike, and so are movers: their order says nothing.

A write of a new item whose place changes takes two requests: its claim, then the item. The second
may be throttled, or its answer may be lost, in which case it takes effect later or never.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from keyhop.sharding.key import protocol
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.protocol import (
    ByClaim,
    Claim,
    Create,
    Fold,
    InPlace,
    Late,
    Move,
    Order,
)
from keyhop.sharding.key.shards import Phase, Shards

from testing.worlds import with_broken

Content = tuple[str, ...]
"""What puts and updates have left in the item; empty: there is none."""
NOTHING: Content = ()
TOLD_WRONGLY: Content = ("what nobody has put",)
Copy = tuple[Content, int] | None
"""Content of a copy of the item, and its fence."""
Copies = tuple[Copy, ...]
BEGIN = -1
"""No metadata was read yet, or it has expired."""


class Writer(NamedTuple):
    """script: what it will yet do: "put a", "update b", "delete". known: the phase it acts on.

    looked: the shards of its look that were read so far, and whether the item was there. late: the
    shard of a write that has taken effect by the metadata `known`, and is not answered yet.
    counted: whether what it does next has taken effect before, and must not do so twice.
    name: its own, from which each of its writes has a name in claims. claimed: the place that its
    claim decides, by the metadata `known`. flying: a creation whose answer was lost, and which may
    yet take effect: the write, the shard, and its metadata. maybe: whether what it does next may
    have created the item.
    """

    script: tuple[str, ...]
    known: int = BEGIN
    looked: tuple[tuple[int, bool], ...] = ()
    late: int = 0
    counted: bool = False
    name: str = ""
    claimed: int = 0
    flying: tuple[str, int, int] | tuple[()] = ()
    maybe: bool = False

    @property
    def owner(self) -> str:
        """The name of its present write in claims."""
        return f"{self.name} {len(self.script)}"

    def anew(self) -> "Writer":
        return Writer(
            *(self.script, BEGIN, (), 0, self.counted, self.name, 0, self.flying, self.maybe)
        )

    def done(self) -> "Writer":
        """It goes on with its next write."""
        return Writer(self.script[1:], name=self.name, flying=self.flying)


class Reader(NamedTuple):
    """reads: how many it will yet do. seen: of each shard read. legal: what may be reported.

    gets: it looks for the item where it may be, in no order. missed: looks in vain.
    """

    reads: int
    known: int = BEGIN
    seen: tuple[tuple[int, Content], ...] = ()
    legal: tuple[Content, ...] = ()
    gets: bool = False
    missed: int = 0


class Mover(NamedTuple):
    """known: the phase it acts on. held: the shard and the copy that it has read, if any."""

    known: int = BEGIN
    held: tuple[int, Copy] | tuple[()] = ()


class State(NamedTuple):
    """What all share. copies: of the item, by shard. content: what it should be. now: the phase.

    claims: of the item, by the growth that they are for.
    """

    copies: Copies
    content: Content
    now: int = 0
    fences: int = 0
    claims: tuple[tuple[int, Claim], ...] = ()


class World(NamedTuple):
    """The shared state, and where everybody stands."""

    state: State
    writers: tuple[Writer, ...] = ()
    readers: tuple[Reader, ...] = ()
    movers: tuple[Mover, ...] = ()


@dataclass
class Rules:
    """One change of the shard count. path: the metadata, phase by phase.

    Others than the protocol's own show what it needs. behind: how many phases old the metadata
    may be that somebody acts on. eager: a phase may be followed by the next while those who began
    two phases before are still at it. claiming, put: decide as the protocol does. losing: answers
    to creations by a claim may be lost. ends: whether a change need not be known for any time
    before the next. growth: that a claim is for. repeated: a put or a delete
    that is answered late is done again. looks: after so many in vain a reader gives up, at
    the latest. consulted: the counts for which a place was looked up.
    """

    path: tuple[Shards, ...]
    placement: Placement
    places: Mapping[int, int]
    behind: int = 1
    ordered: bool = True
    fenced: bool = True
    checked: bool = True
    targeted: bool = True
    looks: int = 2
    conditional: bool = True
    forgetful: bool = True
    eager: bool = False
    claiming: Callable[..., Any] = protocol.step_by_claim
    ends: Callable[[Shards, Shards], bool] = protocol.only_ends_growth
    growth: Callable[[Shards], int] = lambda shards: shards.counted_at
    put: Callable[..., Any] = protocol.step_of_put
    losing: bool = False
    repeated: bool = False
    consulted: set[int] = field(default_factory=set, init=False)
    _steps: dict[Any, Any] = field(default_factory=dict, init=False)

    def place(self, count: int) -> int:
        self.consulted.add(count)
        return self.places[count]

    def explore(self, world: World, most: int = 3_000_000) -> tuple[int, list[World]]:
        """How many worlds can come of it, and some of those in which a promise is broken."""
        return with_broken(world, self._nexts, most)

    def _nexts(self, world: World) -> Iterator[tuple[World, bool]]:
        """All worlds that are one step away, and whether all promises are kept in them."""
        state, writers, readers, movers = world
        if self._may_advance(state):
            yield self._advanced(world), True
        for number, writer in enumerate(writers):
            if not writer.script and not writer.flying:
                continue
            for after, stands, has_written in self._steps_of(self._written, state, writer):
                others = (*writers[:number], stands, *writers[number + 1 :])
                legal = _with_legal(readers, after.content) if has_written else readers
                yield World(after, others, legal, movers), _is_right(after)
        for number, reader in enumerate(readers):
            if not reader.reads or reader in readers[:number]:
                continue
            for stands, is_legal in self._steps_of(self._read, state, reader):
                others = tuple(sorted((*readers[:number], stands, *readers[number + 1 :])))
                yield World(state, writers, others, movers), is_legal
        for number, mover in enumerate(movers):
            if mover in movers[:number]:
                continue
            for after, stands in self._steps_of(self._moved, state, mover):
                others = tuple(sorted((*movers[:number], stands, *movers[number + 1 :])))
                yield World(after, writers, readers, others), _is_right(after)

    def _steps_of(
        self, steps: Callable[[State, Any], Iterator[Any]], state: State, who: Any
    ) -> tuple[Any, ...]:
        """What somebody may do next, worked out once for all worlds in which he may."""
        case = (type(who), state, who)
        following = self._steps.get(case)
        if following is None:
            following = self._steps[case] = tuple(steps(state, who))
        return following

    def _may_advance(self, state: State) -> bool:
        if state.now + 1 >= len(self.path):
            return False
        shards, following = self.path[state.now : state.now + 2]
        must_be_empty = Phase.MOVED in (shards.phase, following.phase)
        return not (must_be_empty and any(state.copies[shards.writable :]))

    def _advanced(self, world: World) -> World:
        state = world.state._replace(now=world.state.now + 1)
        oldest = self._oldest(state.now) - self.eager
        return World(
            state,
            tuple(self._still(writer, oldest) for writer in world.writers),
            tuple(sorted(self._kept(reader, oldest) for reader in world.readers)),
            tuple(sorted(m if m.known >= oldest else Mover() for m in world.movers)),
        )

    def _still(self, writer: Writer, oldest: int) -> Writer:
        if writer.flying and writer.flying[2] < oldest:
            writer = writer._replace(flying=())
        if not writer.script:
            return writer.done()
        return writer if writer.late or writer.known >= oldest else writer.anew()

    def _oldest(self, now: int) -> int:
        """The oldest metadata that somebody may act on. Who has known `opened` for long enough
        acts as in `steady`, by the same metadata: after nobody is left who acts on older metadata.
        The end of a growth need not be known for any time before the next change.
        """
        if now and self._is_settled(now):
            return now - 1
        oldest = max(0, now - self.behind)
        while oldest and self._is_the_same(oldest):
            oldest -= 1
        return oldest

    def _is_settled(self, now: int) -> bool:
        return self.path[now].last_updated == self.path[now - 1].last_updated

    def _is_the_same(self, now: int) -> bool:
        before, after = self.path[now - 1 : now + 1]
        return self._is_settled(now) or self.ends(before, after)

    def _kept(self, reader: Reader, oldest: int) -> Reader:
        if reader.known >= oldest or not reader.reads:
            return reader
        forgets = self.forgetful or reader.gets
        return reader._replace(known=BEGIN, seen=() if forgets else reader.seen, missed=0)

    def _fresh(self, state: State, known: int = BEGIN) -> range:
        """The phases whose metadata somebody may act on, who has read that of `known`."""
        if known != BEGIN:
            return range(known, known + 1)
        return range(self._oldest(state.now), state.now + 1)

    def _written(self, state: State, writer: Writer) -> Iterator[tuple[State, Writer, bool]]:
        if writer.flying:
            act, shard, _ = writer.flying
            yield _applied(state, act, shard), writer._replace(flying=()), True
        if not writer.script:
            return
        if writer.late:
            yield from self._answered(state, writer)
            return
        for known in self._fresh(state, writer.known):
            if self.eager and writer.known == BEGIN:
                yield state, writer._replace(known=known), False
            yield from self._written_by(state, writer._replace(known=known), self.path[known])

    def _written_by(
        self, state: State, writer: Writer, shards: Shards
    ) -> Iterator[tuple[State, Writer, bool]]:
        again, act = writer.anew(), writer.script[0]
        if writer.claimed:
            yield from self._created(state, writer, writer.claimed)
            return
        if self.placement.is_random:
            for shard in range(1, shards.writable + 1):
                yield from self._took_effect(state, writer, shard, _content(state, shard))
            return
        where = protocol.candidates(shards, self.placement, self.place)
        if self.placement.append_only or len(where) == 1:
            yield from self._took_effect(state, writer, where[0], _content(state, where[0]))
            return
        left = set(where) - {shard for shard, _ in writer.looked}
        for shard in left:  # a batch of reads is no snapshot
            looked = tuple(sorted((*writer.looked, (shard, state.copies[shard - 1] is not None))))
            yield state, writer._replace(looked=looked), False
        if left:
            return
        holders = [shard for shard, is_there in writer.looked if is_there]
        decide = self.put if act.startswith("put") else protocol.step_of_update
        step = decide(shards, self.placement, self.place, holders)
        match step:
            case ByClaim():
                yield from self._claimed(state, writer, shards)
                return
            case Create(shard, unless):
                told = NOTHING if unless else _content(state, shard)
                elsewhere = any(state.copies[other - 1] is not None for other in unless)
                there = bool(unless) and state.copies[shard - 1] is not None
                if not (elsewhere and self.checked) and not (there and self.targeted):
                    yield from self._took_effect(state, writer, shard, told)
                    return
            case InPlace(shard, fence):
                if state.copies[shard - 1] is not None or not self.conditional:
                    told, leaves_one = _content(state, shard), fence and self.fenced
                    yield from self._took_effect(state, writer, shard, told, leaves_one)
                    return
            case Move(source, target):
                if state.copies[source - 1] is not None and state.copies[target - 1] is None:
                    moved = state._replace(copies=_with(state.copies, source, None))
                    # Who wants to be told what he replaces does not move it.
                    yield from self._took_effect(moved, writer, target, state.content)
                    return
            case Fold(keep, drop):
                if state.copies[keep - 1] is not None:
                    for shard in drop:
                        state = state._replace(copies=_with(state.copies, shard, None))
        yield state, again, False

    def _claimed(
        self, state: State, writer: Writer, shards: Shards
    ) -> Iterator[tuple[State, Writer, bool]]:
        """It writes a claim, or follows the present one, each by one request."""
        growth = self.growth(shards)
        claims = dict(state.claims)
        step = self.claiming(shards, self.place, claims.get(growth), writer.owner, writer.maybe)
        match step:
            case Claim():
                claims[growth] = step
                yield state._replace(claims=tuple(sorted(claims.items()))), writer, False
            case Create(shard):
                yield state, writer._replace(claimed=shard), False
            case _:
                yield state, writer.anew(), False

    def _created(
        self, state: State, writer: Writer, shard: int
    ) -> Iterator[tuple[State, Writer, bool]]:
        """The item is created where its claim says; or that is throttled, or its answer is lost."""
        yield from self._took_effect(state, writer, shard, _content(state, shard))
        yield state, writer.anew(), False
        if self.losing and not writer.flying and not writer.script[0].startswith("update"):
            flying = (writer.script[0], shard, writer.known)
            yield state, writer._replace(flying=flying, maybe=True).anew(), False

    def _took_effect(
        self, state: State, writer: Writer, shard: int, told: Content, fence: bool = False
    ) -> Iterator[tuple[State, Writer, bool]]:
        """A write of the item in this shard; the answer comes at once, or after the next phase.

        told: what it says that it has replaced.
        """
        content = state.content
        state = _applied(state, writer.script[0], shard, fence)
        if writer.counted:
            state = state._replace(content=content)
        elif told != content:
            state = state._replace(content=TOLD_WRONGLY)
        yield state, writer.done(), True
        later = self.path[state.now + 1 :]
        if self.repeated or any(shards.readable < shard for shards in later):
            late = writer.anew()._replace(known=writer.known, late=shard, counted=False)
            yield state, late, True

    def _answered(self, state: State, writer: Writer) -> Iterator[tuple[State, Writer, bool]]:
        """The late answer comes; metadata and shard are read at the same moment, or never are."""
        act, shard = writer.script[0], writer.late
        if state.now == writer.known:
            return
        is_update = act.startswith("update")
        late = protocol.after_a_late_answer(self.path[state.now], shard, is_update)
        is_lost = late is Late.LOST_IF_THERE and state.copies[shard - 1] is not None
        if is_lost:
            state = state._replace(copies=_with(state.copies, shard, None))
            yield state, writer.anew()._replace(counted=False), False
        elif self.repeated and not is_update:
            yield state, writer.anew()._replace(counted=True), False
        else:
            yield state, writer.done(), False

    def _order(self, known: int) -> Order:
        if not self.ordered:
            return Order.ANY
        return protocol.order_of_reading(self.path[known], self.placement)

    def _read(self, state: State, reader: Reader) -> Iterator[tuple[Reader, bool]]:
        begun = reader.legal or (state.content,)
        if reader.gets:
            for known in self._fresh(state, reader.known):
                yield from self._got(state, reader._replace(known=known, legal=begun))
            return
        last = max(
            reader.known, self._oldest(state.now) - (self.eager and reader.known != BEGIN), 0
        )
        for known in range(last, state.now + 1):
            order = self._order(known)
            seen = reader.seen if known == reader.known or not self.forgetful else ()
            if self.eager and reader.known == BEGIN:
                yield Reader(reader.reads, known, (), begun), True
            left = set(range(1, self.path[known].readable + 1)) - {shard for shard, _ in seen}
            if not left:  # the last shards were drained in the meantime
                yield _reported(reader, order, seen, begun)
            for shard in _allowed(left, order):
                copy = state.copies[shard - 1]
                read = tuple(sorted((*seen, (shard, copy[0] if copy else NOTHING))))
                if len(left) > 1:
                    yield Reader(reader.reads, known, read, begun), True
                else:
                    yield _reported(reader, order, read, begun)

    def _got(self, state: State, reader: Reader) -> Iterator[tuple[Reader, bool]]:
        shards = self.path[reader.known]
        where = protocol.candidates(shards, self.placement, self.place)
        for shard in set(where) - {shard for shard, _ in reader.seen}:
            read = tuple(sorted((*reader.seen, (shard, _content(state, shard)))))
            missed = reader.missed + 1
            if len(read) < len(where):
                yield reader._replace(seen=read), True
            elif not any(content for _, content in read) and missed < self._enough(shards, where):
                yield reader._replace(seen=(), missed=missed), True
            else:
                yield _reported(reader, self._order(reader.known), read, reader.legal)

    def _enough(self, shards: Shards, where: tuple[int, ...]) -> int:
        enough = protocol.looks_that_suffice(shards, self.placement) if len(where) > 1 else 1
        return min(enough, self.looks)

    def _moved(self, state: State, mover: Mover) -> Iterator[tuple[State, Mover]]:
        for known in self._fresh(state, mover.known):
            shards = self.path[known]
            if shards.phase is not Phase.MOVING:
                continue
            if not mover.held:
                for shard in protocol.drained(shards):
                    copy = state.copies[shard - 1]
                    if copy is not None:
                        yield state, Mover(known, (shard, copy))
                continue
            source, copy = mover.held
            assert copy is not None
            target = protocol.home(shards, self.place)
            there, after = state.copies[source - 1], state
            if there is not None and there[1] == copy[1] and state.copies[target - 1] is None:
                copies = _with(_with(state.copies, source, None), target, (copy[0], 0))
                after = state._replace(copies=copies)
            yield after, Mover(known)


def _applied(state: State, act: str, shard: int, fence: bool = False) -> State:
    """A user's write takes effect at a shard, and so upon the item."""
    there = state.copies[shard - 1]
    fences = state.fences + fence
    mark = fences if fence else (there[1] if there and act.startswith("update") else 0)
    after = _after(act, there[0] if there else NOTHING)
    copies = _with(state.copies, shard, (after, mark) if after else None)
    return state._replace(copies=copies, content=_after(act, state.content), fences=fences)


def _content(state: State, shard: int) -> Content:
    copy = state.copies[shard - 1]
    return copy[0] if copy else NOTHING


def _is_right(state: State) -> bool:
    """Whether there is one copy of the item, as it should be; or none, if there should be none."""
    copies = [copy[0] for copy in state.copies if copy is not None]
    return copies == ([state.content] if state.content else [])


def _with_legal(readers: tuple[Reader, ...], content: Content) -> tuple[Reader, ...]:
    """Readers who have begun may report the content, too."""
    return tuple(
        sorted(
            r._replace(legal=tuple(sorted((*r.legal, content))))
            if r.legal and content not in r.legal
            else r
            for r in readers
        )
    )


def _reported(
    reader: Reader, order: Order, read: tuple[tuple[int, Content], ...], legal: tuple[Content, ...]
) -> tuple[Reader, bool]:
    """The query is done. Of copies in several shards it reports one; was it ever so?"""
    contents = dict(read)
    believed = protocol.newest_first(order, contents)
    answer = next((contents[shard] for shard in believed if contents[shard]), NOTHING)
    return Reader(reader.reads - 1, gets=reader.gets), answer in legal


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
            return (*content, value)
        case _:
            return NOTHING


def path_of(start: Shards, *changes: Callable[[Shards], Shards]) -> tuple[Shards, ...]:
    """The metadata, from change to change."""
    path = [start]
    for change in changes:
        path.append(change(path[-1]))
    return tuple(path)


def _with(copies: Copies, shard: int, copy: Copy) -> Copies:
    return (*copies[: shard - 1], copy, *copies[shard:])
