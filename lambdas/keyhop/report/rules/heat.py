"""Rules on heat, from metrics, Contributor Insights and the stream: H1, H3 and H4."""

from collections.abc import Iterable

from keyhop.report.advice.money import money, of_table
from keyhop.report.advice.shards import command, hottest, peak_of, shards_for, transactional
from keyhop.report.advice.shards import steps as sharding_steps
from keyhop.report.facts import (
    TABLE,
    Absent,
    Cause,
    Facts,
    HotKey,
    InsightFacts,
    MetricFacts,
)
from keyhop.report.findings import Advice, Evidence, Price, Severity
from keyhop.report.rules.indexes import indexes_of
from keyhop.report.rules.limits import HALF, HALF_PARTITION, KEY_READS, KEY_WRITES, PARTITION_MINUTE
from keyhop.report.rules.rule import FLAGS, Said, clear, found, missing, price_of, unknown
from keyhop.report.rules.seen import (
    all_are_known,
    counted_long_enough,
    how_bad,
    is_now,
    not_counted,
    throttled,
    throttles_of,
    told,
    too_young,
)

BURST_SECONDS = 10.0
"""A key whose units last for fewer seconds at its peak had a short burst."""
MINUTE = 60
CAPACITY: tuple[Cause, ...] = ("provisioned", "maximum", "account")
BOTH = ("read", "write")


def hot_key(facts: Facts) -> Iterable[Said]:
    """Apply H1 to the table and each GSI: a hot key."""
    return [_hot(facts, target) for target in (TABLE, *(index.name for index in indexes_of(facts)))]


def _hot(facts: Facts, target: str) -> Said:
    metrics = facts.metrics
    severities: list[Severity] = []
    reasons: list[str] = []
    signals: list[Evidence] = []
    kinds = BOTH if target == TABLE else ("read",)  # a GSI's writes are A9's and H3's
    reads = False
    if isinstance(metrics, MetricFacts):
        throttles = throttles_of(metrics, kinds, ["key range"], target)
        signals.append(throttled(facts, metrics, throttles, "throttles of a hot key range"))
        if throttles.events:
            severities.append(how_bad(facts, throttles, "high"))
            reasons.append(f"a key range was too hot {told(facts, throttles)}")
            reads = bool(throttles_of(metrics, ["read"], ["key range"], target).events)
    for severity, reason, signal in (*_by_insights(facts, target), *_by_stream(facts, target)):
        severities.append(severity)
        reasons.append(reason)
        signals.append(signal)
    if severities:
        worst = min(severities, key=["high", "medium", "low", "info"].index)
        summary = "; ".join(reasons)
        summary = f"{summary[0].upper()}{summary[1:]}."
        advice = _spread(facts, target, reads)
        return found(worst, summary, *signals, advice=advice, target=target)
    if isinstance(metrics, Absent):
        return missing(metrics, "metrics", target=target)
    if not all_are_known(metrics, kinds, ["key range"], target):
        return unknown(*not_counted(signals[0]), target=target)
    if not counted_long_enough(facts):
        return unknown("Less than a day was counted.", too_young(), *signals, target=target)
    if reason := _no_key_can(facts, metrics, target):
        return clear(reason, *signals, target=target)
    insights = facts.insights
    if isinstance(insights, Absent):
        summary = "No key range was throttled; whether a key is near its limit is not known."
        return unknown(summary, price_of(insights, "insights"), *signals, target=target)
    if target in insights.accessed:
        summary = "No key took half of what a partition gives."
        return clear(summary, *signals, *_insights_evidence(insights, target), target=target)
    summary = "Contributor Insights counts throttled keys only."
    return unknown(summary, Price(0.0, FLAGS["insights"]), *signals, target=target)


def _by_insights(facts: Facts, target: str) -> list[tuple[Severity, str, Evidence]]:
    insights = facts.insights
    if isinstance(insights, Absent):
        return []
    hot = [key for key in insights.accessed.get(target, ()) if key.units > HALF_PARTITION]
    if not hot:
        return []
    busiest = max(hot, key=lambda key: key.units)
    share = busiest.units / PARTITION_MINUTE
    reason = f"one key took {share * 100:.0f} % of what a partition gives in a minute"
    return [("medium", reason, hot_evidence(insights, busiest))]


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

    The reason is that all keys together are below the limit.
    """
    write, read = metrics.peak.get(("write", target)), metrics.peak.get(("read", target))
    if write is None or read is None or metrics.period > MINUTE:
        return ""
    if write < HALF * KEY_WRITES and read < HALF * KEY_READS:
        return (
            f"Nothing was throttled, and in the busiest minute all keys together took "
            f"{write:,.0f} write and {read:,.0f} read units a second."
        )
    return ""


def _spread(facts: Facts, target: str, reads: bool) -> Advice:
    steps: list[str] = []
    pasted = ""
    peak = peak_of(facts) if target == TABLE else None
    if peak is not None and not reads:
        shards = shards_for(peak, transactional(facts))
        steps += sharding_steps(shards)
        pasted = command(facts.table.name, shards)
    steps += [
        "Reads of a hot key: cache them, or keep copies of it under several keys.",
        "Writes of a hot key: shards. Time in the key bounds its size, never its rate.",
    ]
    today = of_table(facts)
    cost = money(facts, today, today)  # shards and buckets change no write's price
    if isinstance(facts.insights, Absent):
        steps.append("Contributor Insights names the keys (--insights).")
    return Advice(("P18", "P17") if reads else ("P17", "P18"), tuple(steps), pasted, cost)


def back_pressure(facts: Facts) -> Iterable[Said]:
    """Apply H3: a GSI that accepts no more writes refuses those of the table."""
    indexes, metrics = indexes_of(facts), facts.metrics
    if not indexes:
        return [clear("The table has no GSI.")]
    if isinstance(metrics, Absent):
        return [missing(metrics, "metrics", target=index.name) for index in indexes]
    return [_back_pressure(facts, metrics, index.name) for index in indexes]


def _back_pressure(facts: Facts, metrics: MetricFacts, name: str) -> Said:
    heat = throttles_of(metrics, ["write"], ["key range"], name)
    capacity = throttles_of(metrics, ["write"], CAPACITY, name)
    both = throttles_of(metrics, ["write"], ["key range", *CAPACITY], name)
    signal = throttled(facts, metrics, both, f"writes refused for {name}")
    if both.events:
        now: Severity = "high" if heat.events and is_now(facts, heat) else "medium"
        summary = f"{name} has refused writes of the table {told(facts, both)}"
        if capacity.events > heat.events:
            summary += ", for want of capacity"
            advised = (f"Give {name} as many write units as the table, or bill by request.",)
        else:
            summary += ", for a hot key range"
            advised = (f"Spread the keys of {name}: see A9.",)
        severity = how_bad(facts, both, now)
        advice = Advice(("P16",), advised)
        return found(severity, f"{summary}.", signal, advice=advice, target=name)
    if not all_are_known(metrics, ["write"], ["key range", *CAPACITY], name):
        return unknown(*not_counted(signal), target=name)
    if not counted_long_enough(facts):
        return unknown("Less than a day was counted.", too_young(), signal, target=name)
    return clear(f"{name} has refused no write.", signal, target=name)


def not_the_keys(facts: Facts) -> Iterable[Said]:
    """Apply H4: capacity is short, so another key would change nothing."""
    metrics = facts.metrics
    if isinstance(metrics, Absent):
        return [missing(metrics, "metrics")]
    heat = throttles_of(metrics, BOTH, ["key range"], TABLE)
    by_cause = {cause: throttles_of(metrics, BOTH, [cause], TABLE) for cause in CAPACITY}
    capacity = throttles_of(metrics, BOTH, CAPACITY, TABLE)
    signal = throttled(facts, metrics, capacity, "throttles for want of capacity")
    if capacity.events:
        causes = [cause for cause, throttles in by_cause.items() if throttles.events]
        summary = f"Throttled {told(facts, capacity)} by {_and(causes)}"
        advice = Advice((), tuple(_REMEDIES[cause] for cause in causes))
        if heat.events:
            summary += "; hot key ranges as well: mend the keys first"
            return [found("info", f"{summary}.", signal, advice=advice)]
        severity = how_bad(facts, capacity, "medium")
        return [found(severity, f"{summary}, and no key was hot.", signal, advice=advice)]
    if not all_are_known(metrics, BOTH, CAPACITY, TABLE):
        return [unknown(*not_counted(signal))]
    if not counted_long_enough(facts):
        return [unknown("Less than a day was counted.", too_young(), signal)]
    return [clear("Nothing was throttled for want of capacity.", signal)]


def _and(causes: list[Cause]) -> str:
    words: dict[Cause, str] = {
        "provisioned": "the provisioned capacity",
        "maximum": "the maximum that is set",
        "account": "the account's limit",
    }
    return " and ".join(words[cause] for cause in causes)


_REMEDIES: dict[Cause, str] = {
    "provisioned": "Raise the provisioned units or their automatic scaling, or bill by request.",
    "maximum": "Raise the table's own maximum of on-demand throughput, or let writers wait.",
    "account": "Ask for a higher quota of the account (Service Quotas), or let writers wait.",
    "key range": "",
}
