"""The changes since an older report, and the exit status."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.errors import BaselineUnreadable
from keyhop.report.findings import SEVERITIES, Finding, Report, Severity
from keyhop.report.pages.document import SCHEMA, plain

FINE, FOUND, OPEN = 0, 5, 6
"""Exit statuses: no finding; findings at or above --fail-on; unknown rules with --strict."""

AGAIN = "make a new one with `keyhop report TABLE --format json`"

Which = tuple[str, str]
"""A finding's rule and target."""


@dataclass(frozen=True, slots=True)
class Changed:
    """An estimate whose two intervals have no value in common."""

    name: str
    before: Mapping[str, Any]
    now: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Differences:
    """The changes between two reports.

    Attributes:
        new: Findings that are new.
        worse: Findings that are more severe now.
        better: Findings that are less severe now.
        gone: Findings that are clear now, or whose rule does not exist any more.
        lost: Findings that are unknown now, which is not an improvement.
        estimates: Estimates that have changed.
    """

    new: tuple[Finding, ...] = ()
    worse: tuple[Finding, ...] = ()
    better: tuple[Finding, ...] = ()
    gone: tuple[Which, ...] = ()
    lost: tuple[Which, ...] = ()
    estimates: tuple[Changed, ...] = ()


def differences(old: Any, new: Report) -> Differences:
    """Return the changes from the JSON of an older report; raise BaselineUnreadable."""
    check(old, str(new.table.get("name")))
    try:
        return _differences(old, new)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BaselineUnreadable(f"The baseline is damaged: {AGAIN}.") from error


def _differences(old: Mapping[str, Any], new: Report) -> Differences:
    before = _found_before(old)
    now: dict[Which, Finding] = {}
    for finding in new.findings:
        which = (finding.id, finding.target)
        if finding.status == "found" and (
            which not in now or _rank(finding.severity) < _rank(now[which].severity)
        ):
            now[which] = finding
    unknown = {
        (finding.id, finding.target) for finding in new.findings if finding.status == "unknown"
    }
    both = [(finding, before[which]) for which, finding in now.items() if which in before]
    missing = [which for which in before if which not in now]
    return Differences(
        new=tuple(finding for which, finding in now.items() if which not in before),
        worse=tuple(finding for finding, was in both if _rank(finding.severity) < _rank(was)),
        better=tuple(finding for finding, was in both if _rank(finding.severity) > _rank(was)),
        gone=tuple(which for which in missing if which not in unknown),
        lost=tuple(which for which in missing if which in unknown),
        estimates=tuple(_changed(old["estimates"], plain(new.estimates))),
    )


def status_of(
    report: Report,
    fail_on: Severity | None = None,
    strict: bool = False,
    baseline: Differences | None = None,
) -> int:
    """Return the exit status of a report.

    It is FOUND if a finding is at or above `fail_on`; with a baseline only new and worse findings
    count. Otherwise it is OPEN, if strict, if a flag of the command would answer an unknown rule.
    """
    if baseline is None:
        counting = tuple(finding for finding in report.findings if finding.status == "found")
    else:
        counting = baseline.new + baseline.worse
    if fail_on is not None and any(
        _rank(finding.severity) <= _rank(fail_on) for finding in counting
    ):
        return FOUND
    return OPEN if strict and any(could_be_known(finding) for finding in report.findings) else FINE


def could_be_known(finding: Finding) -> bool:
    """Return whether a finding is unknown, and a flag of the command would answer it."""
    return finding.status == "unknown" and finding.price is not None and bool(finding.price.remedy)


def check(old: Any, table: str) -> None:
    """Raise BaselineUnreadable if it is not a report of this table, before there is a new one."""
    schema = old.get("schema") if isinstance(old, Mapping) else None
    if schema != SCHEMA:
        what = f"has the schema {schema!r}" if schema else "is not a report of Keyhop"
        raise BaselineUnreadable(f"The baseline {what}; this version reads {SCHEMA!r}: {AGAIN}.")
    old_table = old.get("table")
    name = old_table.get("name") if isinstance(old_table, Mapping) else None
    if name != table:
        raise BaselineUnreadable(f"The baseline is for the table {name!r}, and not for {table!r}.")


def _found_before(old: Mapping[str, Any]) -> dict[Which, str]:
    before: dict[Which, str] = {}
    for finding in old["findings"]:
        which = (finding["id"], finding["target"])
        if finding["status"] == "found" and (
            which not in before or _rank(finding["severity"]) < _rank(before[which])
        ):
            before[which] = finding["severity"]
    return before


def _rank(severity: str) -> int:
    """Return the rank of a severity; 0 is the worst."""
    return [*SEVERITIES].index(severity)  # type: ignore[arg-type]


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Changed]:
    for name, now in new.items():
        before = old.get(name)
        if before and _apart(before, now):
            yield Changed(name, before, now)


def _apart(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Return whether no value is in both intervals; an upper end of null is infinite."""
    return _ends_below(a, b) or _ends_below(b, a)


def _ends_below(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    high, low = a.get("high"), b.get("low")
    return high is not None and low is not None and high < low
