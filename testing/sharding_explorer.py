"""Explore every interleaving of writers, readers, a mover and a change of the shard count.

All actors use one item. A world is a value: the copies in each shard, the phase of the metadata,
and the state of each actor. Each step is one request, as atomic as the service makes it. The state
also has the expected content of the item, which each request that takes effect changes too.

Worlds from which the same worlds follow are merged:

- An actor reads metadata together with the first request that uses it. An actor that reads it
  earlier may use it only while it is fresh, so it could have read it just before the request. A
  read that starts later may report fewer contents, so each violation is found there too.
- An actor whose metadata has expired can only start again, so it starts again at once.
- A late response that needs no check is like an immediate one to an actor that continued later. So
  responses are late only where readers may stop reading the shard before they arrive.
- All readers are equal, and so are all movers: their order has no meaning.

A write of a new item whose place changes takes two requests: its claim, then the item. The second
may be throttled, or its response may be lost, in which case it takes effect later or never.
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
"""The values that puts and updates left in the item. It is empty if there is no item."""
NOTHING: Content = ()
WRONGLY_REPORTED: Content = ("what nobody has put",)
Copy = tuple[Content, int] | None
"""The content of a copy of the item, and its fence."""
Copies = tuple[Copy, ...]
BEGIN = -1
"""The actor has read no metadata yet, or it has expired."""


class Writer(NamedTuple):
    """A process that writes the item.

    Attributes:
        script: The remaining writes: "put a", "update b", "delete".
        phase: The phase of the metadata that it uses.
        looked: The shards that its look has read so far, and whether the item was there.
        late: The shard of a write that took effect in `phase` and has no response yet.
        counted: Whether its next write took effect before, and must not take effect twice.
        name: A unique name, from which claims name each of its writes.
        claimed: The shard that its claim decides, in `phase`.
        in_flight: A creation whose response was lost and which may still take effect: the write,
            the shard, and the phase of its metadata.
        maybe_created: Whether its next write may have created the item.
    """

    script: tuple[str, ...]
    phase: int = BEGIN
    looked: tuple[tuple[int, bool], ...] = ()
    late: int = 0
    counted: bool = False
    name: str = ""
    claimed: int = 0
    in_flight: tuple[str, int, int] | tuple[()] = ()
    maybe_created: bool = False

    @property
    def owner(self) -> str:
        """The name of its current write in claims."""
        return f"{self.name} {len(self.script)}"

    def restarted(self) -> "Writer":
        """Return this writer at the start of its current write."""
        return self._replace(phase=BEGIN, looked=(), late=0, claimed=0)

    def finished(self) -> "Writer":
        """Return this writer at the start of its next write."""
        return Writer(self.script[1:], name=self.name, in_flight=self.in_flight)


class Reader(NamedTuple):
    """A process that reads the item. legal: the contents that it may report.

    gets: whether it looks for the item in each candidate shard, in any order. missed: how many
    looks did not find the item.
    """

    reads: int
    phase: int = BEGIN
    contents: tuple[tuple[int, Content], ...] = ()
    legal: tuple[Content, ...] = ()
    gets: bool = False
    missed: int = 0


class Mover(NamedTuple):
    """A process that moves items. read_copy: a shard, and the copy that the mover read there."""

    phase: int = BEGIN
    read_copy: tuple[int, Copy] | tuple[()] = ()


class State(NamedTuple):
    """The item's copies by shard, its expected content, the current phase, and claims by growth."""

    copies: Copies
    content: Content
    now: int = 0
    fences: int = 0
    claims: tuple[tuple[int, Claim], ...] = ()


class World(NamedTuple):
    """The shared state, and the state of each actor."""

    state: State
    writers: tuple[Writer, ...] = ()
    readers: tuple[Reader, ...] = ()
    movers: tuple[Mover, ...] = ()


@dataclass
class Rules:
    """The rules of one change of the shard count, whose metadata is `path`, phase by phase.

    The default values are those of the protocol. Other values show that it needs each of them.

    Attributes:
        behind: How many phases old the metadata that an actor uses may be.
        looks: The maximum number of looks that a reader makes before it reports no item.
        eager: Whether a phase may end while actors of two phases before still run.
        claiming, put: The protocol's decisions of the next step.
        ends: Whether a change needs no waiting time before the next.
        growth: Returns the growth to which a claim belongs.
        losing: Whether responses to creations by a claim may be lost.
        repeated: Whether a put or a delete with a late response is repeated.
        consulted: The shard counts for which a place was looked up.
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

    def explore(self, world: World, max_worlds: int = 3_000_000) -> tuple[int, list[World]]:
        """Return the number of reachable worlds, and some of those that break a promise."""
        return with_broken(world, self._successors, max_worlds)

    def _successors(self, world: World) -> Iterator[tuple[World, bool]]:
        """Yield each world that is one step away, and whether it keeps all promises."""
        state, writers, readers, movers = world
        if self._may_advance(state):
            yield self._advanced(world), True
        for number, writer in enumerate(writers):
            if not writer.script and not writer.in_flight:
                continue
            for after, writer_after, has_written in self._steps_of(self._write, state, writer):
                writers_after = (*writers[:number], writer_after, *writers[number + 1 :])
                legal = _with_legal(readers, after.content) if has_written else readers
                yield World(after, writers_after, legal, movers), _is_right(after)
        for number, reader in enumerate(readers):
            if not reader.reads or reader in readers[:number]:
                continue
            for reader_after, is_legal in self._steps_of(self._read, state, reader):
                readers_after = sorted((*readers[:number], reader_after, *readers[number + 1 :]))
                yield World(state, writers, tuple(readers_after), movers), is_legal
        for number, mover in enumerate(movers):
            if mover in movers[:number]:
                continue
            for after, mover_after in self._steps_of(self._move, state, mover):
                movers_after = sorted((*movers[:number], mover_after, *movers[number + 1 :]))
                yield World(after, writers, readers, tuple(movers_after)), _is_right(after)

    def _steps_of(
        self, steps: Callable[[State, Any], Iterator[Any]], state: State, actor: Any
    ) -> tuple[Any, ...]:
        """Return the next steps of an actor, computed once for all worlds with this state."""
        case = (type(actor), state, actor)
        if case not in self._steps:
            self._steps[case] = tuple(steps(state, actor))
        return self._steps[case]

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
            tuple(self._advanced_writer(writer, oldest) for writer in world.writers),
            tuple(sorted(self._advanced_reader(reader, oldest) for reader in world.readers)),
            tuple(sorted(m if m.phase >= oldest else Mover() for m in world.movers)),
        )

    def _advanced_writer(self, writer: Writer, oldest: int) -> Writer:
        if writer.in_flight and writer.in_flight[2] < oldest:
            writer = writer._replace(in_flight=())
        if not writer.script:
            return writer.finished()
        return writer if writer.late or writer.phase >= oldest else writer.restarted()

    def _oldest(self, now: int) -> int:
        """Return the oldest phase whose metadata an actor may use.

        An actor that has had the metadata of `opened` for long enough acts as in `steady`. By
        then no actor uses older metadata. The end of a growth needs no waiting time.
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

    def _advanced_reader(self, reader: Reader, oldest: int) -> Reader:
        if reader.phase >= oldest or not reader.reads:
            return reader
        forgets = self.forgetful or reader.gets
        contents = () if forgets else reader.contents
        return reader._replace(phase=BEGIN, contents=contents, missed=0)

    def _usable(self, state: State, phase: int = BEGIN) -> range:
        """Return the phases whose metadata an actor may use: only `phase` if it has read that."""
        if phase != BEGIN:
            return range(phase, phase + 1)
        return range(self._oldest(state.now), state.now + 1)

    def _write(self, state: State, writer: Writer) -> Iterator[tuple[State, Writer, bool]]:
        if writer.in_flight:
            act, shard, _ = writer.in_flight
            yield _applied(state, act, shard), writer._replace(in_flight=()), True
        if not writer.script:
            return
        if writer.late:
            yield from self._receive_late(state, writer)
            return
        for phase in self._usable(state, writer.phase):
            if self.eager and writer.phase == BEGIN:
                yield state, writer._replace(phase=phase), False
            yield from self._write_in(state, writer._replace(phase=phase), self.path[phase])

    def _write_in(
        self, state: State, writer: Writer, shards: Shards
    ) -> Iterator[tuple[State, Writer, bool]]:
        act = writer.script[0]
        if writer.claimed:
            yield from self._create(state, writer, writer.claimed)
            return
        if self.placement.is_random:
            for shard in range(1, shards.writable + 1):
                yield from self._take_effect(state, writer, shard, _content(state, shard))
            return
        candidates = protocol.candidates(shards, self.placement, self.place)
        if self.placement.append_only or len(candidates) == 1:
            shard = candidates[0]
            yield from self._take_effect(state, writer, shard, _content(state, shard))
            return
        unread = set(candidates) - {shard for shard, _ in writer.looked}
        for shard in unread:  # a batch of reads is not a snapshot
            looked = tuple(sorted((*writer.looked, (shard, state.copies[shard - 1] is not None))))
            yield state, writer._replace(looked=looked), False
        if unread:
            return
        holders = [shard for shard, holds_item in writer.looked if holds_item]
        decide = self.put if act.startswith("put") else protocol.step_of_update
        step = decide(shards, self.placement, self.place, holders)
        match step:
            case ByClaim():
                yield from self._claim(state, writer, shards)
                return
            case Create(shard, unless):
                replaced = NOTHING if unless else _content(state, shard)
                has_other = any(state.copies[shard - 1] is not None for shard in unless)
                has_target = bool(unless) and state.copies[shard - 1] is not None
                if not (has_other and self.checked) and not (has_target and self.targeted):
                    yield from self._take_effect(state, writer, shard, replaced)
                    return
            case InPlace(shard, fence):
                if state.copies[shard - 1] is not None or not self.conditional:
                    replaced, leaves_fence = _content(state, shard), fence and self.fenced
                    yield from self._take_effect(state, writer, shard, replaced, leaves_fence)
                    return
            case Move(source, target):
                if state.copies[source - 1] is not None and state.copies[target - 1] is None:
                    emptied = state._replace(copies=_with(state.copies, source, None))
                    # A writer that asks for the replaced item does not move it.
                    yield from self._take_effect(emptied, writer, target, state.content)
                    return
            case Fold(keep, drop):
                if state.copies[keep - 1] is not None:
                    for shard in drop:
                        state = state._replace(copies=_with(state.copies, shard, None))
        yield state, writer.restarted(), False

    def _claim(
        self, state: State, writer: Writer, shards: Shards
    ) -> Iterator[tuple[State, Writer, bool]]:
        """Write a claim, or follow the current one, each in one request."""
        growth = self.growth(shards)
        claims = dict(state.claims)
        claim = claims.get(growth)
        step = self.claiming(shards, self.place, claim, writer.owner, writer.maybe_created)
        match step:
            case Claim():
                claims[growth] = step
                yield state._replace(claims=tuple(sorted(claims.items()))), writer, False
            case Create(shard):
                yield state, writer._replace(claimed=shard), False
            case _:
                yield state, writer.restarted(), False

    def _create(
        self, state: State, writer: Writer, shard: int
    ) -> Iterator[tuple[State, Writer, bool]]:
        """Create the item where its claim says; or be throttled, or lose the response."""
        yield from self._take_effect(state, writer, shard, _content(state, shard))
        yield state, writer.restarted(), False
        if self.losing and not writer.in_flight and not writer.script[0].startswith("update"):
            in_flight = (writer.script[0], shard, writer.phase)
            lost = writer._replace(in_flight=in_flight, maybe_created=True)
            yield state, lost.restarted(), False

    def _take_effect(
        self, state: State, writer: Writer, shard: int, replaced: Content, fence: bool = False
    ) -> Iterator[tuple[State, Writer, bool]]:
        """Write the item in this shard; respond at once, or after the next phase.

        replaced: the content that the response says it has replaced.
        """
        content = state.content
        state = _applied(state, writer.script[0], shard, fence)
        if writer.counted:
            state = state._replace(content=content)
        elif replaced != content:
            state = state._replace(content=WRONGLY_REPORTED)
        yield state, writer.finished(), True
        later = self.path[state.now + 1 :]
        if self.repeated or any(shards.readable < shard for shards in later):
            late = writer.restarted()._replace(phase=writer.phase, late=shard, counted=False)
            yield state, late, True

    def _receive_late(self, state: State, writer: Writer) -> Iterator[tuple[State, Writer, bool]]:
        """Receive the late response, and read metadata and shard at the same moment, or never."""
        act, shard = writer.script[0], writer.late
        if state.now == writer.phase:
            return
        is_update = act.startswith("update")
        late = protocol.after_a_late_answer(self.path[state.now], shard, is_update)
        is_lost = late is Late.LOST_IF_THERE and state.copies[shard - 1] is not None
        if is_lost:
            state = state._replace(copies=_with(state.copies, shard, None))
            yield state, writer.restarted()._replace(counted=False), False
        elif self.repeated and not is_update:
            yield state, writer.restarted()._replace(counted=True), False
        else:
            yield state, writer.finished(), False

    def _order(self, phase: int) -> Order:
        if not self.ordered:
            return Order.ANY
        return protocol.order_of_reading(self.path[phase], self.placement)

    def _read(self, state: State, reader: Reader) -> Iterator[tuple[Reader, bool]]:
        legal = reader.legal or (state.content,)
        if reader.gets:
            for phase in self._usable(state, reader.phase):
                yield from self._get(state, reader._replace(phase=phase, legal=legal))
            return
        last = max(
            reader.phase, self._oldest(state.now) - (self.eager and reader.phase != BEGIN), 0
        )
        for phase in range(last, state.now + 1):
            order = self._order(phase)
            contents = reader.contents if phase == reader.phase or not self.forgetful else ()
            if self.eager and reader.phase == BEGIN:
                yield Reader(reader.reads, phase, (), legal), True
            unread = set(range(1, self.path[phase].readable + 1)) - dict(contents).keys()
            if not unread:  # the last shards were drained in the meantime
                yield _reported(reader, order, contents, legal)
            for shard in _allowed(unread, order):
                contents_after = tuple(sorted((*contents, (shard, _content(state, shard)))))
                if len(unread) > 1:
                    yield Reader(reader.reads, phase, contents_after, legal), True
                else:
                    yield _reported(reader, order, contents_after, legal)

    def _get(self, state: State, reader: Reader) -> Iterator[tuple[Reader, bool]]:
        shards = self.path[reader.phase]
        candidates = protocol.candidates(shards, self.placement, self.place)
        for shard in set(candidates) - dict(reader.contents).keys():
            contents = tuple(sorted((*reader.contents, (shard, _content(state, shard)))))
            missed = reader.missed + 1
            if len(contents) < len(candidates):
                yield reader._replace(contents=contents), True
            elif not any(dict(contents).values()) and missed < self._max_looks(shards, candidates):
                yield reader._replace(contents=(), missed=missed), True
            else:
                yield _reported(reader, self._order(reader.phase), contents, reader.legal)

    def _max_looks(self, shards: Shards, candidates: tuple[int, ...]) -> int:
        looks = protocol.looks_that_suffice(shards, self.placement) if len(candidates) > 1 else 1
        return min(looks, self.looks)

    def _move(self, state: State, mover: Mover) -> Iterator[tuple[State, Mover]]:
        for phase in self._usable(state, mover.phase):
            shards = self.path[phase]
            if shards.phase is not Phase.MOVING:
                continue
            if not mover.read_copy:
                for shard in protocol.drained(shards):
                    copy = state.copies[shard - 1]
                    if copy is not None:
                        yield state, Mover(phase, (shard, copy))
                continue
            source, copy = mover.read_copy
            assert copy is not None
            target = protocol.home(shards, self.place)
            current, after = state.copies[source - 1], state
            if current is not None and current[1] == copy[1] and state.copies[target - 1] is None:
                copies = _with(_with(state.copies, source, None), target, (copy[0], 0))
                after = state._replace(copies=copies)
            yield after, Mover(phase)


def _applied(state: State, act: str, shard: int, fence: bool = False) -> State:
    """Return the state after a write has taken effect in a shard."""
    copy = state.copies[shard - 1]
    fences = state.fences + fence
    mark = fences if fence else (copy[1] if copy and act.startswith("update") else 0)
    after = _after(act, _content(state, shard))
    copies = _with(state.copies, shard, (after, mark) if after else None)
    return state._replace(copies=copies, content=_after(act, state.content), fences=fences)


def _content(state: State, shard: int) -> Content:
    copy = state.copies[shard - 1]
    return copy[0] if copy else NOTHING


def _is_right(state: State) -> bool:
    """Return whether there is exactly one copy, with the expected content, or none if none is."""
    copies = [copy[0] for copy in state.copies if copy is not None]
    return copies == ([state.content] if state.content else [])


def _with_legal(readers: tuple[Reader, ...], content: Content) -> tuple[Reader, ...]:
    """Return the readers; those that have started may now report this content too."""
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
    """End a query, and return whether the copy that it reports is legal."""
    contents = dict(read)
    shards = protocol.newest_first(order, contents)
    content = next((contents[shard] for shard in shards if contents[shard]), NOTHING)
    return Reader(reader.reads - 1, gets=reader.gets), content in legal


def _allowed(unread: set[int], order: Order) -> Iterator[int]:
    if order is Order.ANY:
        yield from unread
    elif unread:
        yield min(unread) if order is Order.ASCENDING else max(unread)


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
    """Return the metadata after each of these changes."""
    path = [start]
    for change in changes:
        path.append(change(path[-1]))
    return tuple(path)


def _with(copies: Copies, shard: int, copy: Copy) -> Copies:
    return (*copies[: shard - 1], copy, *copies[shard:])
