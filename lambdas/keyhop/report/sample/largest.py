"""The largest collections that a sample has met, and the largest keys of indexes. Pure.

Collections drawn uniformly seldom are the largest. The entries of an index of an unrelated key,
from random segments of it, meet a key of the table as often as it has items; where the index has
few keys itself, its segments are no such draws: most are empty, and one holds what counts.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from keyhop.report.estimate import LEVEL, Estimate
from keyhop.report.facts import Collection, IndexSample
from keyhop.report.sample.observed import Observed
from keyhop.report.sample.population import Population
from keyhop.report.sample.rows import CollectionRow, DrawRow, SegmentRow
from keyhop.report.statistics.giants import STALE
from keyhop.report.statistics.lengths import is_cut
from keyhop.report.statistics.shares import Item, weighted_share, widened
from keyhop.report.statistics.top import top

MOST = 10

MOST_BYTES = 400 * 1024.0
"""DynamoDB's limit of an item."""
OLDER_MEAN = 1.25
"""DescribeTable's counts are up to six hours old: by so much the mean size may have changed."""

OF_INDEX, SEGMENT = "GSI ", "random segment"
"""What a collection was found by (Collection.by)."""

LEAST_MET = 0.9
"""Of the entries that an index has by its count, the segments read whole must account for so many:
else many are in collections of the index that are too long for a draw, and so are never met."""


def of_index(index: str) -> str:
    """What says how a collection was found."""
    return f"{OF_INDEX}{index}"


def length_of(row: CollectionRow) -> Estimate:
    """Items of a collection, as far as they are known."""
    if row.length is not None:
        return row.length
    if row.whole:
        return Estimate.exactly(float(row.items), row.items, "counted")
    return Estimate.at_least(float(row.items), row.items, "at least")


def mean_of(items: Iterable[Item]) -> float:
    """Of their values; 0 of none."""
    weighted = [(item.weight, item.value) for item in items]
    whole = sum(weight for weight, _ in weighted)
    return sum(weight * value for weight, value in weighted) / whole if whole else 0.0


def usable(draws: Sequence[DrawRow], entries: Mapping[str, int]) -> dict[str, list[DrawRow]]:
    """By index, the rows that are size-biased draws. entries: of each index, as it reports them."""
    found = {}
    for index, count in entries.items():
        rows = [row for row in draws if row.index == index]
        whole = [row for row in rows if row.whole]
        met = sum(row.items for row in whole)
        if met and met * rows[0].segments >= LEAST_MET * count * len(rows):
            found[index] = whole
    return found


def largest(
    segments: Sequence[SegmentRow],
    draws: Sequence[DrawRow],
    population: Population,
    mean_bytes: float,
) -> tuple[Collection, ...]:
    """The largest that were met, whoever has found them; one that several have, by the draws."""
    found: dict[str, Collection] = {}
    for row in segments:
        for one in row.collections:
            length = length_of(one)
            size = _bytes(length, mean_of(_sizes(one)) or mean_bytes)
            if one.whole and len(one.observations) == one.items:
                total = float(sum(each.bytes for each in one.observations))
                size = Estimate.exactly(total, one.items, "counted")
            found[one.key] = Collection(
                one.key,
                length,
                size,
                (row.number + 0.5) / population.segments,
                SEGMENT,
            )
    for index, rows in usable(draws, population.indexes).items():
        clusters = [[key for key, hits in row.keys.items() for _ in range(hits)] for row in rows]
        count = population.indexes[index] or sum(map(len, clusters))
        for ranked in top(clusters, MOST, of_index(index)):
            items = ranked.share.scaled(float(count))
            met = found.get(ranked.key)
            if met is None or met.items.level < 1.0:
                place = None if met is None else met.place
                found[ranked.key] = Collection(
                    ranked.key, items, _bytes(items, mean_bytes), place, of_index(index)
                )
    return by_size(found.values())


def within_count(
    collections: Sequence[Collection], lengths: Sequence[Estimate], item_count: float
) -> tuple[Collection, ...]:
    """Return collections whose lengths are narrowed by what the others leave of the item count.

    Args:
        collections: The collections to narrow, with the lengths that are among `lengths`.
        lengths: The lengths of all collections of the table.
        item_count: The number of items that the table reports, up to six hours ago; 0 if it is
            not known.
    """
    if not item_count:
        return tuple(collections)
    return by_size(_within(one, lengths, item_count) for one in collections)


def _within(one: Collection, lengths: Sequence[Estimate], item_count: float) -> Collection:
    length, others = one.items, [*lengths]
    if length not in others:  # A draw from an index measured it.
        return one
    others.remove(length)
    low = max(length.low, item_count / STALE - math.fsum(each.high for each in others))
    high = min(length.high, item_count * STALE - math.fsum(each.low for each in others))
    if low > high:  # The count is older than the collections.
        return one
    value = length.value
    if is_cut(length):
        value = item_count - math.fsum(each.value for each in others)
    items = replace(length, value=min(high, max(low, value)), low=low, high=high)
    size = one.bytes
    if size is not None and length.value:
        size = items.scaled(size.value / length.value)
    return replace(one, items=items, bytes=size)


def within_bytes(one: Collection, population: Population) -> Collection:
    """Return a collection whose size is checked against DescribeTable, unless it was counted.

    The items of it that were read may all be small, or all be large.
    """
    size, most = one.bytes, one.items.high * MOST_BYTES
    if size is None or size.level == 1.0:
        return one
    if population.bytes and one.items.low <= STALE * population.items:
        most = min(most, OLDER_MEAN * population.bytes)
        if size.low > most:  # The mean size of the items that were read is refuted.
            size = replace(one.items.scaled(population.mean_bytes), low=0.0)
    return replace(one, bytes=replace(size, value=min(size.value, most), high=most))


def by_size(collections: Iterable[Collection]) -> tuple[Collection, ...]:
    """The MOST largest, the largest first."""
    return tuple(sorted(collections, key=lambda one: -one.items.value)[:MOST])


def index_sample(
    name: str, observed: Observed, draws: Sequence[DrawRow], unrepresented: float
) -> IndexSample:
    """Return what a sample says of an index.

    The index's largest key is looked for among the table's items, which are drawn without regard
    to it; if all of the index was read, it is known.

    Args:
        name: The index's name.
        observed: The items of the table that were noted.
        draws: The segments of indexes that were read.
        unrepresented: The share of the index's entries for which none of these items stands, at
            most.
    """
    rows = [row for row in draws if row.index == name]
    read = sum(row.items for row in rows)
    sparse = observed.share(lambda one: name in one.entries)
    holders: defaultdict[str, float] = defaultdict(float)
    if rows and len(rows) == rows[0].segments and all(row.whole for row in rows) and read:
        for row in rows:
            for key, hits in row.entries.items():
                holders[key] += hits
        key = max(holders, key=lambda one: holders[one])
        share = Estimate.exactly(holders[key] / read, read, "complete count")
        return IndexSample(read, share, key, sparse)
    inside = [(at, one) for at, _, one in observed.all if name in one.entries]
    for _, one in inside:
        holders[one.entries[name]] += one.weight
    key = max(holders, key=lambda one: holders[one], default="")
    top_share = weighted_share(
        [Item(at, one.weight, float(one.entries[name] == key)) for at, one in inside]
    )
    if top_share is not None:
        top_share = widened(top_share, unrepresented)
    return IndexSample(read + len(inside), top_share, key, sparse)


def _sizes(row: CollectionRow) -> list[Item]:
    return [Item(0, one.weight, float(one.bytes)) for one in row.observations]


def _bytes(items: Estimate, mean: float) -> Estimate | None:
    return replace(items.scaled(mean), level=LEVEL) if mean else None
