"""What CloudWatch has counted, as rules ask for it. Pure."""

from collections.abc import Iterable

from keyhop.report.facts import TABLE, Absent, Cause, Facts, MetricFacts, Throttles
from keyhop.report.findings import Evidence, Price, Severity
from keyhop.report.rules.limits import DAY, HOUR
from keyhop.report.rules.rule import FLAGS

FEW_EVENTS = 10
"""Throttles of so few events, and not now, are a short burst: splitting for heat takes minutes."""


def counted_long_enough(facts: Facts) -> bool:
    """Whether metrics cover a day of the table's life: less of it says nothing of a usual day."""
    metrics = facts.metrics
    if isinstance(metrics, Absent):
        return False
    return metrics.ended - max(metrics.began, facts.table.created) >= DAY


def too_young() -> Price:
    """Of what metrics could not say yet."""
    return Price(0.0, "a day of use, and then the same command again")


def not_counted(signal: Evidence) -> tuple[str, Price, Evidence]:
    """What to say where CloudWatch did not tell some throttles."""
    return "CloudWatch did not tell all throttles.", Price(0.0, FLAGS["metrics"]), signal


def throttles_of(
    metrics: MetricFacts, kinds: Iterable[str], causes: Iterable[Cause], target: str
) -> Throttles:
    """Those of a target, added up; last: of all."""
    wanted = [(kind, cause, target) for kind in kinds for cause in causes]
    seen = [one for key, one in metrics.throttles.items() if key in wanted and one.events > 0]
    ends = [one.last for one in seen if one.last is not None]
    return Throttles(sum(one.events for one in seen), max(ends, default=None))


def all_are_known(
    metrics: MetricFacts, kinds: Iterable[str], causes: Iterable[Cause], target: str
) -> bool:
    """Whether all of these throttles were counted: what was not is not known to be none."""
    return all(
        (kind, cause, target) in metrics.throttles
        for kind in kinds
        for cause in causes
        # CloudWatch has no such metric of an index.
        if target == TABLE or (kind, cause) != ("write", "account")
    )


def is_now(facts: Facts, throttles: Throttles) -> bool:
    """Whether the last one is under an hour old."""
    return throttles.last is not None and facts.at - throttles.last < HOUR


def how_bad(facts: Facts, throttles: Throttles, now: Severity) -> Severity:
    """now: where it goes on. Older ones: medium; a few of them: info, a short burst."""
    if is_now(facts, throttles):
        return now
    return "medium" if throttles.events >= FEW_EVENTS else "info"


def throttled(facts: Facts, metrics: MetricFacts, throttles: Throttles, what: str) -> Evidence:
    """As evidence."""
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
    """30 times, the last under an hour ago."""
    times = f"{throttles.events:,.0f} {'time' if throttles.events == 1 else 'times'}"
    if throttles.last is None:
        return times
    if is_now(facts, throttles):
        return f"{times}, the last under an hour ago"
    return f"{times}, the last {(facts.at - throttles.last) / HOUR:,.0f} h ago"
