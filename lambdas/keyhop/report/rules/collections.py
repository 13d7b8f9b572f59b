"""Rules on how large item collections are: A6 and A15."""

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
from keyhop.report.facts import Absent, Collection, Facts, SampleFacts, StreamFacts
from keyhop.report.findings import Advice, Evidence, Severity
from keyhop.report.rules.limits import (
    COLLECTION_BYTES,
    DATED,
    DAY,
    GB,
    HALF,
    NEAR_COLLECTION_BYTES,
    YEAR,
)
from keyhop.report.rules.rule import Said, clear, found, missing, unknown
from keyhop.report.rules.shares import evidence, interval, more, percent

UNITS_OF_TOP = 1100.0
UNITS_OF_LENGTHS = 3000.0

UNSEEN = 0.05
"""Share of items in collections larger than any that was seen, or in the largest."""
TIMES_MEAN = 20.0
"""A collection of so many times the mean is out of line with the others."""
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
    if unseen is not None and not sample.exhaustive and unseen.against(UNSEEN) == "above":
        told = f"{interval(unseen)} of the items are in collections larger than any seen."
        severity = _severity(facts, unseen.low)
        return [found(severity, told, *signals, advice=advice)]
    if growth is not None:
        return [growth]
    if sample.exhaustive and sample.items_read:
        return [clear("All was read: no collection stands out by its size.", *signals)]
    if unseen is not None and unseen.against(UNSEEN) == "below" and _seen_is_small(facts, sample):
        told = f"{percent(unseen.high)} of the items at most are in larger collections than seen."
        return [clear(told, *signals)]
    told = "Whether there are collections far larger than those seen is open."
    return [unknown(told, more(sample, UNITS_OF_LENGTHS), *signals)]


def _largest(facts: Facts, sample: SampleFacts) -> tuple[Collection, Estimate] | None:
    """The largest collection that is known, and its share of all items."""
    items = max(facts.table.items, sample.items_read)
    known = [*sample.top]
    if sample.seen_largest is not None:
        size = Estimate.exactly(sample.seen_largest, sample.keys_read, "random segments")
        known.append(Collection("", size, None))
    if not known or not items:
        return None
    largest = max(known, key=lambda one: one.items.value)
    share = largest.items.scaled(1 / items)
    least, value, most = (min(1.0, one) for one in (share.low, share.value, share.high))
    return largest, Estimate(value, least, most, share.n, share.method, share.level)


def _stands_out(largest: tuple[Collection, Estimate], sample: SampleFacts) -> bool:
    """Whether it is larger than UNSEEN of all items, and out of line with the other collections."""
    collection, share = largest
    if share.against(UNSEEN) != "above":
        return False
    mean = sample.mean_items.high if sample.mean_items is not None else None
    if mean is None and sample.keys is not None and share.value:
        mean = collection.items.value / share.value / max(1.0, sample.keys.low)
    return mean is not None and collection.items.low >= TIMES_MEAN * mean


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
        f"bytes in {YEARS} years, at {daily:,.0f} items a day more",
        projected,
        threshold=HALF * COLLECTION_BYTES,
        window=stream.seconds,
        n=stream.records,
        where=key,
    )
    severity: Severity = "medium" if local(facts) else "low"
    told = f"One collection grows by {daily:,.0f} items a day: {_size(projected)} in {YEARS} years."
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
    """By which the largest collection grows, at most: as the stream shows, or since the table is
    there.
    """
    seen = 0.0
    if isinstance(facts.stream, StreamFacts):
        daily = max(facts.stream.growth.values(), default=0.0)
        seen = daily * (facts.table.mean_item_bytes or 0.0) * with_local(facts)
    largest = largest_bytes(facts)
    held = largest[2] if largest is not None else most_bytes(facts) or 0.0
    age = max(DAY, facts.at - facts.table.created)
    return max(seen, held * DAY / age)


def _size(byte_count: float) -> str:
    for name, size in (("GB", GB), ("MB", 2**20), ("KB", 1024)):
        if byte_count >= size:
            return f"{byte_count / size:,.1f} {name}"
    return f"{byte_count:,.0f} bytes"
