"""Rules on item collections and items: A6, A13, A15, A16 and A19."""

import math

from keyhop.dynamodb.units import COLLECTION_BYTES
from keyhop.dynamodb.values import MOST_ITEM_BYTES
from keyhop.report.advice import (
    bucket,
    bucket_steps,
    instead_of_local,
    largest_bytes,
    local,
    money,
    most_bytes,
    peak_of,
    read_consistently,
    spreading,
    stays_small,
    storing,
    with_local,
    with_new_key,
)
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    EXPIRED_DAYS,
    LONG_DAYS,
    LONG_ITEMS,
    TABLE,
    Absent,
    Collection,
    Facts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
)
from keyhop.report.findings import Advice, Evidence, Finding, Price, Severity
from keyhop.report.rules.rule import (
    DATED,
    DAY,
    FLAGS,
    GB,
    HALF,
    KB,
    KEY_READS,
    KEY_WRITES,
    LARGE_ITEM_BYTES,
    NEAR_COLLECTION_BYTES,
    NEAR_ITEM_BYTES,
    UNITS_OF_KEYS,
    YEAR,
    clear,
    counted_long_enough,
    evidence,
    found,
    interval,
    missing,
    more,
    needed,
    percent,
    price_of,
    rule,
    too_young,
    unknown,
)
from keyhop.wording import counted

UNITS_OF_LENGTHS = 3000.0

UNSEEN = 0.05
"""The share of items in the largest collection, in collections larger than any sampled, or in those
that grow (SampleFacts.growing)."""
TIMES_MEAN = 20.0
"""A collection this many times as large as the mean of the others stands out."""
FEW_KEYS = 40.0
"""The default quota of a table is 40,000 write units a second, a partition serves 1,000: a table
of fewer keys cannot use the quota, however evenly its keys are written."""
VERY_FEW_KEYS = 10.0
"""A new on-demand table has four partitions (4,000 write units a second). Of fewer keys than this,
one of them usually gets twice its share, so that the table cannot use even these."""
MANY_ITEMS = 1_000
"""Fewer items may be settings or a list that people maintain. An application writes more."""
QUIET_LOAD = 0.01
"""A key with a smaller part of what a partition serves could take a hundred times its load."""
SMALL_SECONDS = 60.0
"""A key whose items one partition writes within a minute is small, as is the wait for a copy."""
FEW_ITEMS = 200
"""A table with fewer items has no collection that matters."""
WORTH_BYTES = GB
"""Large collections with fewer bytes are a question of design, not of a limit."""
MOST_BOUNDED = 10_000
"""What people number, as seats or articles of a shop, are rarely more."""
YEARS = 3
FEW_INSERTS = 60
"""A key with fewer inserts in the stream is not extrapolated to years."""
UNITS_OF_ITEMS = 300.0
UNITS_OF_TTL = 150.0
P99 = 0.99
BROAD_ITEM_BYTES = 32 * KB
"""If the mean item is as large, a partition takes thirty writes a second, and a page of a Query
has about thirty items."""
ANY_LARGE = 0.0125
"""The share of large items that 300 items without one exclude."""
TTL_SHARE = 0.02


@rule("A6", "local secondary index")
def local_indexes(facts: Facts) -> Finding:
    """Apply A6: a local secondary index.

    The schema shows the LSI without a read. The sample shows how near the limit is.
    """
    indexes = local(facts)
    if not indexes:
        return clear("The table has no LSI.")
    names = ", ".join(index.name for index in indexes)
    lsi = Evidence("control plane", "LSIs", len(indexes), where=names)
    near, half_limit = NEAR_COLLECTION_BYTES, HALF * COLLECTION_BYTES
    largest, highest = largest_bytes(facts), most_bytes(facts)
    if largest is not None:
        value, low, high = largest
        sized = Evidence(
            "sample",
            f"bytes of the largest collection seen, LSIs included (x {with_local(facts):.2f})",
            value,
            low,
            None if math.isinf(high) else high,
            near,
        )
        summary = f"The largest collection seen has {_size(value)} with LSIs; the limit is 10 GB"
        if value >= near and low >= half_limit:
            return found("high", f"{summary}.", sized, lsi, advice=instead_of_local(facts))
        if value >= half_limit:
            return found("medium", f"{summary}.", sized, lsi, advice=instead_of_local(facts))
    unseen = _in_unseen(facts)
    if unseen is not None and unseen.low >= near:
        what = "bytes in collections larger than any seen, LSIs included"
        signal = evidence("sample", what, unseen, near)
        summary = (
            f"Collections larger than any in the sample hold {_size(unseen.value)} with their "
            "LSIs; the limit of one collection is 10 GB."
        )
        return found("medium", summary, signal, lsi, advice=instead_of_local(facts))
    bound = Evidence(
        "control plane", "bytes of table and LSIs, all together", highest, threshold=near
    )
    is_needed = any(read_consistently(facts, index.name) for index in indexes)
    if is_needed and stays_small(facts):
        summary = f"Consistent reads need {names}, and no collection comes near 10 GB."
        return clear(summary, bound, lsi)
    size = "the size of the largest collection is not known"
    if highest is not None and highest < half_limit:
        size = f"no collection has more than {_size(highest)} yet"
    elif largest is not None:
        size = f"the largest one seen has {_size(largest[0])}"
    summary = f"With {names}, a collection is limited to 10 GB and is never split; {size}."
    return found("low", summary, bound, lsi, advice=instead_of_local(facts))


def _in_unseen(facts: Facts) -> Estimate | None:
    """Return the bytes in collections that the sample did not meet, LSIs included."""
    sample = facts.sample
    if isinstance(sample, Absent) or sample.unseen is None or not facts.table.bytes:
        return None
    return sample.unseen.scaled(facts.table.bytes * with_local(facts))


@rule("A15", "collections without a bound")
def unbounded(facts: Facts) -> Finding:
    """Apply A15: a collection without a bound.

    It follows from the largest collections of the sample, from the share of items in larger ones,
    or from growth a day.
    """
    table, sample = facts.table, facts.sample
    if table.sort is None:
        return clear("Without a sort key each collection has one item.")
    growth = _growing(facts)
    if isinstance(sample, Absent):
        return growth or missing(sample, "sample", UNITS_OF_LENGTHS)
    largest = _largest(facts, sample)
    unseen = sample.unseen
    signals: list[Evidence] = []
    if largest is not None:
        signals.append(
            evidence(
                "sample",
                f"share of all items in the largest collection seen ({largest[0].by})",
                largest[1],
                UNSEEN,
                where=largest[0].key,
            )
        )
    if unseen is not None:
        what = "share of items in collections larger than any that was sampled"
        signals.append(evidence("sample", what, unseen, UNSEEN))
    advice = _bounded(facts)
    if largest is not None and _stands_out(largest, sample) and _may_grow(largest[0], sample):
        summary = f"One collection holds {interval(largest[1])} of all items."
        severity = _severity(facts, largest[1].low)
        return found(severity, summary, *signals, advice=advice)
    if unseen is not None and unseen.against(UNSEEN) == "above":
        summary = (
            f"{interval(unseen)} of the items are in collections larger than any in the sample."
        )
        severity = _severity(facts, unseen.low)
        return found(severity, summary, *signals, advice=advice)
    if growth is not None:
        return growth
    is_large = largest is not None and largest[1].against(UNSEEN) == "above"
    if sample.growing is not None:
        what = (
            f"share of items in collections of {LONG_ITEMS} items or more that have grown for "
            f"{LONG_DAYS} days"
        )
        signals.append(evidence("sample", what, sample.growing, UNSEEN))
        has_end = table.ttl is not None or are_dates(facts)
        if is_large and not has_end and sample.growing.against(UNSEEN) == "above":
            summary = (
                f"{interval(sample.growing)} of the items are in collections to which items have "
                f"been added for {LONG_DAYS} days or more, as the times in their sort keys show."
            )
            severity = _severity(facts, largest[1].low if largest is not None else 0.0)
            return found(severity, summary, *signals, advice=advice)
    if sample.all_items and sample.items_read and not is_large:
        summary = "The whole table was read: no collection is far larger than the others."
        return clear(summary, *signals)
    if unseen is not None and unseen.against(UNSEEN) == "below" and _seen_is_small(facts, sample):
        summary = (
            f"At most {percent(unseen.high)} of the items are in collections larger than those "
            "in the sample."
        )
        return clear(summary, *signals)
    if sample.all_lengths and largest is not None:
        # With few keys each has a large share: only growth shows whether they have a bound.
        summary = (
            f"All partition keys were found, and the largest collection holds "
            f"{interval(largest[1])} of all items. It is not known whether it stays bounded."
        )
        stream = isinstance(facts.stream, StreamFacts)
        price = more(sample, UNITS_OF_LENGTHS) if stream else Price(0.0, FLAGS["stream"])
        return unknown(summary, price, *signals)
    summary = "It is not known whether there are collections far larger than those in the sample."
    return unknown(summary, more(sample, UNITS_OF_LENGTHS), *signals)


@rule("A19", "too few partition keys")
def few_keys(facts: Facts) -> Finding:
    """Apply A19: the number of partition keys limits the load of a table.

    Where n keys share the load, at least one of them takes an n-th of it. At least one key also has
    an n-th of the items, and the time in which a partition writes them shows whether the table is
    small.
    """
    sample = facts.sample
    sample = needed(sample, "sample", UNITS_OF_KEYS)
    if (keys := sample.keys) is None:
        return unknown("The sample has too few keys.", more(sample, UNITS_OF_KEYS))
    signals = [evidence("sample", "distinct partition keys", keys, FEW_KEYS)]
    number = f"{keys.value:,.0f} partition {'key' if keys.value == 1 else 'keys'}"
    load = _load_of_a_key(facts, keys)
    if load is not None:
        what = "least share of a partition's units that the busiest key takes"
        signals.append(Evidence("metrics", what, load, threshold=HALF))
        if load >= HALF:
            summary = (
                f"{number}: the busiest one takes {percent(load)} or more of the units that a "
                "partition serves"
            )
            return found("medium", f"{summary}.", *signals, advice=_more_keys(facts, keys))
    if keys.against(FEW_KEYS) == "above":
        return clear(f"{number}: this is enough for the quota of a table.", *signals)
    low, high = _seconds_to_write(facts, sample, keys)
    what = "seconds in which a partition writes the items of the largest key"
    signals.append(Evidence("sample", what, low, low, high, SMALL_SECONDS))
    if keys.against(FEW_KEYS) == "below" and low >= SMALL_SECONDS:
        largest = _largest(facts, sample)
        share = max(largest[1].low if largest else 0.0, 1 / max(1.0, keys.high))
        summary = f"{number} for {counted(facts.table.items, 'item')}"
        if largest is not None and keys.value > 1:
            summary += f"; the largest holds {interval(largest[1])} of them"
        severity = _severity(facts, share) if load is None else "low"
        return found(severity, f"{summary}.", *signals, advice=_more_keys(facts, keys))
    items = max(facts.table.items, sample.items_read)
    is_busy = load is None or load >= QUIET_LOAD
    if keys.against(VERY_FEW_KEYS) == "below" and items >= MANY_ITEMS and is_busy:
        summary = (
            f"{number} for {counted(items, 'item')}: the table can take at most "
            f"{keys.high * KEY_WRITES:,.0f} write units a second."
        )
        return found("low", summary, *signals, advice=_more_keys(facts, keys))
    if high >= SMALL_SECONDS:
        summary = "It is not known whether there are enough partition keys."
        return unknown(summary, more(sample, UNITS_OF_KEYS), *signals)
    if load is not None:
        return clear(f"{number}: this is enough for so few items and for their load.", *signals)
    summary = f"{number}: this is enough for so few items, but their load is not known."
    if isinstance(facts.metrics, Absent):
        return unknown(summary, price_of(facts.metrics, "metrics"), *signals)
    return unknown(summary, too_young(), *signals)


def _load_of_a_key(facts: Facts, keys: Estimate) -> float | None:
    """Return the least load of the busiest key, as a part of what a partition serves.

    None if neither the metrics of a day nor `--peak-writes` give the load. A peak that is to come
    says nothing about many keys, as there may be more of them by then.
    """
    peaks = facts.metrics.peak if isinstance(facts.metrics, MetricFacts) else {}
    expected = facts.peak_writes if keys.against(FEW_KEYS) == "below" else None
    writes = max(peaks.get(("write", TABLE), 0.0), expected or 0.0)
    load = max(writes / KEY_WRITES, peaks.get(("read", TABLE), 0.0) / KEY_READS)
    load /= max(1.0, keys.high)
    is_known = counted_long_enough(facts) and bool(peaks)
    return load if is_known or load >= HALF else None


def _seconds_to_write(facts: Facts, sample: SampleFacts, keys: Estimate) -> tuple[float, float]:
    """Return the seconds in which a partition writes the items of the largest key, low and high."""
    table = facts.table
    items = max(table.items, sample.items_read)
    size = max(0.0, table.bytes / KB)
    low = max(items, size) / max(1.0, keys.high)
    high = items + size
    largest = _largest(facts, sample)
    if largest is not None:
        collection = largest[0]
        low = max(low, collection.items.low)
        if sample.all_lengths and collection.bytes is not None:
            high = min(high, collection.items.high + collection.bytes.high / KB)
    return low / KEY_WRITES, max(low, high) / KEY_WRITES


def _more_keys(facts: Facts, keys: Estimate) -> Advice:
    steps = (
        "Choose a partition key that has many values, such as the customer, the device or the "
        "order. A status, a flag or a type belongs in the sort key or in an index.",
        "If all items must stay under one key, spread that key over shards.",
        "One key serves 1,000 write units and 3,000 read units a second. When a key is hot, "
        "DynamoDB may split its items by the sort key, but not if new items always come at the "
        "end, and never in a table with an LSI.",
    )
    shards = math.ceil(FEW_KEYS / max(1.0, keys.value))
    command = spreading(facts, shards) if shards > 1 else ""
    return with_new_key(facts, ("P5", "P17"), *steps, command=command)


def _largest(facts: Facts, sample: SampleFacts) -> tuple[Collection, Estimate] | None:
    """Return the largest known collection, and its share of all items."""
    items = max(facts.table.items, sample.items_read)
    collections = [*sample.top]
    if not collections and sample.seen_largest is not None:
        size = Estimate.exactly(sample.seen_largest, sample.keys_read, "random segments")
        collections.append(Collection("", size, None))
    if not collections or not items:
        return None
    largest = max(collections, key=lambda collection: collection.items.value)
    share = largest.items.scaled(1 / items)
    low, value, high = (min(1.0, bound) for bound in (share.low, share.value, share.high))
    return largest, Estimate(value, low, high, share.n, share.method, share.level)


def _stands_out(largest: tuple[Collection, Estimate], sample: SampleFacts) -> bool:
    """Return whether a collection is far larger than the others.

    It has more than UNSEEN of all items, and TIMES_MEAN times as many as the others on average. Its
    items do not count for that average: of ten collections, none can have twenty times the mean of
    all ten.
    """
    collection, share = largest
    if share.against(UNSEEN) != "above":
        return False
    items = collection.items.value / share.value
    if sample.mean_items is not None:
        fewest = items / sample.mean_items.high
    elif sample.keys is not None:
        fewest = sample.keys.low
    else:
        return False
    if fewest <= 1:
        return False
    mean_of_others = max(0.0, items - collection.items.low) / (fewest - 1)
    return collection.items.low >= TIMES_MEAN * mean_of_others


def _may_grow(largest: Collection, sample: SampleFacts) -> bool:
    """Return whether a collection may grow without end.

    A small one without times in its sort keys, as the seats of a hall, rarely does.
    """
    may = sample.growing is None or sample.growing.against(UNSEEN) != "below"
    return may or largest.items.low >= MOST_BOUNDED


def _seen_is_small(facts: Facts, sample: SampleFacts) -> bool:
    """Return whether the largest collection of the sample is not large."""
    largest = sample.seen_largest
    return largest is not None and bool(facts.table.items) and largest < UNSEEN * facts.table.items


def _severity(facts: Facts, share: float) -> Severity:
    if facts.table.items < FEW_ITEMS:
        return "info"
    return "medium" if share * facts.table.bytes >= WORTH_BYTES else "low"


def _growing(facts: Facts) -> Finding | None:
    """Report a key that will exceed half of a collection's limit in three years.

    A key that is a date grows until the date is over, and one whose items expire until the first
    of them do.
    """
    stream = facts.stream
    has_end = facts.table.ttl is not None or are_dates(facts)
    if not isinstance(stream, StreamFacts) or not stream.growth or has_end:
        return None
    inserts = {traffic.key: traffic.inserts for traffic in stream.traffic}
    growing = {
        key: daily for key, daily in stream.growth.items() if inserts.get(key, 0) >= FEW_INSERTS
    }
    if not growing:
        return None
    key, daily = max(growing.items(), key=lambda pair: pair[1])
    bytes_each = (facts.table.mean_item_bytes or 0.0) * with_local(facts)
    projected = daily * bytes_each * YEARS * YEAR / DAY
    if projected < HALF * COLLECTION_BYTES:
        return None
    signal = Evidence(
        "stream",
        f"bytes in {YEARS} years, at {counted(daily, 'item')} a day more",
        projected,
        threshold=HALF * COLLECTION_BYTES,
        window=stream.seconds,
        n=stream.records,
        where=key,
    )
    severity: Severity = "medium" if local(facts) else "low"
    summary = (
        f"One collection grows by {counted(daily, 'item')} a day. At this rate it grows by "
        f"{_size(projected)} in {YEARS} years."
    )
    return found(severity, summary, signal, advice=_bounded(facts))


def are_dates(facts: Facts) -> bool:
    """Return whether each partition key is a date."""
    sample = facts.sample
    if isinstance(sample, Absent) or sample.dated is None:
        return False
    return sample.dated.value >= DATED


def _bounded(facts: Facts) -> Advice:
    """Advise P10 where time makes a collection grow, and P5 otherwise."""
    unit = bucket(_daily_bytes(facts), bool(local(facts)))
    return with_new_key(
        facts,
        ("P10", "P5"),
        *bucket_steps(unit, peak_of(facts)),
        "Keep the key if something limits the number of items, such as the seats of a hall.",
    )


def _daily_bytes(facts: Facts) -> float:
    """Return the bytes a day by which the largest collection grows.

    It is the growth that the stream shows, or the mean since the table was created if that is more.
    """
    growth = 0.0
    if isinstance(facts.stream, StreamFacts):
        daily = max(facts.stream.growth.values(), default=0.0)
        growth = daily * (facts.table.mean_item_bytes or 0.0) * with_local(facts)
    largest = largest_bytes(facts)
    size = largest[0] if largest is not None else most_bytes(facts) or 0.0
    age = max(DAY, facts.at - facts.table.created)
    return max(growth, size * DAY / age)


def _size(byte_count: float) -> str:
    for name, size in (("GB", GB), ("MB", 2**20), ("KB", 1024)):
        if byte_count >= size:
            return f"{byte_count / size:,.1f} {name}"
    return counted(byte_count, "byte")


@rule("A13", "large items")
def large_items(facts: Facts) -> Finding:
    """Apply A13: large items.

    One large item in the sample is enough, or the mean of all items. Only shares show that there is
    none.
    """
    sample, mean = facts.sample, facts.table.mean_item_bytes or 0.0
    sampled = None if isinstance(sample, Absent) else sample.item_mean
    is_broad = mean >= BROAD_ITEM_BYTES and (sampled is None or sampled.high >= BROAD_ITEM_BYTES)
    signals: list[Evidence] = []
    if is_broad:
        what = "mean bytes of an item"
        signals.append(Evidence("control plane", what, mean, threshold=BROAD_ITEM_BYTES))
    if isinstance(sample, Absent) and is_broad:
        return _broad_items(mean, signals)
    sample = needed(sample, "sample", UNITS_OF_ITEMS)
    largest, large, p99 = sample.largest_item, sample.large, sample.item_bytes.get(P99)
    if largest is not None:
        signals.append(
            Evidence(
                "sample",
                "bytes of the largest item seen",
                largest,
                threshold=NEAR_ITEM_BYTES,
                n=sample.items_read,
            )
        )
    if large is not None:
        signals.append(evidence("sample", "share of items of 350 KB or more", large, 0.0))
    if p99 is not None:
        what = "bytes that 99 % of the items do not exceed"
        signals.append(evidence("sample", what, p99, LARGE_ITEM_BYTES))
    if largest is not None and largest >= NEAR_ITEM_BYTES:
        summary = f"An item has {largest / KB:,.0f} KB; the limit is {MOST_ITEM_BYTES // KB} KB."
        return found("high", summary, *signals, advice=_ELSEWHERE)
    if p99 is not None and p99.against(LARGE_ITEM_BYTES) == "above":
        near = p99.low >= HALF * MOST_ITEM_BYTES
        summary = f"One item in a hundred has {p99.value / KB:,.0f} KB or more."
        return found("medium" if near else "low", summary, *signals, advice=_ELSEWHERE)
    if is_broad:
        return _broad_items(mean, signals)
    if sample.all_items and largest is not None and largest < LARGE_ITEM_BYTES:
        summary = f"The whole table was read: no item is larger than {_size(largest)}."
        return clear(summary, *signals)
    if p99 is None or large is None:
        return unknown("The sample has too few items.", more(sample, UNITS_OF_ITEMS), *signals)
    if p99.against(LARGE_ITEM_BYTES) == "below" and large.against(ANY_LARGE) == "below":
        summary = (
            f"99 % of the items have less than {p99.high / KB:,.1f} KB; fewer than "
            f"{percent(large.high)} have 350 KB or more."
        )
        return clear(summary, *signals)
    summary = "The size of the largest items is not known."
    return unknown(summary, more(sample, UNITS_OF_ITEMS), *signals)


def _broad_items(mean: float, signals: list[Evidence]) -> Finding:
    near = mean >= HALF * MOST_ITEM_BYTES
    summary = (
        f"Items have {mean / KB:,.0f} KB on average, and a write takes a write unit for each KB."
    )
    return found("medium" if near else "low", summary, *signals, advice=_ELSEWHERE)


_ELSEWHERE = Advice(
    ("P13",),
    (
        "Store the large value in S3 and its address in the item; write the object first.",
        "Or divide the item: keep the attributes that are read often in a small item, and move the "
        "others to a second one. Each write pays for the whole item, even if little of it changes.",
    ),
)


@rule("A16", "time to live does not do its work")
def time_to_live(facts: Facts) -> Finding:
    """Apply A16: time to live that does not work.

    Some days between expiry and deletion are normal. More days, a text or milliseconds are not. The
    report cannot see whether readers rely on time to live.
    """
    table, sample = facts.table, facts.sample
    if (untold := table.untold.get("ttl")) is not None:
        return missing(untold, "control plane")
    off = clear("Time to live is off.")
    if table.ttl is None and isinstance(sample, Absent):
        return off
    sample = needed(sample, "sample", UNITS_OF_TTL)
    if sample.ttl is None:
        summary = f"The sample has too few items with {table.ttl}."
        return off if table.ttl is None else unknown(summary, more(sample, UNITS_OF_TTL))
    ttl = sample.ttl
    values = f"values of {table.ttl}" if table.ttl else "times of expiry"
    kinds: tuple[tuple[str, Estimate, str], ...] = (
        ("are not numbers, so the items never expire", ttl.wrong_type, _RIGHT_TYPE),
        ("are milliseconds, so the items expire in 50,000 years", ttl.milliseconds, _SECONDS),
        (f"passed over {EXPIRED_DAYS} days ago, but the items still exist", ttl.expired, _LATE),
    )
    signals = [
        evidence("sample", f"{values} that {what}", share, TTL_SHARE) for what, share, _ in kinds
    ]
    wrong = [kind for kind in kinds if kind[1].against(TTL_SHARE) == "above"]
    if wrong:
        summary = "; ".join(f"{interval(share)} {what}" for what, share, _ in wrong)
        steps = (*(step for _, _, step in wrong), _FILTER)
        storage = storing(facts, table.bytes * min(1.0, sum(share.value for _, share, _ in wrong)))
        advice = Advice(("P4",), steps, "", money(facts, storage, 0.0))
        summary = f"Of the {values}, {summary}"
        summary += "." if table.ttl else ": time to live is off."
        return found("low", summary, *signals, advice=advice)
    if table.ttl is None:
        return off
    if all(share.against(TTL_SHARE) == "below" for _, share, _ in kinds):
        summary = f"{table.ttl} is a number of seconds, and expired items are deleted."
        return clear(summary, *signals)
    summary = f"It is not known whether time to live works with {table.ttl}."
    return unknown(summary, more(sample, UNITS_OF_TTL), *signals)


_RIGHT_TYPE = "Write the time as a number (N): time to live ignores a text."
_SECONDS = "Write seconds since 1970, not milliseconds."
_LATE = (
    "Check whether time to live was always on, and whether these times are over five years old: "
    "DynamoDB does not delete such items. Delete the remaining items with a job."
)
_FILTER = "Filter by the time when you read: DynamoDB returns an expired item until it is deleted."
