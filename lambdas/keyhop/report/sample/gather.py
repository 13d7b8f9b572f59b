"""The way from the rows of a sample to the facts about the table. Pure.

Each drawn segment counts for the number of keys, but only probed ones for lengths: in the others
only short collections have a length, so that every collection would seem short. Each observation of
an item counts for the items that it represents. The drawn units are collections, so intervals are
those of collections.

Where everything was read, shares and quantiles are counts without an interval: shares of partition
keys if every key has been found, shares of items only if every item was read and observed. They do
not include writes during the read.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from typing import Any

from keyhop.report.candidates import Tally
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    EXPIRED_DAYS,
    LONG_DAYS,
    LONG_ITEMS,
    CandidateSample,
    IndexSample,
    SampleFacts,
    Tag,
    TtlFacts,
)
from keyhop.report.forms import KEPT_DIGITS, KeyForm
from keyhop.report.sample.drawing import Population
from keyhop.report.sample.examine import MOST_CHECKED
from keyhop.report.sample.largest import (
    MOST_BYTES,
    OLDER_MEAN,
    largest,
    length_of,
    mean_of,
    of_index,
    usable,
    within_bytes,
    within_count,
)
from keyhop.report.sample.rows import (
    PLACE,
    CollectionRow,
    DrawRow,
    Observation,
    Row,
    SegmentRow,
    is_type_name,
)
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
from keyhop.report.statistics.shares import (
    Item,
    share_of,
    share_of_sums,
    weighted_mean,
    weighted_quantiles,
    weighted_share,
    widened,
)

LEVELS = (0.5, 0.9, 0.99)
LARGE_BYTES = 350 * 1024
EXACT = 10**KEPT_DIGITS
"""The number below which numbers in keys are not rounded."""

MOST_WORDS = 3
"""The maximum number of words before keys that are dates, as DATE in DATE#2026-11-22."""

SEED = 20261122
"""The seed of the bootstrap, so that the same rows have the same interval."""

FEWEST_ALIKE = 3
"""The collections that must share a word before it counts as a tag: fewer may share a name."""

MOST_TOUCHING = 5
"""The words that may touch a number at one place of a sort key; more are names."""

MOST_ORPHANS = 0.9
"""The share of the constraints of one tag above which their primaries are in another table."""

STILL = 0.1
"""The part of a collection's time within which items are still added to it."""

SAME_WORD = 0.95
"""The share of the items of a kind that have one word in an attribute that names the kind."""

MOST_ATTRIBUTES, MOST_SHAPES, MOST_TAGS = 200, 50, 30
"""The maximum number of shares in the facts, the largest first."""

METHOD = "complete count"
OF_KEYS = ("keys", "dated", "tagged", "numbered", "density")
"""The figures of SampleFacts that are counts if every key was found."""
OF_ITEMS = (
    *("length", "growing", "item_bytes", "large", "coverage", "tags", "shapes", "item_mean"),
    *("unrepresented", "sort_tagged", "typed", "unpadded", "ttl", "indexes"),
)
"""The figures that are counts if every item was read and observed."""


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
    item_count = _item_count(population, keys)
    observed_rows = [collection for collection in probed if collection.observations]
    unread = _unrepresented(observed_rows, keys, item_count, lambda observation: True)
    all_keys = len(segments) == population.segments
    all_items = all_keys and all(collection.whole for collection in collections)
    if all_items and len(observed_rows) == len(collections):
        unread = Estimate.exactly(0.0, unread.n, METHOD)
    observed = Observed.of(probed, unread.high)
    lengths = [length_of(collection) for collection in probed]
    shares: dict[float, Estimate] = {}
    share = None
    if keys is not None and item_count:
        share = unseen(lengths, keys, item_count)
        shares = beyond(lengths, keys, item_count)
    if all_keys and not any(map(is_cut, map(length_of, collections))):
        share = Estimate.exactly(0.0, len(lengths), METHOD)
    sizes = observed.items(lambda observation: float(observation.bytes))
    mean_bytes, item_mean = mean_of(sizes), weighted_mean(sizes)
    most_mean = _most_mean(population, item_mean)
    if item_mean is not None:
        item_mean = _of_all(item_mean, observed.unrepresented, most_mean)
    large = observed.share(lambda observation: observation.bytes >= LARGE_BYTES)
    kind_names, type_name, typed = observed.type_name()
    top = largest(segments, draws, population, mean_bytes)
    if all_keys:
        top = within_count(top, [*map(length_of, collections)], item_count)
    return SampleFacts(
        rru=rru,
        items_read=items_read,
        keys_read=len(collections),
        keys=keys,
        length=quantiles(lengths, LEVELS),
        beyond=shares,
        unseen=share,
        growing=observed.among_rows({at for at, row in enumerate(probed) if _grows(row)}),
        seen_largest=max((length.value for length in lengths), default=None),
        mean_items=_mean_items(keys, item_count),
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
        sort_tagged=observed.sort_tagged(),
        numbered=_numbered(collections),
        density=_density(collections, keys),
        typed=typed,
        type_name=type_name,
        kind_names=kind_names,
        unpadded=observed.unpadded() if population.has_sort else None,
        orphans=_orphans(collections),
        ttl=observed.ttl(),
        indexes={
            name: _index_sample(
                name, observed, draws, _unread_entries(name, entries, observed, observed_rows, keys)
            )
            for name, entries in population.indexes.items()
        },
        gini=gini(lengths, keys, item_count, random.Random(SEED)) if keys else None,
        lorenz=tuple(lorenz(lengths, keys, item_count)) if keys else (),
        all_keys=all_keys,
        all_items=all_items,
        all_units=population.all_units,
        unrepresented=unread,
        item_mean=item_mean,
        candidates=_candidates([row for row in segments if row.probed], population, unread.high),
    )


def counted(facts: SampleFacts, rows: Iterable[Row]) -> SampleFacts:
    """Return the facts without the intervals of the figures that were counted."""
    segments = [row for row in rows if isinstance(row, SegmentRow)]
    collections = (collection for row in segments for collection in row.collections)
    names: list[str] = [*OF_KEYS] if facts.all_keys else []
    if facts.all_items and all(
        collection.whole and len(collection.observations) == collection.items
        for collection in collections
    ):
        names += OF_ITEMS
        names += ["orphans"] if len(segments) <= MOST_CHECKED else []
    exact = {name: _exact(getattr(facts, name)) for name in names}
    return replace(facts, **exact) if exact else facts


@dataclass(frozen=True)
class Observed:
    """The observations of a sample.

    Attributes:
        all: The observations, each with the number and the form of its collection.
        unrepresented: The maximum share of the table's items that none of them represents.
    """

    all: Sequence[tuple[int, KeyForm, Observation]]
    unrepresented: float = 0.0

    @classmethod
    def of(cls, rows: Sequence[CollectionRow], unrepresented: float = 0.0) -> "Observed":
        """Return the observations in the rows of a sample."""
        observations = [
            (at, row.form, observation)
            for at, row in enumerate(rows)
            for observation in row.observations
        ]
        return cls(observations, unrepresented)

    def items(self, value: Callable[[Observation], float]) -> list[Item]:
        """Return a value of each observation as the statistics need it."""
        return [Item(at, observation.weight, value(observation)) for at, _, observation in self.all]

    def among_rows(self, rows: Set[int]) -> Estimate | None:
        """Return the share of the table's items that are in some of the rows."""
        return self._of_all([entry for entry in self.all if entry[0] in rows])

    def share(self, holds: Callable[[Observation], bool]) -> Estimate | None:
        """Return the share of the table's items for which a condition holds."""
        return self._of_all([entry for entry in self.all if holds(entry[2])])

    def among(
        self, belongs: Callable[[Observation], bool], holds: Callable[[Observation], bool]
    ) -> Estimate | None:
        """Return the share of a group's items for which a condition holds.

        Each unread item may belong to the group, so a group that is small in the sample has a wide
        interval.
        """
        group = [entry for entry in self.all if belongs(entry[2])]
        share, size = Observed(group).share(holds), self._of_all(group)
        if share is None or size is None:
            return None
        of_all = self.unrepresented + size.low
        return widened(share, self.unrepresented / of_all if of_all else 1.0)

    def _of_all(self, some: Iterable[tuple[int, KeyForm, Observation]]) -> Estimate | None:
        """Return the share of the table's items that some of the observations represent."""
        hits = dict.fromkeys(self._weights, 0.0)
        for at, _, observation in some:
            hits[at] += observation.weight
        sums = list(zip(self._weights.values(), hits.values(), strict=True))
        share = share_of_sums(sums, len(self.all))
        return None if share is None else widened(share, self.unrepresented)

    @cached_property
    def _weights(self) -> Mapping[int, float]:
        """Return the weight of each collection's observations, by the collection's number."""
        weights: dict[int, float] = {}
        for at, _, observation in self.all:
            weights[at] = weights.get(at, 0.0) + observation.weight
        return weights

    def coverage(self) -> dict[str, Estimate]:
        """Return the share of items that have an attribute, by attribute."""
        counts = Counter(name for _, _, observation in self.all for name in observation.names)
        return _without_missing(
            (name, self.share(lambda item, name=name: name in item.names))  # type: ignore[misc]
            for name, _ in counts.most_common(MOST_ATTRIBUTES)
        )

    def shapes(self) -> dict[str, Estimate]:
        """Return the share of items with exactly these attributes, by their names."""
        counts = Counter(observation.names for _, _, observation in self.all)
        return _without_missing(
            (",".join(names), self.share(lambda item, names=names: item.names == names))  # type: ignore[misc]
            for names, _ in counts.most_common(MOST_SHAPES)
        )

    def tags(self) -> tuple[Tag, ...]:
        """Return the tags of partition keys and of sort keys, the most frequent first."""
        holders: defaultdict[str, set[int]] = defaultdict(set)
        prefixes: defaultdict[str, set[str]] = defaultdict(set)
        for at, form, observation in self.all:
            prefixes[form.tag].add(form.prefix)
            for tag in {form.tag, observation.tag} - {""}:
                holders[tag].add(at)
        tags = []
        for tag, collections in holders.items():
            if len(collections) >= FEWEST_ALIKE:
                share = self._of_all(
                    [entry for entry in self.all if tag in (entry[1].tag, entry[2].tag)]
                )
                if share is not None:
                    tags.append(
                        Tag(tag, share, *(prefixes[tag] if len(prefixes[tag]) == 1 else ()))
                    )
        return tuple(sorted(tags, key=lambda tag: -tag.share.value)[:MOST_TAGS])

    def sort_tagged(self) -> Estimate | None:
        """Return the share of items whose sort key has a tag that distinguishes items.

        Several collections have the tag, and there is another such tag.
        """
        holders: defaultdict[str, set[int]] = defaultdict(set)
        for at, _, observation in self.all:
            if observation.tag:
                holders[observation.tag].add(at)
        tags = {tag for tag, collections in holders.items() if len(collections) >= FEWEST_ALIKE}
        return self.share(lambda observation: len(tags) > 1 and observation.tag in tags)

    def type_name(self) -> tuple[tuple[str, ...], str, Estimate | None]:
        """Return the attributes that name the type, the most frequent one, and its share.

        Each has one of the usual names, or it has one value for each kind of items, whatever its
        name. The name is "" without such an attribute.
        """
        counts = Counter(
            name
            for _, _, observation in self.all
            for name in observation.names
            if is_type_name(name) or name in self._kind_names
        )
        name = counts.most_common(1)[0][0] if counts else ""
        share = self.share(lambda observation: name in observation.names)
        return tuple(sorted(counts)), name, share

    @cached_property
    def _kind_names(self) -> set[str]:
        """Return the attributes that have one value for all items of a kind.

        Items are of one kind if they have the same tags, or the same attributes where there are no
        tags.
        """
        labels = Counter((form.tag, observation.tag) for _, form, observation in self.all)
        is_tagged = len(labels) > 1
        values: defaultdict[str, defaultdict[object, Counter[str]]]
        values = defaultdict(lambda: defaultdict(Counter))
        for _, form, observation in self.all:
            label = (form.tag, observation.tag) if is_tagged else observation.names
            for name, word in observation.words.items():
                values[name][label][word] += 1
        names = set()
        for name, kinds in values.items():
            usual = {label: words.most_common(1)[0] for label, words in kinds.items()}
            count = sum(words.total() for words in kinds.values())
            distinct = len({word for word, _ in usual.values()})
            alike = sum(times for _, times in usual.values()) >= SAME_WORD * count
            if alike and distinct > 1 and distinct >= len(usual) / 2:
                names.add(name)
        return names

    def unpadded(self, index: str = "") -> Estimate | None:
        """Return the share of the sort keys of the table, or of a GSI, with numbers as text.

        Other keys have numbers of other widths at the same place, and none of these is padded.
        Where many words touch a number, as in ana17 and ben4, it belongs to a name.
        """
        widths: defaultdict[str, set[int]] = defaultdict(set)
        for _, _, observation in self.all:
            for place, width in observation.widths.get(index, ()):
                widths[place].add(width)
        heads = {place: place.partition(PLACE)[0] for place in widths if PLACE in place}
        words = Counter(heads.values())
        uneven = {
            place
            for place, lengths in widths.items()
            if len(lengths) > 1 and min(lengths) > 0
            if place not in heads or words[heads[place]] <= MOST_TOUCHING
        }

        def holds(observation: Observation) -> bool:
            return any(place in uneven for place, _ in observation.widths.get(index, ()))

        return self.among(lambda row: index in row.entries, holds) if index else self.share(holds)

    def dated(self, index: str) -> Estimate | None:
        """Return the share of an index's entries whose partition key is only a date.

        If many words precede dates, each is a part of the key, as in `_share_dated`.
        """
        words = {row.dates[index] for _, _, row in self.all if index in row.dates}
        return self.among(
            lambda observation: index in observation.entries,
            lambda observation: index in observation.dates and len(words) <= MOST_WORDS,
        )

    def ttl(self) -> TtlFacts | None:
        """Return the shares of kinds of TTL values; None if no item has the attribute."""

        def share(holds: Callable[[float | str | None], bool]) -> Estimate | None:
            return self.among(
                lambda observation: observation.ttl is not None,
                lambda observation: holds(observation.ttl),
            )

        expired = share(lambda ttl: isinstance(ttl, float | int) and ttl > EXPIRED_DAYS)
        wrong = share(lambda ttl: ttl == "type")
        milliseconds = share(lambda ttl: ttl == "ms")
        missing = self.share(lambda observation: observation.ttl is None)
        if expired is None or wrong is None or milliseconds is None or missing is None:
            return None
        return TtlFacts(expired, wrong, milliseconds, missing)


def _item_count(population: Population, keys: Estimate | None) -> float:
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


def _of_all(mean: Estimate, unrepresented: float, maximum: float) -> Estimate:
    """Return the mean size of all items, from that of the items that the sample represents.

    The part `unrepresented` of the items may be empty, or as large as items can be. The mean of all
    is at most `maximum`.
    """
    low = mean.low * (1 - unrepresented)
    high = mean.high * (1 - unrepresented) + MOST_BYTES * unrepresented
    return _at_most(replace(mean, low=low, high=high), maximum)


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


def _numbers(rows: Sequence[CollectionRow]) -> dict[tuple[str, int], list[int]]:
    """Return the numbers at the end of keys that distinguish keys, by tag and year.

    A number that several keys share belongs to a shard, a day or a room. Long numbers are rounded,
    and may be equal only because of that.
    """
    key_counts: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for row in rows:
        if row.form.number is not None:
            key_counts[row.form.tag, row.form.year][int(row.form.number)] += 1
    return {
        series: [
            number
            for number, times in counts.items()
            for _ in range(times)
            if times == 1 or number >= EXACT
        ]
        for series, counts in key_counts.items()
    }


def _numbered(rows: Sequence[CollectionRow]) -> Estimate | None:
    return share_of(sum(map(len, _numbers(rows).values())), len(rows), "random segments")


def _orphans(rows: Sequence[CollectionRow]) -> Estimate | None:
    """Return the share of constraints without their primary; None without constraints.

    If nearly all items with a tag have none, their primaries are in another table.
    """
    by_tag: defaultdict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row.orphan is not None:
            by_tag[row.form.tag].append(row.orphan)
    outcomes = [
        orphan
        for of_tag in by_tag.values()
        if sum(of_tag) <= MOST_ORPHANS * len(of_tag)
        for orphan in of_tag
    ]
    return share_of(sum(outcomes), len(outcomes), "constraints in random segments")


def _grows(row: CollectionRow) -> bool:
    """Return whether items have been added to a long collection for long, and still are."""
    if row.times is None or length_of(row).low < LONG_ITEMS:
        return False
    oldest, newest = row.times
    return oldest >= LONG_DAYS and -1.0 <= newest <= STILL * oldest


def _density(rows: Sequence[CollectionRow], keys: Estimate | None) -> Estimate | None:
    """Return the density of the numbers with the most frequent tag, or without a tag."""
    numbers = max(_numbers(rows).values(), key=len, default=[])
    if keys is None or not numbers:
        return None
    return density(numbers, keys.scaled(len(numbers) / len(rows)))


def _without_missing(shares: Iterable[tuple[str, Estimate | None]]) -> dict[str, Estimate]:
    return {name: share for name, share in shares if share is not None}


def _index_sample(
    name: str, observed: Observed, draws: Sequence[DrawRow], unrepresented: float
) -> IndexSample:
    """Return the sample's facts about an index.

    The index's largest key is estimated from the table's items, which are drawn independently of
    it. If the whole index was read, it is exact.

    Args:
        name: The index's name.
        observed: The observed items of the table.
        draws: The segments of indexes that were read.
        unrepresented: The maximum share of the index's entries that none of these items represents.
    """
    rows = [row for row in draws if row.index == name]
    read = sum(row.items for row in rows)
    sparse = observed.share(lambda observation: name in observation.entries)
    composed = _composed(name, observed)
    unpadded, dated = observed.unpadded(name), observed.dated(name)
    holders: defaultdict[str, float] = defaultdict(float)
    if rows and len(rows) == rows[0].segments and all(row.whole for row in rows) and read:
        for row in rows:
            for key, hits in row.entries.items():
                holders[key] += hits
        key = max(holders, key=lambda holder: holders[holder])
        share = Estimate.exactly(holders[key] / read, read, METHOD)
        return IndexSample(read, share, key, sparse, composed, dated, unpadded)
    inside = [
        (at, observation) for at, _, observation in observed.all if name in observation.entries
    ]
    for _, observation in inside:
        holders[observation.entries[name]] += observation.weight
    key = max(holders, key=lambda holder: holders[holder], default="")
    top_share = weighted_share(
        [
            Item(at, observation.weight, float(observation.entries[name] == key))
            for at, observation in inside
        ]
    )
    if top_share is not None:
        top_share = widened(top_share, unrepresented)
    return IndexSample(read + len(inside), top_share, key, sparse, composed, dated, unpadded)


def _composed(index: str, observed: Observed) -> dict[str, tuple[tuple[str, ...], Estimate]]:
    """Return what IndexSample.composed has of an index."""
    counts: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for _, _, observation in observed.all:
        for name, names in observation.composed.get(index, {}).items():
            counts[name][names] += 1
    shares = {"": (), **{name: joined.most_common(1)[0][0] for name, joined in counts.items()}}
    shares_of_names = {}
    for name, names in shares.items():
        share = observed.among(
            lambda observation: index in observation.entries,
            partial(_joins, index=index, name=name, names=names),
        )
        if share is not None:
            shares_of_names[name] = names, share
    return shares_of_names


def _joins(observation: Observation, index: str, name: str, names: tuple[str, ...]) -> bool:
    """Return whether a key attribute joins these attributes; without a name, whether any does."""
    composed = observation.composed.get(index, {})
    return composed.get(name) == names if name else bool(composed)


def _exact(value: Any) -> Any:
    """Return a value in which each estimate, at any depth, is an exact count."""
    if isinstance(value, Estimate):
        return Estimate.exactly(value.value, value.n, METHOD)
    if isinstance(value, Mapping):
        return {name: _exact(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_exact, value))
    if is_dataclass(value):
        members = {field.name: _exact(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **members)  # type: ignore[type-var]
    return value
