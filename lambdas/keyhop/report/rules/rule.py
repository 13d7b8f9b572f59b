"""A rule of the report: its name, the sources that it needs, and its judgement. Pure.

A rule gives one of three judgements for each target (the table, or an index), made by `found`,
`clear` and `unknown`. The severity of a clear or an unknown judgement is info, as a severity
describes a problem.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from keyhop.report.facts import TABLE, Absent, Facts
from keyhop.report.findings import Advice, Evidence, Finding, Origin, Price, Severity, Status

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

FEW_UNITS = 300.0
"""The read units that most rules about shares of items need, with the reads that choose items."""


@dataclass(frozen=True, slots=True)
class Said:
    """A rule's report about one target: a Finding without the rule's name."""

    status: Status
    severity: Severity
    summary: str
    evidence: tuple[Evidence, ...] = ()
    advice: Advice | None = None
    price: Price | None = None
    target: str = TABLE


def found(
    severity: Severity,
    summary: str,
    *evidence: Evidence,
    advice: Advice | None = None,
    target: str = TABLE,
) -> Said:
    """Report that a threshold is exceeded."""
    return Said("found", severity, summary, evidence, advice, None, target)


def clear(summary: str, *evidence: Evidence, target: str = TABLE) -> Said:
    """Report that an interval, a complete count or the schema excludes the threshold."""
    return Said("clear", "info", summary, evidence, None, None, target)


def unknown(summary: str, price: Price, *evidence: Evidence, target: str = TABLE) -> Said:
    """Report that nothing excludes the threshold.

    Args:
        summary: A sentence for the reader.
        price: What an answer would cost.
        evidence: The figures that were read.
        target: The table, or the name of an index.
    """
    return Said("unknown", "info", summary, evidence, None, price, target)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and the function that applies it.

    Attributes:
        id: The number of the rule, such as A1.
        title: A short name.
        sources: The sources that can answer; each of them may be missing.
        why: The harm that it warns of.
        says: The function that judges the facts.
    """

    id: str
    title: str
    sources: tuple[Origin, ...]
    why: str
    says: Callable[[Facts], Iterable[Said]]

    def __call__(self, facts: Facts) -> list[Finding]:
        """Return one finding for each target of the rule."""
        return [
            Finding(
                self.id,
                self.title,
                report.status,
                report.severity,
                report.target,
                report.summary,
                report.evidence,
                report.advice,
                report.price,
            )
            for report in self.says(facts)
        ]


def price_of(absent: Absent, origin: Origin, rru: float = 0.0) -> Price:
    """Return the price of reading a source that was not read.

    Args:
        absent: Why the source is missing.
        origin: The name of the source.
        rru: The read units that it costs, unless the source gives them.
    """
    return Price(absent.rru or rru, absent.remedy or FLAGS[origin])


def missing(absent: Absent, origin: Origin, rru: float = 0.0, *, target: str = TABLE) -> Said:
    """Report an unknown because a source is missing."""
    signal = Evidence(origin, f"not seen: {absent.reason}")
    return unknown(
        f"Not known: {absent.reason.rstrip('.')}.",
        price_of(absent, origin, rru),
        signal,
        target=target,
    )
