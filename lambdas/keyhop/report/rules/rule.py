"""A rule of the report: what it is called, what it needs, and how it judges. Pure.

A rule says of each target (the table, or an index) one of three things, made by `found`, `clear`
and `unknown`. A clear or an unknown is of severity info: a severity is of what was found.
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
"""With what a source speaks, where it does not say so itself."""

FEW_UNITS = 300.0
"""Read units that most rules about shares of items want, with the reads that find the places."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a rule says of one target; a Finding but for the rule's own name."""

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
    """The threshold is passed."""
    return Said("found", severity, summary, evidence, advice, None, target)


def clear(summary: str, *evidence: Evidence, target: str = TABLE) -> Said:
    """The threshold is excluded, by an interval, a complete count or the table's own schema."""
    return Said("clear", "info", summary, evidence, None, None, target)


def unknown(summary: str, price: Price, *evidence: Evidence, target: str = TABLE) -> Said:
    """Nothing excludes the threshold. price: what it takes to know."""
    return Said("unknown", "info", summary, evidence, None, price, target)


@dataclass(frozen=True, slots=True)
class Rule:
    """why: what is bad about it. sources: those that can tell; any may be missing."""

    id: str
    title: str
    sources: tuple[Origin, ...]
    why: str
    says: Callable[[Facts], Iterable[Said]]

    def __call__(self, facts: Facts) -> list[Finding]:
        """One finding for each target that it is about."""
        return [
            Finding(
                self.id,
                self.title,
                said.status,
                said.severity,
                said.target,
                said.summary,
                said.evidence,
                said.advice,
                said.price,
            )
            for said in self.says(facts)
        ]


def price_of(absent: Absent, origin: Origin, rru: float = 0.0) -> Price:
    """Of a source that was not looked at. rru: what it takes, unless the source itself says so."""
    return Price(absent.rru or rru, absent.remedy or FLAGS[origin])


def missing(absent: Absent, origin: Origin, rru: float = 0.0, *, target: str = TABLE) -> Said:
    """Unknown, as a source is missing."""
    signal = Evidence(origin, f"not seen: {absent.reason}")
    return unknown(
        f"Not known: {absent.reason.rstrip('.')}.",
        price_of(absent, origin, rru),
        signal,
        target=target,
    )
