"""The walk through the collections of one drawn segment, as its pages show them. Pure.

It hops as skip-scans do (scan/skip_scan.py), with whole items. A segment is drawn without regard to
its content, so each collection has an equal chance at any length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key, has_values
from keyhop.report.sample.asks import Ask, Asks
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance, collapse


@dataclass(slots=True)
class Seen:
    """A collection, with the items that were read from its beginning.

    Attributes:
        key: The partition key.
        items: The items in order, without items of Keyhop.
        cut: Whether there may be more.
    """

    key: Key
    items: list[Item] = field(default_factory=list)
    cut: bool = False


def walk(
    space: KeySpace, segment: int, segments: int, ours: Sequence[Key] = (), hop: bool = True
) -> Asks[list[Seen]]:
    """Return each collection of a segment.

    Args:
        space: The keys of the table.
        segment: The number of the segment.
        segments: The number of segments of the table.
        ours: The attributes that identify items of Keyhop.
        hop: Whether to skip the rest of a collection; otherwise each item is read.
    """
    collections: list[Seen] = []
    position: Position | None = BEGINNING
    while position is not None:
        answer = yield Ask.scan(segment, segments, position.start)
        keys, runs = collapse(answer.items, space.names)
        page = Page(keys, runs, answer.next, answer.units, answer.items)
        step = advance(space, position, page, hop)
        first = 0
        for key, run in zip(keys, runs, strict=True):
            if not collections or collections[-1].key != key:
                collections.append(Seen(key))
            read = answer.items[first : first + run]
            collections[-1].items += [item for item in read if not is_ours(item, ours)]
            collections[-1].cut = False
            first += run
        position = step.position
        if hop and collections and position is not None and position.last == collections[-1].key:
            collections[-1].cut = True
    return collections


def is_ours(item: Item, ours: Sequence[Key]) -> bool:
    """Return whether an item belongs to Keyhop.

    Args:
        item: The item.
        ours: The attributes that identify items of Keyhop.
    """
    return any(has_values(item, attributes) for attributes in ours)
