"""Draw items of a table for a plan: whole segments at random, so that all items are equally likely.

A segment holds whole item collections, whose items are alike. So the precision of a share depends
on the number of collections in the sample, not on the number of items.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.units import BLOCK_BYTES, FULL_PAGE_UNITS, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Item, Key, has_values
from keyhop.errors import BudgetSpent
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import MOST_SEGMENTS

SEGMENTS = 64
"""The segments that are drawn: enough to show half of the spread between collections."""

PAGE_ITEMS = 500
PAGES_OF_A_SEGMENT = 4
"""The limit for a segment, as one collection may have a million items and fill the whole sample."""

DEFAULT_SAMPLE = 2_000
"""The number of items of a sample by default."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sample with an approximate share of a table's items; 1 for all items. It is the beginning
    of a table that reports no number of items yet, for six hours after its creation.
    """

    items: Sequence[Item]
    share: float
    is_random: bool = True

    @property
    def is_whole(self) -> bool:
        return self.share == 1.0


def draw(reader: PageReader, count_wanted: int, chance: random.Random) -> Drawn:
    """Draw about so many whole items; return fewer if the budget is spent."""
    count = reader.source.item_count
    if count <= 2 * count_wanted:
        items, is_whole = _segment(reader, 0, 1, count_wanted * 2)
        share = 1.0 if is_whole else min(0.99, len(items) / max(count, len(items) + 1))
        return Drawn(items, share, is_random=is_whole)
    segments = min(MOST_SEGMENTS, max(SEGMENTS, round(count * SEGMENTS / count_wanted)))
    drawn_items: list[Item] = []
    read = 0
    for segment in chance.sample(range(segments), SEGMENTS):
        try:
            items, _ = _segment(reader, segment, segments, PAGES_OF_A_SEGMENT * PAGE_ITEMS)
        except BudgetSpent:
            break
        drawn_items += items
        read += 1
    return Drawn(drawn_items, min(0.99, read / segments))


def everything(reader: PageReader, ours: Key | None = None) -> Iterator[Item]:
    """Yield each item of the table but sentinels, once; pass on what the reader raises."""
    start = None
    while True:
        page = reader.read(0, 1, start, None, FULL_PAGE_UNITS)
        yield from (item for item in page.items if ours is None or not has_values(item, ours))
        if page.next is None:
            return
        start = page.next


def _segment(
    reader: PageReader, segment: int, segments: int, maximum: int
) -> tuple[list[Item], bool]:
    """Return a segment's items, and whether they are complete."""
    items: list[Item] = []
    start = None
    size = reader.source.mean_item_bytes or BLOCK_BYTES
    while True:
        limit = min(PAGE_ITEMS, maximum - len(items))
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
        if len(items) >= maximum:
            return items, False
        start = page.next
