"""The way from the rows of a sample to the facts about the table. Pure.

Each drawn segment counts for the number of keys, but only probed ones for lengths: in the others
only short collections have a length, so that every collection would seem short.
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
from keyhop.report.statistics.lengths import (
    beyond,
    distinct_keys,
    error_of,
    gini,
    is_cut,
    is_measured,
    lorenz,
    quantiles,
    unrepresented,
    unseen,
)
from keyhop.report.statistics.order import density
from keyhop.report.statistics.shares import share_of, weighted_mean, weighted_quantiles

LEVELS = (0.5, 0.9, 0.99)
LARGE_BYTES = 350 * 1024
EXACT = 10**KEPT_DIGITS
"""The number below which numbers in keys are not rounded."""
MOST_WORDS = 3
"""The maximum number of words before keys that are dates, as DATE in DATE#2026-11-22."""

SEED = 20261122
"""The seed of the bootstrap, so that the same rows have the same interval."""


def gather(
    rows: Iterable[Row], population: Population, rru: float = 0.0, items_read: int = 0
) -> SampleFacts:
    """Return the facts that the rows of a sample give about the table.

    Args:
        rows: The rows of each segment that was read.
        population: The table from which they were drawn.
        rru: The read units that they have cost.
        items_read: The number of items that were read for them.
    """
    read = [*rows]
    segments = [row for row in read if isinstance(row, SegmentRow)]
    draws = [row for row in read if isinstance(row, DrawRow)]
    collections = [collection for row in segments for collection in row.collections]
    probed = [collection for row in segments if row.probed for collection in row.collections]
    keys = distinct_keys([len(row.collections) for row in segments], population.segments)
    counted = _counted(population, keys)
    observed_rows = [collection for collection in probed if collection.observations]
    unread = _unrepresented(observed_rows, keys, counted, lambda observation: True)
    all_keys = len(segments) == population.segments
    all_items = all_keys and all(collection.whole for collection in collections)
    if all_items and len(observed_rows) == len(collections):
        unread = Estimate.exactly(0.0, unread.n, "complete count")
    observed = Observed.of(probed, unread.high)
    lengths = [length_of(collection) for collection in probed]
    shares: dict[float, Estimate] = {}
    larger = None
    if keys is not None and counted:
        larger = unseen(lengths, keys, counted)
        shares = beyond(lengths, keys, counted)
    share = larger.share if larger else None
    if all_keys and not any(map(is_cut, map(length_of, collections))):
        share = Estimate.exactly(0.0, len(lengths), "complete count")
    sizes = observed.items(lambda observation: float(observation.bytes))
    mean_bytes, item_mean = mean_of(sizes), weighted_mean(sizes)
    most_mean = _most_mean(population, item_mean)
    large = observed.share(lambda observation: observation.bytes >= LARGE_BYTES)
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
        top=tuple(within_bytes(collection, population) for collection in top),
        biased=tuple(of_index(name) for name in usable(draws, population.indexes)),
        item_bytes={
            level: _at_most(quantile, min(MOST_BYTES, most_mean / (1 - level)))
            for level, quantile in weighted_quantiles(
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
                name, observed, draws, _unread_entries(name, entries, observed, observed_rows, keys)
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
    observed_rows: Sequence[CollectionRow],
    keys: Estimate | None,
    count: float,
    counts: Callable[[Observation], bool],
) -> Estimate:
    """Return the share of `count` items that no counting observation represents."""
    if keys is None:
        return Estimate(0.0, 0.0, 1.0, 0, "nothing was read")
    weights = [
        sum(observation.weight for observation in row.observations if counts(observation))
        for row in observed_rows
    ]
    lengths = map(length_of, observed_rows)
    errors = [error_of(length) if is_measured(length) else 0.0 for length in lengths]
    return unrepresented(weights, errors, keys, count)


def _unread_entries(
    name: str,
    entries: int,
    observed: Observed,
    observed_rows: Sequence[CollectionRow],
    keys: Estimate | None,
) -> float:
    """Return the maximum share of an index's entries that no item of the sample represents."""
    if not observed.unrepresented:
        return 0.0
    return _unrepresented(
        observed_rows, keys, float(entries), lambda observation: name in observation.entries
    ).high


def _most_mean(population: Population, item_mean: Estimate | None) -> float:
    """Return the maximum mean size of an item in the table, from DescribeTable.

    The result is infinite if the size is missing there, or if the items in the sample contradict
    it. By Markov's inequality, at most a share p of the items is larger than 1/p of the mean.
    """
    maximum = OLDER_MEAN * population.mean_bytes
    if not maximum or item_mean is None or item_mean.low > maximum:
        return math.inf
    return maximum


def _at_most(estimate: Estimate, bound: float) -> Estimate:
    """Return an estimate whose upper end is lowered to a bound."""
    if estimate.high <= bound:
        return estimate
    return replace(estimate, high=max(estimate.value, bound))


def _candidates(
    segments: Sequence[SegmentRow], population: Population, unrepresented: float
) -> tuple[CandidateSample, ...]:
    """Return the figures of each candidate key.

    The collections of the segments are the draws, except those without observations.
    """
    rows = [row for segment in segments for row in segment.collections]
    observed_share = sum(bool(row.observations) for row in rows) / max(1, len(rows))
    fraction = min(1.0, observed_share * len(segments) / max(1, population.segments))
    samples = []
    for at, template in enumerate(population.candidates):
        tally = Tally(template)
        for segment in segments:
            for row in segment.collections:
                for observation in row.observations:
                    tally.add(
                        observation.candidates[at],
                        observation.weight,
                        row.key,
                        observation.bytes,
                        row.whole,
                    )
        samples.append(tally.facts(fraction, float(population.items), unrepresented))
    return tuple(candidate for candidate in samples if candidate is not None)


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
    """Return the share of keys that are dates.

    If many words precede dates, each is a part of the key, as JFK in JFK#2026-11-22.
    """
    words = {row.form.tag for row in rows if row.form.dated}
    return _share(rows, lambda form: form.dated and (not form.tag or len(words) <= MOST_WORDS))


def _share_tagged(rows: Sequence[CollectionRow]) -> Estimate | None:
    """Return the share of keys with a tag; a tag of few keys is an ordinary part of a key."""
    key_counts = Counter(row.form.tag for row in rows)
    few = min(FEWEST_ALIKE, len(rows))
    return _share(rows, lambda form: bool(form.tag) and key_counts[form.tag] >= few)


def _numbers(rows: Sequence[CollectionRow]) -> dict[str, list[int]]:
    """Return the numbers at the end of keys that distinguish keys, by tag.

    A number that several keys share belongs to a shard, a day or a room. Long numbers are rounded,
    and may be equal only because of that.
    """
    key_counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        if row.form.number is not None:
            key_counts[row.form.tag][int(row.form.number)] += 1
    return {
        tag: [
            number
            for number, times in counts.items()
            for _ in range(times)
            if times == 1 or number >= EXACT
        ]
        for tag, counts in key_counts.items()
    }


def _numbered(rows: Sequence[CollectionRow]) -> Estimate | None:
    return share_of(sum(map(len, _numbers(rows).values())), len(rows), "random segments")


def _orphans(rows: Sequence[CollectionRow]) -> Estimate | None:
    """Return the share of constraints without their primary; None without constraints."""
    outcomes = [row.orphan for row in rows if row.orphan is not None]
    return share_of(sum(outcomes), len(outcomes), "constraints in random segments")


def _density(rows: Sequence[CollectionRow], keys: Estimate | None) -> Estimate | None:
    """Return the density of the numbers with the most frequent tag, or without a tag."""
    numbers = max(_numbers(rows).values(), key=len, default=[])
    if keys is None or not numbers:
        return None
    return density(numbers, keys.scaled(len(numbers) / len(rows)))
