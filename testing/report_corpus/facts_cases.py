"""Tables that are declared by their Facts: both sides of thresholds, and sizes too large to load.

Each is a change of an ordinary table, on which all sources report and none reports a fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    CodeFacts,
    CodeLine,
    Collection,
    Facts,
    HotKey,
    IndexFacts,
    IndexSample,
    InsightFacts,
    KeyTraffic,
    MetricFacts,
    RequestFacts,
    RequestShape,
    SampleFacts,
    StreamFacts,
    TableFacts,
    Tag,
    Throttles,
    TtlFacts,
)

NOW = 1_795_000_000.0
DAY = 86_400.0
GB = 2**30
KB = 1024
ITEMS = 10_000_000


def share(value: float, low: float, high: float, n: int = 400) -> Estimate:
    return Estimate(value, low, high, n, "planted")


def about(value: float, within: float = 0.05, n: int = 400) -> Estimate:
    """Return an estimate with a relative error."""
    return share(value, value * (1 - within), value * (1 + within), n)


NONE = share(0.0, 0.0, 0.009)
ALL_OF_THEM = share(1.0, 0.991, 1.0)

TABLE = TableFacts(
    name="Orders",
    arn="arn:aws:dynamodb:us-east-1:123456789012:table/Orders",
    region="us-east-1",
    partition="pk",
    sort="sk",
    types={"pk": "S", "sk": "S"},
    items=ITEMS,
    bytes=ITEMS * 500,
    created=NOW - 400 * DAY,
    throughput=None,
    maximum=None,
    table_class="STANDARD",
    warm=(12_000, 4_000),
    ttl=None,
    stream="arn:aws:dynamodb:us-east-1:123456789012:table/Orders/stream/x",
    stream_view="NEW_AND_OLD_IMAGES",
    indexes=(),
    insights="ENABLED",
)
METRICS = MetricFacts(
    began=NOW - 14 * DAY,
    ended=NOW,
    consumed={("read", ""): 4e8, ("write", ""): 2e8},
    peak={("read", ""): 900.0, ("write", ""): 500.0},
    throttles={
        (way, cause, ""): Throttles(0, None)  # type: ignore[misc]
        for way in ("read", "write")
        for cause in ("key range", "provisioned", "maximum", "account")
    },
    calls={"GetItem": 5e8, "PutItem": 1.9e8, "Query": 9e7, "Scan": 0, "TransactWriteItems": 1e6},
)
INSIGHTS = InsightFacts(
    began=NOW - 3_600,
    ended=NOW,
    accessed={"": tuple(HotKey(f"k{n}", 900.0 - n, 9_000.0) for n in range(25))},
    items={"": tuple(HotKey(f"i{n}", 500.0 - n, 9_000.0) for n in range(25))},
    throttled={"": ()},
)
STREAM = StreamFacts(
    began=NOW - 900,
    seconds=900,
    records=4_000,
    inserts=2_000,
    view="NEW_AND_OLD_IMAGES",
    keys=3_000,
    traffic=tuple(KeyTraffic(f"k{n}", 3, 2, 3.0, 1.0, 1) for n in range(50)),
    shards={"s0": 1_010, "s1": 990, "s2": 1_020, "s3": 980},
    date_share=NONE,
    tau=share(0.01, -0.03, 0.05),
    hash_rho=share(0.02, -0.03, 0.07),
    counter=NONE,
)
SAMPLE = SampleFacts(
    rru=3_000,
    items_read=9_000,
    keys_read=2_400,
    keys=about(1_000_000),
    length={0.5: about(9), 0.9: about(20), 0.99: about(31)},
    unseen=share(0.01, 0.0, 0.03),
    seen_largest=60.0,
    mean_items=about(10),
    top=(Collection("k1", Estimate.exactly(60, 60, "counted"), None),),
    item_bytes={0.5: about(400), 0.9: about(900), 0.99: about(2_000)},
    large=share(0.0, 0.0, 0.0004, 9_000),
    largest_item=4_000,
    coverage={"pk": ALL_OF_THEM, "sk": ALL_OF_THEM, "Type": ALL_OF_THEM},
    tags=(Tag("ORDER", share(0.7, 0.66, 0.74)), Tag("USER", share(0.3, 0.26, 0.34))),
    shapes={"Type,cents,pk,sk": share(0.7, 0.66, 0.74), "Type,name,pk,sk": share(0.3, 0.26, 0.34)},
    dated=NONE,
    tagged=ALL_OF_THEM,
    numbered=NONE,
    density=None,
    typed=ALL_OF_THEM,
    type_name="Type",
    unpadded=NONE,
    orphans=NONE,
    gini=about(0.4),
)
CODE = CodeFacts(files=12)
REQUESTS = RequestFacts(
    seconds=3_600,
    calls=5_000,
    sampled=1.0,
    shapes=(
        RequestShape("GetItem", "", ("pk", "sk"), (), 3_000, 3_000, 3_000, 1_500.0, 0),
        RequestShape("Query", "", ("pk",), (), 1_500, 9_000, 9_000, 900.0, 0),
        RequestShape("PutItem", "", ("pk", "sk"), (), 500, 0, 0, 500.0, 0),
    ),
)
ORDINARY = Facts(NOW, TABLE, METRICS, INSIGHTS, STREAM, SAMPLE, CODE, REQUESTS, (), 1_000.0)
ABSENT = Absent("not looked at")


def gsi(name: str, partition: str = "status", items: int = ITEMS, **more: Any) -> IndexFacts:
    sort = more.pop("sort", "placed")
    kind = more.pop("kind", "GSI")
    size = more.pop("bytes", items * 300)
    return IndexFacts(name, kind, (partition,), (sort,) if sort else (), "ALL", items, size, **more)


@dataclass(frozen=True, slots=True)
class Declared:
    """Facts, with the expected status and severity of rules."""

    facts: Facts
    found: tuple[str, ...] = ()
    clear: tuple[str, ...] = ()
    not_clear: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    severity: Mapping[str, str] = field(default_factory=dict)


def with_sample(**more: Any) -> Facts:
    return replace(ORDINARY, sample=replace(SAMPLE, **more))


def with_stream(**more: Any) -> Facts:
    return replace(ORDINARY, stream=replace(STREAM, **more))


def with_metrics(**more: Any) -> Facts:
    return replace(ORDINARY, metrics=replace(METRICS, **more))


def with_table(**more: Any) -> Facts:
    return replace(ORDINARY, table=replace(TABLE, **more))


def throttled(way: str, cause: str, target: str = "", ago: float = 60.0) -> dict[Any, Throttles]:
    return {**METRICS.throttles, (way, cause, target): Throttles(500, NOW - ago)}


def with_collection(length: float, size: float, **table: Any) -> Facts:
    """Return a table with one large collection, and an LSI of a tenth of its bytes."""
    largest = Collection("big", about(length), about(size), by="GSI byCity")
    lsi = gsi("byName", "pk", kind="LSI", sort="label", bytes=int(ITEMS * 500 * 0.1))
    return replace(
        ORDINARY,
        table=replace(TABLE, indexes=(lsi,), **table),
        sample=replace(SAMPLE, top=(largest, *SAMPLE.top), biased=("GSI byCity",)),
    )


def with_requests(*shapes: RequestShape) -> Facts:
    return replace(ORDINARY, requests=replace(REQUESTS, shapes=shapes))


def with_index(name: str, partition: str, index_sample: IndexSample, items: int = ITEMS) -> Facts:
    return replace(
        ORDINARY,
        table=replace(TABLE, indexes=(gsi(name, partition, items),)),
        sample=replace(SAMPLE, indexes={name: index_sample}),
    )


def hot(units: float) -> Facts:
    return replace(
        ORDINARY, insights=replace(INSIGHTS, accessed={"": (HotKey("hot", units, units * 30),)})
    )


def _ids(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_EVERYTHING_ABSENT = replace(
    ORDINARY,
    metrics=ABSENT,
    insights=ABSENT,
    stream=ABSENT,
    sample=ABSENT,
    code=ABSENT,
    requests=ABSENT,
    peak_writes=None,
)

BY_FACTS: dict[str, Declared] = {
    "an ordinary table, seen from everywhere": Declared(
        ORDINARY, clear=_ids("A1 A2 A3 A4 A5 A6 A8 A13 A15 A16 A17 A18 H1 H2 H4 H5 H6")
    ),
    "only the control plane": Declared(
        _EVERYTHING_ABSENT,
        clear=("A6", "A16"),
        not_clear=_ids("A1 A2 A3 A4 A5 A8 A11 A12 A13 A14 A15 A17 A18 H1 H2 H4 H5 H6 H7"),
    ),
    "numbers, dense": Declared(
        replace(
            with_sample(numbered=ALL_OF_THEM, density=share(0.8, 0.74, 0.86), tagged=NONE),
            stream=ABSENT,
        ),
        ("A1",),
    ),
    "numbers, whose density is open": Declared(
        with_sample(numbered=ALL_OF_THEM, density=share(0.5, 0.45, 0.55)), not_clear=("A1",)
    ),
    "numbers, thin": Declared(
        with_sample(numbered=ALL_OF_THEM, density=share(0.1, 0.09, 0.11)), clear=("A1",)
    ),
    "numbers that rise with time": Declared(with_stream(tau=share(0.95, 0.93, 0.97)), ("A1",)),
    "dates, all but a few": Declared(with_sample(dated=share(0.99, 0.97, 1.0)), ("A3",)),
    "dates, nine of ten": Declared(with_sample(dated=share(0.90, 0.87, 0.93)), clear=("A3",)),
    "today's date in most inserts": Declared(
        with_stream(date_share=share(0.9, 0.87, 0.92)), ("A3",)
    ),
    "one scan a minute": Declared(
        with_metrics(calls={**METRICS.calls, "Scan": 14 * 1_440.0}), ("A4",)
    ),
    "a filter that drops half": Declared(
        with_requests(RequestShape("Query", "", ("pk",), ("state",), 500, 5_000, 10_000, 900.0, 0)),
        ("A5",),
    ),
    "a filter that drops 4 %": Declared(
        with_requests(RequestShape("Query", "", ("pk",), ("state",), 900, 9_600, 10_000, 900.0, 0)),
        not_found=("A5",),
    ),
    "an LSI and 8.6 GB": Declared(
        with_collection(18e6, 7.9 * GB, items=40_000_000, bytes=40_000_000 * 500),
        ("A6", "A15"),
        severity={"A6": "high"},
    ),
    "an LSI and 5.9 GB": Declared(
        with_collection(12e6, 5.4 * GB, items=40_000_000, bytes=40_000_000 * 500),
        ("A6", "A15"),
        severity={"A6": "medium"},
    ),
    "an LSI, and 30 MB at most": Declared(with_collection(60e3, 30e6), severity={"A6": "low"}),
    "ten indexes": Declared(
        with_table(indexes=tuple(gsi(f"i{n}", f"a{n}") for n in range(10))), ("A7",)
    ),
    "an item of which one number changes": Declared(
        with_stream(counter=share(0.3, 0.27, 0.33), counter_attribute="views"), ("A8",)
    ),
    "a counter of 95,000 units a minute": Declared(
        replace(
            ORDINARY,
            stream=ABSENT,
            insights=replace(INSIGHTS, items={"": (HotKey("c", 95_000.0, 2e6),)}),
        ),
        ("A8",),
    ),
    "an index with four fifths at one key": Declared(
        with_index("byStatus", "status", IndexSample(800, share(0.8, 0.77, 0.83), "p")),
        ("A9 byStatus",),
    ),
    "an index with an even spread": Declared(
        with_index("byOwner", "owner", IndexSample(800, share(0.01, 0.004, 0.02), "p")),
        clear=("A9 byOwner",),
    ),
    "an index whose largest key is open": Declared(
        with_index("byOwner", "owner", IndexSample(40, share(0.2, 0.09, 0.35), "p")),
        not_clear=("A9 byOwner",),
        not_found=("A9 byOwner",),
    ),
    "transactions, nearly all": Declared(
        with_metrics(calls={**METRICS.calls, "PutItem": 1e6, "TransactWriteItems": 5e7}), ("A12",)
    ),
    "an item of 380 KB": Declared(
        with_sample(large=share(0.01, 0.005, 0.02), largest_item=380 * KB),
        ("A13",),
        severity={"A13": "high"},
    ),
    "a percent of 120 KB and more": Declared(
        with_sample(item_bytes={**SAMPLE.item_bytes, 0.99: about(125 * KB)}, largest_item=190 * KB),
        ("A13",),
    ),
    "nearly half in what nobody saw": Declared(
        with_sample(unseen=share(0.40, 0.32, 0.48)), ("A15",)
    ),
    "what nobody saw, silent": Declared(
        with_sample(unseen=None, top=(), seen_largest=None), not_clear=("A15",), not_found=("A15",)
    ),
    "late to die": Declared(
        replace(
            ORDINARY,
            table=replace(TABLE, ttl="expires"),
            sample=replace(SAMPLE, ttl=TtlFacts(share(0.3, 0.25, 0.35), NONE, NONE, NONE)),
        ),
        ("A16",),
    ),
    "milliseconds": Declared(
        replace(
            ORDINARY,
            table=replace(TABLE, ttl="expires"),
            sample=replace(SAMPLE, ttl=TtlFacts(NONE, NONE, ALL_OF_THEM, NONE)),
        ),
        ("A16",),
    ),
    "in time, and a number": Declared(
        replace(
            ORDINARY,
            table=replace(TABLE, ttl="expires"),
            sample=replace(SAMPLE, ttl=TtlFacts(NONE, NONE, NONE, share(0.4, 0.35, 0.45))),
        ),
        clear=("A16",),
    ),
    "all reads consistent": Declared(
        with_requests(RequestShape("GetItem", "", ("pk", "sk"), (), 900, 900, 900, 900.0, 900)),
        ("A17",),
    ),
    "tags, and a third without a type": Declared(
        with_sample(typed=share(0.66, 0.62, 0.70)), ("A18",)
    ),
    "no tags, and two kinds": Declared(
        with_sample(
            tagged=NONE,
            tags=(),
            typed=NONE,
            type_name="",
            shapes={
                "cents,pk,sk,paid": share(0.6, 0.56, 0.64),
                "name,pk,sk": share(0.4, 0.36, 0.44),
            },
        ),
        ("A2",),
    ),
    "a key with 100,000 units a minute": Declared(hot(100_000.0), ("H1",)),
    "a key with 60,000 units a minute": Declared(hot(60_000.0), not_found=("H1",)),
    "throttles by key range, now": Declared(
        with_metrics(throttles=throttled("write", "key range")), ("H1",), severity={"H1": "high"}
    ),
    "a key-second of 900 writes": Declared(
        with_stream(traffic=(KeyTraffic("hot", 2_000, 2_000, 9_000.0, 900.0, 40), *STREAM.traffic)),
        ("H1",),
    ),
    "all at the end of one collection": Declared(
        with_stream(traffic=(KeyTraffic("log", 3_900, 1_990, 3_900.0, 300.0, 1_980),), keys=5),
        ("H2",),
    ),
    "throttled writes of an index": Declared(
        replace(
            with_index("byStatus", "status", IndexSample(800, share(0.8, 0.77, 0.83), "p")),
            metrics=replace(METRICS, throttles=throttled("write", "key range", "byStatus")),
        ),
        ("H3 byStatus", "A9 byStatus"),
    ),
    "throttled by what is provisioned": Declared(
        replace(
            with_table(throughput=(500, 100)),
            metrics=replace(METRICS, throttles=throttled("write", "provisioned")),
            peak_writes=90.0,
        ),
        ("H4",),
        not_found=("H1",),
    ),
    "throttled by the account": Declared(
        with_metrics(throttles=throttled("read", "account")), ("H4",), not_found=("H1",)
    ),
    "warm for a fifth of the peak": Declared(replace(ORDINARY, peak_writes=20_000.0), ("H5",)),
    "warm, as far as is told": Declared(
        replace(with_table(warm=None), peak_writes=20_000.0), not_clear=("H5",), not_found=("H5",)
    ),
    "in the order of the hash": Declared(with_stream(hash_rho=share(0.97, 0.95, 0.98)), ("H6",)),
    "one shard of the stream has nearly all": Declared(
        with_stream(shards={"s0": 3_400, "s1": 190, "s2": 210, "s3": 200}), ("H7",)
    ),
    "keys alone in the stream": Declared(
        with_stream(view="KEYS_ONLY", counter=None), not_clear=("A8", "A11")
    ),
    "batches that nobody looks after": Declared(
        replace(
            ORDINARY,
            code=CodeFacts(3, (CodeLine("unprocessed", "save.py", 9, "batch_write_item("),)),
        ),
        ("A14",),
    ),
    "sort keys of several widths": Declared(with_sample(unpadded=share(0.9, 0.86, 0.93)), ("E1",)),
    "constraints without their primary": Declared(
        with_sample(orphans=share(0.2, 0.16, 0.24)), ("E2",)
    ),
}
