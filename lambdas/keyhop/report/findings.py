"""The result of a rule: found, clear or unknown; with evidence, advice and money. Pure.

The result is `clear` only where an interval excludes the threshold. A source that is missing,
suppressed or too small never leads to `clear`, but to `unknown` with the price of an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["found", "clear", "unknown"]
Severity = Literal["high", "medium", "low", "info"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")
"""All severities, the worst first."""

LOOKED = "looked at"
"""The words in Report.sources for a source that was read; otherwise the reason why it was not."""

Origin = Literal[
    "control plane", "sample", "metrics", "insights", "stream", "code", "requests", "candidates"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that a rule has read.

    Attributes:
        source: The source of the figure.
        signal: What it is, in words; or why it is missing, if `value` is None.
        value: The figure; None if it is missing.
        low: The lower end of its interval.
        high: The upper end of its interval.
        threshold: The threshold of the rule.
        window: The seconds that it covers, if it is about a time.
        n: The number of observations.
        rru: The read units that it cost.
        where: The file and line, the index, or the digest of a key; "" for none.
    """

    source: Origin
    signal: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    window: float | None = None
    n: int = 0
    rru: float = 0.0
    where: str = ""


@dataclass(frozen=True, slots=True)
class Money:
    """Costs in US dollars, each None if it is not known.

    Attributes:
        today: The dollars a month, at the measured rate.
        advised: The dollars a month after the change.
        one_off: The dollars of the change.
        priced: The date of the prices, such as 2026-11-01.
    """

    today: float | None
    advised: float | None
    one_off: float | None
    priced: str


@dataclass(frozen=True, slots=True)
class Advice:
    """The steps against a problem.

    Attributes:
        patterns: P1 to P20, explained in docs/how-to/key-patterns.md.
        steps: Sentences, in order.
        command: A command to paste; "" for none.
        cost: The costs before and after.
    """

    patterns: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    command: str = ""
    cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The price of an answer.

    Attributes:
        rru: The read units.
        remedy: The option of the command, such as "--requests FILE".
    """

    rru: float
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule for one target.

    Attributes:
        id: The rule: "A1" to "A19", "H1" to "H7", "I1" and so on for indexes, "E1" for others.
        title: The anti-pattern, in a few words.
        status: Whether it was found.
        severity: How bad it is.
        target: The table ("") or an index.
        summary: One sentence with the figures.
        evidence: The figures.
        advice: What to do.
        price: The price of an answer, if it is unknown.
    """

    id: str
    title: str
    status: Status
    severity: Severity
    target: str
    summary: str = field(repr=False)  # It and the evidence may hold keys.
    evidence: tuple[Evidence, ...] = field(default=(), repr=False)
    advice: Advice | None = None
    price: Price | None = None


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort by status (found, unknown, clear), then the worst first, then by id."""
    statuses: tuple[Status, ...] = ("found", "unknown", "clear")
    return sorted(
        findings,
        key=lambda finding: (
            statuses.index(finding.status),
            SEVERITIES.index(finding.severity),
            finding.id[:1],
            int("0" + "".join(filter(str.isdecimal, finding.id))),  # A9 before A10
            finding.target,
        ),
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of the report.

    Attributes:
        rru: The read units of the table and its indexes.
        requests: The requests to all services.
        dollars: The price of these.
        seconds: The time that it took.
    """

    rru: float
    requests: int
    dollars: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report. Each output form is made only from this.

    Attributes:
        table: The table, as plain JSON.
        at: The time of the report in epoch seconds.
        spent: The cost of the report.
        estimates: Figures of the sample, by name.
        findings: The results of all rules.
        pictures: The data of the page's pictures as plain JSON, by name (pages/).
        sources: For each source that it was read, or why not.
        not_assessed: Sentences on what cannot be seen from outside.
        show_keys: How keys are written.
        options: The settings of the report.
    """

    table: Mapping[str, Any]
    at: float
    spent: Spent
    estimates: Mapping[str, Mapping[str, Any]]
    findings: tuple[Finding, ...]
    pictures: Mapping[str, Any]
    sources: Mapping[str, str]
    not_assessed: tuple[str, ...]
    show_keys: str
    options: Mapping[str, Any]
