"""The output of an execution of ReportKeys, and the counts in it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from keyhop.report.findings import SEVERITIES, Finding, Report, Severity, worst_first
from keyhop.report.pages.baseline import FINE, FOUND, BaselineUnreadable, differences

MOST_TOLD = 20
"""The maximum number of findings in an execution's output; the report has all."""


def by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Return how many findings of each severity were found, zeros included."""
    severities = [finding.severity for finding in findings if finding.status == "found"]
    return {severity: severities.count(severity) for severity in SEVERITIES}


def new_high(report: Report, before: Mapping[str, Any] | None) -> list[Finding]:
    """Return the findings of severity high that the previous report did not have.

    Args:
        report: The report.
        before: The previous report as JSON. If it is missing or cannot be compared, the result has
            every such finding.
    """
    high = [
        finding
        for finding in report.findings
        if (finding.status, finding.severity) == ("found", "high")
    ]
    if before is None:
        return high
    try:
        changed = differences(before, report)
    except BaselineUnreadable:  # another version has other alarms
        return high
    return [finding for finding in (*changed.new, *changed.worse) if finding.severity == "high"]


def outcome(report: Report, new: Iterable[Finding]) -> dict[str, Any]:
    """Return the output of an execution, with the findings first."""
    problems = worst_first([finding for finding in report.findings if finding.status == "found"])
    return {
        "findings": by_severity(report.findings),
        "new_high": [called(finding) for finding in new],
        "unknown": sum(finding.status == "unknown" for finding in report.findings),
        "found": [
            {
                "rule": finding.id,
                "target": finding.target,
                "severity": finding.severity,
                "summary": finding.summary,
            }
            for finding in problems[:MOST_TOLD]
        ],
        "read_units": report.spent.rru,
        "dollars": report.spent.dollars,
        "seconds": report.spent.seconds,
    }


def called(finding: Finding) -> str:
    """Name a finding, such as `A6` or `A9 of byCity`."""
    return f"{finding.id} of {finding.target}" if finding.target else finding.id


def why_failed(report: Report, fail_on: Severity | None, status: int, page: str) -> str:
    """Return why an execution has failed, in a sentence; "" if it has not.

    Args:
        report: The report.
        fail_on: The severity at which it fails.
        status: The result of `status_of`.
        page: The address of the report's page.
    """
    if status == FINE:
        return ""
    if status != FOUND:
        return f"A rule remains unknown that more could be seen of (strict). The report is {page}."
    counts = ", ".join(f"{number} {name}" for name, number in by_severity(report.findings).items())
    return f"Found: {counts} (failOn {fail_on}). The report is {page}."
