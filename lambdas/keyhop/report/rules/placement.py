"""Rules on how load is spread over partitions: H5, H6 and H7."""

from collections.abc import Iterable

from keyhop.report.facts import Absent, Facts
from keyhop.report.findings import Advice, Evidence, Price, Severity
from keyhop.report.rules.rule import Said, clear, found, missing, unknown
from keyhop.report.rules.shares import evidence, interval, share_of
from keyhop.wording import counted

IN_ORDER = 0.5
RECORDS = 385
SEVERAL = 4
"""With fewer stream shards, one that has just rolled over looks idle."""


def cold_table(facts: Facts) -> Iterable[Said]:
    """Apply H5: the table is not warm enough for the expected peak."""
    table, peak = facts.table, facts.peak_writes
    if peak is None:
        return [unknown("No peak is given to hold it against.", Price(0.0, "--peak-writes W"))]
    limits = []
    if table.throughput is not None:
        limits.append(("provisioned", float(table.throughput[1])))
    if table.maximum is not None and table.maximum[1] > 0:
        limits.append(("set as maximum", float(table.maximum[1])))
    if table.warm is not None:
        limits.append(("warm", float(table.warm[1])))
    signals = [
        Evidence("control plane", f"write units a second that are {what}", units, threshold=peak)
        for what, units in limits
    ]
    short = [(what, units) for what, units in limits if units < peak]
    if short:
        what, units = min(short, key=lambda limit: limit[1])
        summary = f"{units:,.0f} write units a second are {what}; {peak:,.0f} are expected."
        return [found("medium", summary, *signals, advice=_PRE_WARM)]
    if table.warm is None:
        why = "The service did not tell the table's warm throughput."
        return [unknown(why, Price(0.0, "the right dynamodb:DescribeTable"), *signals)]
    return [clear(f"It is warm for {table.warm[1]:,.0f} write units a second.", *signals)]


_PRE_WARM = Advice(
    (),
    (
        "Raise the warm throughput of the table, and of each index that is written, some hours "
        "before (UpdateTable, WarmThroughput); it costs once, and is never taken away.",
        "A single key takes 1,000 write units a second all the same.",
    ),
)


def in_hash_order(facts: Facts) -> Iterable[Said]:
    """Apply H6: writes in the order of a Scan heat one partition after the other."""
    stream = facts.stream
    if isinstance(stream, Absent):
        return [missing(stream, "stream")]
    rho = stream.hash_rho
    if rho is None:
        why = "The hash places of the keys that were written are not known."
        return [unknown(why, Price(20.0, "--stream 1h"))]
    what = "rank correlation of time with hash place (Spearman's rho)"
    signal = evidence("stream", what, rho, IN_ORDER, window=stream.seconds)
    side = rho.against(IN_ORDER)
    falling = rho.high <= -IN_ORDER
    if side == "above" or falling:
        summary = f"Keys are written in the order of their hash: {rho.value:.2f}."
        return [found("low", summary, signal, advice=_SHUFFLE)]
    if side == "below" and rho.low > -IN_ORDER:
        return [clear("Keys are written in no order of their hash.", signal)]
    return [unknown("Too few keys were seen.", Price(20.0, "--stream 1h"), signal)]


_SHUFFLE = Advice(
    (),
    (
        "Shuffle what a load writes, or read its source by many segments at a time, strided.",
        "Segments that follow each other are neighbours by hash: their load is one partition's.",
    ),
)


def partition_heat(facts: Facts) -> Iterable[Said]:
    """Apply H7: uneven heat of partitions.

    A stream shard belongs to a partition, but AWS does not promise how closely.
    """
    stream = facts.stream
    if isinstance(stream, Absent):
        return [missing(stream, "stream")]
    counts, records = stream.shards, sum(stream.shards.values())
    if len(counts) < 2 or records < RECORDS:
        why = "Records of fewer than two stream shards were seen, or too few."
        return [unknown(why, Price(0.0, "--stream 1h"))]
    busiest = max(counts, key=lambda shard: counts[shard])
    share = share_of(counts[busiest], records, "records of the stream")
    fair = 1 / len(counts)
    threshold = (1 + fair) / 2 if len(counts) < SEVERAL else 2 * fair
    signals = [
        evidence(
            "stream",
            f"records in the busiest of {counted(len(counts), 'stream shard')}",
            share,
            threshold,
            window=stream.seconds,
            where=busiest,
        )
    ]
    if stream.split_shards:
        signals.append(Evidence("stream", "stream shards that were split", stream.split_shards))
    if share.against(threshold) == "above":
        severity: Severity = "low" if len(counts) >= SEVERAL else "info"
        summary = (
            f"One of {counted(len(counts), 'stream shard')} has {interval(share)} of the records."
        )
        return [found(severity, summary, *signals, advice=_HEAT)]
    if share.against(threshold) == "below":
        return [clear("Writes are spread over the stream's shards.", *signals)]
    why = "Whether one stream shard has more than its share is open."
    return [unknown(why, Price(0.0, "--stream 1h"), *signals)]


_HEAT = Advice(
    ("P17",),
    (
        "Look at the keys that are written most (H1, A8): one of them, or a few that are "
        "neighbours by hash, heat this partition.",
        "A shard that has just rolled over begins empty: look again an hour later.",
    ),
)
