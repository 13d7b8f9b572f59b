"""The protocol of a sharded key: what writers, readers and movers do in each phase. Pure.

Three promises are kept, by requests that each know only one item or one page:

1. a strongly consistent read finds every write that was finished before the read began;
2. an item that may be replaced is in exactly one shard, and no update of it is lost;
3. a strongly consistent read that overlaps a move of an item sees it exactly once.

**Two phases at a time.** Everybody acts on metadata that he has read within half of
`settle_seconds`, and each of his requests takes effect within the other half, or never. Nobody
changes the metadata that he has not seen unchanged for `settle_seconds`. So at any moment all
participants act on the present phase or on the one before it, and a step of a change is safe if
neighbours in this table get along with each other. (The idea is that of Rae and others, 2013,
"Online, Asynchronous Schema Change in F1".) Only durations are measured; clocks need not agree. As
a short cut, metadata whose `last_updated` is more than a minute ago counts as seen for long
enough; that one supposes that clocks agree, and delayed requests arrive, within a minute.

    phase        new items go by   readers read     order        moves
    steady       writable          readable         ascending*   up, by puts
    announced    writable          readable         ascending*   up, by puts
    opened       writable          readable         ascending*   up, by puts
    closing      writable          readable         ascending*   none
    fenced       writable          readable         descending   none
    moving       writable          readable         descending   down, by movers
    moved        writable          readable         ascending*   none
    halted       writable          readable         descending   none
    reopening    writable          readable         ascending*   none

    * in any order, and so at the same time, where puts move nothing

Growth from N to N' is steady, announced, opened, steady; the next one may begin from `opened`,
whose writers go by the same count as those of `steady`. `announced` makes readers read N' shards;
`opened` lets writers use them: when the first does, every reader reads them. A drain from N to M is
steady, closing, fenced, moving, moved, steady. `fenced` stops new items above M; when movers begin,
nobody writes any. A drain is called off by way of `reopening`, from `moving` through `halted`.

**One copy.** A put looks, strongly consistent, at the shards where the item may be, unless there is
one only. If it is found it is replaced there, on the condition that it is still there; or moved to
its place by a transaction of both. If it is not found it is put at its place: there is where a
move that the look has missed puts it, too. Where the place by the count before and the place by
the count after differ, and some writers go by the one and others by the other (announced, opened,
closing, fenced), the put is a transaction that checks the other place.

**Updates and movers.** In `fenced`, `moving` and `halted`, whoever changes an item above `writable`
leaves a fence in it, a random token. A mover copies an item and deletes its source in one
transaction, on the condition that the fence is the one that it has read. A put that moves needs no
fence: it replaces what it has not read.

**Reading.** A query reads several shards, at different moments. An item that moves between two of
them is seen twice, or not at all. It is seen at least once if the source is read first; so where
moves go up, shards are read in ascending order, where they go down, descending, each only as far
as those before it have been read. Twice is harmless: copies have the same sort key and meet when
the shards are merged. A query that goes on with newer metadata forgets what it has read further in
some shards than in all: it may have slept through a phase of another order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keyhop.sharding.key.placement import Place, Placement
from keyhop.sharding.key.shards import Phase, Shards

CLOCK_MARGIN_SECONDS = 60.0
"""How far clocks may differ, and requests be late, for `last_updated` to be believed."""

_UP = frozenset({Phase.STEADY, Phase.ANNOUNCED, Phase.OPENED})
_DOWN = frozenset({Phase.FENCED, Phase.MOVING, Phase.HALTED})
_BETWEEN = frozenset({Phase.ANNOUNCED, Phase.OPENED, Phase.CLOSING, Phase.FENCED})


class Order(StrEnum):
    """In which order the shards must be read by a strongly consistent query."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class Create:
    """The item is nowhere: write it at `shard`, if it is not at the `unless` either."""

    shard: int
    unless: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class InPlace:
    """The item is at `shard`: change it there, if it still is; fence: leave one in it."""

    shard: int
    fence: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Put the new item at `target`, if none is there, and delete that at `source`, if it is."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Fold:
    """There are copies, as two may be that were appended: keep one, delete the others."""

    keep: int
    drop: tuple[int, ...]


Step = Create | InPlace | Move | Fold


def known_for(own_seconds: float, now: float, last_updated: int) -> float:
    """For how long metadata has surely been as it is, in seconds.

    own_seconds: since the answer that first showed it. now: epoch seconds.
    """
    return max(own_seconds, now - last_updated - CLOCK_MARGIN_SECONDS)


def home(shards: Shards, place: Place) -> int:
    """Where an item goes that is nowhere yet."""
    return place(shards.writable)


def candidates(shards: Shards, placement: Placement, place: Place) -> tuple[int, ...]:
    """The shards where an item may be, ascending; its home is among them."""
    if not placement.calculated or shards.placement is None:
        # Metadata without a placement is somebody else's; nobody knows how he has chosen shards.
        return tuple(range(1, shards.readable + 1))
    places = {place(count) for count in shards.placed_by | {shards.writable}}
    return tuple(sorted(shard for shard in places if shard <= shards.readable))


def step_of_put(shards: Shards, placement: Placement, place: Place, holders: Sequence[int]) -> Step:
    """What a put does after its look; holders: where the item is, ascending."""
    if len(holders) == 1 and _moves_up(shards, placement):
        target = home(shards, place)
        if target > holders[0]:
            return Move(holders[0], target)
    return step_of_update(shards, placement, place, holders)


def step_of_update(
    shards: Shards, placement: Placement, place: Place, holders: Sequence[int]
) -> Step:
    """What an update or a delete does after its look."""
    if not holders:
        at = home(shards, place)
        return Create(at, tuple(shard for shard in _other_places(shards, place) if shard != at))
    if len(holders) > 1:
        return Fold(holders[0], tuple(holders[1:]))
    return in_place(shards, holders[0])


def in_place(shards: Shards, shard: int) -> InPlace:
    """A change of an item at this shard, where it stays."""
    return InPlace(shard, shards.phase in _DOWN and shard > shards.writable)


def needs_look(placement: Placement, where: Sequence[int]) -> bool:
    """Whether a put must look first; where: the candidates."""
    return not placement.append_only and len(where) > 1


def order_of_reading(shards: Shards, placement: Placement) -> Order:
    """In which order a strongly consistent query reads the shards."""
    if shards.phase in _DOWN:
        return Order.DESCENDING
    puts_move = placement.calculated and not placement.append_only and len(shards.placed_by) > 1
    return Order.ASCENDING if puts_move else Order.ANY


def drained(shards: Shards) -> range:
    """The shards that a drain empties, the last one first."""
    return range(shards.readable, shards.writable, -1)


def newest_first(order: Order, shards: Iterable[int]) -> list[int]:
    """Shards in the order in which copies of an item are believed: a move's target first.

    Copies meet only where a move, or two appends, went on while the shards were read; the target
    was read later.
    """
    return sorted(shards, reverse=order is Order.ASCENDING)


def _moves_up(shards: Shards, placement: Placement) -> bool:
    return placement.calculated and shards.phase in _UP


def _other_places(shards: Shards, place: Place) -> tuple[int, ...]:
    """Where another writer, who is a phase ahead or behind, may put the same new item."""
    if shards.phase not in _BETWEEN:
        return ()
    counts = {shards.number, shards.before}
    return tuple(sorted({place(count) for count in counts}))
