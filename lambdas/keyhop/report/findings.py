"""What a report says of one rule: found, clear or unknown; with evidence, advice and money. Pure.

`clear` only where an interval excludes the threshold. A source that is missing, suppressed or did
not see enough never gives `clear`: it is `unknown`, and says what knowing would cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["found", "clear", "unknown"]
Severity = Literal["high", "medium", "low", "info"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")
"""The worst first."""

LOOKED = "looked at"
"""The words in Report.sources for a source that was read; otherwise the reason why it was not."""

Origin = Literal[
    "control plane", "sample", "metrics", "insights", "stream", "code", "requests", "candidates"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One figure that was looked at. signal: what it is, in words. value: None if it could not be
    had; then `signal` says why. window: seconds that it covers, if it is about a time. n:
    observations. rru: what it cost. threshold: against which it is held.
    where: file and line, index, or digest of a key, as far as there is such a place.
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
    """US dollars. today, advised: a month, at the rate that was seen; one_off: for the change.
    priced: the date of the prices, as 2026-11-01. None where it cannot be said.
    """

    today: float | None
    advised: float | None
    one_off: float | None
    priced: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do. patterns: P1 to P20, explained in docs/key-patterns.md. steps: sentences, in
    order. command: to paste, "" for none.
    """

    patterns: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    command: str = ""
    cost: Money | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What knowing would take: read units, and what to say to the command ("--requests FILE")."""

    rru: float
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says of one target: the table ("") or an index.

    id: of the rule, "A1" to "A19", "H1" to "H7", "I1" and so on for indexes, "E1" for others.
    title: the anti-pattern, in a few words. summary: one sentence with the figures. price: of an
    unknown only.
    """

    id: str
    title: str
    status: Status
    severity: Severity
    target: str
    summary: str
    evidence: tuple[Evidence, ...] = ()
    advice: Advice | None = None
    price: Price | None = None


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Found before unknown before clear; in each the worst first, then by id."""
    statuses: tuple[Status, ...] = ("found", "unknown", "clear")
    return sorted(
        findings,
        key=lambda one: (
            statuses.index(one.status),
            SEVERITIES.index(one.severity),
            one.id[:1],
            int("0" + "".join(filter(str.isdecimal, one.id))),  # A9 before A10
            one.target,
        ),
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What the report itself cost. rru: of the table and its indexes. requests: to all services."""

    rru: float
    requests: int
    dollars: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """All of it; each output form is made of this alone. at: epoch seconds. show_keys: how keys
    are written in it. options: what was asked for. pictures: data for the page's pictures, as plain
    JSON by name (pages/). not_assessed: sentences on what cannot be seen from outside.
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
