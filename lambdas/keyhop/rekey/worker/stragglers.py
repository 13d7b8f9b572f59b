"""Find stragglers: writes to the table that does not serve, by writers that bypass the routers.

The stream of that table also brings what the other worker has written there. Such a write is
recognised because both tables agree about the item, at the latest when the other worker has come
to it.
"""

from collections.abc import Callable, Iterable, Sequence

from keyhop.dynamodb.items import Item, same_item
from keyhop.rekey.control import Direction
from keyhop.rekey.side.figures import LAG
from keyhop.rekey.side.layout import Straggler
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import Change, FrozenKey, Image, frozen, thawed
from keyhop.rekey.worker.target import Target
from keyhop.scan.item_calls import MOST_KEYS_AT_ONCE

LOOKS_AT_SECONDS = (0.0, 1.0, 4.0)
"""Each after the one before. A write is a straggler if the tables disagree about its item at each
look, and the item has not changed since the first: the other worker would have changed it too. The
last look comes when that worker must have come to the item, according to its lag."""

MOST_LAG_SECONDS = 25.0
"""Of the 45 seconds that a batch has."""


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
    """
    suspects = list(changes)
    before: dict[FrozenKey, Item | None] = {}
    for seconds in LOOKS_AT_SECONDS:
        if not suspects:
            break
        if seconds == LOOKS_AT_SECONDS[-1]:
            seconds = max(seconds, min(MOST_LAG_SECONDS, lag()))
        if seconds:
            origin.pause(seconds)
        left = []
        for at in range(0, len(suspects), MOST_KEYS_AT_ONCE):
            some = suspects[at : at + MOST_KEYS_AT_ONCE]
            left += _differing(some, before, transform, origin, target)
        suspects = left
    return suspects


def resolved_among(
    stragglers: Sequence[Straggler], transform: Transform, origin: Target, target: Target
) -> list[Straggler]:
    """Return the stragglers of the origin about whose items both tables agree now.

    A later write has replaced each of these, or it was none: the other worker was further behind
    than it had reported.
    """
    found = []
    for one in stragglers:
        there = _there(frozen(one.key), map(frozen, one.places), transform, target)
        if _same(origin.get(one.key), there):
            found.append(one)
    return found


def _differing(
    changes: Sequence[Change],
    before: dict[FrozenKey, Item | None],
    transform: Transform,
    origin: Target,
    target: Target,
) -> list[Change]:
    """Those that still differ, and are as at the first look. The other table is read first, at the
    places of the records; what has moved on since is looked for where it is now.
    """
    there = {one.source: _there(one.source, one.places, transform, target) for one in changes}
    keys = [thawed(one.source) for one in changes]
    here = {frozen(transform.source.of(item)): item for item in origin.get_many(keys)}
    left = []
    for one in changes:
        item = here.get(one.source)
        first = before.setdefault(one.source, item)
        if not _same(first, item) or _same(item, there[one.source]):
            continue
        place = None if item is None else Image(item, transform).place
        now = [] if place is None or place in one.places else [place]
        if not now or not _same(item, _there(one.source, now, transform, target)):
            left.append(one)
    return left


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
