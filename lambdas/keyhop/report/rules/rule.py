"""A rule of the report, and what rules share: limits, shares, and the counts of CloudWatch.

A rule is a function of the facts, registered by `rule`. It gives one of three judgements for the
table or for each index, made by `found`, `clear` and `unknown`. The severity of a clear or an
unknown judgement is info, as a severity describes a problem.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from keyhop.dynamodb.units import PARTITION_WRITE_UNITS
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    TABLE,
    Absent,
    Cause,
    Facts,
    IndexFacts,
    MetricFacts,
    SampleFacts,
    Throttles,
)
from keyhop.report.findings import Advice, Evidence, Finding, Origin, Price, Severity
from keyhop.report.statistics import shares as statistics

T = TypeVar("T")

KB = 1024
GB = 2**30

NEAR_COLLECTION_BYTES = 8 * GB
NEAR_ITEM_BYTES = 350 * KB
LARGE_ITEM_BYTES = 100 * KB

KEY_WRITES = float(PARTITION_WRITE_UNITS)
KEY_READS = 3000.0
"""The units a second that one partition serves."""

PARTITION_MINUTE = 180_000
"""The units of one key a minute in Contributor Insights: 3 a write unit, 1 a read unit."""

HALF = 0.5
HALF_PARTITION = HALF * PARTITION_MINUTE

HOUR = 3600.0
DAY = 86_400.0
YEAR = 365 * DAY

DATED = 0.95
"""The share of keys that are only a date at which the date counts as the key."""

MORE = 4
"""The factor of units that halves an interval."""
RECORDS = 385
"""From this number on, a share has an interval of 5 percentage points on each side."""
FEW_EVENTS = 10
"""Fewer throttles than this that are over did no harm, as SDKs repeat throttled requests."""
UNITS_OF_KEYS = 30.0
"""The read units of 60 keys."""
NO_GSI = "The table has no GSI."

FLAGS: dict[Origin, str] = {
    "control plane": "the right dynamodb:DescribeTable",
    "sample": "without --control-plane-only",
    "metrics": "the right cloudwatch:GetMetricData",
    "insights": "--insights",
    "stream": "--stream 15m",
    "code": "--code DIR",
    "requests": "--requests FILE",
    "candidates": "--candidate KEY",
}
"""The option or the right that makes a source available, unless the source names it."""


Judge = Callable[[Facts], Finding | list[Finding]]
"""The judgement of a rule about each of its targets, without the rule's id and title."""


def found(
    severity: Severity, summary: str, *evidence: Evidence, advice: Advice | None = None
) -> Finding:
    """Report that a threshold is exceeded."""
    return Finding("", "", "found", severity, TABLE, summary, evidence, advice)


def clear(summary: str, *evidence: Evidence) -> Finding:
    """Report that an interval, a complete count or the schema excludes the threshold."""
    return Finding("", "", "clear", "info", TABLE, summary, evidence)


def unknown(summary: str, price: Price, *evidence: Evidence) -> Finding:
    """Report that nothing excludes the threshold, with the price of an answer."""
    return Finding("", "", "unknown", "info", TABLE, summary, evidence, price=price)


def missing(absent: Absent, origin: Origin, rru: float = 0.0) -> Finding:
    """Report an unknown because a source is missing."""
    signal = Evidence(origin, f"not read: {absent.reason}")
    summary = f"This is not known: {absent.reason.rstrip('.')}."
    return unknown(summary, price_of(absent, origin, rru), signal)


class _Missing(Exception):
    """A source without which a rule cannot judge."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.summary)
        self.finding = finding


def needed(source: T | Absent, origin: Origin, rru: float = 0.0) -> T:
    """Return the facts of a source; without them, end the rule as unknown.

    Args:
        source: The source.
        origin: The name of the source.
        rru: The read units that it costs, unless the source gives them.
    """
    if isinstance(source, Absent):
        raise _Missing(missing(source, origin, rru))
    return source


def price_of(absent: Absent, origin: Origin, rru: float = 0.0) -> Price:
    """Return the price of reading a source that was not read.

    Args:
        absent: Why the source is missing.
        origin: The name of the source.
        rru: The read units that it costs, unless the source gives them.
    """
    return Price(absent.rru or rru, absent.remedy or FLAGS[origin])


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and the function that applies it.

    Attributes:
        id: The number of the rule, such as A1: A1 to A19 are anti-patterns of keys, H1 to H7
            concern heat, I1 to I4 indexes, and E1 and E2 other mistakes.
        title: A short name.
        judge: The function.
    """

    id: str
    title: str
    judge: Judge

    def __call__(self, facts: Facts) -> list[Finding]:
        """Return one finding for each target of the rule."""
        judgement = _judged(partial(self.judge, facts))
        return [
            replace(finding, id=self.id, title=self.title)
            for finding in (judgement if isinstance(judgement, list) else [judgement])
        ]


REGISTERED: list[Rule] = []


def rule(id_: str, title: str) -> Callable[[Judge], Judge]:
    """Register the decorated function as a rule."""

    def register(judge: Judge) -> Judge:
        REGISTERED.append(Rule(id_, title, judge))
        return judge

    return register


def _judged(judge: Callable[[], T]) -> T | Finding:
    try:
        return judge()
    except _Missing as missing_source:
        return missing_source.finding


def each_index(
    facts: Facts,
    judge: Callable[[IndexFacts], Finding],
    indexes: Iterable[IndexFacts] | None = None,
    none: str = NO_GSI,
    with_table: Callable[[], Finding] | None = None,
) -> list[Finding]:
    """Judge each index.

    Args:
        facts: The facts of the report.
        judge: The judgement of one index.
        indexes: The indexes; None for all GSIs.
        none: Why the rule is clear without an index.
        with_table: The judgement of the table, for a rule that has one.
    """
    results = [] if with_table is None else [_judged(with_table)]
    for index in indexes_of(facts) if indexes is None else indexes:
        results.append(replace(_judged(partial(judge, index)), target=index.name))
    return results or [clear(none)]


def indexes_of(facts: Facts) -> list[IndexFacts]:
    """Return the GSIs."""
    return [index for index in facts.table.indexes if index.kind == "GSI"]


def with_other_key(facts: Facts) -> list[IndexFacts]:
    """Return the GSIs whose partition key does not contain the table's."""
    return [index for index in indexes_of(facts) if facts.table.partition not in index.partition]


def share_of(hits: float, n: int, method: str) -> Estimate:
    """Return a share of n > 0 observations, with its interval."""
    share = statistics.share_of(round(min(hits, n)), n, method)
    if share is None:
        raise ValueError("a share of nothing")
    return share


def evidence(
    origin: Origin,
    signal: str,
    estimate: Estimate,
    threshold: float | None = None,
    *,
    window: float | None = None,
    where: str = "",
) -> Evidence:
    """Return an estimate as evidence."""
    return Evidence(
        origin,
        signal,
        estimate.value,
        estimate.low,
        None if math.isinf(estimate.high) else estimate.high,
        threshold,
        window,
        estimate.n,
        where=where,
    )


def percent(share: float) -> str:
    """Write a share as a percentage (0.4 as 40 %), small ones with one more digit."""
    if 0 < share < 0.0995:
        return f"{share * 100:.1f} %"
    return f"{share * 100:.0f} %"


def interval(estimate: Estimate) -> str:
    """Write a share with its interval, such as `80 % [76, 84]`."""
    if estimate.low == estimate.high:
        return percent(estimate.value)
    digits = 1 if estimate.high < 0.0995 else 0
    low, high = estimate.low * 100, estimate.high * 100
    return f"{percent(estimate.value)} [{low:.{digits}f}, {high:.{digits}f}]"


def more(sample: SampleFacts, rru: float) -> Price:
    """Return the price of an answer that the sample could not give.

    Where all partition keys have been found already, a sample with more read units reads no more
    until it has enough of them to read every item.

    Args:
        sample: The sample without an answer.
        rru: The read units that the rule needs in a usual table.
    """
    if sample.all_items:
        return Price(0.0, "")
    units = math.ceil(max(rru, MORE * sample.rru))
    if sample.all_keys:
        units = max(units, math.ceil(sample.all_units))
    return Price(units, f"--max-read-units {units}")


def counted_long_enough(facts: Facts) -> bool:
    """Return whether metrics cover a day of the table's life.

    Less than a day does not show how the table is usually used.
    """
    metrics = facts.metrics
    if isinstance(metrics, Absent):
        return False
    return metrics.ended - max(metrics.began, facts.table.created) >= DAY


def too_young() -> Price:
    """Return the price of an answer that metrics cannot give yet."""
    return Price(0.0, "use the table for a day, then run the same command again")


def not_counted(signal: Evidence) -> tuple[str, Price, Evidence]:
    """Return what to report where CloudWatch did not return some throttles."""
    return "CloudWatch did not report all throttles.", Price(0.0, FLAGS["metrics"]), signal


def throttles_of(
    metrics: MetricFacts, kinds: Iterable[str], causes: Iterable[Cause], target: str
) -> Throttles:
    """Return the sum of a target's throttles, and the time of the latest one."""
    keys = [(kind, cause, target) for kind in kinds for cause in causes]
    matching = [
        throttles
        for key, throttles in metrics.throttles.items()
        if key in keys and throttles.events > 0
    ]
    ends = [throttles.last for throttles in matching if throttles.last is not None]
    return Throttles(sum(throttles.events for throttles in matching), max(ends, default=None))


def all_are_known(
    metrics: MetricFacts, kinds: Iterable[str], causes: Iterable[Cause], target: str
) -> bool:
    """Return whether all of these throttles were counted.

    A throttle that was not counted may have happened.
    """
    return all(
        (kind, cause, target) in metrics.throttles
        for kind in kinds
        for cause in causes
        # CloudWatch has no such metric of an index.
        if target == TABLE or (kind, cause) != ("write", "account")
    )


def is_now(facts: Facts, throttles: Throttles) -> bool:
    """Return whether the latest throttle is less than an hour old."""
    return throttles.last is not None and facts.at - throttles.last < HOUR


def matters(facts: Facts, throttles: Throttles) -> bool:
    """Return whether throttles continue, or were more than a few."""
    return throttles.events > 0 and (is_now(facts, throttles) or throttles.events >= FEW_EVENTS)


def how_bad(facts: Facts, throttles: Throttles, now: Severity) -> Severity:
    """Return the severity of throttles: `now` if they continue, and medium if they are over."""
    return now if is_now(facts, throttles) else "medium"


def throttled(facts: Facts, metrics: MetricFacts, throttles: Throttles, what: str) -> Evidence:
    """Return throttles as evidence."""
    ago = ""
    if throttles.last is not None:
        ago = f", the last {max(0.0, facts.at - throttles.last) / HOUR:,.1f} h ago"
    return Evidence(
        "metrics",
        f"{what}{ago}",
        throttles.events,
        throttles.events,
        throttles.events,
        threshold=1.0,
        window=metrics.seconds,
    )


def in_words(facts: Facts, throttles: Throttles) -> str:
    """Return throttles in words, such as `30 times, the last under an hour ago`."""
    times = f"{throttles.events:,.0f} {'time' if throttles.events == 1 else 'times'}"
    if throttles.last is None:
        return times
    if is_now(facts, throttles):
        return f"{times}, the last under an hour ago"
    return f"{times}, the last {(facts.at - throttles.last) / HOUR:,.0f} h ago"
