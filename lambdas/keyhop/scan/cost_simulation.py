"""What a skip-scan will cost per key, from a sample of item collections. Pure.

The sample's collections are drawn again and again into a make-believe table, and the ledger itself
works through it. Of many collections a sample sees only the beginning; the length of such a one is
drawn from those that are no shorter ("redistribution to the right", Efron 1967).
"""

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from keyhop.dynamodb.capacity import PAGE_BYTES, UNITS_PER_BLOCK, blocks_of
from keyhop.scan.page_size import Ledger

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
    # Of equal lengths the cut ones come first: one of those may end where it was cut, as the others
    # did, or be longer.
    by_length = sorted(sample, key=_rank)
    ranks = [_rank(collection) for collection in by_length]
    for collection in chance.choices(sample, k=KEYS):
        while collection.cut:
            no_shorter = bisect_right(ranks, _rank(collection))
            if no_shorter == len(ranks):
                collection = SeenCollection(ENDLESS, cut=False)
            else:
                collection = by_length[chance.randrange(no_shorter, len(ranks))]
        yield collection.items


def _rank(collection: SeenCollection) -> tuple[int, bool]:
    return collection.items, not collection.cut
