"""What the sources of a report have seen; rules judge it, pages draw it. Plain values, no I/O.

A key is written as the report is allowed to show it (`Shown`): a digest unless told otherwise. So
nothing here holds a value of a user's item: names, sizes, counts and times alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from keyhop.dynamodb.units import Prices
from keyhop.report.estimate import Estimate

Shown = str
"""A key as it may be shown: a digest, a prefix, or whole (report/shown.py)."""

TABLE = ""
"""The target that is the table itself; others are names of indexes."""


@dataclass(frozen=True, slots=True)
class Absent:
    """A source that has not been looked at, or that was suppressed. reason: why, in words. remedy:
    the flag or the setting with which it would speak. rru: what that would cost.
    """

    reason: str
    remedy: str = ""
    rru: float = 0.0


# Control plane (T)


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """items, bytes: as reported, up to 6 h old. partition, sort: of several attributes, their names
    joined by commas. warm: as of the table. insights: as of the table; a GSI's.
    """

    name: str
    kind: Literal["GSI", "LSI"]
    partition: str
    sort: str | None
    projection: Literal["ALL", "KEYS_ONLY", "INCLUDE"]
    projected: tuple[str, ...]
    items: int
    bytes: int
    status: str = "ACTIVE"
    throughput: tuple[int, int] | None = None
    insights: str | None = None
    warm: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """throughput: provisioned read and write units, None on demand. maximum: on demand, -1 for none
    of one kind. warm: warm throughput, reads and writes a second; None if not told. types: of key
    attributes, S N B. insights: Contributor Insights' status. ttl: the attribute, if it is on.
    untold: why "ttl", "pitr" or "insights" could not be had; then None there does not mean off.
    by_arn: it was asked for by its ARN, so it may be another account's.
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
    deletion_protection: bool
    pitr: bool | None
    replicas: int = 0
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
        return next((one for one in self.indexes if one.name == name), None)


# CloudWatch (M)

Cause = Literal["key range", "provisioned", "maximum", "account"]


@dataclass(frozen=True, slots=True)
class Throttles:
    """How many events of a kind there were, and when the last one ended its minute."""

    events: float
    last: float | None


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """Over [began, ended], epoch seconds. Of the table and each index by name (TABLE is "").

    consumed: ("read"|"write", target) to units in the window. peak: the same, units a second of the
    busiest minute. throttles: ("read"|"write", cause, target); what is not in it is not known.
    calls: by operation, how many were answered; ours taken off. returned: by operation, items
    returned. read_days: the days, of the last 30, on which an index was read at all; None if not
    known. minutes: write units a minute of the table, for pictures: (minute's epoch second, units).
    period: seconds of a datapoint, of which a peak is the mean: 60 for a window of 15 days.
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

    @property
    def seconds(self) -> float:
        return self.ended - self.began


# Contributor Insights (C)


@dataclass(frozen=True, slots=True)
class HotKey:
    """units: of its busiest minute, 3 W + R as the service counts; 180,000 are one partition's."""

    key: Shown
    units: float
    total: float


@dataclass(frozen=True, slots=True)
class InsightFacts:
    """By target: the keys accessed most and throttled most. keyed: "partition" or "item". Only the
    throttled keys where the mode is that alone: then `accessed` lacks the target.
    """

    began: float
    ended: float
    accessed: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)
    items: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)
    throttled: Mapping[str, tuple[HotKey, ...]] = field(default_factory=dict)


# The stream (R)


@dataclass(frozen=True, slots=True)
class KeyTraffic:
    """What a key was written in the time looked at. peak: write units of its busiest second."""

    key: Shown
    records: int
    inserts: int
    write_units: float
    peak: float
    newest: int = 0
    """Inserts at a sort key greater than all of its before."""
    place: float | None = None
    """In [0, 1): its hash place, where it is known."""


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What was written in `seconds`. traffic: the keys with most write units first, as many as are
    kept; keys: how many distinct there were. view: of the stream. shards: records by stream shard.
    date_share: of inserts whose partition key is today's date. tau: Kendall's, of numeric keys with
    time. hash_rho: Spearman's, of time with hash place; None if not known. counter: share of
    records on one item, of which one number alone changed. reversals: attribute to (transitions,
    rare ones backwards). heat: (minute, place in 256ths, write units), for the key map.
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
    busiest_item: Estimate | None = None
    """Share of records on one item, whatever changed of it."""
    reversals: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    growth: Mapping[Shown, float] = field(default_factory=dict)
    """Inserts less removals a day, of a key."""
    heat: tuple[tuple[float, int, float], ...] = ()


# The sample (S)


@dataclass(frozen=True, slots=True)
class Collection:
    """One item collection. items, bytes: bytes without indexes. place: its hash place. exact if the
    estimate is. by: the draw that found it: "random segment", "GSI byCity", "stream", "insights".
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


@dataclass(frozen=True, slots=True)
class IndexSample:
    """Of one GSI. top_share: of its items, in its largest key. top_key: that one. sparse: share of
    the table's items that are in it.
    """

    items_read: int
    top_share: Estimate | None = None
    top_key: Shown = ""
    sparse: Estimate | None = None


@dataclass(frozen=True, slots=True)
class TtlFacts:
    """Of items with the attribute: shares expired for more than some days yet present, of another
    type than a number, in milliseconds. missing: items without it.
    """

    expired: Estimate
    wrong_type: Estimate
    milliseconds: Estimate
    missing: Estimate


@dataclass(frozen=True, slots=True)
class CandidateSample:
    """What the sample says of one candidate key, by its template. write_units: of an item that can
    have it, mean. The rest: see CandidateFacts.
    """

    template: str
    coverage: Estimate
    largest: Estimate
    effective: Estimate
    distinct: Estimate
    write_units: float = 1.0


@dataclass(frozen=True, slots=True)
class SampleFacts:
    """What was read of the data. None: not enough was seen to say (silence is the rule there).

    keys: distinct partition keys. length: quantile (.5 .9 .99) to items per collection. beyond:
    items to share of all items in collections of at least so many. unseen: share of items in
    collections larger than any that was sampled, and seen_largest: that one's items. top: the
    largest collections, by size-biased draws; biased: the sources of such draws, () for none.
    item_bytes: quantile to bytes; large: share of items of 350 KB or more; largest_item: bytes of
    the largest that was seen. coverage: attribute to the share of items that have it. tags: of keys
    and sort keys. shapes: by names of attributes joined by commas, share.
    dated, tagged, numbered: shares of keys that are only a date, have a type tag, end in a number;
    density: keys / (greatest - least + 1) of the numeric suffixes. typed: share of items with an
    attribute that names the type, type_name: which. unpadded: share of sort keys that are numbers
    as text of several widths. orphans: share of constraint items without their primary.
    gini, lorenz: of items over keys, points (share of keys, share of items).

    Attributes:
        all_keys: Whether every segment of the table was read, so that every partition key is known.
            Of a long collection only a few items may have been read.
        all_items: Whether every item was read. It implies `all_keys`.
        all_units: The read units with which a sample of this table reads every item; 0 if the size
            of the table is not known.
        unrepresented: The share of the table's items for which no item of the sample stands: those
            of collections that were not sampled although they are larger than the others, and the
            rest of collections whose length could not be estimated. Intervals of shares of items,
            and of quantiles of item sizes, allow for the upper end of it.
        item_mean: The mean size in bytes of the items for which the sample stands.
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
    """Of each candidate key that was asked for, if anything was read."""

    @property
    def most_unrepresented(self) -> float:
        """The upper end of `unrepresented`; 1 where nothing is known of it."""
        if self.all_items:
            return 0.0
        return 1.0 if self.unrepresented is None else self.unrepresented.high

    @property
    def all_lengths(self) -> bool:
        """Whether the length of every collection of the table was counted or estimated."""
        return self.all_keys and self.unseen is not None


# The user's code (A), and the request sampler (Q)

CodeKind = Literal["scan", "filter", "unprocessed", "status", "batch_write", "consistent"]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """kind: scan (A4), filter (A5), unprocessed (A14: its rest is never read), batch_write (A14
    cannot be said: the response is handed on), status (A11), consistent (A17). text: of the line,
    cut. table: "" where the code does not tell. attribute: of a filter, joined by commas, or that
    is set.
    """

    kind: CodeKind
    file: str
    line: int
    text: str
    table: str = ""
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """lines: what was found. files: how many were read; unreadable: that could not be parsed.
    reads: calls in the code that read from DynamoDB, to hold those of kind consistent against.
    """

    files: int
    lines: tuple[CodeLine, ...] = ()
    unreadable: tuple[str, ...] = ()
    reads: int = 0


@dataclass(frozen=True, slots=True)
class RequestShape:
    """One shape of request to this table: its operation, index, names of the attributes of its key
    condition and of its filter, and how often it was seen, with what.
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
    unprocessed: int = 0
    metered: int = 0
    """Calls whose response told the capacity: `units` is theirs."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """From the file of the request sampler. seconds: that it covers. followed: index reads within a
    second of a write of the same item, of so many index reads: (followed, reads) by index.
    """

    seconds: float
    calls: int
    sampled: float
    shapes: tuple[RequestShape, ...] = ()
    followed: Mapping[str, tuple[int, int]] = field(default_factory=dict)


# Candidate keys


@dataclass(frozen=True, slots=True)
class CandidateFacts:
    """One candidate key, by its template. coverage: share of items that can have it. largest: share
    of items in its largest key. effective: keys, 1 / sum of p squared. distinct: at least.
    monotonicity: Kendall's tau of key with time, if that is known. throttled: share of the stream's
    writes that a replay throttles. reads: share of read calls that would need one key, several, or
    all (single, several, scatter). migration, today, advised: dollars (one-off, and a month).
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
    migration_units: float = 0.0
    migration: float = 0.0
    today: float | None = None
    advised: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the sources have said. ours: what Keyhop keeps beside the table that was recognised
    (a key index, shard metadata), by kind.
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
    """Write units a second that are expected, if they were given (--peak-writes)."""
    ours: Mapping[str, str] = field(default_factory=dict)
    prices: Prices | None = None
    """Those at which reading was counted (Connection.prices); None: the list's of the region."""
