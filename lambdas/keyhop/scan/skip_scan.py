"""The walk through one segment: from a page to the next one. Pure.

A hop is a Scan that starts at {last partition key, greatest sort key}; it lands on the next item
collection. Whether to hop, to read on, or to stop is decided here, and only here:

- only an absent LastEvaluatedKey ends a segment: an empty or short page is not the end;
- a partition key is hopped over only if it was reported: the key to hop from is taken out of the
  LastEvaluatedKey, and if that one was not among the page's items, the walk goes on from it as it
  is;
- a hop that lands on the key it came from (an item sorts after the greatest sort key: the service
  does not allow that, an emulator may) is counted, and that collection is read through;
- a page that leads to itself is counted, and borne a number of times, but not for ever.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import BrokenPromise


@dataclass(frozen=True, slots=True)
class Page:
    """What one Scan request brought.

    keys: partition keys of its items, neighbours made one. runs: how many items each of them had.
    next: the LastEvaluatedKey, None if the segment ends here. units: read units charged.
    items: themselves, in the order of the keys, if the source asks for more of them than the key.
    """

    keys: Sequence[Key]
    runs: Sequence[int]
    next: Key | None
    units: float
    items: Sequence[Key] = ()

    @property
    def blocks(self) -> int:
        """What it cost, in blocks."""
        return round(self.units / UNITS_PER_BLOCK)

    def without_a_first_item(self, space: KeySpace) -> "Page":
        """The page without its last key, if only one item of it was seen and more may follow.

        The next page then begins with that collection. A page of one key is left as it is.
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
    stuck: how many pages in a row have led to `start`.
    """

    start: Key | None = None
    last: Key | None = None
    hopped: bool = False
    unhoppable: bool = False
    stuck: int = 0

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, for a checkpoint."""
        start, last = (key and to_json(key) for key in (self.start, self.last))
        return {**asdict(self), "start": start, "last": last}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Position":
        """The inverse of `to_json`."""
        keys = {name: state[name] and from_json(state[name]) for name in ("start", "last")}
        return cls(**{**state, **keys})


BEGINNING = Position()
MOST_STUCK = 100


@dataclass(frozen=True, slots=True)
class Step:
    """What a page led to.

    keys: keys not reported before. position: where to go on; None at the end of the segment.
    no_progress: the page was a hop that came back to its own key, or did not move at all.
    """

    keys: Sequence[Key]
    position: Position | None
    no_progress: bool = False


def advance(space: KeySpace, position: Position, page: Page, hop: bool) -> Step:
    """From `position` over `page` to the next position; without `hop` every item is read.

    Raises BrokenPromise if MOST_STUCK pages in a row led to themselves.
    """
    continues = bool(page.keys) and page.keys[0] == position.last
    keys = page.keys[1:] if continues else page.keys
    if page.next is None:
        return Step(keys, None)
    last = page.keys[-1] if page.keys else position.last
    came_back = position.hopped and continues
    reached = space.partition_of(page.next)
    unhoppable = reached == position.last and (came_back or position.unhoppable)
    if hop and reached == last and not unhoppable:
        following = Position(space.hop_from(reached), last, hopped=True)
    else:
        following = Position(page.next, last, unhoppable=unhoppable)
    if following.start != position.start:
        return Step(keys, following, no_progress=came_back)
    if position.stuck >= MOST_STUCK:
        raise BrokenPromise(
            f"DynamoDB sent {MOST_STUCK} pages in a row that lead to themselves: going on would "
            f"never end."
        )
    return Step(keys, replace(following, stuck=position.stuck + 1), no_progress=True)


def collapse(items: Iterable[Key], names: Sequence[str]) -> tuple[list[Key], list[int]]:
    """Distinct neighbouring partition keys of a page's items, and how many items each has.

    items: as the service sent them, each holding at least the attributes `names`.
    """
    keys: list[Key] = []
    runs: list[int] = []
    if len(names) == 1:
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
