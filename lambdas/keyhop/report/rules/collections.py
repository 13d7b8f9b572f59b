"""Rules on how many item collections there are, and how large they are: A6, A15 and A19."""

import math
from collections.abc import Iterable

from keyhop.report.advice import buckets
from keyhop.report.advice.indexes import (
    instead_of_local,
    largest_bytes,
    local,
    most_bytes,
    read_consistently,
    stays_small,
    with_local,
)
from keyhop.report.advice.links import with_new_key
from keyhop.report.advice.shards import peak_of
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Absent,
    Collection,
    Facts,
    MetricFacts,
    SampleFacts,
    StreamFacts,
)
from keyhop.report.findings import Advice, Evidence, Price, Severity
from keyhop.report.rules.limits import (
    COLLECTION_BYTES,
    DATED,
    DAY,
    GB,
    HALF,
    KB,
    KEY_READS,
    KEY_WRITES,
    NEAR_COLLECTION_BYTES,
    YEAR,
)
from keyhop.report.rules.rule import FLAGS, Said, clear, found, missing, price_of, unknown
from keyhop.report.rules.seen import counted_long_enough, too_young
from keyhop.report.rules.shares import evidence, interval, more, percent
from keyhop.wording import counted

UNITS_OF_TOP = 1100.0
UNITS_OF_LENGTHS = 3000.0

UNSEEN = 0.05
"""Share of items in collections larger than any that was seen, or in the largest."""
TIMES_MEAN = 20.0
"""A collection of so many times the mean of the others is out of line with them."""
FEW_KEYS = 40.0
"""The default quota of a table is 40,000 write units a second, a partition serves 1,000: a table
of fewer keys cannot use the quota, however evenly its keys are written."""
SMALL_SECONDS = 60.0
"""A key whose items one partition writes within a minute is small: it is copied, loaded or divided
before anybody waits."""
UNITS_OF_KEYS = 30.0
"""The read units of 60 keys."""
FEW_ITEMS = 200
"""A table of so few has no collection that matters."""
WORTH_BYTES = GB
"""Less than that in giants is a matter of design, not of a limit."""
YEARS = 3
FEW_INSERTS = 60
"""Of one key in the stream: what grows by fewer is not extrapolated to years."""


def local_indexes(facts: Facts) -> Iterable[Said]:
    """A6. That there is an LSI is seen for nothing; how near the limit is, by the sample."""
    indexes = local(facts)
    if not indexes:
        return [clear("The table has no LSI.")]
    names = ", ".join(one.name for one in indexes)
    lsi = Evidence("control plane", "LSIs", len(indexes), where=names)
    near, low = NEAR_COLLECTION_BYTES, HALF * COLLECTION_BYTES
    largest, most = largest_bytes(facts), most_bytes(facts)
    if largest is not None:
        value, least, high = largest
        sized = Evidence(
            "sample",
            f"bytes of the largest collection seen, LSIs counted (x {with_local(facts):.2f})",
            value,
            least,
            None if math.isinf(high) else high,
            near,
        )
        told = f"The largest collection seen has {_size(value)} with its LSIs; 10 GB is the most"
        if value >= near and least >= low:
            return [found("high", f"{told}.", sized, lsi, advice=instead_of_local(facts))]
        if value >= low:
            return [found("medium", f"{told}.", sized, lsi, advice=instead_of_local(facts))]
    unseen = _in_unseen(facts)
    if unseen is not None and unseen.low >= near:
        told = f"{_size(unseen.value)} with LSIs are in collections larger than any seen"
        what = "bytes in collections larger than any seen, LSIs counted"
        signal = evidence("sample", what, unseen, near)
        told = f"{told}; 10 GB is the most of one."
        return [found("medium", told, signal, lsi, advice=instead_of_local(facts))]
    bound = Evidence("control plane", "bytes of table and LSIs, all together", most, threshold=near)
    wanted = any(read_consistently(facts, one.name) for one in indexes)
    if wanted and stays_small(facts):
        told = f"{names}: consistent reads need it, and no collection comes near 10 GB."
        return [clear(told, bound, lsi)]
    size = "how large the largest collection is was not seen"
    if most is not None and most < low:
        size = f"no collection has more than {_size(most)} yet"
    elif largest is not None:
        size = f"the largest one seen has {_size(largest[0])}"
    told = f"{names}: collections end at 10 GB and are never split; {size}."
    return [found("low", told, bound, lsi, advice=instead_of_local(facts))]


def _in_unseen(facts: Facts) -> Estimate | None:
    """Bytes in collections that nobody has seen, LSIs counted: of one, or of several."""
    sample = facts.sample
    if isinstance(sample, Absent) or sample.unseen is None or not facts.table.bytes:
        return None
    return sample.unseen.scaled(facts.table.bytes * with_local(facts))


def unbounded(facts: Facts) -> Iterable[Said]:
    """A15. By the largest collections that were seen, by what nobody saw, by growth a day."""
    table, sample = facts.table, facts.sample
    if table.sort is None:
        return [clear("Without a sort key each collection has one item.")]
    growth = _growing(facts)
    if isinstance(sample, Absent):
        return [growth or missing(sample, "sample", UNITS_OF_LENGTHS)]
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
    if largest is not None and _stands_out(largest, sample):
        told = f"One collection holds {interval(largest[1])} of all items."
        severity = _severity(facts, largest[1].low)
        return [found(severity, told, *signals, advice=advice)]
    if unseen is not None and unseen.against(UNSEEN) == "above":
        told = f"{interval(unseen)} of the items are in collections larger than any seen."
        severity = _severity(facts, unseen.low)
        return [found(severity, told, *signals, advice=advice)]
    if growth is not None:
        return [growth]
    if sample.all_items and sample.items_read:
        return [clear("All was read: no collection stands out by its size.", *signals)]
    if unseen is not None and unseen.against(UNSEEN) == "below" and _seen_is_small(facts, sample):
        told = f"{percent(unseen.high)} of the items at most are in larger collections than seen."
        return [clear(told, *signals)]
    if sample.all_lengths and largest is not None:
        # Of so few keys each has a large share: only growth tells whether they have a bound.
        told = (
            f"All partition keys are known, and the largest collection holds "
            f"{interval(largest[1])} of all items. Whether it has a bound is open."
        )
        stream = isinstance(facts.stream, StreamFacts)
        price = more(sample, UNITS_OF_LENGTHS) if stream else Price(0.0, FLAGS["stream"])
        return [unknown(told, price, *signals)]
    told = "Whether there are collections far larger than those seen is open."
    return [unknown(told, more(sample, UNITS_OF_LENGTHS), *signals)]


def few_keys(facts: Facts) -> Iterable[Said]:
    """A19. The number of partition keys bounds what a table can take.

    By the load: where n keys share it, at least one of them takes an n-th of it. By the size: at
    least one key has an n-th of the items, and the time in which a partition writes them shows
    whether the table is small.
    """
    sample = facts.sample
    if isinstance(sample, Absent):
        return [missing(sample, "sample", UNITS_OF_KEYS)]
    if (keys := sample.keys) is None:
        return [unknown("Too few keys were seen.", more(sample, UNITS_OF_KEYS))]
    signals = [evidence("sample", "distinct partition keys", keys, FEW_KEYS)]
    number = f"{keys.value:,.0f} partition {'key' if keys.value == 1 else 'keys'}"
    load = _load_of_a_key(facts, keys)
    if load is not None:
        what = "part of what a partition serves that the busiest key takes at least"
        signals.append(Evidence("metrics", what, load, threshold=HALF))
        if load >= HALF:
            told = f"{number}: the busiest takes {percent(load)} or more of what a partition serves"
            return [found("medium", f"{told}.", *signals, advice=_more_keys(facts))]
    if keys.against(FEW_KEYS) == "above":
        return [clear(f"{number}: enough for the quota of a table.", *signals)]
    least, most = _seconds_to_write(facts, sample, keys)
    what = "seconds in which a partition writes the items of the largest key"
    signals.append(Evidence("sample", what, least, least, most, SMALL_SECONDS))
    if keys.against(FEW_KEYS) == "below" and least >= SMALL_SECONDS:
        largest = _largest(facts, sample)
        share = max(largest[1].low if largest else 0.0, 1 / max(1.0, keys.high))
        told = f"{number} for {counted(facts.table.items, 'item')}"
        if largest is not None and keys.value > 1:
            told += f"; the largest holds {interval(largest[1])} of them"
        severity = _severity(facts, share) if load is None else "low"
        return [found(severity, f"{told}.", *signals, advice=_more_keys(facts))]
    if most >= SMALL_SECONDS:
        told = "Whether there are enough partition keys is open."
        return [unknown(told, more(sample, UNITS_OF_KEYS), *signals)]
    if load is not None:
        return [clear(f"{number}: enough for so few items, and for their load.", *signals)]
    told = f"{number}: enough for so few items, but their load is not known."
    if isinstance(facts.metrics, Absent):
        return [unknown(told, price_of(facts.metrics, "metrics"), *signals)]
    return [unknown(told, too_young(), *signals)]


def _load_of_a_key(facts: Facts, keys: Estimate) -> float | None:
    """Return what the busiest key takes at least, as a part of what a partition serves.

    None if neither the metrics of a day nor `--peak-writes` tell the load.
    """
    peaks = facts.metrics.peak if isinstance(facts.metrics, MetricFacts) else {}
    writes = max(peaks.get(("write", TABLE), 0.0), facts.peak_writes or 0.0)
    load = max(writes / KEY_WRITES, peaks.get(("read", TABLE), 0.0) / KEY_READS)
    load /= max(1.0, keys.high)
    is_known = counted_long_enough(facts) and bool(peaks)
    return load if is_known or load >= HALF else None


def _seconds_to_write(facts: Facts, sample: SampleFacts, keys: Estimate) -> tuple[float, float]:
    """Return in how many seconds a partition writes the items of the largest key, low and high."""
    table = facts.table
    items = max(table.items, sample.items_read)
    size = max(0.0, table.bytes / KB)
    least = max(items, size) / max(1.0, keys.high)
    most = items + size
    largest = _largest(facts, sample)
    if largest is not None:
        collection = largest[0]
        least = max(least, collection.items.low)
        if sample.all_lengths and collection.bytes is not None:
            most = min(most, collection.items.high + collection.bytes.high / KB)
    return least / KEY_WRITES, max(least, most) / KEY_WRITES


def _more_keys(facts: Facts) -> Advice:
    steps = (
        "Make the partition key of something that there are many of, as customers, devices or "
        "orders; a status, a flag or a type belongs into the sort key, or into an index.",
        "Where all items must stay under one key, spread it over shards.",
        "One key takes 1,000 write and 3,000 read units a second. DynamoDB may divide its items by "
        "the sort key when it is hot, but not where new items always come at the end, and never in "
        "a table with an LSI.",
    )
    return with_new_key(facts, ("P5", "P17"), *steps)


def _largest(facts: Facts, sample: SampleFacts) -> tuple[Collection, Estimate] | None:
    """The largest collection that is known, and its share of all items."""
    items = max(facts.table.items, sample.items_read)
    known = [*sample.top]
    if not known and sample.seen_largest is not None:
        size = Estimate.exactly(sample.seen_largest, sample.keys_read, "random segments")
        known.append(Collection("", size, None))
    if not known or not items:
        return None
    largest = max(known, key=lambda one: one.items.value)
    share = largest.items.scaled(1 / items)
    least, value, most = (min(1.0, one) for one in (share.low, share.value, share.high))
    return largest, Estimate(value, least, most, share.n, share.method, share.level)


def _stands_out(largest: tuple[Collection, Estimate], sample: SampleFacts) -> bool:
    """Return whether a collection has more than UNSEEN of all items, and TIMES_MEAN times as many
    as the others have on average.

    Its own items do not count for that average: of ten collections, none can have twenty times the
    mean of all ten.
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
    others = max(0.0, items - collection.items.low) / (fewest - 1)
    return collection.items.low >= TIMES_MEAN * others


def _seen_is_small(facts: Facts, sample: SampleFacts) -> bool:
    """Whether the largest collection of the sample itself is no giant."""
    seen = sample.seen_largest
    return seen is not None and bool(facts.table.items) and seen < UNSEEN * facts.table.items


def _severity(facts: Facts, share: float) -> Severity:
    if facts.table.items < FEW_ITEMS:
        return "info"
    return "medium" if share * facts.table.bytes >= WORTH_BYTES else "low"


def _growing(facts: Facts) -> Said | None:
    """Found, if a key's growth leads to more than half of a collection's limit in three years.

    A key that is a date grows until the date is over.
    """
    stream = facts.stream
    if not isinstance(stream, StreamFacts) or not stream.growth or are_dates(facts):
        return None
    inserts = {one.key: one.inserts for one in stream.traffic}
    growing = {
        key: daily for key, daily in stream.growth.items() if inserts.get(key, 0) >= FEW_INSERTS
    }
    if not growing:
        return None
    key, daily = max(growing.items(), key=lambda one: one[1])
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
    told = (
        f"One collection grows by {counted(daily, 'item')} a day: {_size(projected)} in "
        f"{YEARS} years."
    )
    return found(severity, told, signal, advice=_bounded(facts))


def are_dates(facts: Facts) -> bool:
    """Whether each day has a key of its own."""
    sample = facts.sample
    if isinstance(sample, Absent) or sample.dated is None:
        return False
    return sample.dated.value >= DATED


def _bounded(facts: Facts) -> Advice:
    """P10 where time makes it grow, P5 where something else can."""
    unit = buckets.bucket(_daily_bytes(facts), bool(local(facts)), None)
    return with_new_key(
        facts,
        ("P10", "P5"),
        *buckets.steps(unit, peak_of(facts)),
        "Leave it if something bounds the number of items, as the seats of a hall.",
    )


def _daily_bytes(facts: Facts) -> float:
    """Return the bytes a day by which the largest collection grows.

    It is the growth that the stream shows, or the mean since the table was created if that is more.
    """
    seen = 0.0
    if isinstance(facts.stream, StreamFacts):
        daily = max(facts.stream.growth.values(), default=0.0)
        seen = daily * (facts.table.mean_item_bytes or 0.0) * with_local(facts)
    largest = largest_bytes(facts)
    held = largest[0] if largest is not None else most_bytes(facts) or 0.0
    age = max(DAY, facts.at - facts.table.created)
    return max(seen, held * DAY / age)


def _size(byte_count: float) -> str:
    for name, size in (("GB", GB), ("MB", 2**20), ("KB", 1024)):
        if byte_count >= size:
            return f"{byte_count / size:,.1f} {name}"
    return counted(byte_count, "byte")
