"""The facts from the sources of a report. Rules judge them, pages draw them. Plain values, no I/O.

A key is written as the report is allowed to show it (`Shown`), which is a digest by default. So
facts hold only names, sizes, counts and times, and no value of a user's item.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from keyhop.dynamodb.units import Prices
from keyhop.report.estimate import Estimate

Shown = str
"""A key in the form that the report may show: a digest, a prefix, or whole (report/forms.py)."""

TABLE = ""
"""The target that means the table; other targets are names of indexes."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A source that was not read, or that was suppressed.

    Attributes:
        reason: Why it is missing, in words.
        remedy: The option or the setting that makes it available.
        rru: The read units that it would cost.
    """

    reason: str
    remedy: str = ""
    rru: float = 0.0


# Control plane (T)


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """A secondary index.

    Attributes:
        partition: The attributes of the partition key, up to four.
        sort: The attributes of the sort key, up to four; none without a sort key.
        items: The number of items as reported, up to 6 h old.
        bytes: The size as reported, up to 6 h old.
        throughput: As in TableFacts.
        insights: The status of Contributor Insights of a GSI.
        warm: As in TableFacts.
    """

    name: str
    kind: Literal["GSI", "LSI"]
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    items: int
    bytes: int
    status: str = "ACTIVE"
    throughput: tuple[int, int] | None = None
    insights: str | None = None
    warm: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The settings of a table.

    Attributes:
        types: The types S, N or B of the key attributes.
        throughput: The provisioned read and write units; None on demand.
        maximum: The maximum read and write units on demand; -1 for no maximum.
        warm: The warm throughput, reads and writes a second; None if not reported.
        ttl: The attribute of time to live, if it is on.
        insights: The status of Contributor Insights.
        untold: Why "ttl" or "insights" could not be read. None in these does not mean off
            then.
        by_arn: Whether the table was named by its ARN, so that it may be another account's.
    """

    name: str
    arn: str
    region: str
    partition: str
    sort: str | None
    types: Mapping[str, str]
    items: int
    bytes: int
    created: float
    throughput: tuple[int, int] | None
    maximum: tuple[int, int] | None
    table_class: str
    warm: tuple[int, int] | None
    ttl: str | None
    stream: str | None
    stream_view: str | None
    indexes: tuple[IndexFacts, ...]
    insights: str | None
    untold: Mapping[str, Absent] = field(default_factory=dict)
    by_arn: bool = False
    vector_indexes: tuple[str, ...] = ()

    @property
    def on_demand(self) -> bool:
        return self.throughput is None

    @property
    def mean_item_bytes(self) -> float | None:
        return self.bytes / self.items if self.items and self.bytes else None

    def index(self, name: str) -> IndexFacts | None:
        return next((index for index in self.indexes if index.name == name), None)


# CloudWatch (M)

Cause = Literal["key range", "provisioned", "maximum", "account"]


@dataclass(frozen=True, slots=True)
class Throttles:
    """Throttled events of one kind.

    Attributes:
        events: The number of events.
        last: The end of the minute of the latest one.
    """

    events: float
    last: float | None


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """The metrics of the table and each index, by name (TABLE is "").

    Attributes:
        began: The beginning of the window in epoch seconds.
        ended: The end of the window in epoch seconds.
        consumed: Units in the window, by ("read"|"write", target).
        peak: Units a second of the busiest minute, by the same.
        throttles: Throttles by ("read"|"write", cause, target); a missing entry is not known.
        calls: The number of calls with an answer by operation, without Keyhop's calls.
        returned: The number of items returned, by operation.
        hours: The number of hours with a call, by operation; {} for a window below a day.
        read_days: The days, of the last 30, on which an index was read at all; None if not known.
        minutes: Write units of the table by minute, for pictures: (epoch second, units).
        period: The seconds of a datapoint, of which a peak is the mean: 60 for a window of 15 days.
    """

    began: float
    ended: float
    consumed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    peak: Mapping[tuple[str, str], float] = field(default_factory=dict)
    throttles: Mapping[tuple[str, Cause, str], Throttles] = field(default_factory=dict)
    calls: Mapping[str, float] = field(default_factory=dict)
    returned: Mapping[str, float] = field(default_factory=dict)
    read_days: Mapping[str, int | None] = field(default_factory=dict)
    minutes: tuple[tuple[float, float], ...] = ()
    period: int = 60
    hours: Mapping[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.ended - self.began


# Contributor Insights (C)


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key that is accessed often.

    Attributes:
        units: The units of its busiest minute, 3 W + R as the service counts; a partition serves
            180,000.
        total: The units of the whole time.
    """

    key: Shown
    units: float
    total: float


@dataclass(frozen=True, slots=True)
class InsightFacts:
    """The keys accessed most and throttled most, by target.

    If Contributor Insights counts throttled keys only, `accessed` lacks the target.

    Attributes:
        accessed: The partition keys accessed most.
        items: The items accessed most.
        throttled: The partition keys throttled most.
    """

    began: float
    ended: float
    accessed: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)
    items: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)
    throttled: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)


# The stream (R)


@dataclass(frozen=True, slots=True)
class KeyTraffic:
    """The writes of one key during the read of the stream.

    Attributes:
        peak: The write units of its busiest second.
        newest: Inserts at a sort key greater than all of earlier seconds.
        place: The hash place of the key in [0, 1), if it is known.
    """

    key: Shown
    records: int
    inserts: int
    write_units: float
    peak: float
    newest: int = 0
    place: float | None = None


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """The writes in the stream during `seconds`.

    Attributes:
        view: The view type of the stream.
        keys: The number of distinct partition keys.
        traffic: The kept keys, those with most write units first.
        shards: The number of records, by stream shard.
        date_share: The share of inserts whose partition key is today's date.
        tau: Kendall's tau of numeric keys with time.
        hash_rho: Spearman's rho of time with hash place; None if not known.
        peak: The write units of all keys in the busiest second; None if not known.
        in_turn: How far stream shards are written one after the other, from 0 to 1; None if all
            records are in one shard.
        counter: The share of records on one item in which only numbers changed.
        counter_attribute: The attributes of these numbers, joined by commas.
        reversals: The number of transitions, and of rare ones backwards, by attribute.
        growth: Inserts less removals a day, by key.
        heat: The minute, the place in 256ths and the write units, for the key map.
    """

    began: float
    seconds: float
    records: int
    inserts: int
    view: str
    keys: int
    traffic: tuple[KeyTraffic, ...] = ()
    shards: Mapping[str, int] = field(default_factory=dict)
    split_shards: int = 0
    date_share: Estimate | None = None
    tau: Estimate | None = None
    hash_rho: Estimate | None = None
    counter: Estimate | None = None
    counter_attribute: str = ""
    reversals: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    growth: Mapping[Shown, float] = field(default_factory=dict)
    heat: tuple[tuple[float, int, float], ...] = ()
    peak: float | None = None
    in_turn: float | None = None


# The sample (S)


@dataclass(frozen=True, slots=True)
class Collection:
    """One item collection.

    Attributes:
        items: The number of items, exact if the estimate is.
        bytes: The size without indexes.
        place: The hash place of its key.
        by: The draw that found it: "random segment", "GSI byCity", "stream" or "insights".
    """

    key: Shown
    items: Estimate
    bytes: Estimate | None
    place: float | None = None
    by: str = "random segment"


@dataclass(frozen=True, slots=True)
class Tag:
    """A type tag, such as `ORDER` of the key `ORDER#17`, and its share of all items.

    Attributes:
        prefix: The text with which every sampled partition key of this tag begins, such as
            `ORDER#`; "" if they write the delimiter in several ways, if one of them has another
            delimiter after it, or if only sort keys have the tag.
    """

    name: str
    share: Estimate
    prefix: str = ""


MOST_KINDS = 15
"""More words with a prefix, or without one, are probably values, such as names of people."""


def kinds_among(tags: Sequence[Tag]) -> list[Tag]:
    """Return the tags that are probably kinds of items, which may be shown."""
    with_prefix = [tag for tag in tags if tag.prefix]
    others = [tag for tag in tags if not tag.prefix]
    many = [group for group in (with_prefix, others) if len(group) > MOST_KINDS]
    return [tag for tag in tags if not any(tag in group for group in many)]


@dataclass(frozen=True, slots=True)
class IndexSample:
    """The sample of one GSI.

    Attributes:
        items_read: The number of items that were read.
        top_share: The share of the index's items in its largest key.
        top_key: The largest key.
        sparse: The share of the table's items that are in the index.
        composed: By key attribute of the index, the attributes that it joins in most entries, and
            the share of the entries in which it joins these; under "", that of the entries in
            which any key attribute joins others.
        dated: The share of the entries whose partition key is only a date.
        unpadded: The share of the entries whose sort key has numbers as text of several widths.
    """

    items_read: int
    top_share: Estimate | None = None
    top_key: Shown = ""
    sparse: Estimate | None = None
    composed: Mapping[str, tuple[tuple[str, ...], Estimate]] = field(default_factory=dict)
    dated: Estimate | None = None
    unpadded: Estimate | None = None


LONG_ITEMS, LONG_DAYS = 100, 60
"""The items of a collection, and the days that they cover, from which on it grows without end if
items are still added: more than a customer has orders, and longer than a bucket of a month."""

EXPIRED_DAYS = 7
"""TTL deletes within a few days: an item that expired earlier should no longer exist."""


@dataclass(frozen=True, slots=True)
class TtlFacts:
    """Shares of the items with the TTL attribute.

    Attributes:
        expired: Items that expired more than EXPIRED_DAYS ago and still exist.
        wrong_type: Values that are not numbers.
        milliseconds: Values in milliseconds.
        missing: The share of all items without the attribute.
    """

    expired: Estimate
    wrong_type: Estimate
    milliseconds: Estimate
    missing: Estimate


@dataclass(frozen=True, slots=True)
class CandidateSample:
    """The sample's figures for one candidate key; see CandidateFacts for the others.

    Attributes:
        template: The candidate key.
        write_units: The mean write units of an item that can have the key.
    """

    template: str
    coverage: Estimate
    largest: Estimate
    effective: Estimate
    distinct: Estimate
    write_units: float = 1.0


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """The facts from the data. A figure is None if the sample was too small for it.

    Attributes:
        keys: The number of distinct partition keys.
        length: The items per collection, by quantile (.5 .9 .99).
        beyond: The share of all items in collections of at least so many items.
        unseen: The share of items in collections larger than any that was sampled.
        seen_largest: The number of items in the largest collection that was sampled.
        growing: The share of items in collections of at least LONG_ITEMS items to which, by the
            times in their sort keys, items have been added for LONG_DAYS, and still are.
        top: The largest collections, from size-biased draws.
        biased: The sources of such draws; () if there are none.
        item_bytes: The bytes of an item, by quantile.
        large: The share of items of 350 KB or more.
        largest_item: The bytes of the largest item that was read.
        coverage: The share of items that have an attribute.
        tags: The tags of partition keys and sort keys.
        shapes: The share of items by the names of their attributes, joined by commas.
        dated: The share of keys that are only a date.
        tagged: The share of keys that have a type tag.
        sort_tagged: The share of items whose sort key has one of at least two type tags.
        numbered: The share of keys that end in a number.
        density: Keys / (greatest - least + 1) of the numbers at the end.
        typed: The share of items with an attribute that names the type.
        type_name: The name of this attribute.
        kind_names: The attributes that name the type in some items.
        unpadded: The share of sort keys that have numbers as text of several widths.
        orphans: The share of constraint items without their primary.
        gini: The Gini coefficient of items over keys.
        lorenz: The points (share of keys, share of items) of the Lorenz curve.
        all_keys: Whether every segment of the table was read, so that every partition key is known.
            Of a long collection only a few items may have been read.
        all_items: Whether every item was read. It implies `all_keys`.
        all_units: The read units with which a sample of this table reads every item; 0 if the size
            of the table is not known.
        unrepresented: The share of the table's items that no item of the sample represents: those
            of collections that were not sampled although they are larger than the others, and the
            rest of collections whose length could not be estimated. Intervals of shares of items,
            and of quantiles of item sizes, allow for the upper end of it.
        item_mean: The mean size of an item in bytes.
        candidates: The figures for each candidate key, if anything was read.
    """

    rru: float
    items_read: int
    keys_read: int
    keys: Estimate | None = None
    length: Mapping[float, Estimate] = field(default_factory=dict)
    beyond: Mapping[float, Estimate] = field(default_factory=dict)
    unseen: Estimate | None = None
    seen_largest: float | None = None
    mean_items: Estimate | None = None
    top: tuple[Collection, ...] = ()
    biased: tuple[str, ...] = ()
    item_bytes: Mapping[float, Estimate] = field(default_factory=dict)
    large: Estimate | None = None
    largest_item: float | None = None
    coverage: Mapping[str, Estimate] = field(default_factory=dict)
    tags: tuple[Tag, ...] = ()
    shapes: Mapping[str, Estimate] = field(default_factory=dict)
    dated: Estimate | None = None
    tagged: Estimate | None = None
    sort_tagged: Estimate | None = None
    numbered: Estimate | None = None
    density: Estimate | None = None
    typed: Estimate | None = None
    type_name: str = ""
    unpadded: Estimate | None = None
    orphans: Estimate | None = None
    ttl: TtlFacts | None = None
    indexes: Mapping[str, IndexSample] = field(default_factory=dict)
    gini: Estimate | None = None
    lorenz: tuple[tuple[float, float], ...] = ()
    all_keys: bool = False
    all_items: bool = False
    all_units: float = 0.0
    unrepresented: Estimate | None = None
    item_mean: Estimate | None = None
    candidates: tuple[CandidateSample, ...] = ()
    growing: Estimate | None = None
    kind_names: tuple[str, ...] = ()

    @property
    def most_unrepresented(self) -> float:
        """Return the upper end of `unrepresented`; 1 where it is not known."""
        if self.all_items:
            return 0.0
        return 1.0 if self.unrepresented is None else self.unrepresented.high

    @property
    def all_lengths(self) -> bool:
        """Return whether the length of every collection was counted or estimated."""
        return self.all_keys and self.unseen is not None


# The user's code (A), and the request sampler (Q)

CodeKind = Literal[
    "scan",
    "filter",
    "exclusion",
    "unprocessed",
    "status",
    "batch_write",
    "consistent",
    "transaction",
]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the user's code.

    Attributes:
        kind: scan (A4), filter (A5), exclusion (A5 is open: the filter only leaves out what has a
            value, or is not known), unprocessed (A14: leftovers are never read), batch_write (A14
            is open: the response is passed on), status (A11), consistent (A17), transaction (A12:
            of one item).
        text: The text of the line, shortened.
        table: The name of the table; "" if the code does not show it.
        attribute: The attributes of a filter, joined by commas, or the attribute that is set.
    """

    kind: CodeKind
    file: str
    line: int
    text: str
    table: str = ""
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """The user's code.

    Attributes:
        files: The number of files that were read.
        lines: The lines that rules use.
        unreadable: The files that could not be parsed.
        reads: The number of calls that read from DynamoDB, to compare with those of kind
            consistent.
    """

    files: int
    lines: tuple[CodeLine, ...] = ()
    unreadable: tuple[str, ...] = ()
    reads: int = 0


@dataclass(frozen=True, slots=True)
class RequestShape:
    """One shape of request to this table, and how often it was made.

    Attributes:
        conditions: The names of the attributes of its key condition.
        filters: The names of the attributes of its filter.
        metered: The calls whose response had the capacity, which `units` is the sum of.
    """

    operation: str
    index: str
    conditions: tuple[str, ...]
    filters: tuple[str, ...]
    calls: int
    count: int
    scanned: int
    units: float
    consistent: int
    one_item_transactions: int = 0
    metered: int = 0


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The file of the request sampler.

    Attributes:
        seconds: The time that it covers.
        followed: By index, the reads within a second of a write of the same item, and all reads.
    """

    seconds: float
    calls: int
    sampled: float
    shapes: tuple[RequestShape, ...] = ()
    followed: Mapping[str, tuple[int, int]] = field(default_factory=dict)


# Candidate keys


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """One candidate key.

    Attributes:
        template: The key.
        coverage: The share of items that can have it.
        largest: The share of items in its largest key.
        effective: The effective number of keys, 1 / sum of p squared.
        distinct: The least number of distinct keys.
        monotonicity: Kendall's tau of the key with time, if it is known.
        throttled: The share of the stream's writes that a replay throttles.
        reads: The share of read calls that would need one key, several, or all (single, several,
            scatter).
        migration: The dollars of the migration.
        today: The dollars a month today.
        advised: The dollars a month with the key.
    """

    template: str
    coverage: Estimate
    largest: Estimate
    effective: Estimate
    distinct: Estimate
    monotonicity: Estimate | None = None
    throttled: Estimate | None = None
    peak: float | None = None
    reads: Mapping[str, float] = field(default_factory=dict)
    migration: float = 0.0
    today: float | None = None
    advised: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of all sources.

    Attributes:
        peak_writes: The expected write units a second, if they were given (--peak-writes).
        ours: What Keyhop keeps beside the table and has recognised (a key index, shard metadata),
            by kind.
        prices: The prices of the reads (Connection.prices); None for the list prices of the region.
    """

    at: float
    table: TableFacts
    metrics: MetricFacts | Absent
    insights: InsightFacts | Absent
    stream: StreamFacts | Absent
    sample: SampleFacts | Absent
    code: CodeFacts | Absent
    requests: RequestFacts | Absent
    candidates: tuple[CandidateFacts, ...] = ()
    peak_writes: float | None = None
    ours: Mapping[str, str] = field(default_factory=dict)
    prices: Prices | None = None
