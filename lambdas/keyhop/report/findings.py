"""The result of a rule: found, clear or unknown; with evidence, advice and money. Pure.

The result is `clear` only where an interval excludes the threshold. A source that is missing,
suppressed or too small never leads to `clear`, but to `unknown` with the price of an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

Status = Literal["found", "clear", "unknown"]
Severity = Literal["high", "medium", "low", "info"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")
"""All severities, the worst first."""

LOOKED = "looked at"
"""The words in Report.sources for a source that was read; otherwise the reason why it was not."""

Origin = Literal[
    "control plane", "sample", "metrics", "insights", "stream", "code", "requests", "candidates"
]

READ_UNITS = "read units, as DynamoDB charged them"
"""The fields of the classes below are described by the words of the published schema."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that a rule has read. Without a value, `signal` says why it is missing."""

    source: Origin
    signal: str
    value: float | None = None
    low: float | None = None
    high: Annotated[float | None, "also null without an upper end"] = None
    threshold: Annotated[float | None, "the limit that the value is compared with"] = None
    window: Annotated[float | None, "seconds that it covers"] = None
    n: Annotated[int, "observations"] = 0
    where: Annotated[str, "file and line, index, or digest of a key"] = ""


@dataclass(frozen=True, slots=True)
class Money:
    """Costs at the measured rate today and after a change, and of the change; None if not known."""

    today: Annotated[float | None, "US dollars a month"]
    advised: Annotated[float | None, "US dollars a month"]
    one_off: Annotated[float | None, "US dollars"]
    priced: Annotated[str, "the date of the prices"]


@dataclass(frozen=True, slots=True)
class Advice:
    """The steps against a problem, in order, each a sentence."""

    patterns: Annotated[tuple[str, ...], "P1 to P20, as docs/how-to/key-patterns.md has them"] = ()
    steps: tuple[str, ...] = ()
    command: Annotated[str, "to paste; empty for none"] = ""
    cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """The price of an answer."""

    rru: Annotated[float, READ_UNITS]
    remedy: Annotated[str, "the flag or the setting; empty if there is none"]


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
    """The cost of the report itself."""

    rru: Annotated[float, READ_UNITS]
    requests: Annotated[int, "to all services"]
    dollars: Annotated[float, "US dollars"]
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
