"""Candidate keys: what a table would be like under another key. Pure.

    candidate = "PK=" template [ " SK=" template ]

The templates are those of a re-key (keyhop/template.py), so that a candidate can be handed over as
it is: `PK=DEVICE#{deviceId}#{ts:day}#{hash(id)%4}`. An item that a re-key could not map, because it
lacks an attribute or a value does not fit, cannot have the key.

*By a sample*: collections are drawn, each with a chance of `fraction`; an item that was read counts
for `weight` items of its collection. The chance that two items of the table share a key, the sum of
all p squared, has two parts. The part of items in different collections is estimated from the pairs
of drawn collections (a U-statistic). The part of items in one collection is exact if all of it was
read. If only windows of it were read, the part lies between "no two share a key" and "each pair is
as similar as those in its windows": neighbours are more similar than others, so the pairs of a
window give the upper end.

*By a stream*: from each record's image the key that the item would have is made. Its hash is kept
with the second of the record. Records of one second count as one burst, as a stream has no finer
times.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from keyhop import template
from keyhop.dynamodb.units import (
    BLOCK_BYTES,
    PARTITION_WRITE_UNITS,
    UNITS_PER_BLOCK,
    WRITE_UNIT_BYTES,
)
from keyhop.dynamodb.values import Item, KeyType, text_of
from keyhop.errors import CannotStart
from keyhop.report import advice
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    CandidateFacts,
    CandidateSample,
    Facts,
    MetricFacts,
    RequestFacts,
    RequestShape,
    SampleFacts,
)
from keyhop.report.statistics import shares
from keyhop.report.statistics.order import Reservoir, kendall
from keyhop.report.statistics.shares import effective, weighted_share, widened
from keyhop.scan.statistics import TAIL, beta_quantile, proportion_limits, t_quantile
from keyhop.template import Compiled, Unmappable, why_no_key

MOST_TEXT = 1_000
_FORM = re.compile(r"\s*PK\s*=\s*(?P<pk>.*?)(?:[\s,;]+SK\s*=\s*(?P<sk>.*?))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate key.

    Attributes:
        text: The key as the user wrote it.
        templates: The templates of the partition key, and of the sort key if there is one.
        types: The types that each of these keys can have in a re-keyed table.
    """

    text: str
    templates: Sequence[Compiled]
    types: Sequence[Set[str]]

    @property
    def partition(self) -> Compiled:
        """Return the template of the partition key."""
        return self.templates[0]

    def of(self, item: Item) -> str | None:
        """Return the partition key that an item would have; None if it cannot have the key."""
        try:
            keys = [compiled.render(item) for compiled in self.templates]
        except Unmappable:
            return None
        for key, types, is_sort_key in zip(keys, self.types, (False, True), strict=False):
            if why_no_key(key, is_sort_key) or key.keys().isdisjoint(types):
                return None
        return text_of(keys[0])


def candidate(text: str) -> Candidate:
    """Parse a candidate key.

    Raises:
        CannotStart: It is not valid. The message is one sentence.
    """
    if len(text) > MOST_TEXT:
        raise CannotStart(f"A candidate key has {MOST_TEXT:,} characters at most.")
    form = _FORM.fullmatch(text)
    try:
        if form is None:
            raise ValueError("it must begin with PK=, as PK=DEVICE#{deviceId}#{ts:day}")
        if not any(isinstance(part, template.Field) for part in template.parsed(form["pk"])):
            raise ValueError("it names no attribute, so all items would have one key")
        texts = [part for part in form.groups() if part is not None]
        templates = [template.compiled(part, {}) for part in texts]
    except ValueError as error:
        raise CannotStart(f"The candidate {text!r} is not valid: {error}.") from error
    return Candidate(text, templates, [_types_of(part) for part in texts])


def _types_of(text: str) -> Set[str]:
    """Return the types that a key with a template can have, as `{city?none}` is never a number."""
    types: set[str] = set()
    for type_ in get_args(KeyType):
        with suppress(ValueError):
            template.compiled(text, {}, type_)
            types.add(type_)
    return types


def why_wrong(text: str) -> str:
    """Return the mistake in a candidate, without a full stop, or ""."""
    try:
        candidate(text)
    except CannotStart as error:
        return str(error).removesuffix(".")
    return ""


MOST_PLACES = 400_000
"""The maximum number of pairs of key and second, for all candidates together."""
ORDERED = 500
"""The number of inserts whose order is examined."""
RATE = float(PARTITION_WRITE_UNITS)
"""The write units that one partition accepts in a second."""
BURST_SECONDS = 300.0
"""A partition saves the unused write units of this many seconds."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The throttles of a replayed stream.

    Attributes:
        throttled: The share of the write units.
        peak: The write units of the busiest second of a key.
        keys: The number of throttled keys.
    """

    throttled: Estimate
    peak: float
    keys: int


@dataclass(frozen=True, slots=True)
class Streamed:
    """The heat and the order of one candidate key in a stream.

    Attributes:
        heat: The replay; None if no record had an image from which the key can be made.
        monotonicity: The correlation of keys with time; None if not known.
    """

    heat: Replay | None
    monotonicity: Estimate | None


@dataclass(slots=True)
class Listener:
    """Collects what a stream shows of one candidate key.

    Attributes:
        candidate: The candidate key.
        places: The maximum number of entries in `writes`.
        writes: Count and write units by second and hash of the key.
        inserts: A sample of the inserts: second and key.
    """

    candidate: Candidate
    places: int = MOST_PLACES
    writes: dict[tuple[float, int], list[float]] = field(default_factory=dict)
    inserts: Reservoir[tuple[float, str]] = field(default_factory=lambda: Reservoir(ORDERED))

    def take(self, record: Mapping[str, Any], at: float, units: float) -> None:
        """Add one record, with its second and the write units that it cost."""
        change = record["dynamodb"]
        item = change.get("NewImage") or change.get("OldImage") or change.get("Keys", {})
        key = self.candidate.of(item)
        if key is None:
            return
        place = at, hash(key)
        if place not in self.writes and len(self.writes) >= self.places:
            return
        counted = self.writes.setdefault(place, [0, 0.0])
        counted[0] += 1
        counted[1] += units
        if record["eventName"] == "INSERT":
            self.inserts.offer((at, key))

    def facts(self) -> Streamed:
        """Return what the stream shows, and forget the keys."""
        writes = [
            Write(at, key, units / count)
            for (at, key), (count, units) in self.writes.items()
            for _ in range(int(count))
        ]
        ranks = {key: rank for rank, key in enumerate(sorted({key for _, key in self.inserts}))}
        times = [at for at, _ in self.inserts]
        streamed = Streamed(replay(writes), kendall(times, [ranks[key] for _, key in self.inserts]))
        self.writes.clear()
        self.inserts.clear()
        return streamed


def listening(
    listeners: Sequence[Listener],
    moment_of: Callable[[Mapping[str, Any]], float],
    units_of: Callable[[Mapping[str, Any]], float],
) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that a stream's reader calls with each record."""

    def listen(record: Mapping[str, Any]) -> None:
        at, units = moment_of(record), units_of(record)
        if units:
            for listener in listeners:
                listener.take(record, at, units)

    return listen


@dataclass(frozen=True, slots=True)
class Write:
    """A write: its time in epoch seconds, its key, and the write units that it costs."""

    time: float
    key: Hashable
    units: float


def replay(
    writes: Sequence[Write], rate: float = RATE, burst: float = BURST_SECONDS
) -> Replay | None:
    """Return the throttles that these writes would meet; None without writes.

    Each key has a bucket of tokens, as a partition that holds this key alone: `rate` write units a
    second, and up to `burst` seconds of unused ones. Splits of partitions are ignored. The value
    and the low end assume a partition that was at rest before, with a full bucket; the high end
    assumes one that had saved the units of a second.
    """
    if not writes:
        return None
    order = sorted(writes, key=lambda write: write.time)
    total = sum(write.units for write in order)
    rested, keys = _refused(order, rate, burst * rate, burst * rate)
    busy, _ = _refused(order, rate, burst * rate, rate)
    share = rested / total
    estimate = Estimate(
        share, share, max(share, busy / total), len(order), "stream replayed per key"
    )
    return Replay(estimate, _peak(order), keys)


def _refused(order: Iterable[Write], rate: float, burst: float, saved: float) -> tuple[float, int]:
    buckets: dict[Hashable, tuple[float, float]] = {}
    refused = 0.0
    keys: set[Hashable] = set()
    for write in order:
        tokens, at = buckets.get(write.key, (saved, write.time))
        tokens = min(burst, tokens + (write.time - at) * rate)
        if tokens + 1e-9 >= min(write.units, burst):
            tokens -= write.units
        else:
            refused += write.units
            keys.add(write.key)
        buckets[write.key] = (tokens, write.time)
    return refused, len(keys)


def _peak(order: Iterable[Write]) -> float:
    seconds: defaultdict[tuple[Hashable, int], float] = defaultdict(float)
    for write in order:
        seconds[write.key, int(write.time)] += write.units
    return max(seconds.values())


METHOD = "sampled collections"


@dataclass(slots=True)
class _Collection:
    """The items of a collection that were read.

    Attributes:
        is_complete: Whether all of its items were read.
        items: The number of items that were read.
        weight: The number of items for which they count.
        keys: The weight of each candidate key.
        counts: The number of items that were read with each candidate key.
    """

    is_complete: bool = True
    items: int = 0
    weight: float = 0.0
    keys: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def covered(self) -> float:
        return sum(self.keys.values())

    def most_seen(self) -> float:
        """Return the number of items that were read with the most frequent key."""
        return max(self.keys.values() if self.is_complete else self.counts.values(), default=0.0)

    def same(self) -> tuple[float, float, float]:
        """Return the number of ordered pairs of its items with one key: value, low and high.

        Each item also forms a pair with itself.
        """
        maximum = sum(weight**2 for weight in self.keys.values())
        if self.is_complete:
            return maximum, maximum, maximum
        read, covered = sum(self.counts.values()), self.covered
        if read < 2:
            return covered, covered, maximum
        similarity = sum(count * (count - 1) for count in self.counts.values()) / (
            read * (read - 1)
        )
        return min(maximum, max(covered, covered**2 * similarity)), covered, maximum


@dataclass(slots=True)
class Tally:
    """The tally of one candidate key.

    Keys are given as digests. The tally is dropped with them and with the values.
    """

    template: str
    collections: dict[Hashable, _Collection] = field(default_factory=dict)
    units: float = 0.0
    covered: float = 0.0
    items: list[shares.Item] = field(default_factory=list)

    def add(
        self,
        key: str | None,
        weight: float,
        collection: Hashable,
        size: int = 0,
        is_complete: bool = True,
    ) -> None:
        """Add an item that was read.

        Args:
            key: A digest of the candidate key that the item would have; None if it cannot have it.
            weight: The number of items for which it counts.
            collection: The collection that contains it.
            size: Its bytes.
            is_complete: Whether all items of its collection were read.
        """
        entry = self.collections.setdefault(collection, _Collection())
        entry.items += 1
        entry.weight += weight
        entry.is_complete = entry.is_complete and is_complete and weight == 1.0
        self.items.append(shares.Item(collection, weight, float(key is not None)))
        if key is not None:
            entry.keys[key] = entry.keys.get(key, 0.0) + weight
            entry.counts[key] += 1
            self.units += weight * max(1, math.ceil(size / WRITE_UNIT_BYTES))
            self.covered += weight

    def facts(
        self, fraction: float = 1.0, items: float = 0.0, unrepresented: float = 0.0
    ) -> CandidateSample | None:
        """Return what the items show of the candidate; None if nothing was read.

        Args:
            fraction: The part of the collections that was drawn; 1 for all.
            items: The number of items of the table; 0 if it is not known.
            unrepresented: The maximum share of the items that no item of the sample represents. All
                of these might have one key, or none.
        """
        coverage = weighted_share(self.items, METHOD)
        if coverage is None:
            return None
        largest = self._largest(fraction, len({*self._keys()}))
        effective_keys = self._effective(fraction, items * coverage.value)
        if fraction >= 1 and self._all_complete:
            coverage = Estimate.exactly(coverage.value, len(self.items), "all items")
        elif unrepresented > 0:
            coverage = widened(coverage, unrepresented)
            largest = widened(largest, unrepresented)
            effective_keys = _with_others(effective_keys, unrepresented)
        keys = {*self._keys()}
        n = len(self.items)
        return CandidateSample(
            self.template,
            coverage,
            largest,
            effective_keys,
            Estimate.exactly(len(keys), n, "all items")
            if coverage.level == 1.0
            else Estimate.at_least(len(keys), n, METHOD),
            self.units / self.covered if self.covered else 1.0,
        )

    def _keys(self) -> Iterable[str]:
        return (key for collection in self.collections.values() for key in collection.keys)

    def _largest(self, fraction: float, distinct: int) -> Estimate:
        """Return the share of the largest key.

        A key in several collections is estimated from these. A key in one collection is taken to be
        in no other. The low end allows for the choice of the largest among `distinct` keys, the
        high end for keys that the sample does not contain.
        """
        by_key: defaultdict[str, list[float]] = defaultdict(list)
        for collection in self.collections.values():
            for key, weight in collection.keys.items():
                by_key[key].append(weight)
        total, n = self.covered, len(self.items)
        if not total:
            return Estimate(0.0, 0.0, 1.0, n, METHOD)
        draws = effective(
            collection.covered for collection in self.collections.values() if collection.keys
        )
        spread = {key: sum(weights) / total for key, weights in by_key.items() if len(weights) > 1}
        alone = max((fraction * max(weights) / total for weights in by_key.values()), default=0.0)
        widest = max(spread.values(), default=0.0)
        value = max(alone, widest)
        if fraction >= 1 and self._all_complete:
            return Estimate.exactly(value, n, "all items")
        most_read = max(collection.most_seen() for collection in self.collections.values())
        low = fraction * most_read / total / 2  # the number of items may be wrong by this factor
        if widest >= alone:
            count = widest * draws
            low = beta_quantile(TAIL / max(1, distinct), count, max(1e-9, draws - count + 1))
        highest = max((sum(weights) / total for weights in by_key.values()), default=0.0)
        _, high = proportion_limits(highest * draws, draws)
        return Estimate(value, min(low, value), max(high, value), n, METHOD)

    @property
    def _all_complete(self) -> bool:
        return all(collection.is_complete for collection in self.collections.values())

    def _effective(self, fraction: float, items: float) -> Estimate:
        """Return the effective number of keys, 1 / sum of p squared.

        The interval is that of a jackknife over collections, and at least as wide as Poisson's for
        the pairs of collections that share a key.
        """
        collections = [collection for collection in self.collections.values() if collection.keys]
        covered, n = self.covered, len(self.items)
        minimum = 1.0 / items if items > 0 else 0.0
        if not covered:
            return Estimate(0.0, 0.0, math.inf, n, METHOD)
        totals = self._totals(collections)
        between = sum(total**2 for total in totals.values())
        between -= sum(
            weight**2 for collection in collections for weight in collection.keys.values()
        )
        within = [collection.same() for collection in collections]
        inside = [sum(each[at] for each in within) for at in range(3)]
        value, low, high = ((max(0.0, between) + fraction * each) / covered**2 for each in inside)
        if fraction >= 1 and self._all_complete:
            return Estimate.exactly(1 / value, n, "all items")
        rest = []
        for collection, same in zip(collections, within, strict=True):
            remaining = covered - collection.covered
            shared = sum(w * (totals[key] - w) for key, w in collection.keys.items())
            if remaining > 0:
                rest.append(
                    (between - 2 * shared + fraction * (inside[0] - same[0])) / remaining**2
                )
        error = t_quantile(len(rest) - 1) * _jackknife(rest)
        draws = effective(collection.covered for collection in collections)
        pairs = draws * (draws - 1) / 2
        shared_pairs = max(0.0, between) / covered**2 * pairs
        low -= error
        few, many = _poisson(shared_pairs)
        if pairs > 0:
            low = min(low, few / pairs)
            high = max(high + error, many / pairs + fraction * inside[2] / covered**2)
        else:
            high = 1.0
        low, value, high = (min(1.0, max(each, minimum, 1e-18)) for each in (low, value, high))
        top = math.inf if low <= 1e-18 else 1 / low
        return Estimate(1 / value, 1 / high, top, n, METHOD)

    def _totals(self, collections: Iterable[_Collection]) -> Mapping[str, float]:
        totals: defaultdict[str, float] = defaultdict(float)
        for collection in collections:
            for key, weight in collection.keys.items():
                totals[key] += weight
        return totals


def _with_others(effective_keys: Estimate, unrepresented: float) -> Estimate:
    """Return the effective number of keys of all items, including those not represented.

    The others may all have the largest key, or each a different key.
    """
    represented = 1 - unrepresented
    largest_share = (
        represented / math.sqrt(effective_keys.low) if effective_keys.low > 0 else math.inf
    )
    return replace(
        effective_keys,
        low=1 / (largest_share + unrepresented) ** 2,
        high=effective_keys.high / represented**2 if represented > 0 else math.inf,
    )


def _jackknife(rest: list[float]) -> float:
    """Return the standard error from the values that each leave one collection out."""
    n = len(rest)
    if n < 2:
        return math.inf
    mean = sum(rest) / n
    return math.sqrt((n - 1) / n * sum((value - mean) ** 2 for value in rest))


def _poisson(count: float) -> tuple[float, float]:
    """Return 95 % limits of a mean from a count, by Byar's approximation."""
    if count <= 0:
        return 0.0, 3.689
    low = count * (1 - 1 / (9 * count) - 1.96 / (3 * math.sqrt(count))) ** 3
    more = count + 1
    return max(0.0, low), more * (1 - 1 / (9 * more) + 1.96 / (3 * math.sqrt(more))) ** 3


ReadKind = Literal["single", "several", "scatter"]
KINDS: tuple[ReadKind, ...] = ("single", "several", "scatter")

EXACT = frozenset({"GetItem", "BatchGetItem", "TransactGetItems"})
READS = frozenset({*EXACT, "Query", "Scan", "ExecuteStatement"})


def evaluated(
    candidates: Sequence[Candidate], streamed: Sequence[Streamed | None], facts: Facts
) -> tuple[CandidateFacts, ...]:
    """Return the evaluation of each candidate that the sample has read.

    Args:
        candidates: The candidate keys.
        streamed: What the stream shows of each candidate, in the same order.
        facts: All other facts.
    """
    if not isinstance(facts.sample, SampleFacts):
        return ()
    samples = {sample.template: sample for sample in facts.sample.candidates}
    return tuple(
        _evaluated(candidate, samples[candidate.text], stream, facts)
        for candidate, stream in zip(candidates, streamed, strict=True)
        if candidate.text in samples
    )


def _evaluated(
    candidate: Candidate,
    sample: CandidateSample,
    streamed: Streamed | None,
    facts: Facts,
) -> CandidateFacts:
    reads: dict[str, float] = {}
    if isinstance(facts.requests, RequestFacts):
        reads = reads_by_kind(candidate, facts.requests.shapes)
    heat = streamed.heat if streamed else None
    today, advised = _monthly(candidate, reads, facts)
    return CandidateFacts(
        template=candidate.text,
        coverage=sample.coverage,
        largest=sample.largest,
        effective=sample.effective,
        distinct=sample.distinct,
        monotonicity=streamed.monotonicity if streamed else None,
        throttled=heat.throttled if heat else None,
        peak=heat.peak if heat else None,
        reads=reads,
        migration=_migration(sample, facts),
        today=today,
        advised=advised,
    )


def reads_by_kind(candidate: Candidate, shapes: Iterable[RequestShape]) -> dict[str, float]:
    """Return shares of the read calls by kind, empty without such calls."""
    counts = dict.fromkeys(KINDS, 0)
    for shape in shapes:
        if shape.operation in READS:
            counts[kind_of(candidate, shape)] += shape.calls
    calls = sum(counts.values())
    return {kind: count / calls for kind, count in counts.items()} if calls else {}


def kind_of(candidate: Candidate, shape: RequestShape) -> ReadKind:
    """Return how many keys a request needs, judged by the names of its attributes.

    A request with all attributes of the key needs one key. Without the attribute of a shard it
    needs all shards; with a range of a time it needs several buckets.
    """
    names = {*shape.conditions, *shape.filters}
    fields = candidate.partition.fields
    kinds = {_kind(compiled.field, names, shape.operation) for compiled in fields}
    return max(kinds, key=KINDS.index, default="scatter")


def _kind(field: template.Field, names: set[str], operation: str) -> ReadKind:
    if field.name not in names and field.shown not in names:
        return "several" if _shards(field) > 1 else "scatter"
    is_date = any(name == "date" for name, _ in field.filters)
    return "several" if is_date and operation not in EXACT else "single"


def _shards(field: template.Field) -> int:
    """Return the number of values that a field can have, if a filter bounds it, otherwise 1."""
    counts = [int(argument) for name, argument in field.filters if name in ("shard", "mod")]
    return min(counts, default=1)


def _migration(sample: CandidateSample, facts: Facts) -> float:
    """Return the dollars of a migration on demand: one scan, and one put of each item.

    The new table has the same indexes. Large items can be missing in a sample, so an item needs at
    least the units of the mean item in DescribeTable. Functions and storage are not included.
    """
    table, prices = facts.table, advice.prices_of(facts)
    if not prices:
        return 0.0
    of_an_item = max(sample.write_units, (table.mean_item_bytes or 0) / WRITE_UNIT_BYTES)
    units = table.items * sample.coverage.value * of_an_item
    for index in table.indexes:
        if index.items:
            units += index.items * max(1, math.ceil(index.bytes / index.items / WRITE_UNIT_BYTES))
    return prices.dollars(table.bytes / BLOCK_BYTES * UNITS_PER_BLOCK, units)


def _monthly(
    candidate: Candidate, reads: dict[str, float], facts: Facts
) -> tuple[float | None, float | None]:
    """Return the dollars of a month's units, today and with the candidate.

    The latter is None where reads are not known, or where a read would need all keys.
    """
    metrics = facts.metrics
    if not isinstance(metrics, MetricFacts):
        return None, None
    used = {
        kind: sum(units for (used_kind, _), units in metrics.consumed.items() if used_kind == kind)
        for kind in ("read", "write")
    }
    reading = advice.reading(facts, used["read"], metrics.seconds)
    writing = advice.writing(facts, used["write"], metrics.seconds)
    today = advice.sum_of(reading, writing)
    if today is None or reading is None or writing is None or not reads or reads["scatter"]:
        return today, None
    shards = math.prod(_shards(compiled.field) for compiled in candidate.partition.fields)
    return today, writing + reading * (reads["single"] + reads["several"] * max(2, shards))
