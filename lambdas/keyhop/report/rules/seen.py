"""What CloudWatch has counted, in the form that rules need. Pure."""

from collections.abc import Iterable

from keyhop.report.facts import TABLE, Absent, Cause, Facts, MetricFacts, Throttles
from keyhop.report.findings import Evidence, Price, Severity
from keyhop.report.rules.limits import DAY, HOUR
from keyhop.report.rules.rule import FLAGS

FEW_EVENTS = 10
"""Fewer past throttles than this are a short burst: splitting for heat takes minutes."""


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
    return Price(0.0, "a day of use, and then the same command again")


def not_counted(signal: Evidence) -> tuple[str, Price, Evidence]:
    """Return what to report where CloudWatch did not return some throttles."""
    return "CloudWatch did not tell all throttles.", Price(0.0, FLAGS["metrics"]), signal


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


def how_bad(facts: Facts, throttles: Throttles, now: Severity) -> Severity:
    """Return the severity of throttles.

    Args:
        facts: The facts of the report.
        throttles: The throttles to judge.
        now: The severity if they continue. Older ones are medium; a few older ones are info.
    """
    if is_now(facts, throttles):
        return now
    return "medium" if throttles.events >= FEW_EVENTS else "info"


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


def told(facts: Facts, throttles: Throttles) -> str:
    """Return throttles in words, such as `30 times, the last under an hour ago`."""
    times = f"{throttles.events:,.0f} {'time' if throttles.events == 1 else 'times'}"
    if throttles.last is None:
        return times
    if is_now(facts, throttles):
        return f"{times}, the last under an hour ago"
    return f"{times}, the last {(facts.at - throttles.last) / HOUR:,.0f} h ago"
