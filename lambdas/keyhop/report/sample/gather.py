"""From the rows of a sample to what it says of the table. Pure.

Counts of keys come from every drawn segment, lengths only from those that were probed: elsewhere
only short collections have a length, which would make all seem short.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from keyhop.report.candidates.sampled import Tally
from keyhop.report.estimate import Estimate
from keyhop.report.facts import CandidateSample, SampleFacts
from keyhop.report.forms import KEPT_DIGITS, KeyForm
from keyhop.report.sample.largest import (
    MOST_BYTES,
    OLDER_MEAN,
    index_sample,
    largest,
    length_of,
    mean_of,
    of_index,
    usable,
    within_bytes,
    within_count,
)
from keyhop.report.sample.observation import Observation
from keyhop.report.sample.observed import FEWEST_ALIKE, Observed
from keyhop.report.sample.population import Population
from keyhop.report.sample.rows import CollectionRow, DrawRow, Row, SegmentRow
from keyhop.report.statistics.giants import beyond, unrepresented, unseen
from keyhop.report.statistics.inequality import gini, lorenz
from keyhop.report.statistics.keys import distinct_keys
from keyhop.report.statistics.lengths import error_of, is_cut, is_measured, quantiles
from keyhop.report.statistics.order import density
from keyhop.report.statistics.shares import share_of, weighted_mean, weighted_quantiles

LEVELS = (0.5, 0.9, 0.99)
LARGE_BYTES = 350 * 1024
EXACT = 10**KEPT_DIGITS
"""Numbers in keys are not rounded below."""
MOST_WORDS = 3
"""Before keys that are dates: as DATE in DATE#2026-11-22."""

SEED = 20261122
"""Of the bootstrap: the same rows have the same interval."""


def gather(
    rows: Iterable[Row], population: Population, rru: float = 0.0, items_read: int = 0
) -> SampleFacts:
    """Return what the rows of a sample say of the table.

    Args:
        rows: The rows of all segments that were read.
        population: The table from which they were drawn.
        rru: The read units that they have cost.
        items_read: The number of items that were read for them.
    """
    read = [*rows]
    segments = [row for row in read if isinstance(row, SegmentRow)]
    draws = [row for row in read if isinstance(row, DrawRow)]
    collections = [one for row in segments for one in row.collections]
    probed = [one for row in segments if row.probed for one in row.collections]
    keys = distinct_keys([len(row.collections) for row in segments], population.segments)
    counted = _counted(population, keys)
    noted = [one for one in probed if one.observations]
    unread = _unrepresented(noted, keys, counted, lambda one: True)
    all_keys = len(segments) == population.segments
    all_items = all_keys and all(one.whole for one in collections)
    if all_items and len(noted) == len(collections):
        unread = Estimate.exactly(0.0, unread.n, "complete count")
    observed = Observed.of(probed, unread.high)
    lengths = [length_of(one) for one in probed]
    shares: dict[float, Estimate] = {}
    larger = None
    if keys is not None and counted:
        larger = unseen(lengths, keys, counted)
        shares = beyond(lengths, keys, counted)
    share = larger.share if larger else None
    if all_keys and not any(map(is_cut, map(length_of, collections))):
        share = Estimate.exactly(0.0, len(lengths), "complete count")
    sizes = observed.items(lambda one: float(one.bytes))
    mean_bytes, item_mean = mean_of(sizes), weighted_mean(sizes)
    most_mean = _most_mean(population, item_mean)
    large = observed.share(lambda one: one.bytes >= LARGE_BYTES)
    type_name, typed = observed.type_name()
    top = largest(segments, draws, population, mean_bytes)
    if all_keys:
        top = within_count(top, [*map(length_of, collections)], counted)
    return SampleFacts(
        rru=rru,
        items_read=items_read,
        keys_read=len(collections),
        keys=keys,
        length=quantiles(lengths, LEVELS),
        beyond=shares,
        unseen=share,
        seen_largest=max((length.value for length in lengths), default=None),
        mean_items=_mean_items(keys, counted),
        top=tuple(within_bytes(one, population) for one in top),
        biased=tuple(of_index(name) for name in usable(draws, population.indexes)),
        item_bytes={
            level: _at_most(one, min(MOST_BYTES, most_mean / (1 - level)))
            for level, one in weighted_quantiles(
                sizes, LEVELS, unrepresented=observed.unrepresented
            ).items()
        },
        large=None if large is None else _at_most(large, most_mean / LARGE_BYTES),
        largest_item=max((item.value for item in sizes), default=None),
        coverage=observed.coverage(),
        tags=observed.tags(),
        shapes=observed.shapes(),
        dated=_share_dated(collections),
        tagged=_share_tagged(collections),
        numbered=_numbered(collections),
        density=_density(collections, keys),
        typed=typed,
        type_name=type_name,
        unpadded=observed.unpadded() if population.has_sort else None,
        orphans=_orphans(collections),
        ttl=observed.ttl() if population.ttl else None,
        indexes={
            name: index_sample(
                name, observed, draws, _unread_entries(name, entries, observed, noted, keys)
            )
            for name, entries in population.indexes.items()
        },
        gini=gini(lengths, keys, counted, random.Random(SEED)) if keys else None,
        lorenz=tuple(lorenz(lengths, keys, counted)) if keys else (),
        all_keys=all_keys,
        all_items=all_items,
        all_units=population.all_units,
        unrepresented=unread,
        item_mean=item_mean,
        candidates=_candidates([row for row in segments if row.probed], population, unread.high),
    )


def _counted(population: Population, keys: Estimate | None) -> float:
    """Return the number of the user's items that the table reports; 0 if it is not known."""
    if keys is None:
        return 0.0
    ours = keys.value if population.has_sentinels else 0.0
    return max(0.0, population.items - ours)


def _unrepresented(
    noted: Sequence[CollectionRow],
    keys: Estimate | None,
    count: float,
    counts: Callable[[Observation], bool],
) -> Estimate:
    """Return the share of `count` items for which none of the observations that count stands."""
    if keys is None:
        return Estimate(0.0, 0.0, 1.0, 0, "nothing was read")
    weights = [sum(one.weight for one in row.observations if counts(one)) for row in noted]
    lengths = map(length_of, noted)
    errors = [error_of(length) if is_measured(length) else 0.0 for length in lengths]
    return unrepresented(weights, errors, keys, count)


def _unread_entries(
    name: str,
    entries: int,
    observed: Observed,
    noted: Sequence[CollectionRow],
    keys: Estimate | None,
) -> float:
    """Return the share of an index's entries for which no item of the table stands, at most."""
    if not observed.unrepresented:
        return 0.0
    return _unrepresented(noted, keys, float(entries), lambda one: name in one.entries).high


def _most_mean(population: Population, item_mean: Estimate | None) -> float:
    """Return the mean size of all items at the most, by DescribeTable.

    It is infinite where that does not tell, or is contradicted by the items that were read. By
    Markov's inequality, a share p of the items is larger than 1/p of the mean at the most.
    """
    most = OLDER_MEAN * population.mean_bytes
    if not most or item_mean is None or item_mean.low > most:
        return math.inf
    return most


def _at_most(estimate: Estimate, bound: float) -> Estimate:
    """Return an estimate whose upper end is lowered to a bound, if it lies above it."""
    if estimate.high <= bound:
        return estimate
    return replace(estimate, high=max(estimate.value, bound))


def _candidates(
    segments: Sequence[SegmentRow], population: Population, unrepresented: float
) -> tuple[CandidateSample, ...]:
    """Return what is known of each candidate key.

    The collections of the segments are the draws, but for those of which no item was noted.
    """
    rows = [row for segment in segments for row in segment.collections]
    noted = sum(bool(row.observations) for row in rows) / max(1, len(rows))
    fraction = min(1.0, noted * len(segments) / max(1, population.segments))
    found = []
    for at, template in enumerate(population.candidates):
        tally = Tally(template)
        for segment in segments:
            for row in segment.collections:
                for one in row.observations:
                    tally.add(one.candidates[at], one.weight, row.key, one.bytes, row.whole)
        found.append(tally.facts(fraction, float(population.items), unrepresented))
    return tuple(one for one in found if one is not None)


def _mean_items(keys: Estimate | None, items: float) -> Estimate | None:
    if keys is None or not items or not keys.low:
        return None
    method = "ItemCount over distinct keys"
    return Estimate(
        items / keys.value, items / keys.high, items / keys.low, keys.n, method, keys.level
    )


def _share(rows: Sequence[CollectionRow], holds: Callable[[KeyForm], bool]) -> Estimate | None:
    return share_of(sum(holds(row.form) for row in rows), len(rows), "random segments")


def _share_dated(rows: Sequence[CollectionRow]) -> Estimate | None:
    """Of many words before dates each is a part of the key, as JFK in JFK#2026-11-22."""
    words = {row.form.tag for row in rows if row.form.dated}
    return _share(rows, lambda form: form.dated and (not form.tag or len(words) <= MOST_WORDS))


def _share_tagged(rows: Sequence[CollectionRow]) -> Estimate | None:
    """A tag that few keys have is a part of the key like any other."""
    met = Counter(row.form.tag for row in rows)
    few = min(FEWEST_ALIKE, len(rows))
    return _share(rows, lambda form: bool(form.tag) and met[form.tag] >= few)


def _numbers(rows: Sequence[CollectionRow]) -> dict[str, list[int]]:
    """By tag, the numbers that keys end in, where they tell keys apart: a number that several keys
    share is of a shard, a day or a room. Long ones are rounded, and may be equal for that.
    """
    met: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        if row.form.number is not None:
            met[row.form.tag][int(row.form.number)] += 1
    return {
        tag: [
            number
            for number, times in counts.items()
            for _ in range(times)
            if times == 1 or number >= EXACT
        ]
        for tag, counts in met.items()
    }


def _numbered(rows: Sequence[CollectionRow]) -> Estimate | None:
    return share_of(sum(map(len, _numbers(rows).values())), len(rows), "random segments")


def _orphans(rows: Sequence[CollectionRow]) -> Estimate | None:
    """Of constraints that name their primary, those whose primary is missing; None of none."""
    known = [row.orphan for row in rows if row.orphan is not None]
    return share_of(sum(known), len(known), "constraints in random segments")


def _density(rows: Sequence[CollectionRow], keys: Estimate | None) -> Estimate | None:
    """Of the numbers that follow the commonest tag, or none."""
    most = max(_numbers(rows).values(), key=len, default=[])
    if keys is None or not most:
        return None
    return density(most, keys.scaled(len(most) / len(rows)))
