"""What a finding advises: patterns, shards, buckets, indexes, commands, and what they cost.

One partition takes 1,000 write units a second [AWS documentation, "Designing partition keys"]. A
write takes one unit for each KB of its item, in a transaction two. So a hot key needs
ceil(peak / 1,000) shards.

An LSI suits only if consistent reads of it are made and no collection comes near 10 GB in three
years. Otherwise a GSI is better: it limits no collection and lets the service split it.

Costs are dollars a month, with the date of the prices. On demand, the units that CloudWatch has
counted are stretched to a month. Provisioned units cost the same whether they are used or not.
Tables of another class than Standard have other prices, which are missing here, so they get no
costs.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keyhop.dynamodb.units import (
    BLOCK_BYTES,
    COLLECTION_BYTES,
    DOLLARS_PER_GB_MONTH,
    DOLLARS_PER_READ_UNIT_HOUR,
    DOLLARS_PER_WRITE_UNIT_HOUR,
    HOURS_OF_A_MONTH,
    PARTITION_WRITE_UNITS,
    PROVISIONED,
    UNITS_PER_BLOCK,
    Prices,
)
from keyhop.report.facts import (
    TABLE,
    Absent,
    Facts,
    IndexFacts,
    InsightFacts,
    KeyTraffic,
    MetricFacts,
    RequestFacts,
    SampleFacts,
    StreamFacts,
    Tag,
)
from keyhop.report.findings import Advice, Money
from keyhop.report.forms import pattern_of

PATTERNS: Final = {
    "P1": "Type tags in keys",
    "P2": "Unique values by constraint items",
    "P3": "Sparse index",
    "P4": "Time to live, and a filter when reading",
    "P5": "Bounded collections",
    "P6": "Adjacency list",
    "P7": "One table, overloaded index keys",
    "P8": "Versions of an item",
    "P9": "Unique ids that sort by time",
    "P10": "Buckets of time",
    "P11": "Padded numbers",
    "P12": "A key for each question",
    "P13": "Large values elsewhere",
    "P14": "Composite sort key",
    "P15": "Lean indexes",
    "P16": "Status in a bucketed index key",
    "P17": "Write sharding",
    "P18": "Copies of a key that is read much",
    "P19": "Aggregates from the stream",
    "P20": "Sharded counter",
}
"""The key patterns by number; key-patterns.md explains each under the anchor #p1 to #p20."""

HEADROOM = 0.5
"""The part of a shard's capacity that is kept free."""

INSIGHT_WRITES = 3
"""What Contributor Insights counts for a write unit; it counts 1 for a read unit."""
DAY = 86_400
MOST_BYTES = 5_000_000_000
"""The maximum of a bucket in a table with an LSI: half the limit of a collection."""

UNITS: Final[Mapping[str, int]] = {"year": 365 * DAY, "month": 30 * DAY, "day": DAY, "hour": 3600}
"""Seconds of each unit, the longest first. CalendarTable divides by month, day or hour."""
EXAMPLES: Final = {
    "year": "2026",
    "month": "2026-11",
    "day": "2026-11-22",
    "hour": "2026-11-22T09",
}
FAR = 1_000
"""A table this many times smaller than a limit is far from it, whatever its growth."""
YEARS = 3
MONTH_SECONDS = HOURS_OF_A_MONTH * 3600
GB = 1_000_000_000
"""The GB in prices; the GB in limits is 2**30 (rules/rule.py)."""

WORTH_DOLLARS = 1.0
"""The dollars a month above which money counts as wasted."""


def with_new_key(facts: Facts, patterns: tuple[str, ...], *steps: str, command: str = "") -> Advice:
    """Advise a table with another key, to which the data is copied.

    The new table costs as much a month. The copy reads and writes all data once. `command` tries
    the new key, if it is known.
    """
    table, today = facts.table, of_table(facts)
    cost = money(facts, today, today, rewriting(facts, table.bytes, table.items))
    re_key = (
        "The key of a table cannot be changed. A re-key copies the items to a table with the new "
        "key while this one stays in use. To see the changes and the cost, run keyhop rekey plan "
        f"{table.name} --to NEW --template FILE.",
        "To see the effect of a key before that, run keyhop report with --candidate.",
    )
    return Advice(patterns, (*steps, *re_key), command, cost)


def spreading(facts: Facts, shards: int) -> str:
    """Return the commands that try a re-key which divides each partition key into shards.

    They write the template first. The shard follows from the sort key, so the result is "" without
    one. It is also "" if the partition key is not a string, to which a shard can be appended.
    """
    table = facts.table
    key, sort = table.partition, table.sort
    if not sort or table.types.get(key) != "S" or not (key + sort).isidentifier():
        return ""
    new_key = {key: f"{{{key}}}#{{{sort}|shard:{shards}}}", sort: f"{{{sort}}}"}
    rule = {"name": "item", "set": new_key, "keep": {key: f"old_{key}"}}
    template = json.dumps({"items": [rule, {"otherwise": "refuse"}]})
    return (
        f"echo '{template}' > template.json\n"
        f"keyhop rekey plan {table.name} --to {table.name}-sharded --template template.json"
    )


def naming(table: str, attribute: str, tag: Tag) -> str:
    """Return the command that writes the kind into the items of one tag, or "" without a prefix.

    The table must have no sort key, so that each item is a separate collection. The command changes
    no item that has the attribute already. The condition on keys includes the delimiter, and
    excludes keys with another one after it: ORDER alone is also the beginning of ORDERLINE#17, and
    ORDER_ that of ORDER_LINE_17.
    """
    if not tag.prefix:
        return ""
    names, values = json.dumps({"#kind": attribute}), json.dumps({":kind": tag.name.title()})
    return (
        f"keyhop each {table} --update 'SET #kind = if_not_exists(#kind, :kind)' "
        f"--names '{names}' --values '{values}' --where 'matches({pattern_of(tag.prefix)})' "
        "--dry-run"
    )


@dataclass(frozen=True, slots=True)
class Shards:
    """Numbers of shards for a load.

    Attributes:
        peak: The write units a second.
        minimum: The number that is just enough for the peak.
        roomy: The number with HEADROOM kept free.
    """

    peak: float
    minimum: int
    roomy: int


def shards_for(peak: float, transactional: bool = False) -> Shards:
    """Return the numbers of shards for a peak.

    Args:
        peak: The write units a second, as of plain writes.
        transactional: Whether the writes are in transactions, where each costs twice as much.
    """
    units = peak * (2 if transactional else 1)
    return Shards(
        units, _at(units, PARTITION_WRITE_UNITS), _at(units, PARTITION_WRITE_UNITS * (1 - HEADROOM))
    )


def _at(units: float, each: float) -> int:
    return max(1, math.ceil(units / each))


def transactional(facts: Facts) -> bool:
    """Return whether metrics show that most writes are in transactions."""
    if not isinstance(facts.metrics, MetricFacts):
        return False
    calls = facts.metrics.calls
    plain = sum(calls.get(operation, 0.0) for operation in ("PutItem", "UpdateItem", "DeleteItem"))
    return calls.get("TransactWriteItems", 0.0) > plain + calls.get("BatchWriteItem", 0.0)


def hottest(stream: StreamFacts) -> KeyTraffic | None:
    """Return the key with the busiest second."""
    return max(stream.traffic, key=lambda traffic: traffic.peak, default=None)


def peak_of(facts: Facts) -> float | None:
    """Return the write units a second that the hottest key needs; None if not known.

    They are those of its busiest second, plus the attempts that were throttled, if they were
    counted. Contributor Insights does not distinguish writes from reads, so its units count only up
    to the writes of the whole table.
    """
    peaks: list[float] = []
    written = most_written(facts)
    if isinstance(facts.stream, StreamFacts):
        peaks += [traffic.peak for traffic in facts.stream.traffic]
    throttled = 0.0
    if isinstance(facts.insights, InsightFacts):
        keys = facts.insights.accessed.get(TABLE, ())
        peaks += [min(key.units / INSIGHT_WRITES / 60, written) for key in keys]
        # A throttled write took nothing, so it is in no key's units.
        refused = facts.insights.throttled.get(TABLE, ())
        throttled = max((key.units / 60 for key in refused), default=0.0)
    return max(peaks) + throttled if peaks else None


def most_written(facts: Facts) -> float:
    """Return the write units a second of the table in its busiest minute; infinite if not known."""
    metrics = facts.metrics
    if isinstance(metrics, Absent) or metrics.period > 60:
        return math.inf
    return metrics.peak.get(("write", TABLE), math.inf)


def sharding_steps(shards: Shards) -> tuple[str, ...]:
    """Return the steps of spreading a key over shards, in sentences."""
    load = f"{shards.peak:,.0f} write units a second"
    if shards.roomy == 1:
        return (f"No shard is needed for {load}: one key takes {PARTITION_WRITE_UNITS:,}.",)
    minimum = "one key is" if shards.minimum == 1 else f"{shards.minimum} shards are"
    return (
        f"For {load}, {minimum} just enough, at {PARTITION_WRITE_UNITS:,} each; "
        f"{shards.roomy} shards keep half of each free.",
        "Write and read the key with ShardedTable (docs/how-to/sharding.md), which adds shards "
        "when DynamoDB reports that the key is hot.",
    )


def sharding_command(table: str, shards: Shards) -> str:
    """Return the command to run once ShardedTable uses the table, with the key for KEY.

    The result is "" where no shard is needed.
    """
    if shards.roomy == 1:
        return ""
    return f"keyhop shards add {table} KEY --count {shards.roomy - 1} --metadata {table}-shards"


def bucket(daily_bytes: float, has_lsi: bool) -> str:
    """Return the longest unit of time that suits a collection, or the hour if none does.

    It holds at most MOST_BYTES if there is an LSI. `daily_bytes` are the bytes by which the
    collection grows a day, LSIs included.

    Buckets limit the size of a key and what a query reads, but not a rate: all current writes go
    into one bucket, however short it is. Above 1,000 write units a second shards are added.
    """
    for unit, seconds in UNITS.items():
        if not has_lsi or daily_bytes * seconds / DAY <= MOST_BYTES:
            return unit
    return "hour"


def bucket_steps(unit: str, peak: float | None) -> tuple[str, ...]:
    """Return the steps of dividing a collection, in sentences.

    Args:
        unit: The unit of time.
        peak: The write units a second of the collection; None if not known.
    """
    sentences = [
        f"Divide the collection by {unit}, or by a shorter time if queries ask for less: KEY#"
        f"{EXAMPLES[unit]} holds the items of that {unit}."
    ]
    if peak is not None and peak > PARTITION_WRITE_UNITS:
        shards = shards_for(peak)
        sentences.append(
            f"Spread each bucket over {shards.minimum} shards too: even the shortest bucket takes "
            f"no more than {PARTITION_WRITE_UNITS:,} write units a second."
        )
    if unit != "year":
        sentences.append(
            "CalendarTable writes and reads such keys (docs/how-to/sharding-patterns.md)."
        )
    return tuple(sentences)


def local(facts: Facts) -> tuple[IndexFacts, ...]:
    """Return the LSIs."""
    return tuple(index for index in facts.table.indexes if index.kind == "LSI")


def with_local(facts: Facts) -> float:
    """Return the factor by which LSIs enlarge a collection: 1 + their bytes / the table's."""
    local_bytes = sum(index.bytes for index in local(facts))
    return 1 + local_bytes / facts.table.bytes if facts.table.bytes else 1.0


def read_consistently(facts: Facts, index: str) -> bool | None:
    """Return whether consistent reads of an index are made.

    None without a request sampler.
    """
    if not isinstance(facts.requests, RequestFacts):
        return None
    return any(shape.index == index and shape.consistent for shape in facts.requests.shapes)


def most_bytes(facts: Facts, years: float = 0.0) -> float | None:
    """Return the maximum size of a collection, LSIs included, or None if it is not known.

    Args:
        facts: The facts of the report.
        years: The years of growth to add, at the rate that the stream shows; 0 for the size today.
    """
    highest = float(facts.table.bytes) * with_local(facts) if facts.table.bytes else None
    sample = facts.sample
    largest = largest_bytes(facts)
    if isinstance(sample, SampleFacts) and largest is not None and sample.all_items:
        highest = min(largest[2], highest) if highest else largest[2]
    if not years:
        return highest
    if highest is None or not isinstance(facts.stream, StreamFacts):
        return None
    daily = max(facts.stream.growth.values(), default=0.0)
    return highest + daily * 365 * years * (facts.table.mean_item_bytes or 0.0) * with_local(facts)


def largest_bytes(facts: Facts) -> tuple[float, float, float] | None:
    """Return value, low and high of the largest known collection, LSIs included."""
    sample = facts.sample
    if not isinstance(sample, SampleFacts):
        return None
    sizes = [collection.bytes for collection in sample.top if collection.bytes is not None]
    if not sizes:
        return None
    largest = max(sizes, key=lambda size: size.value).scaled(with_local(facts))
    return largest.value, largest.low, largest.high


def stays_small(facts: Facts) -> bool:
    """Return whether no collection reaches the limit of LSIs in three years.

    If the growth is not known, the whole table must be a thousand times smaller.
    """
    if isinstance(facts.stream, StreamFacts):
        highest = most_bytes(facts, YEARS)
        return highest is not None and highest < COLLECTION_BYTES
    highest = most_bytes(facts)
    return highest is not None and highest * FAR < COLLECTION_BYTES


def instead_of_local(facts: Facts) -> Advice:
    """Advise how to replace the LSIs."""
    names = ", ".join(index.name for index in local(facts))
    table = facts.table.name
    steps = (
        f"Make a GSI with the same keys for each of {names}, and read the GSI.",
        "An LSI cannot be deleted. To get a table with the same keys and without LSIs, restore a "
        "backup with LocalSecondaryIndexOverride=[].",
        f"Keep an LSI only if you need consistent reads of it and no collection of {table} "
        f"reaches 10 GB in {YEARS} years.",
    )
    today = of_table(facts)
    return Advice(("P15", "P10"), steps, "", money(facts, today, today, _building(facts)))


def _building(facts: Facts) -> float | None:
    """Return the dollars of filling GSIs once in place of the LSIs."""
    units = sum(
        index.items * max(1.0, -(-(index.bytes / index.items) // 1024))
        for index in local(facts)
        if index.items
    )
    return writing(facts, units, MONTH_SECONDS)


def prices_of(facts: Facts) -> Prices | None:
    """Return the prices of a table, or None if they are not known."""
    if facts.table.table_class not in ("", "STANDARD"):
        return None
    return facts.prices or Prices.of(facts.table.region)


def monthly(units: float, seconds: float) -> float:
    """Return the units of a month, at the rate of `units` in `seconds`."""
    return units * MONTH_SECONDS / seconds if seconds > 0 else 0.0


def reading(facts: Facts, units: float, seconds: float) -> float | None:
    """Return the dollars a month of read units in `seconds`, or None if not known."""
    return _dollars(facts, monthly(units, seconds), 0.0)


def writing(facts: Facts, units: float, seconds: float) -> float | None:
    """Return the dollars a month of write units in `seconds`, or None if not known."""
    return _dollars(facts, 0.0, monthly(units, seconds))


def _dollars(facts: Facts, reads: float, writes: float) -> float | None:
    prices = prices_of(facts)
    if prices is None:
        return None
    if facts.table.on_demand:
        return prices.dollars(reads, writes)
    # Unused units need not be provisioned: a unit a second, during the whole month.
    hours = MONTH_SECONDS / HOURS_OF_A_MONTH
    return (reads * DOLLARS_PER_READ_UNIT_HOUR + writes * DOLLARS_PER_WRITE_UNIT_HOUR) / hours


def storing(facts: Facts, byte_count: float) -> float | None:
    """Return the dollars a month of storing bytes, or None if prices are not known."""
    return None if prices_of(facts) is None else byte_count / GB * DOLLARS_PER_GB_MONTH


def of_index(facts: Facts, name: str) -> float | None:
    """Return the dollars a month of an index.

    They include storage, and the writes that metrics count, or its provisioned units.
    """
    index = facts.table.index(name)
    if index is None:
        return None
    parts = [storing(facts, index.bytes)]
    if index.throughput is not None:
        parts.append(_provisioned(index.throughput))
    elif isinstance(facts.metrics, MetricFacts) and index.kind == "GSI":
        written = facts.metrics.consumed.get(("write", name), 0.0)
        parts.append(writing(facts, written, facts.metrics.seconds))
    return sum_of(*parts)


def of_table(facts: Facts) -> float | None:
    """Return the dollars a month of a table and its indexes, or None without metrics.

    They include storage and units. In provisioned mode the provisioned units count. Indexes on
    demand are charged as the table is.
    """
    table, metrics = facts.table, facts.metrics
    storage = storing(facts, table.bytes + sum(index.bytes for index in table.indexes))
    if table.throughput is not None:
        indexes = [index.throughput for index in table.indexes if index.throughput]
        return sum_of(storage, *map(_provisioned, [table.throughput, *indexes]))
    if not isinstance(metrics, MetricFacts):
        return None
    read = sum(units for (kind, _), units in metrics.consumed.items() if kind == "read")
    written = sum(units for (kind, _), units in metrics.consumed.items() if kind == "write")
    return sum_of(
        storage, reading(facts, read, metrics.seconds), writing(facts, written, metrics.seconds)
    )


def _provisioned(throughput: tuple[int, int]) -> float:
    """Return the dollars a month of provisioned read and write units a second."""
    reads, writes = throughput
    hourly = reads * DOLLARS_PER_READ_UNIT_HOUR + writes * DOLLARS_PER_WRITE_UNIT_HOUR
    return hourly * HOURS_OF_A_MONTH


def sum_of(*parts: float | None) -> float | None:
    """Return the sum, or None if a part is not known."""
    amounts = [part for part in parts if part is not None]
    return sum(amounts) if len(amounts) == len(parts) else None


def wasted(facts: Facts, saved: float | None) -> bool:
    """Return whether a saving in dollars a month is worth a sentence."""
    return saved is not None and saved >= WORTH_DOLLARS


def money(
    facts: Facts, today: float | None, advised: float | None, one_off: float | None = 0.0
) -> Money | None:
    """Return costs for the report, or None if none is known."""
    prices = prices_of(facts)
    if prices is None or (today is None and advised is None and not one_off):
        return None
    whose = f"on demand, {prices.whose}" if facts.table.on_demand else PROVISIONED
    return Money(_cents(today), _cents(advised), _cents(one_off), whose)


def _cents(dollars: float | None) -> float | None:
    """Round to four digits, so that no cost of a small table reads as free."""
    return None if dollars is None else float(f"{dollars:.4g}")


def rewriting(facts: Facts, byte_count: float, items: float) -> float | None:
    """Return the dollars of reading a table once by Scan and writing each item.

    A write takes one write unit per KB.
    """
    if not items:
        return None
    each = max(1.0, -(-(byte_count / items) // 1024))
    return _dollars(facts, byte_count / BLOCK_BYTES * UNITS_PER_BLOCK, items * each)
