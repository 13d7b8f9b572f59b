"""Find stragglers: writes to the table that does not serve, by writers that bypass the routers.

The stream of that table also brings what the other worker has written there. Such a write is
recognised because both tables agree about the item, at the latest when the other worker has come
to it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.item_calls import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.values import Item, same_item
from keyhop.errors import GaveUp
from keyhop.rekey.control import Direction
from keyhop.rekey.side.figures import LAG
from keyhop.rekey.side.layout import Straggler
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import Change, FrozenKey, Image, frozen, thawed
from keyhop.rekey.worker.target import Target
from keyhop.wording import counted

LOOKS_AT_SECONDS = (0.0, 1.0, 4.0)
"""Each after the one before. A write is a straggler if the tables disagree about its item at each
look, and the item in one of the two tables has not changed since the first. The other worker makes
both agree: it would have changed this table's item; and it changes it only if the other table's
item has changed. The last look comes when that worker must have come to the item, by its lag."""

MOST_LAG_SECONDS = 25.0
"""Of the 45 seconds that a batch has. If the other worker is further behind, the batch comes again:
a write that is only delayed looks like a straggler until then."""


def lag_of(side: SideTable, direction: Direction, now: float) -> float:
    """Return the seconds by which a direction is behind; 0 if it has not reported lately."""
    told = side.told(f"{LAG}.{direction}") or {"at": 0.0}
    return float(told["seconds"]) if now - told["at"] <= STALE_SECONDS else 0.0


def stragglers_among(
    changes: Sequence[Change],
    transform: Transform,
    origin: Target,
    target: Target,
    lag: Callable[[], float],
) -> list[Change]:
    """Return the changes whose item is not what the other table says.

    Args:
        lag: Returns the seconds by which the other worker is behind now.

    Raises:
        GaveUp: The other worker is too far behind to tell yet.
    """
    suspects = list(changes)
    first: dict[FrozenKey, _Look] = {}
    for seconds in LOOKS_AT_SECONDS:
        if not suspects:
            break
        if seconds == LOOKS_AT_SECONDS[-1]:
            behind = lag()
            if behind > MOST_LAG_SECONDS:
                raise GaveUp(
                    f"The other direction is {counted(behind, 'second')} behind: which writes "
                    "bypassed the routers can be told when it has caught up."
                )
            seconds = max(seconds, behind)
        if seconds:
            origin.pause(seconds)
        differing = []
        for at in range(0, len(suspects), MOST_KEYS_AT_ONCE):
            some = suspects[at : at + MOST_KEYS_AT_ONCE]
            for change, look in _looks(some, transform, origin, target):
                before = first.setdefault(change.source, look)
                if look.differs and (look.is_here_as(before) or look.is_there_as(before)):
                    differing.append(change)
        suspects = differing
    return suspects


def resolved_among(
    stragglers: Sequence[Straggler], transform: Transform, origin: Target, target: Target
) -> list[Straggler]:
    """Return the stragglers of the origin about whose items both tables agree now.

    A later write has replaced each of these, or it was none: the other worker was further behind
    than it had reported.
    """
    if not stragglers:
        return []
    changes = [Change(frozen(one.key), {frozen(at): {} for at in one.places}) for one in stragglers]
    looks = [look for _, look in _looks(changes, transform, origin, target)]
    return [one for one, look in zip(stragglers, looks, strict=True) if not look.differs]


@dataclass(frozen=True, slots=True)
class _Look:
    """An item in both tables.

    Attributes:
        here: The item in the origin; None if there is none.
        there: What the other table says that it should be; None for nothing.
        place: Where the item belongs in the other table; None for nowhere.
    """

    here: Item | None
    there: Item | None
    place: FrozenKey | None

    @property
    def differs(self) -> bool:
        return not _same(self.here, self.there)

    def is_here_as(self, before: "_Look") -> bool:
        return _same(self.here, before.here)

    def is_there_as(self, before: "_Look") -> bool:
        """Whether the other table's item has not changed. Where there is none, it may have moved
        to a place that nobody looks at, unless this item belongs where it did before.
        """
        is_at_rest = self.there is not None or self.place == before.place
        return is_at_rest and _same(self.there, before.there)


def _looks(
    changes: Sequence[Change], transform: Transform, origin: Target, target: Target
) -> Iterator[tuple[Change, _Look]]:
    """Look at the items of at most MOST_KEYS_AT_ONCE changes in both tables.

    The other table is read first, at the places of the records; an item that has moved on since is
    looked for where it belongs now.
    """
    there = {one.source: _there(one.source, one.places, transform, target) for one in changes}
    keys = [thawed(one.source) for one in changes]
    here = {frozen(transform.source.of(item)): item for item in origin.get_many(keys)}
    for one in changes:
        item, other = here.get(one.source), there[one.source]
        place = None if item is None else Image(item, transform).place
        if place is not None and place not in one.places and not _same(item, other):
            other = _there(one.source, [place], transform, target) or other
        yield one, _Look(item, other, place)


def _there(
    source: FrozenKey, places: Iterable[FrozenKey], transform: Transform, target: Target
) -> Item | None:
    """The source item as the other table has it, at any of these places."""
    for place in places:
        item = target.get(thawed(place))
        back = None if item is None else _back(item, transform)
        if back is not None and frozen(transform.source.of(back)) == source:
            return back
    return None


def _back(item: Item, transform: Transform) -> Item | None:
    try:
        return transform.back(item)
    except Exception:  # unmappable, or a function of somebody's
        return None


def _same(one: Item | None, other: Item | None) -> bool:
    if one is None or other is None:
        return one is other
    return same_item(one, other)
