"""The protocol of a sharded key: what writers, readers and movers do in each phase. Pure.

Each request concerns only one item or one page. Nevertheless three guarantees hold:

1. a strongly consistent read finds every write that was finished before the read started;
2. an item that may be replaced is in exactly one shard, and no update of it is lost;
3. a strongly consistent read that overlaps a move of an item sees it exactly once.

At any time all clients use the present phase or the previous one, so a step of a change is safe if
adjacent phases in this table are compatible (Rae and others, 2013, "Online, Asynchronous Schema
Change in F1"). docs/internals/sharding-protocol.md explains that, growth, drains, late answers and
reads.

    phase        new items use     readers read     order        moves
    steady       writable          readable         ascending*   up, by puts
    announced    as claimed        readable         ascending*   none
    opened       as claimed        readable         ascending*   none
    closing      writable          readable         ascending*   none
    fenced       writable          readable         descending   none
    moving       writable          readable         descending   down, by movers
    moved        writable          readable         ascending*   none
    halted       writable          readable         descending   none
    reopening    writable          readable         ascending*   none

    * in any order, and so in parallel, if puts move no items

**One copy.** A put reads the shards where the item may be, unless it is only one. If the item
exists, the put replaces it there, on condition that it still exists; or moves it to its shard by a
transaction on both. If not, the item is put in its shard, which is also the target of a move that
the read has missed. In phases in which some writers use the previous count and others the next one
(closing, fenced), the put is a transaction that checks both shards.

**Claims.** In `announced` and `opened`, the shard of a new item whose place changes is decided by
its claim, an item in the metadata table. A writer in `announced` claims the old place, and a writer
in `opened` the new one, on condition that there is no claim; then the writer creates the item at
the claimed place, by a plain put. A claim of the new place is final. A claim of the old place has
an owner, who may change it to the new place if none of its requests can have created the item. As
soon as another writer uses that claim too, it has no owner any more.

**Updates and movers.** In `fenced`, `moving` and `halted`, a change of an item above `writable`
leaves a fence in it, a random token. A mover copies an item and deletes its source in one
transaction, on condition of that fence. A put that moves an item needs no fence, because it
replaces an item that it has not read.

**Reading.** An item that moves between two reads of shards is seen at least once if the source is
read first. So shards are read in the order of moves, and no shard further than those before it. Two
copies have the same sort key and meet in the merge. A query that continues with newer metadata
discards the pages beyond the point up to which all shards were read, because a phase with another
order may have passed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from keyhop.sharding.key.placement import Place, Placement
from keyhop.sharding.key.shards import Phase, Shards

_GROWING = frozenset({Phase.ANNOUNCED, Phase.OPENED})
_DOWN = frozenset({Phase.FENCED, Phase.MOVING, Phase.HALTED})
_BETWEEN = frozenset({Phase.CLOSING, Phase.FENCED})
SHARED = "shared"
"""The owner of a claim that several writers use."""


class Order(StrEnum):
    """The order in which a strongly consistent query must read the shards."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class Create:
    """The item does not exist: write it in `shard`, on condition that the shards in `unless`, and
    then also `shard`, do not have it.

    If `unless` is empty, an item that is in `shard` by now is changed, and other shards cannot have
    it.
    """

    shard: int
    unless: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class InPlace:
    """The item is in `shard`: change it there, if it still exists. fence: leave a fence in it."""

    shard: int
    fence: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Put the new item in `target` if it has none, and delete the item in `source` if it exists."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Fold:
    """Two appends have created copies: keep one, and delete the others."""

    keep: int
    drop: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ByClaim:
    """The item does not exist, and its place changes: its claim decides where it is created."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The shard in which a new item is created during a growth, and the writer that decided so."""

    shard: int
    owner: str = SHARED


@dataclass(frozen=True, slots=True)
class Hold:
    """Another writer may still create the item in its old place: wait for the next phase."""


Step = Create | InPlace | Move | Fold | ByClaim


class Late(StrEnum):
    """The result of a write that succeeded with a late answer."""

    KEPT = "kept"
    UNKNOWN = "unknown"
    LOST_IF_THERE = "lost if it is there"


def home(shards: Shards, place: Place) -> int:
    """Return the shard of a new item."""
    return place(shards.writable)


def candidates(shards: Shards, placement: Placement, place: Place) -> tuple[int, ...]:
    """Return the shards where an item may be, ascending, including its home."""
    if not placement.calculated or shards.placement is None:
        # Metadata without a placement is from another program, whose placement is unknown.
        return tuple(range(1, shards.readable + 1))
    places = {place(count) for count in shards.placed_by | {shards.writable}}
    return tuple(sorted(shard for shard in places if shard <= shards.readable))


def step_of_put(shards: Shards, placement: Placement, place: Place, holders: Sequence[int]) -> Step:
    """Return a put's step after its read. holders: the shards that have the item, ascending."""
    if len(holders) == 1 and placement.calculated and shards.phase is Phase.STEADY:
        target = home(shards, place)
        if target > holders[0]:
            return Move(holders[0], target)
    return step_of_update(shards, placement, place, holders)


def step_of_update(
    shards: Shards, placement: Placement, place: Place, holders: Sequence[int]
) -> Step:
    """Return the step of an update or a delete after its read."""
    if not holders:
        at = home(shards, place)
        # Writers in the previous or the next phase may put the same new item there.
        counts = {shards.number, shards.before} if shards.phase in _BETWEEN else set[int]()
        if shards.phase in _GROWING and place(shards.number) != place(shards.before):
            return ByClaim()
        return Create(at, tuple(sorted({place(count) for count in counts} - {at})))
    if len(holders) > 1:
        return Fold(holders[0], tuple(holders[1:]))
    return InPlace(holders[0], shards.phase in _DOWN and holders[0] > shards.writable)


def step_by_claim(
    shards: Shards, place: Place, claim: Claim | None, owner: str, maybe_written: bool
) -> Claim | Create | Hold:
    """Return the step of a writer (`owner`) that has found a claim, or none: the claim to write
    instead of it, the creation of the item, or a wait.

    maybe_written: whether an earlier request of the writer may have created the item.
    """
    at = home(shards, place)
    if claim is None:
        return Claim(at, owner)
    if claim.shard == place(shards.number):
        return Create(claim.shard)
    is_ours = claim.owner == owner
    if shards.phase is Phase.ANNOUNCED:
        return Create(at) if is_ours or claim.owner == SHARED else Claim(at)
    return Claim(at, owner) if is_ours and not maybe_written else Hold()


def after_settling(shards: Shards) -> Shards:
    """Return metadata that has been unchanged for `settle` seconds, as a writer may use it: in
    `opened` nobody uses `announced` any more, so new items need no claims.
    """
    return replace(shards, phase=Phase.STEADY) if shards.phase is Phase.OPENED else shards


def only_ends_growth(before: Shards, after: Shards) -> bool:
    """Return whether the change from `before` to `after` is the end of a growth, which changes no
    place of an item. So a process that has known `before` for long enough may change `after` at
    once.
    """
    phases = before.phase, after.phase
    return phases == (Phase.OPENED, Phase.STEADY) and before.counted_at == after.counted_at


def after_a_late_answer(now: Shards, shard: int, is_update: bool) -> Late:
    """Return the result of a late write to a shard, by the present metadata; see "Late answers"."""
    if is_update and shard > now.writable:
        return Late.UNKNOWN
    return Late.LOST_IF_THERE if shard > now.readable else Late.KEPT


def order_of_reading(shards: Shards, placement: Placement) -> Order:
    """Return the order in which a strongly consistent query reads the shards."""
    if shards.phase in _DOWN:
        return Order.DESCENDING
    puts_move = placement.calculated and not placement.append_only and len(shards.placed_by) > 1
    return Order.ASCENDING if puts_move else Order.ANY


def lasts(shards: Shards, placement: Placement) -> float:
    """Return the seconds for which metadata must be unchanged before it may be changed.

    Half of `settle` is enough if items are appended and only readers must know: a query by metadata
    of two phases ago has started before anything was put in the new shards. Clients never use an
    earlier state of a new key.
    """
    if shards.is_new:
        return 0.0
    is_announced = shards.phase is Phase.ANNOUNCED
    return shards.settle / 2 if placement.append_only and is_announced else shards.settle


def looks_that_suffice(shards: Shards, placement: Placement) -> int:
    """Return the number of reads that must miss an item to show that it does not exist.

    A read uses its shards in no order, so it misses an item that is being moved. So this is one
    more than the possible moves in this phase and its neighbours: puts move an item up, but not
    during a growth, and drains move it down.
    """
    return 1 if order_of_reading(shards, placement) is Order.ANY else 2


def drained(shards: Shards) -> range:
    """Return the shards that a drain empties, the last one first."""
    return range(shards.readable, shards.writable, -1)


def newest_first(order: Order, shards: Iterable[int]) -> list[int]:
    """Return shards by preference for their copies of an item, a move's target first: a read finds
    copies only during a move or after two appends, and the target was read later.
    """
    return sorted(shards, reverse=order is Order.ASCENDING)
