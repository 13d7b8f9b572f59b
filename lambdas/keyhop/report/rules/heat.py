"""Rules on heat, from metrics, Contributor Insights and the stream: A8 and H1 to H7."""

from dataclasses import replace

from keyhop.report.advice import (
    INSIGHT_WRITES,
    hottest,
    money,
    most_written,
    of_table,
    peak_of,
    sharding_command,
    sharding_steps,
    shards_for,
    transactional,
)
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Absent,
    Cause,
    Facts,
    HotKey,
    InsightFacts,
    KeyTraffic,
    MetricFacts,
    StreamFacts,
)
from keyhop.report.findings import SEVERITIES, Advice, Evidence, Finding, Price, Severity
from keyhop.report.rules.indexes import constant_index_key
from keyhop.report.rules.rule import (
    FLAGS,
    HALF,
    HALF_PARTITION,
    KEY_WRITES,
    PARTITION_MINUTE,
    RECORDS,
    Judge,
    all_are_known,
    clear,
    counted_long_enough,
    each_index,
    evidence,
    found,
    how_bad,
    in_words,
    indexes_of,
    interval,
    is_now,
    matters,
    needed,
    not_counted,
    price_of,
    rule,
    share_of,
    throttled,
    throttles_of,
    too_young,
    unknown,
)
from keyhop.wording import counted

RETRIED = "the SDK's retries handle so few"
BURST_SECONDS = 10.0
"""A key whose units last for fewer seconds at its peak had a short burst."""
MINUTE = 60
CAPACITY: tuple[Cause, ...] = ("provisioned", "maximum", "account")
BOTH = ("read", "write")
COUNTER_SHARE = 0.20
COUNTER_RATE = 0.2
"""A counter with fewer writes a second is far from a limit."""
NEWEST = 0.90
NEWEST_INSERTS = 60
IN_ORDER = 0.5
QUIET = 0.1 * KEY_WRITES
"""A load with fewer write units a second does no harm even if one partition takes all of it."""
UNFELT = 0.01 * KEY_WRITES
"""No partition feels so few write units a second."""
SEVERAL = 4
"""With fewer stream shards, one that has just rolled over looks idle."""


@rule("H1", "hot key")
def hot_key(facts: Facts) -> list[Finding]:
    """Apply H1 to the table and each GSI: a hot key."""
    return each_index(
        facts, lambda index: _hot(facts, index.name), with_table=lambda: _hot(facts, TABLE)
    )


def _hot(facts: Facts, target: str) -> Finding:
    metrics = facts.metrics
    severities: list[Severity] = []
    reasons: list[str] = []
    signals: list[Evidence] = []
    other_finding: Finding | None = None
    constant = [
        finding.target
        for finding in _findings(constant_index_key, facts)
        if finding.status == "found"
    ]
    kinds = ("read",) if target in constant else BOTH  # A9 has said why its writes are throttled
    reads = False
    if isinstance(metrics, MetricFacts):
        throttles = throttles_of(metrics, kinds, ["key range"], target)
        signals.append(throttled(facts, metrics, throttles, "throttles of a hot key range"))
        other_finding = _other_cause(facts, metrics, target) if matters(facts, throttles) else None
        if matters(facts, throttles) and other_finding is None:
            severities.append(how_bad(facts, throttles, "high"))
            reasons.append(f"a key range was throttled {in_words(facts, throttles)}")
            reads = bool(throttles_of(metrics, ["read"], ["key range"], target).events)
    reads = reads or _is_read(facts, target)
    named = [*_by_insights(facts, target), *_by_stream(facts, target), *_refused(facts, target)]
    for severity, reason, signal in named:
        severities.append(severity)
        reasons.append(reason)
        signals.append(signal)
    if severities:
        worst = min(severities, key=SEVERITIES.index)
        summary = "; ".join(reasons)
        summary = f"{summary[0].upper()}{summary[1:]}."
        advice = _spread(facts, target, reads)
        return found(worst, summary, *signals, advice=advice)
    metrics = needed(metrics, "metrics")
    if other_finding is not None:
        return replace(other_finding, evidence=(*signals, *other_finding.evidence))
    if not all_are_known(metrics, kinds, ["key range"], target):
        return unknown(*not_counted(signals[0]))
    if not counted_long_enough(facts):
        return unknown("CloudWatch has counted less than a day.", too_young(), *signals)
    if reason := _no_key_can(facts, metrics, target):
        return clear(reason, *signals)
    insights = facts.insights
    if isinstance(insights, Absent):
        summary = "It is not known whether a key is near its limit."
        return unknown(summary, price_of(insights, "insights"), *signals)
    if target in insights.accessed:
        summary = "No key took half of the units that a partition serves."
        return clear(summary, *signals, *_insights_evidence(insights, target))
    summary = "Contributor Insights counts throttled keys only."
    return unknown(summary, Price(0.0, FLAGS["insights"]), *signals)


def _other_cause(facts: Facts, metrics: MetricFacts, target: str) -> Finding | None:
    """Return the judgement of a table whose key ranges were throttled, but not for a hot key.

    A whole table that takes more than it is warm for is throttled by key ranges, too. So is a table
    whose stream shows the heat of partitions, or writes in the order of hashes, but no hot key.
    """
    insights = facts.insights
    if target != TABLE or (isinstance(insights, InsightFacts) and insights.throttled.get(TABLE)):
        return None
    reads = throttles_of(metrics, ["read"], ["key range"], TABLE)
    writes = throttles_of(metrics, ["write"], ["key range"], TABLE)
    stream = facts.stream
    if isinstance(stream, StreamFacts) and stream.records >= RECORDS and not reads.events:
        key = hottest(stream)
        peak = key.peak if key is not None else 0.0
        causes = [*_findings(in_hash_order, facts), *_findings(partition_heat, facts)]
        explained = [cause.status for cause in causes]
        if is_now(facts, writes) and peak < HALF * KEY_WRITES and "found" in explained:
            return clear(
                f"Key ranges were throttled {in_words(facts, writes)}, but no key took more than "
                f"{peak:,.0f} write units in a second: see H6 and H7."
            )
    reached = _beyond_warm(facts)
    if reached and all(
        f"{way} units" in reached
        for way, throttles in (("read", reads), ("write", writes))
        if throttles.events
    ):
        return unknown(
            f"Key ranges were throttled while the whole table took {reached}; see H5. It is not "
            "known whether a key was hot as well.",
            Price(0.0, FLAGS["insights"]),
        )
    return None


def _findings(judge: Judge, facts: Facts) -> list[Finding]:
    judgement = judge(facts)
    return judgement if isinstance(judgement, list) else [judgement]


def _by_insights(facts: Facts, target: str) -> list[tuple[Severity, str, Evidence]]:
    insights = facts.insights
    if isinstance(insights, Absent):
        return []
    hot = [key for key in insights.accessed.get(target, ()) if key.units > HALF_PARTITION]
    if not hot:
        return []
    busiest = max(hot, key=lambda key: key.units)
    share = busiest.units / PARTITION_MINUTE
    reason = f"one key took {share * 100:.0f} % of the units that a partition serves in a minute"
    return [("medium", reason, hot_evidence(insights, busiest))]


def _is_read(facts: Facts, target: str) -> bool:
    """Return whether the hottest key of the table is mainly read.

    Its units are then more than twice those of all writes of the table.
    """
    insights = facts.insights
    if target != TABLE or isinstance(insights, Absent):
        return False
    units = max((key.units for key in insights.accessed.get(TABLE, ())), default=0.0)
    return units > 2 * INSIGHT_WRITES * MINUTE * most_written(facts)


def _refused(facts: Facts, target: str) -> list[tuple[Severity, str, Evidence]]:
    """Return the key of an index for which DynamoDB refuses writes of the table.

    Metrics count the refused writes, and only Contributor Insights names the key.
    """
    insights, metrics = facts.insights, facts.metrics
    if target == TABLE or isinstance(insights, Absent) or isinstance(metrics, Absent):
        return []
    throttles = throttles_of(metrics, ["write"], ["key range"], target)
    keys = insights.throttled.get(target, ())
    if not keys or not matters(facts, throttles):
        return []
    busiest = max(keys, key=lambda key: key.total)
    what = "throttles of a key in the whole time"
    seconds = insights.ended - insights.began
    signal = Evidence(
        "insights", what, busiest.total, threshold=1.0, window=seconds, where=busiest.key
    )
    reason = f"writes of one key were refused {in_words(facts, throttles)}"
    return [(how_bad(facts, throttles, "high"), reason, signal)]


def _insights_evidence(insights: InsightFacts, target: str) -> list[Evidence]:
    keys = insights.accessed.get(target, ())
    busiest = max(keys, key=lambda key: key.units, default=None)
    return [hot_evidence(insights, busiest)] if busiest is not None else []


def hot_evidence(insights: InsightFacts, key: HotKey) -> Evidence:
    """Return the units of a key or an item as evidence."""
    return Evidence(
        "insights",
        "units of a key in its busiest minute (3 a write unit, 1 a read unit)",
        key.units,
        threshold=HALF_PARTITION,
        window=insights.ended - insights.began,
        where=key.key,
    )


def _by_stream(facts: Facts, target: str) -> list[tuple[Severity, str, Evidence]]:
    stream = facts.stream
    if isinstance(stream, Absent) or target != TABLE:
        return []
    key = hottest(stream)
    if key is None or key.peak < HALF * KEY_WRITES:
        return []
    burst = key.write_units < BURST_SECONDS * key.peak
    signal = Evidence(
        "stream",
        "write units of a key in its busiest second",
        key.peak,
        threshold=HALF * KEY_WRITES,
        window=stream.seconds,
        n=key.records,
        where=key.key,
    )
    reason = f"one key took {key.peak:,.0f} write units in a second"
    if burst:
        return [("info", f"{reason}, in a short burst", signal)]
    return [("medium", reason, signal)]


def _no_key_can(facts: Facts, metrics: MetricFacts, target: str) -> str:
    """Return why no key can be near its limit, or "" if that cannot be concluded.

    The reason is that all keys together take less than half of what one partition serves.
    """
    write, read = metrics.peak.get(("write", target)), metrics.peak.get(("read", target))
    if write is None or read is None or metrics.period > MINUTE:
        return ""
    if INSIGHT_WRITES * write + read < HALF_PARTITION / MINUTE:
        return (
            f"In the busiest minute, all keys together took {write:,.0f} write units and "
            f"{read:,.0f} read units a second, less than half of what one key can take."
        )
    return ""


def _spread(facts: Facts, target: str, reads: bool) -> Advice:
    steps: list[str] = []
    pasted = ""
    peak = peak_of(facts) if target == TABLE else None
    if peak is not None and not reads:
        shards = shards_for(peak, transactional(facts))
        steps += sharding_steps(shards)
        pasted = sharding_command(facts.table.name, shards)
    of_reads = "If a key is read too often, cache it, or keep copies of it under several keys."
    of_writes = (
        "If a key is written too often, spread it over shards. A time in the key limits its size, "
        "but never its rate."
    )
    steps += [of_reads, of_writes] if reads else [of_writes, of_reads]
    today = of_table(facts)
    cost = money(facts, today, today)  # shards and buckets change no write's price
    if isinstance(facts.insights, Absent):
        steps.append("Contributor Insights names the keys (--insights).")
    return Advice(("P18", "P17") if reads else ("P17", "P18"), tuple(steps), pasted, cost)


@rule("H3", "an index holds writes back")
def back_pressure(facts: Facts) -> list[Finding]:
    """Apply H3: a GSI that accepts no more writes refuses those of the table."""
    return each_index(facts, lambda index: _back_pressure(facts, index.name))


def _back_pressure(facts: Facts, name: str) -> Finding:
    metrics = needed(facts.metrics, "metrics")
    heat = throttles_of(metrics, ["write"], ["key range"], name)
    capacity = throttles_of(metrics, ["write"], CAPACITY, name)
    both = throttles_of(metrics, ["write"], ["key range", *CAPACITY], name)
    signal = throttled(facts, metrics, both, f"writes refused for {name}")
    if matters(facts, both):
        now: Severity = "high" if heat.events and is_now(facts, heat) else "medium"
        summary = f"{name} has refused writes to the table {in_words(facts, both)}"
        if capacity.events > heat.events:
            summary += ", because its capacity was too low"
            advised = (f"Give {name} as many write units as the table, or use on-demand billing.",)
        else:
            summary += ", because a key range was too hot"
            advised = (f"Spread the keys of {name}: see the finding A9 or H1.",)
        severity = how_bad(facts, both, now)
        advice = Advice(("P16",), advised)
        return found(severity, f"{summary}.", signal, advice=advice)
    if not all_are_known(metrics, ["write"], ["key range", *CAPACITY], name):
        return unknown(*not_counted(signal))
    if not counted_long_enough(facts):
        return unknown("CloudWatch has counted less than a day.", too_young(), signal)
    if both.events:
        return clear(f"{name} has refused writes {in_words(facts, both)}: {RETRIED}.", signal)
    return clear(f"{name} has not refused any write.", signal)


@rule("H4", "throttled, but not by keys")
def not_the_keys(facts: Facts) -> Finding:
    """Apply H4: capacity is short, so another key would change nothing."""
    metrics = facts.metrics
    metrics = needed(metrics, "metrics")
    heat = throttles_of(metrics, BOTH, ["key range"], TABLE)
    by_cause = {cause: throttles_of(metrics, BOTH, [cause], TABLE) for cause in CAPACITY}
    capacity = throttles_of(metrics, BOTH, CAPACITY, TABLE)
    signal = throttled(facts, metrics, capacity, "throttles because of low capacity")
    short = [
        (index.name, reads)
        for index in indexes_of(facts)
        if matters(facts, reads := throttles_of(metrics, ["read"], CAPACITY, index.name))
    ]
    if short and not matters(facts, capacity):
        name, reads = max(short, key=lambda index: index[1].events)
        severity = how_bad(facts, reads, "medium")
        summary = f"Reads of {name} were throttled {in_words(facts, reads)}: its capacity is low."
        steps = (f"Raise the read units or the maximum of {name}, or let readers wait.",)
        signal = throttled(facts, metrics, reads, f"throttled reads of {name}")
        return found(severity, summary, signal, advice=Advice((), steps))
    if matters(facts, capacity):
        causes = [cause for cause, throttles in by_cause.items() if throttles.events]
        summary = f"Requests were throttled {in_words(facts, capacity)}, by {_and(causes)}"
        advice = Advice((), tuple(_REMEDIES[cause] for cause in causes))
        if heat.events:
            summary += "; key ranges were hot as well: correct the keys first"
            return found("info", f"{summary}.", signal, advice=advice)
        severity = how_bad(facts, capacity, "medium")
        return found(severity, f"{summary}, and no key was hot.", signal, advice=advice)
    if not all_are_known(metrics, BOTH, CAPACITY, TABLE):
        return unknown(*not_counted(signal))
    if not counted_long_enough(facts):
        return unknown("CloudWatch has counted less than a day.", too_young(), signal)
    if capacity.events:
        return clear(f"Requests were throttled {in_words(facts, capacity)}: {RETRIED}.", signal)
    return clear("No request was throttled because of low capacity.", signal)


def _and(causes: list[Cause]) -> str:
    words: dict[Cause, str] = {
        "provisioned": "the provisioned capacity",
        "maximum": "the configured maximum",
        "account": "the account's limit",
    }
    return " and ".join(words[cause] for cause in causes)


_REMEDIES: dict[Cause, str] = {
    "provisioned": "Raise the provisioned units or their auto scaling, or use on-demand billing.",
    "maximum": "Raise the table's maximum on-demand throughput, or let clients wait.",
    "account": "Request a higher quota for the account (Service Quotas), or let clients wait.",
    "key range": "",
}


@rule("A8", "one counter item")
def one_counter(facts: Facts) -> Finding:
    """Apply A8: one counter item.

    A status that changes is not a counter. The stream shows the difference, Contributor Insights
    does not.
    """
    stream, insights = facts.stream, facts.insights
    counter = stream.counter if isinstance(stream, StreamFacts) else None
    signals: list[Evidence] = []
    if counter is not None and isinstance(stream, StreamFacts):
        what = f'records that change only one number of one item ("{stream.counter_attribute}")'
        signals.append(evidence("stream", what, counter, COUNTER_SHARE, window=stream.seconds))
        rate = counter.high * stream.records / stream.seconds if stream.seconds else 0.0
        if rate < COUNTER_RATE:
            return clear(
                f"No counter is written more often than {rate:.1f} times a second.", *signals
            )
        if counter.against(COUNTER_SHARE) == "above":
            summary = f"{interval(counter)} of all writes change the same number of the same item."
            peak = peak_of(facts)
            near = peak is not None and peak >= HALF * KEY_WRITES
            severity: Severity = "medium" if near else "low"
            return found(severity, summary, *signals, advice=_counter(facts))
        if counter.against(COUNTER_SHARE) == "below":
            return clear(f"{interval(counter)} of the writes change one counter.", *signals)
    if not isinstance(insights, Absent):
        hot = [item for item in insights.items.get(TABLE, ()) if item.units > HALF_PARTITION]
        if hot and not _is_read_only(facts):
            busiest = max(hot, key=lambda item: item.units)
            summary = (
                "One item is near the limit of a partition. The stream would show whether it is a "
                "counter or a status."
            )
            signal = hot_evidence(insights, busiest)
            return found("low", summary, *signals, signal, advice=_counter(facts))
    stream = needed(stream, "stream")
    if signals or stream.records < RECORDS:
        summary = "The stream shows too few writes."
    else:
        summary = "Only a stream with old and new images shows a counter."
    return unknown(summary, Price(0.0, FLAGS["stream"]), *signals)


def _is_read_only(facts: Facts) -> bool:
    """Return whether all writes of the table together are too few to make one item hot."""
    metrics = facts.metrics
    if isinstance(metrics, Absent) or metrics.period > MINUTE or not metrics.peak:
        return False
    return metrics.peak.get(("write", TABLE), 0.0) < HALF * KEY_WRITES


def _counter(facts: Facts) -> Advice:
    peak = peak_of(facts)
    steps: tuple[str, ...] = ()
    when = "Count"
    if peak is not None:
        shards = shards_for(peak, transactional(facts))
        steps = sharding_steps(shards)[:1]
        when = "When the load comes near that, count" if shards.roomy == 1 else when
    return Advice(
        ("P20",),
        (
            *steps,
            f"{when} in several items, and add them up when you read: ShardedCounter does it "
            "(docs/how-to/sharding-patterns.md).",
            "An ADD that is retried counts twice: give it a token if that matters.",
        ),
    )


@rule("H2", "a split cannot help")
def split_cannot_help(facts: Facts) -> Finding:
    """Apply H2: a split cannot help.

    Writes at the end of one collection stay in one half of each split.
    """
    stream = facts.stream
    if facts.table.sort is None:
        return clear("Without a sort key, each collection has one item, so it cannot be split.")
    stream = needed(stream, "stream")
    for key in sorted(stream.traffic, key=lambda traffic: -traffic.newest):
        if report := _at_the_end(facts, stream, key):
            return report
    busiest = max(stream.traffic, key=lambda traffic: traffic.inserts, default=None)
    if stream.inserts < RECORDS or busiest is None:
        return unknown("The stream shows too few inserts.", Price(0.0, "--stream 1h"))
    of_all, at_end = _shares_of(stream, busiest)
    signals = (
        evidence("stream", "inserts in one collection", of_all, HALF, window=stream.seconds),
        evidence("stream", _AT_ITS_END, at_end, NEWEST, window=stream.seconds),
    )
    if of_all.against(HALF) == "below" or at_end.against(NEWEST) == "below":
        return clear("Inserts do not concentrate at the end of one hot collection.", *signals)
    return unknown("The stream shows too few inserts.", Price(0.0, "--stream 1h"), *signals)


_AT_ITS_END = "share of one collection's inserts that are at its newest sort key"


def _shares_of(stream: StreamFacts, key: KeyTraffic) -> tuple[Estimate, Estimate]:
    """Return a collection's share of all inserts, and the share of these that go to its end."""
    what = "records of the stream"
    of_all = share_of(min(key.inserts, stream.inserts), stream.inserts, what)
    return of_all, share_of(min(key.newest, key.inserts), max(1, key.inserts), what)


def _at_the_end(facts: Facts, stream: StreamFacts, key: KeyTraffic) -> Finding | None:
    """Report a collection at whose end most inserts happen.

    The inserts are those of one collection that is hot, or has most inserts of the stream.
    """
    if key.inserts < NEWEST_INSERTS:
        return None
    hot = key.peak >= HALF * KEY_WRITES
    of_all, at_end = _shares_of(stream, key)
    if at_end.against(NEWEST) != "above" or not (hot or of_all.against(HALF) == "above"):
        return None
    signal = evidence("stream", _AT_ITS_END, at_end, NEWEST, window=stream.seconds, where=key.key)
    summary = (
        f"One collection takes {interval(of_all)} of all inserts, and {interval(at_end)} of its "
        "inserts go to its end, so a split does not help."
    )
    shards = shards_for(key.peak, transactional(facts))
    advice = Advice(
        ("P17",),
        (*sharding_steps(shards), "Time buckets only move the end to another key."),
        sharding_command(facts.table.name, shards),
    )
    return found("medium" if hot else "low", summary, signal, advice=advice)


@rule("H5", "a table that is cold")
def cold_table(facts: Facts) -> Finding:
    """Apply H5: the table is not warm enough for the expected peak."""
    table, peak = facts.table, facts.peak_writes
    if peak is None and (reached := _beyond_warm(facts)):
        return found("medium", f"The table took {reached}.", advice=_PRE_WARM)
    if peak is None:
        return unknown("The expected peak is not known.", Price(0.0, "--peak-writes W"))
    limits = []
    if table.throughput is not None:
        limits.append(("provisioned", float(table.throughput[1])))
    if table.maximum is not None and table.maximum[1] > 0:
        limits.append(("configured as the maximum", float(table.maximum[1])))
    if table.warm is not None:
        limits.append(("warm", float(table.warm[1])))
    signals = [
        Evidence("control plane", f"write units a second that are {what}", units, threshold=peak)
        for what, units in limits
    ]
    short = [(what, units) for what, units in limits if units < peak]
    if short:
        what, units = min(short, key=lambda limit: limit[1])
        summary = (
            f"A peak of {peak:,.0f} write units a second is expected, but only {units:,.0f} are "
            f"{what}."
        )
        return found("medium", summary, *signals, advice=_PRE_WARM)
    if table.warm is None:
        why = "DescribeTable did not return the table's warm throughput."
        return unknown(why, Price(0.0, "the right dynamodb:DescribeTable"), *signals)
    return clear(f"The table is warm for {table.warm[1]:,.0f} write units a second.", *signals)


def _beyond_warm(facts: Facts) -> str:
    """Return the measured peaks above what the table is warm for, in words; "" for none."""
    metrics, warm = facts.metrics, facts.table.warm
    if isinstance(metrics, Absent) or warm is None:
        return ""
    peaks = [(way, metrics.peak.get((way, TABLE), 0.0)) for way in BOTH]
    return " and ".join(
        f"{units:,.0f} {way} units a second (it is warm for {limit:,.0f})"
        for (way, units), limit in zip(peaks, warm, strict=True)
        if units > limit
    )


_PRE_WARM = Advice(
    (),
    (
        "Raise the warm throughput of the table, and of each index that is written, some hours "
        "before the peak (UpdateTable, WarmThroughput). You pay once, and keep the throughput.",
        "A single key still takes no more than 1,000 write units a second.",
    ),
)


@rule("H6", "load in the order of hashes")
def in_hash_order(facts: Facts) -> Finding:
    """Apply H6: writes in the order of a Scan heat one partition after the other."""
    stream = facts.stream
    stream = needed(stream, "stream")
    rho, in_turn = stream.hash_rho, stream.in_turn
    signals: list[Evidence] = []
    if rho is not None:
        what = "rank correlation of time with hash place (Spearman's rho)"
        signals.append(evidence("stream", what, rho, IN_ORDER, window=stream.seconds))
    severity: Severity = "low"
    harmless = ""
    is_felt = stream.peak is None or stream.peak >= UNFELT
    if stream.peak is not None and stream.peak < QUIET:
        severity = "info"
        harmless = (
            f" {stream.peak:,.0f} write units in the busiest second do no harm yet, but a faster "
            "load would wait for one partition after the other."
        )
    if rho is not None and (rho.against(IN_ORDER) == "above" or rho.high <= -IN_ORDER):
        summary = (
            f"Keys are written in the order of their hash (rank correlation {rho.value:.2f})."
            f"{harmless}"
        )
        return found(severity, summary, *signals, advice=_SHUFFLE)
    enough = len(stream.shards) >= SEVERAL and stream.records >= RECORDS
    if is_felt and in_turn is not None and enough:
        what = "share of records whose time predicts their stream shard (Goodman-Kruskal lambda)"
        signals.append(Evidence("stream", what, in_turn, threshold=IN_ORDER, window=stream.seconds))
        if in_turn >= IN_ORDER:
            summary = (
                f"{counted(len(stream.shards), 'stream shard')} are written one after the other, "
                f"as by a load in hash order.{harmless}"
            )
            return found(severity, summary, *signals, advice=_SHUFFLE)
    if not is_felt:
        return clear(
            f"All writes together take {stream.peak:,.0f} write units in the busiest second, too "
            "few to load a partition, and no order of their hash is seen.",
            *signals,
        )
    if rho is None:
        why = "The hash values of the written keys are not known."
        return unknown(why, Price(20.0, "--stream 1h"), *signals)
    if rho.against(IN_ORDER) == "below" and rho.low > -IN_ORDER:
        return clear("Keys are not written in the order of their hash.", *signals)
    return unknown("The stream shows too few keys.", Price(20.0, "--stream 1h"), *signals)


_SHUFFLE = Advice(
    (),
    (
        "Shuffle the items before you load them, or read their source in many segments at a time "
        "that are far apart.",
        "Consecutive segments are adjacent by hash, so they load the same partition.",
    ),
)


@rule("H7", "uneven heat of partitions")
def partition_heat(facts: Facts) -> Finding:
    """Apply H7: uneven heat of partitions.

    A stream shard belongs to a partition, but AWS does not promise how closely.
    """
    stream = facts.stream
    stream = needed(stream, "stream")
    counts, records = stream.shards, sum(stream.shards.values())
    if len(counts) < 2 or records < RECORDS:
        why = "The stream shows fewer than two shards, or too few records."
        return unknown(why, Price(0.0, "--stream 1h"))
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
        return found(severity, summary, *signals, advice=_HEAT)
    if share.against(threshold) == "below":
        return clear("Writes are spread over the stream's shards.", *signals)
    why = "It is not known whether one stream shard has more than its share."
    return unknown(why, Price(0.0, "--stream 1h"), *signals)


_HEAT = Advice(
    ("P17",),
    (
        "Check the keys that are written most (H1, A8): one of them, or a few that are adjacent "
        "by hash, load this partition.",
        "A new stream shard starts empty: run the report again an hour later.",
    ),
)
