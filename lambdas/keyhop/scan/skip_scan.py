"""The walk through one segment: from a page to the next one. Pure.

A hop is a Scan that starts at {last partition key, greatest sort key}; it lands on the next item
collection. Whether to hop, to read on, or to stop is decided here, and only here:

- only an absent LastEvaluatedKey ends a segment: an empty or short page is not the end;
- a partition key is hopped over only if it was reported: the key to hop from is taken out of the
  LastEvaluatedKey, and if that one was not among the page's items, the walk goes on from it as it
  is;
- so a collection of which a page shows nothing but an item that does not count by itself is not
  reported, and the walk looks one item further: then it is, or it holds nothing else;
- a hop that lands on the key it came from (an item sorts after the greatest sort key: the service
  does not allow that, an emulator may) is counted, and that collection is read through;
- a page that leads to itself is counted, and borne a number of times, but not for ever.
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
    """What one Scan request brought.

    keys: partition keys of its items, neighbours made one. runs: how many items each of them had.
    next: the LastEvaluatedKey, None if the segment ends here. units: read units charged.
    items: themselves, in the order of the keys, if the source asks for more of them than the key.
    ignored: keys of collections, not among `keys`, of which it shows nothing that counts.
    runs_read: the runs with those of `ignored`, where they are others than `runs`. counts: what
    whoever has visited it has counted, for a commit (Step.counts). scan: the parameters of the
    Scan; empty if it was not one.
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
        """What its read units were paid for."""
        return self.runs_read or self.runs

    @property
    def blocks(self) -> int:
        return round(self.units / UNITS_PER_BLOCK)

    def without_a_first_item(self, space: KeySpace) -> "Page":
        """Without its last key, if only one item of it was seen and more may follow: the next page
        then begins with that collection. A page of one key is left as it is.
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
    """Where the walk through a segment stands.

    start: ExclusiveStartKey of the next page. last: the key reported last.
    hopped: `start` is a hop from `last`. unhoppable: a hop from `last` came back to it.
    stuck: how many pages in a row have led to `start`. undecided: nothing that counts was seen yet
    of the collection in which `start` is.
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
    """What a page led to.

    keys: not reported before. position: where to go on; None at the end of the segment.
    no_progress: the page was a hop that came back to its own key, or did not move at all.
    left_out: how many collections turned out to hold nothing that counts. counts: of the keys, what
    a commit is to count with them.
    """

    keys: Sequence[Key]
    position: Position | None
    no_progress: bool = False
    left_out: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


def advance(space: KeySpace, position: Position, page: Page, hop: bool) -> PageResult:
    """From `position` over `page` to the next position; without `hop` every item is read.

    Raises BrokenPromise if MOST_STUCK pages in a row led to themselves.
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
        held = reached if following.undecided else None
        left_out = _left_out(space, position, page, held)
        return PageResult(keys, following, no_progress=came_back, left_out=left_out)
    if position.stuck >= MOST_STUCK:
        raise BrokenPromise(
            f"DynamoDB sent {MOST_STUCK} pages in a row that lead to themselves: going on would "
            f"never end."
        )
    return PageResult(keys, replace(following, stuck=position.stuck + 1), no_progress=True)


def _waits(space: KeySpace, position: Position, page: Page, reached: Key) -> bool:
    """Whether an empty page has left the collection as undecided as it was."""
    if not position.undecided or page.runs_of_all:
        return False
    assert position.start is not None
    return reached == space.partition_of(position.start)


def _left_out(space: KeySpace, position: Position, page: Page, held: Key | None) -> int:
    """How many collections a page has shown to hold nothing that counts; held: undecided yet."""
    over = [key for key in page.ignored if key not in (position.last, held)]
    if not position.undecided:
        return len(over)
    assert position.start is not None
    before = space.partition_of(position.start)
    return len(over) + (before != held and tuple(page.keys[:1]) != (before,))


def without_ignored(page: Page, rows: Sequence[Key], ignores: Key) -> Page:
    """The page with the keys that count; rows: its items, with the attributes of `ignores`."""
    ends = accumulate(page.runs)
    counts = [
        run > 1 or not has_values(rows[end - 1], ignores)
        for run, end in zip(page.runs, ends, strict=True)
    ]
    if all(counts):
        return page
    return replace(
        page,
        keys=list(compress(page.keys, counts)),
        runs=list(compress(page.runs, counts)),
        ignored=[key for key, one in zip(page.keys, counts, strict=True) if not one],
        runs_read=page.runs,
    )


def collapse(items: Iterable[Key], names: Sequence[str]) -> tuple[list[Key], list[int]]:
    """Distinct neighbouring partition keys of a page's items, and how many items each has.

    items: as the service sent them, each holding at least the attributes `names`.
    """
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
