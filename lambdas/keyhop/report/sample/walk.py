"""The walk through one drawn segment: each of its collections, by what a page shows of it. Pure.

Hops as skip-scans do (scan/skip_scan.py), with whole items. A segment is drawn without regard to
what is in it, so each collection has an equal chance, however long it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key, has_values
from keyhop.report.sample.asks import Ask, Asks
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance, collapse


@dataclass(slots=True)
class Seen:
    """A collection, by the items of it that were read, in their order from its first on.

    cut: there may be more. Items of Keyhop's own are not among them.
    """

    key: Key
    items: list[Item] = field(default_factory=list)
    cut: bool = False


def walk(
    space: KeySpace, segment: int, segments: int, ours: Sequence[Key] = (), hop: bool = True
) -> Asks[list[Seen]]:
    """All collections of a segment.

    ours: attributes that tell an item of Keyhop's own. Without `hop` each item is read.
    """
    seen: list[Seen] = []
    position: Position | None = BEGINNING
    while position is not None:
        answer = yield Ask.scan(segment, segments, position.start)
        keys, runs = collapse(answer.items, space.names)
        page = Page(keys, runs, answer.next, answer.units, answer.items)
        step = advance(space, position, page, hop)
        first = 0
        for key, run in zip(keys, runs, strict=True):
            if not seen or seen[-1].key != key:
                seen.append(Seen(key))
            read = answer.items[first : first + run]
            seen[-1].items += [item for item in read if not is_ours(item, ours)]
            seen[-1].cut = False
            first += run
        position = step.position
        if hop and seen and position is not None and position.last == seen[-1].key:
            seen[-1].cut = True
    return seen


def is_ours(item: Item, ours: Sequence[Key]) -> bool:
    """Whether an item is Keyhop's own; ours: attributes that tell one."""
    return any(has_values(item, one) for one in ours)
