"""What a skip-scan will cost per key, from a sample of item collections. Pure.

The sample's collections are drawn again and again into a make-believe table, and the ledger itself
works through it. Of many collections a sample sees only the beginning; the length of such a one is
drawn from those that were seen to be longer ("redistribution to the right", Efron 1967).
"""

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keyhop.enumerate.ledger import Ledger
from keyhop.units import PAGE_BYTES, UNITS_PER_BLOCK, blocks_of

KEYS = 3_000
"""Keys of the make-believe table: enough to make what the ledger pays for learning small."""

ENDLESS = 1 << 40


@dataclass(frozen=True, slots=True)
class SeenCollection:
    """An item collection of which a sample saw `items` items; cut: there may be more."""

    items: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """Means for each distinct key."""

    units_per_key: float
    requests_per_key: float


def forecast(
    sample: Sequence[SeenCollection], item_bytes: float, chance: random.Random
) -> Forecast:
    """What a skip-scan of many such collections, of items of `item_bytes` bytes, costs."""
    if not sample:
        return Forecast(UNITS_PER_BLOCK, 1.0)
    lengths = list(_drawn(sample, chance))
    ledger = Ledger.for_table(item_bytes)
    most_items = max(1, int(PAGE_BYTES / item_bytes))
    requests = blocks = key = 0
    while key < len(lengths):
        bet = ledger.bet()
        left = limit = min(bet.limit, most_items)
        runs: list[int] = []
        while left and key < len(lengths):
            run = min(left, lengths[key])
            runs.append(run)
            left -= run
            key += 1
        cost = blocks_of((limit - left) * item_bytes)
        ledger.settle(bet, runs, cost)
        requests += 1
        blocks += cost
    return Forecast(UNITS_PER_BLOCK * blocks / len(lengths), requests / len(lengths))


def _drawn(sample: Sequence[SeenCollection], chance: random.Random) -> Iterator[int]:
    by_length = sorted(sample, key=lambda collection: collection.items)
    lengths = [collection.items for collection in by_length]
    for collection in chance.choices(sample, k=KEYS):
        while collection.cut:
            longer = bisect_right(lengths, collection.items)
            if longer == len(lengths):
                collection = SeenCollection(ENDLESS, cut=False)
            else:
                collection = by_length[chance.randrange(longer, len(lengths))]
        yield collection.items
