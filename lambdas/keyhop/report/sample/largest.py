"""The largest collections in a sample, and the largest keys of indexes. Pure.

Collections drawn uniformly are seldom the largest. In random segments of an index of an unrelated
key, a key of the table has as many entries as it has items. If the index has few keys, its segments
are not such draws: most are empty, and one has nearly everything.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from keyhop.dynamodb.values import MOST_ITEM_BYTES
from keyhop.report.estimate import LEVEL, Estimate
from keyhop.report.facts import Collection
from keyhop.report.sample.drawing import Population
from keyhop.report.sample.rows import CollectionRow, DrawRow, SegmentRow
from keyhop.report.statistics.lengths import STALE, is_cut
from keyhop.report.statistics.shares import Item, top

MOST = 10
MOST_BYTES = float(MOST_ITEM_BYTES)

OLDER_MEAN = 1.25
"""The factor by which the mean size may differ from DescribeTable, up to six hours old."""

OF_INDEX, SEGMENT = "GSI ", "random segment"
"""The draws that find a collection (Collection.by)."""

LEAST_MET = 0.9
"""The minimum share of an index's entries for which completely read segments must account.
Otherwise many are in collections of the index that are too long for a draw."""


def of_index(index: str) -> str:
    """Return the name of a draw from an index."""
    return f"{OF_INDEX}{index}"


def length_of(row: CollectionRow) -> Estimate:
    """Return the number of items of a collection, or the number that was read."""
    if row.length is not None:
        return row.length
    if row.whole:
        return Estimate.exactly(float(row.items), row.items, "counted")
    return Estimate.at_least(float(row.items), row.items, "at least")


def mean_of(items: Iterable[Item]) -> float:
    """Return the weighted mean of the values; 0 without items."""
    weighted = [(item.weight, item.value) for item in items]
    total = sum(weight for weight, _ in weighted)
    return sum(weight * value for weight, value in weighted) / total if total else 0.0


def usable(draws: Sequence[DrawRow], entries: Mapping[str, int]) -> dict[str, list[DrawRow]]:
    """Return the rows that are size-biased draws, by index.

    Args:
        draws: The rows of indexes.
        entries: The number of entries of each index, as reported.
    """
    rows_by_index = {}
    for index, count in entries.items():
        rows = [row for row in draws if row.index == index]
        complete = [row for row in rows if row.whole]
        entry_count = sum(row.items for row in complete)
        if entry_count and entry_count * rows[0].segments >= LEAST_MET * count * len(rows):
            rows_by_index[index] = complete
    return rows_by_index


def largest(
    segments: Sequence[SegmentRow],
    draws: Sequence[DrawRow],
    population: Population,
    mean_bytes: float,
) -> tuple[Collection, ...]:
    """Return the largest collections of the sample.

    If a collection is in several draws, its figures are those of the draws from indexes.
    """
    collections: dict[str, Collection] = {}
    for row in segments:
        for collection in row.collections:
            length = length_of(collection)
            size = _bytes(length, mean_of(_sizes(collection)) or mean_bytes)
            if collection.whole and len(collection.observations) == collection.items:
                total = float(sum(each.bytes for each in collection.observations))
                size = Estimate.exactly(total, collection.items, "counted")
            collections[collection.key] = Collection(
                collection.key,
                length,
                size,
                (row.number + 0.5) / population.segments,
                SEGMENT,
            )
    for index, rows in usable(draws, population.indexes).items():
        clusters = [[key for key, hits in row.keys.items() for _ in range(hits)] for row in rows]
        count = population.indexes[index] or sum(map(len, clusters))
        for key, share in top(clusters, MOST, of_index(index)).items():
            items = share.scaled(float(count))
            previous = collections.get(key)
            if previous is None or previous.items.level < 1.0:
                place = None if previous is None else previous.place
                collections[key] = Collection(
                    key, items, _bytes(items, mean_bytes), place, of_index(index)
                )
    return by_size(collections.values())


def within_count(
    collections: Sequence[Collection], lengths: Sequence[Estimate], item_count: float
) -> tuple[Collection, ...]:
    """Return collections with lengths that agree with the item count, less the other collections.

    Args:
        collections: The collections to narrow, with the lengths that are among `lengths`.
        lengths: The lengths of each collection of the table.
        item_count: The number of items that the table reports, up to six hours ago; 0 if it is not
            known.
    """
    if not item_count:
        return tuple(collections)
    return by_size(_within(collection, lengths, item_count) for collection in collections)


def _within(collection: Collection, lengths: Sequence[Estimate], item_count: float) -> Collection:
    length, other_lengths = collection.items, [*lengths]
    if length not in other_lengths:  # A draw from an index measured it.
        return collection
    other_lengths.remove(length)
    low = max(length.low, item_count / STALE - math.fsum(each.high for each in other_lengths))
    high = min(length.high, item_count * STALE - math.fsum(each.low for each in other_lengths))
    if low > high:  # The count is older than the collections.
        return collection
    value = length.value
    if is_cut(length):
        value = item_count - math.fsum(each.value for each in other_lengths)
    items = replace(length, value=min(high, max(low, value)), low=low, high=high)
    size = collection.bytes
    if size is not None and length.value:
        size = items.scaled(size.value / length.value)
    return replace(collection, items=items, bytes=size)


def within_bytes(collection: Collection, population: Population) -> Collection:
    """Return a collection whose size is checked against DescribeTable, unless it was counted.

    The items of it that were read may all be small, or all be large.
    """
    size, maximum = collection.bytes, collection.items.high * MOST_BYTES
    if size is None or size.level == 1.0:
        return collection
    if population.bytes and collection.items.low <= STALE * population.items:
        maximum = min(maximum, OLDER_MEAN * population.bytes)
        if size.low > maximum:  # The mean size of the items that were read is refuted.
            size = replace(collection.items.scaled(population.mean_bytes), low=0.0)
    return replace(collection, bytes=replace(size, value=min(size.value, maximum), high=maximum))


def by_size(collections: Iterable[Collection]) -> tuple[Collection, ...]:
    """Return the MOST largest collections, the largest first."""
    return tuple(sorted(collections, key=lambda collection: -collection.items.value)[:MOST])


def _sizes(row: CollectionRow) -> list[Item]:
    return [
        Item(0, observation.weight, float(observation.bytes)) for observation in row.observations
    ]


def _bytes(items: Estimate, mean: float) -> Estimate | None:
    return replace(items.scaled(mean), level=LEVEL) if mean else None
