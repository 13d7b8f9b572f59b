"""What an execution of ReportKeys says in its output, and what it counts. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from keyhop.report.findings import SEVERITIES, Finding, Report, Severity, worst_first
from keyhop.report.pages.baseline import FINE, FOUND, BaselineUnreadable, differences

MOST_TOLD = 20
"""Findings in an execution's output, the worst first; the report has all."""


def by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many of each severity were found, zeros too."""
    found = [one.severity for one in findings if one.status == "found"]
    return {severity: found.count(severity) for severity in SEVERITIES}


def new_high(report: Report, before: Mapping[str, Any] | None) -> list[Finding]:
    """What is found of severity high that the report before had not found so; all, if there was
    none that can be compared with. before: as JSON.
    """
    high = [one for one in report.findings if (one.status, one.severity) == ("found", "high")]
    if before is None:
        return high
    try:
        changed = differences(before, report)
    except BaselineUnreadable:  # of another version: its alarms were other ones
        return high
    return [one for one in (*changed.new, *changed.worse) if one.severity == "high"]


def outcome(report: Report, new: Iterable[Finding]) -> dict[str, Any]:
    """The findings first."""
    found = worst_first([one for one in report.findings if one.status == "found"])
    return {
        "findings": by_severity(report.findings),
        "new_high": [called(one) for one in new],
        "unknown": sum(one.status == "unknown" for one in report.findings),
        "found": [
            {
                "rule": one.id,
                "target": one.target,
                "severity": one.severity,
                "summary": one.summary,
            }
            for one in found[:MOST_TOLD]
        ],
        "read_units": report.spent.rru,
        "dollars": report.spent.dollars,
        "seconds": report.spent.seconds,
    }


def called(finding: Finding) -> str:
    """A6, or A9 of byCity."""
    return f"{finding.id} of {finding.target}" if finding.target else finding.id


def why_failed(report: Report, fail_on: Severity | None, status: int, page: str) -> str:
    """The sentence of an execution that was to fail so; empty if it was not. status: status_of."""
    if status == FINE:
        return ""
    if status != FOUND:
        return f"A rule remains unknown that more could be seen of (strict). The report is {page}."
    counts = ", ".join(f"{number} {name}" for name, number in by_severity(report.findings).items())
    return f"Found: {counts} (failOn {fail_on}). The report is {page}."
