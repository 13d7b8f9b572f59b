"""Find stragglers: writes to the table that does not serve, by writers that bypass the routers.

The stream of that table also contains the writes of the other worker. They are recognised because
both tables agree about the item, at the latest when the other worker has processed it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.values import Item, same_item
from keyhop.errors import GaveUp
from keyhop.rekey.control import Direction
from keyhop.rekey.side.layout import LAG, Straggler
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import Change, FrozenKey, Image, frozen, thawed
from keyhop.rekey.worker.target import Target
from keyhop.wording import counted

LOOKS_AT_SECONDS = (0.0, 1.0, 4.0)
"""The seconds before each look. A write is a straggler if the tables disagree about its item at
each look, and the item in one of the two tables has not changed since the first. Reason: the other
worker makes both agree. It would have changed this table's item, and does that only if the other
table's item has changed. By its lag, it has processed the item before the last look.
"""

MOST_LAG_SECONDS = 25.0
"""The longest lag of the other worker, for a batch that has 45 seconds. If the lag is longer,
the batch is delivered again: a write that is only delayed looks like a straggler until then.
"""


def lag_of(side: SideTable, direction: Direction, now: float) -> float:
    """Return the seconds by which a direction is behind; 0 without a recent report."""
    report = side.told(f"{LAG}.{direction}") or {"at": 0.0}
    return float(report["seconds"]) if now - report["at"] <= STALE_SECONDS else 0.0


def stragglers_among(
    changes: Sequence[Change],
    transform: Transform,
    origin: Target,
    target: Target,
    lag: Callable[[], float],
) -> list[Change]:
    """Return the changes of the origin whose item differs from the one in the target. Raise GaveUp
    if the other worker, which is `lag` seconds behind now, is too far behind for a decision.
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
    """Return the stragglers of the origin about whose items both tables agree now: later writes
    have replaced them, or the other worker was further behind than it had reported.
    """
    if not stragglers:
        return []
    changes = [
        Change(frozen(straggler.key), {frozen(at): {} for at in straggler.places})
        for straggler in stragglers
    ]
    looks = [look for _, look in _looks(changes, transform, origin, target)]
    return [
        straggler for straggler, look in zip(stragglers, looks, strict=True) if not look.differs
    ]


@dataclass(frozen=True, slots=True)
class _Look:
    """An item in the origin, and the item that the other table maps to; None if there is none. The
    place of the first in the other table is None if it cannot be mapped.
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
        """Return whether the other table's item has not changed. If there is none, it may have
        moved to a place that is not read, unless the place of this item is the same as before.
        """
        is_at_rest = self.there is not None or self.place == before.place
        return is_at_rest and _same(self.there, before.there)


def _looks(
    changes: Sequence[Change], transform: Transform, origin: Target, target: Target
) -> Iterator[tuple[Change, _Look]]:
    """Read the items of at most MOST_KEYS_AT_ONCE changes in both tables: first the other one, at
    the places of the records, and again at its current place for an item that has moved since then.
    """
    target_items = {
        change.source: _there(change.source, change.places, transform, target) for change in changes
    }
    keys = [thawed(change.source) for change in changes]
    origin_items = {frozen(transform.source.of(item)): item for item in origin.get_many(keys)}
    for change in changes:
        item, target_item = origin_items.get(change.source), target_items[change.source]
        place = None if item is None else Image(item, transform).place
        if place is not None and place not in change.places and not _same(item, target_item):
            target_item = _there(change.source, [place], transform, target) or target_item
        yield change, _Look(item, target_item, place)


def _there(
    source: FrozenKey, places: Iterable[FrozenKey], transform: Transform, target: Target
) -> Item | None:
    """Return the source item that the other table has at any of these places."""
    for place in places:
        item = target.get(thawed(place))
        back = None if item is None else _back(item, transform)
        if back is not None and frozen(transform.source.of(back)) == source:
            return back
    return None


def _back(item: Item, transform: Transform) -> Item | None:
    try:
        return transform.back(item)
    except Exception:  # unmappable, or a user's function
        return None


def _same(first: Item | None, second: Item | None) -> bool:
    if first is None or second is None:
        return first is second
    return same_item(first, second)
