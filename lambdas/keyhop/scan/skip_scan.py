"""The walk through one segment: from a page to the next one. Pure.

A hop is a Scan that starts at {last partition key, greatest sort key}; it lands on the next item
collection. Only this module decides whether to hop, to read on, or to stop:

- Only an absent LastEvaluatedKey ends a segment. An empty or short page is not the end.
- Only a reported partition key is hopped over. The key to hop from is taken from the
LastEvaluatedKey. If that key was not among the items of the page, the walk continues from it
without a hop.
- So a collection of which a page only shows an item that does not count is not reported, and the
walk reads one more item. Then the collection is reported, or it holds nothing else.
- A hop that lands on the key it came from is counted, and that collection is read through. (An item
then sorts after the greatest sort key. The service does not allow that, but an emulator may.)
- A page that leads to itself is counted, and accepted for a limited number of times.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, compress
from typing import Any

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.dynamodb.values import Key, from_json, has_values, to_json
from keyhop.errors import BrokenPromise


@dataclass(frozen=True, slots=True)
class Page:
    """The result of one Scan request.

    Attributes:
        keys: The partition keys of its items, without repetitions of neighbours.
        runs: The number of items of each key.
        next: The LastEvaluatedKey; None at the end of the segment.
        units: The read units charged.
        items: The items in the order of the keys, if the source asks for more than the keys.
        ignored: Keys of collections, not among `keys`, of which the page shows nothing that counts.
        runs_read: The runs including those of `ignored`, if they differ from `runs`.
        counts: The counts of a task that has visited the page, for a commit (PageResult.counts).
        scan: The parameters of the Scan; empty if it was not one.
    """

    keys: Sequence[Key]
    runs: Sequence[int]
    next: Key | None
    units: float
    items: Sequence[Key] = ()
    ignored: Sequence[Key] = ()
    runs_read: Sequence[int] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    scan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def runs_of_all(self) -> Sequence[int]:
        """Return the runs that the read units were paid for."""
        return self.runs_read or self.runs

    @property
    def blocks(self) -> int:
        return round(self.units / UNITS_PER_BLOCK)

    def without_a_first_item(self, space: KeySpace) -> "Page":
        """Return the page without its last key, if it shows one item of it and more may follow.

        Then the next page begins with that collection. A page of one key is returned unchanged.
        """
        if self.next is None or len(self.keys) < 2 or self.runs[-1] > 1:
            return self
        return replace(
            self,
            keys=self.keys[:-1],
            runs=self.runs[:-1],
            items=self.items[:-1],
            next=space.hop_from(self.keys[-2]),
        )


@dataclass(frozen=True, slots=True)
class Position:
    """The progress of the walk through a segment.

    Attributes:
        start: The ExclusiveStartKey of the next page.
        last: The key that was reported last.
        hopped: Whether `start` is a hop from `last`.
        unhoppable: Whether a hop from `last` came back to it.
        stuck: The number of consecutive pages that have led to `start`.
        undecided: Whether nothing that counts was seen yet of the collection in which `start` is.
    """

    start: Key | None = None
    last: Key | None = None
    hopped: bool = False
    unhoppable: bool = False
    stuck: int = 0
    undecided: bool = False

    def to_json(self) -> dict[str, Any]:
        start, last = (key and to_json(key) for key in (self.start, self.last))
        state = {**asdict(self), "start": start, "last": last}
        if not self.undecided:  # as positions have always been written
            del state["undecided"]
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Position":
        keys = {name: state[name] and from_json(state[name]) for name in ("start", "last")}
        return cls(**{**state, **keys})


BEGINNING = Position()
MOST_STUCK = 100


@dataclass(frozen=True, slots=True)
class PageResult:
    """The result of a page for the walk.

    Attributes:
        keys: The keys that were not reported before.
        position: The position to continue at; None at the end of the segment.
        no_progress: Whether the page was a hop that came back to its own key, or did not move.
        left_out: The number of collections that turned out to hold nothing that counts.
        counts: The counts for a commit.
    """

    keys: Sequence[Key]
    position: Position | None
    no_progress: bool = False
    left_out: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


def advance(space: KeySpace, position: Position, page: Page, hop: bool) -> PageResult:
    """Advance from `position` over `page` to the next position. Without `hop` every item is read.

    Raise BrokenPromise if MOST_STUCK consecutive pages have led to themselves.
    """
    continues = bool(page.keys) and page.keys[0] == position.last
    keys = page.keys[1:] if continues else page.keys
    if page.next is None:
        return PageResult(keys, None, left_out=_left_out(space, position, page, None))
    last = page.keys[-1] if page.keys else position.last
    came_back = position.hopped and position.last in (*page.keys[:1], *page.ignored[:1])
    reached = space.partition_of(page.next)
    unhoppable = reached == position.last and (came_back or position.unhoppable)
    if hop and reached == last and not unhoppable:
        following = Position(space.hop_from(reached), last, hopped=True)
    else:
        undecided = reached != last and (
            tuple(page.ignored[-1:]) == (reached,) or _waits(space, position, page, reached)
        )
        following = Position(page.next, last, unhoppable=unhoppable, undecided=undecided)
    if following.start != position.start:
        undecided_key = reached if following.undecided else None
        left_out = _left_out(space, position, page, undecided_key)
        return PageResult(keys, following, no_progress=came_back, left_out=left_out)
    if position.stuck >= MOST_STUCK:
        raise BrokenPromise(
            f"DynamoDB sent {MOST_STUCK} pages in a row whose last key is the start of the page: "
            "the scan would never end."
        )
    return PageResult(keys, replace(following, stuck=position.stuck + 1), no_progress=True)


def _waits(space: KeySpace, position: Position, page: Page, reached: Key) -> bool:
    """Return whether an empty page has left the collection undecided."""
    if not position.undecided or page.runs_of_all:
        return False
    assert position.start is not None
    return reached == space.partition_of(position.start)


def _left_out(space: KeySpace, position: Position, page: Page, undecided_key: Key | None) -> int:
    """Return how many collections hold nothing that counts, without the undecided one."""
    over = [key for key in page.ignored if key not in (position.last, undecided_key)]
    if not position.undecided:
        return len(over)
    assert position.start is not None
    before = space.partition_of(position.start)
    return len(over) + (before != undecided_key and tuple(page.keys[:1]) != (before,))


def without_ignored(page: Page, rows: Sequence[Key], ignores: Key) -> Page:
    """Return the page with the keys that count only. `rows` have the attributes of `ignores`."""
    ends = accumulate(page.runs)
    counts = [
        run > 1 or not has_values(rows[end - 1], ignores)
        for run, end in zip(page.runs, ends, strict=True)
    ]
    if all(counts):
        return page
    items_count = [
        is_counted for is_counted, run in zip(counts, page.runs, strict=True) for _ in range(run)
    ]
    return replace(
        page,
        keys=list(compress(page.keys, counts)),
        runs=list(compress(page.runs, counts)),
        items=list(compress(page.items, items_count)),
        ignored=[key for key, is_counted in zip(page.keys, counts, strict=True) if not is_counted],
        runs_read=page.runs,
    )


def collapse(items: Iterable[Key], names: Sequence[str]) -> tuple[list[Key], list[int]]:
    """Return the distinct neighbouring keys (`names`) of items, and the number of items of each."""
    keys: list[Key] = []
    runs: list[int] = []
    if len(names) == 1:  # a table's key: without a dictionary for each item
        (name,) = names
        value: Any = None
        for item in items:
            if item[name] == value:
                runs[-1] += 1
            else:
                value = item[name]
                keys.append({name: value})
                runs.append(1)
        return keys, runs
    for item in items:
        key = {name: item[name] for name in names}
        if keys and key == keys[-1]:
            runs[-1] += 1
        else:
            keys.append(key)
            runs.append(1)
    return keys, runs
