"""The protocol of a sharded key: what writers, readers and movers do in each phase. Pure.

Three promises are kept, by requests that each know only one item or one page:

1. a strongly consistent read finds every write that was finished before the read began;
2. an item that may be replaced is in exactly one shard, and no update of it is lost;
3. a strongly consistent read that overlaps a move of an item sees it exactly once.

**Two phases at a time.** Everybody acts on metadata that he has read within half of
`settle_seconds`, and each of his requests takes effect within the other half, or never. Nobody
changes the metadata that he has not seen unchanged for `settle_seconds`. So at any moment all act
on the present phase or on the one before it, and a step of a change is safe if neighbours in this
table get along with each other (Rae and others, 2013, "Online, Asynchronous Schema Change in F1").
Only durations are measured, each by one clock: `last_updated` is a version, and no moment to go by.

    phase        new items go by   readers read     order        moves
    steady       writable          readable         ascending*   up, by puts
    announced    writable          readable         ascending*   up, by puts
    opened       writable          readable         ascending*   up, by puts
    awaited      writable          readable         ascending*   none
    widened      writable          readable         ascending*   up, by puts
    closing      writable          readable         ascending*   none
    fenced       writable          readable         descending   none
    moving       writable          readable         descending   down, by movers
    moved        writable          readable         ascending*   none
    halted       writable          readable         descending   none
    reopening    writable          readable         ascending*   none

    * in any order, and so at the same time, where puts move nothing

Growth is steady, announced, opened, steady; the next may begin from `opened`, whose writers go by
the same count as those of `steady`. Urgent growth is steady, awaited, widened, steady: in `awaited`
nobody creates an item whose places by the two counts differ, so that nobody need check, in
`widened`, the shard that is hot. A drain is steady, closing, fenced, moving, moved, steady; it
is called off by way of `reopening`, from `moving` through `halted` (docs/sharding-protocol.md).

**One copy.** A put looks at the shards where the item may be, unless there is one only. If it is
found it is replaced there, on the condition that it is still there; or moved to its place by a
transaction of both. If not, it is put at its place: there is where a move that the look has missed
puts it, too. Where some writers go by the count before and others by the count after (announced,
opened, closing, fenced), the put is a transaction that checks both places.

**Updates and movers.** In `fenced`, `moving` and `halted`, whoever changes an item above `writable`
leaves a fence in it, a random token. A mover copies an item and deletes its source in one
transaction, on the condition that the fence is the one that it has read. A put that moves needs no
fence: it replaces what it has not read.

**Late answers.** A success whose answer comes after all that, while the metadata has changed, is a
success: what took effect in time is kept by all that follows, so it is never done again. It may
have taken effect late, though. If it lies in a shard that readers have left, nobody has seen it: it
is taken back, and done anew. An update in a shard that is drained may have changed an item that a
mover had read already: nobody knows then.

**Reading.** An item that moves between two reads of shards is seen twice, or not at all; at least
once if the source is read first. So where moves go up, shards are read in ascending order, where
they go down, descending, each only as far as those before it have been read. Twice is harmless:
copies have the same sort key and meet in the merge. A query that goes on with newer metadata
forgets what it has read further in some shards than in all: it may have slept through a phase of
another order. A look for one item reads in no order, and more than once before it reports none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from keyhop.sharding.key.placement import Place, Placement
from keyhop.sharding.key.shards import Phase, Shards

_UP = frozenset({Phase.STEADY, Phase.ANNOUNCED, Phase.OPENED, Phase.WIDENED})
_GROWING = frozenset({Phase.ANNOUNCED, Phase.OPENED, Phase.AWAITED, Phase.WIDENED})
_DOWN = frozenset({Phase.FENCED, Phase.MOVING, Phase.HALTED})
_BETWEEN = frozenset({Phase.ANNOUNCED, Phase.OPENED, Phase.CLOSING, Phase.FENCED})


class Order(StrEnum):
    """In which order the shards must be read by a strongly consistent query."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class Create:
    """The item is nowhere: write it at `shard`; with `unless`, if it is neither there nor at these.

    Without, whatever lies at `shard` by now is changed there, and nothing can lie elsewhere.
    """

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


@dataclass(frozen=True, slots=True)
class Hold:
    """The item is nowhere, and its place is about to change: wait for the next phase."""


Step = Create | InPlace | Move | Fold | Hold


class Late(StrEnum):
    """What becomes of a write that succeeded, and whose answer came late."""

    KEPT = "kept"
    UNKNOWN = "unknown"
    LOST_IF_THERE = "lost if it is there"


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
    if len(holders) == 1 and placement.calculated and shards.phase in _UP:
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
        # Where another writer, who is a phase ahead or behind, may put the same new item.
        counts = {shards.number, shards.before} if shards.phase in _BETWEEN else set[int]()
        if shards.phase is Phase.AWAITED and place(shards.number) != at:
            return Hold()
        return Create(at, tuple(sorted({place(count) for count in counts} - {at})))
    if len(holders) > 1:
        return Fold(holders[0], tuple(holders[1:]))
    return InPlace(holders[0], shards.phase in _DOWN and holders[0] > shards.writable)


def after_a_late_answer(now: Shards, shard: int, is_update: bool) -> Late:
    """What the metadata of now says of a write to a shard; see "Late answers"."""
    if is_update and shard > now.writable:
        return Late.UNKNOWN
    return Late.LOST_IF_THERE if shard > now.readable else Late.KEPT


def order_of_reading(shards: Shards, placement: Placement) -> Order:
    """In which order a strongly consistent query reads the shards."""
    if shards.phase in _DOWN:
        return Order.DESCENDING
    puts_move = placement.calculated and not placement.append_only and len(shards.placed_by) > 1
    return Order.ASCENDING if puts_move else Order.ANY


def lasts(shards: Shards, placement: Placement) -> float:
    """For how many seconds metadata must have been seen unchanged before it may be changed.

    Half of it suffices where items are appended and only readers must know: a query that began by
    metadata of two phases ago has begun before anything was put into the new shards. Nobody acts
    by an earlier state of a key that is new.
    """
    if shards.is_new:
        return 0.0
    is_announced = shards.phase in (Phase.ANNOUNCED, Phase.AWAITED)
    return shards.settle / 2 if placement.append_only and is_announced else shards.settle


def looks_that_suffice(shards: Shards, placement: Placement) -> int:
    """So many looks by this metadata, each of which has missed an item, show that it is not there.

    A look reads its shards in no order, so it misses what moves meanwhile: one more than moves that
    are possible while somebody goes by this metadata, a phase before, or a phase after it. Puts
    move up only, to the place by `writable`, which differs in these phases at most once; drains
    move down, once.
    """
    if order_of_reading(shards, placement) is Order.ANY:
        return 1
    return 3 if shards.phase in _GROWING else 2


def drained(shards: Shards) -> range:
    """The shards that a drain empties, the last one first."""
    return range(shards.readable, shards.writable, -1)


def newest_first(order: Order, shards: Iterable[int]) -> list[int]:
    """Shards in the order in which copies of an item are believed: a move's target first.

    Copies meet only where a move, or two appends, went on while the shards were read; the target
    was read later.
    """
    return sorted(shards, reverse=order is Order.ASCENDING)
