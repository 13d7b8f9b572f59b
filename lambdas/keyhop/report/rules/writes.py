"""Rules on where writes go, from the stream and Contributor Insights: A8 and H2."""

from collections.abc import Iterable

from keyhop.report.advice.shards import command, peak_of, shards_for, steps, transactional
from keyhop.report.facts import TABLE, Absent, Facts, KeyTraffic, StreamFacts
from keyhop.report.findings import Advice, Evidence, Price, Severity
from keyhop.report.rules.heat import hot_evidence
from keyhop.report.rules.limits import HALF, HALF_PARTITION, KEY_WRITES
from keyhop.report.rules.rule import FLAGS, Said, clear, found, missing, unknown
from keyhop.report.rules.shares import evidence, interval, share_of

COUNTER_SHARE = 0.20
RECORDS = 385
NEWEST = 0.90
NEWEST_INSERTS = 60


def one_counter(facts: Facts) -> Iterable[Said]:
    """Apply A8: one counter item.

    A status that changes is not a counter. The stream shows the difference, Contributor Insights
    does not.
    """
    stream, insights = facts.stream, facts.insights
    counter = stream.counter if isinstance(stream, StreamFacts) else None
    signals: list[Evidence] = []
    if counter is not None and isinstance(stream, StreamFacts):
        what = f'records of one item of which one number changed ("{stream.counter_attribute}")'
        signals.append(evidence("stream", what, counter, COUNTER_SHARE, window=stream.seconds))
        if counter.against(COUNTER_SHARE) == "above":
            summary = f"{interval(counter)} of all writes change one number of one item."
            peak = peak_of(facts)
            near = peak is not None and peak >= HALF * KEY_WRITES
            severity: Severity = "medium" if near else "low"
            return [found(severity, summary, *signals, advice=_counter(facts))]
        if counter.against(COUNTER_SHARE) == "below":
            return [clear(f"{interval(counter)} of the writes are one counter's.", *signals)]
    if not isinstance(insights, Absent):
        hot = [item for item in insights.items.get(TABLE, ()) if item.units > HALF_PARTITION]
        if hot:
            busiest = max(hot, key=lambda item: item.units)
            summary = "One item is nearly too hot: a counter, or a status; the stream would tell."
            signal = hot_evidence(insights, busiest)
            return [found("low", summary, *signals, signal, advice=_counter(facts))]
    if isinstance(stream, Absent):
        return [missing(stream, "stream")]
    if signals or stream.records < RECORDS:
        summary = "Too few writes were seen."
    else:
        summary = "A counter shows in a stream with old and new images only."
    return [unknown(summary, Price(0.0, FLAGS["stream"]), *signals)]


def _counter(facts: Facts) -> Advice:
    peak = peak_of(facts)
    shards = steps(shards_for(peak, transactional(facts)))[:1] if peak is not None else ()
    return Advice(
        ("P20",),
        (
            *shards,
            "Count in several items, and add them up when reading: ShardedCounter "
            "(docs/sharding-patterns.md).",
            "An add that is sent again counts twice: give it a token where that matters.",
        ),
    )


def split_cannot_help(facts: Facts) -> Iterable[Said]:
    """Apply H2: a split cannot help.

    Writes at the end of one collection stay in one half of each split.
    """
    stream = facts.stream
    if facts.table.sort is None:
        return [clear("Without a sort key no collection has an end to which all is written.")]
    if isinstance(stream, Absent):
        return [missing(stream, "stream")]
    for key in sorted(stream.traffic, key=lambda traffic: -traffic.newest):
        if report := _at_the_end(facts, stream, key):
            return [report]
    if stream.inserts < RECORDS:
        return [unknown("Too few inserts were seen.", Price(0.0, "--stream 1h"))]
    newest = max((traffic.newest for traffic in stream.traffic), default=0)
    share = share_of(min(newest, stream.inserts), stream.inserts, "records of the stream")
    what = "inserts at the end of one collection"
    signal = evidence("stream", what, share, NEWEST, window=stream.seconds)
    if stream.traffic and share.against(NEWEST) == "below":
        return [clear("Inserts do not all go to the end of one hot collection.", signal)]
    return [unknown("Too few inserts were seen.", Price(0.0, "--stream 1h"), signal)]


def _at_the_end(facts: Facts, stream: StreamFacts, key: KeyTraffic) -> Said | None:
    """Report a collection at whose end most inserts happen.

    The inserts are all of the stream, or those of one hot collection.
    """
    hot = key.peak >= HALF * KEY_WRITES
    inserts = key.inserts if hot else stream.inserts
    if inserts < NEWEST_INSERTS:
        return None
    share = share_of(min(key.newest, inserts), inserts, "records of the stream")
    if share.against(NEWEST) != "above":
        return None
    whose = "its inserts" if hot else "all inserts"
    what = f"of {whose}, at the newest sort key of one collection"
    signal = evidence("stream", what, share, NEWEST, window=stream.seconds, where=key.key)
    summary = f"{interval(share)} of {whose} go to the end of one collection: no split helps."
    shards = shards_for(key.peak, transactional(facts))
    advice = Advice(
        ("P17",),
        (*steps(shards), "Buckets of time move the end to another key, and are as hot."),
        command(facts.table.name, shards),
    )
    return found("medium" if hot else "low", summary, signal, advice=advice)
