"""Items of a table, drawn for a plan: whole segments at random, so that each item is as likely.

A segment holds whole item collections, and these are alike: so what the sample tells of shares is
worth as many looks as it has collections, and not items.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Item, Key, has_values
from keyhop.errors import BudgetSpent
from keyhop.scan.reader import FULL_PAGE_UNITS, PageReader
from keyhop.scan.segments import MOST_SEGMENTS

SEGMENTS = 64
"""That are drawn: enough for half of the spread between collections to show."""

PAGE_ITEMS = 500
PAGES_OF_A_SEGMENT = 4
"""A collection may have a million items, and be all that a sample has room for."""

DEFAULT_SAMPLE = 2_000
"""Items."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """share: of the table's items, about; 1 if these are all. is_random: not if the table does not
    say how many items it has (for six hours after it was made): then it is its beginning.
    """

    items: Sequence[Item]
    share: float
    is_random: bool = True

    @property
    def is_whole(self) -> bool:
        return self.share == 1.0


def draw(reader: PageReader, wanted: int, chance: random.Random) -> Drawn:
    """About so many items; a budget that is spent before ends it. reader: of whole items."""
    count = reader.source.item_count
    if count <= 2 * wanted:
        items, is_whole = _segment(reader, 0, 1, wanted * 2)
        share = 1.0 if is_whole else min(0.99, len(items) / max(count, len(items) + 1))
        return Drawn(items, share, is_random=is_whole)
    segments = min(MOST_SEGMENTS, max(SEGMENTS, round(count * SEGMENTS / wanted)))
    found: list[Item] = []
    read = 0
    for segment in chance.sample(range(segments), SEGMENTS):
        try:
            items, _ = _segment(reader, segment, segments, PAGES_OF_A_SEGMENT * PAGE_ITEMS)
        except BudgetSpent:
            break
        found += items
        read += 1
    return Drawn(found, min(0.99, read / segments))


def everything(reader: PageReader, ours: Key | None = None) -> Iterator[Item]:
    """Each item of the table but sentinels, once; raises what the reader raises."""
    start = None
    while True:
        page = reader.read(0, 1, start, None, FULL_PAGE_UNITS)
        yield from (item for item in page.items if ours is None or not has_values(item, ours))
        if page.next is None:
            return
        start = page.next


def _segment(reader: PageReader, segment: int, segments: int, most: int) -> tuple[list[Item], bool]:
    """Its items, and whether these are all."""
    items: list[Item] = []
    start = None
    size = reader.source.mean_item_bytes or BLOCK_BYTES
    while True:
        limit = min(PAGE_ITEMS, most - len(items))
        units = min(FULL_PAGE_UNITS, UNITS_PER_BLOCK * (1 + limit * size / BLOCK_BYTES))
        try:
            page = reader.read(segment, segments, start, limit, units)
        except BudgetSpent:
            if not items:
                raise
            return items, False
        items += page.items
        if page.next is None:
            return items, True
        if len(items) >= most:
            return items, False
        start = page.next
