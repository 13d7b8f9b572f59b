"""Stragglers: writes to the table that no longer serves, by whoever bypasses the router.

Its stream brings the other worker's own writes as well. One of those is told by that the two tables
agree about the item, at the latest when the other worker has come to it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keyhop.dynamodb.items import Item, same_item
from keyhop.dynamodb.values import Key
from keyhop.rekey.side.figures import LAG
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import Change, FrozenKey, Image, frozen, thawed
from keyhop.rekey.worker.target import Target
from keyhop.scan.item_calls import MOST_KEYS_AT_ONCE

LOOKS_AT_SECONDS = (0.0, 1.0, 4.0)
"""After the pause before. An item is a straggler's if the tables disagree at each look, and it has
not changed itself since the first: the other worker, too, would have changed it. The last look
comes when that one must have come to it, by the lag that it has told."""

MOST_LAG_SECONDS = 25.0
"""Of the 45 that a batch has."""

Straggler = tuple[Key, dict[str, Any]]


def lag_told(side: SideTable, now: float) -> float:
    """Seconds by which the other worker is behind; 0 if it has not told lately."""
    told = side.told(f"{LAG}.reverse") or {"at": 0.0}
    return float(told["seconds"]) if now - told["at"] <= STALE_SECONDS else 0.0


def stragglers_among(
    changes: Sequence[Change],
    transform: Transform,
    origin: Target,
    target: Target,
    lag: Callable[[], float],
) -> list[Straggler]:
    """Source keys whose item is not what the other table says; with what the side table is told.

    lag: seconds by which the other worker is behind now.
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
    return [(thawed(one.source), {"is_there": before[one.source] is not None}) for one in suspects]


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
