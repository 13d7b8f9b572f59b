"""What has changed since an older report, and what that means for the exit status. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.errors import CannotStart
from keyhop.report.findings import SEVERITIES, Finding, Report, Severity
from keyhop.report.pages.document import SCHEMA, plain

FINE, FOUND, OPEN = 0, 5, 6
"""Exit statuses: nothing to say; findings at or above --fail-on; with --strict, what is unknown."""

AGAIN = "make a new one with `keyhop report TABLE --format json`"

Which = tuple[str, str]
"""A finding's rule and target."""


class BaselineUnreadable(CannotStart):
    """An older report that cannot be compared with; the sentence says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Changed:
    """An estimate whose two intervals have nothing in common."""

    name: str
    before: Mapping[str, Any]
    now: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Differences:
    """new, worse, better: as they are now. gone: (rule, target) found before and clear now, or no
    rule's any more. lost: found before, and not known now: that is no betterment."""

    new: tuple[Finding, ...] = ()
    worse: tuple[Finding, ...] = ()
    better: tuple[Finding, ...] = ()
    gone: tuple[Which, ...] = ()
    lost: tuple[Which, ...] = ()
    estimates: tuple[Changed, ...] = ()


def differences(old: Any, new: Report) -> Differences:
    """Between an older report's JSON and a report; raises BaselineUnreadable."""
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
    unknown = {(one.id, one.target) for one in new.findings if one.status == "unknown"}
    both = [(finding, before[which]) for which, finding in now.items() if which in before]
    missing = [which for which in before if which not in now]
    return Differences(
        new=tuple(finding for which, finding in now.items() if which not in before),
        worse=tuple(one for one, was in both if _rank(one.severity) < _rank(was)),
        better=tuple(one for one, was in both if _rank(one.severity) > _rank(was)),
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
    """FOUND if a finding is at or above `fail_on`; of those with a baseline only new and worse
    ones. Else, if strict, OPEN if a rule is unknown that a flag of the command would make known:
    what cannot be known from outside, whatever is given, does not count.
    """
    if baseline is None:
        counting = tuple(one for one in report.findings if one.status == "found")
    else:
        counting = baseline.new + baseline.worse
    if fail_on is not None and any(_rank(one.severity) <= _rank(fail_on) for one in counting):
        return FOUND
    return OPEN if strict and any(could_be_known(one) for one in report.findings) else FINE


def could_be_known(finding: Finding) -> bool:
    """Whether it is unknown, and something can be said to the command that ends that."""
    return finding.status == "unknown" and finding.price is not None and bool(finding.price.remedy)


def check(old: Any, table: str) -> None:
    """Whether it is a report of that table, as far as can be seen before there is a new one.

    Raises BaselineUnreadable.
    """
    schema = old.get("schema") if isinstance(old, Mapping) else None
    if schema != SCHEMA:
        what = f"has the schema {schema!r}" if schema else "is no report of Keyhop's"
        raise BaselineUnreadable(f"The baseline {what}; this version reads {SCHEMA!r}: {AGAIN}.")
    told = old.get("table")
    name = told.get("name") if isinstance(told, Mapping) else None
    if name != table:
        raise BaselineUnreadable(f"The baseline is of the table {name!r}, and not of {table!r}.")


def _found_before(old: Mapping[str, Any]) -> dict[Which, str]:
    before: dict[Which, str] = {}
    for one in old["findings"]:
        which = (one["id"], one["target"])
        if one["status"] == "found" and (
            which not in before or _rank(one["severity"]) < _rank(before[which])
        ):
            before[which] = one["severity"]
    return before


def _rank(severity: str) -> int:
    """0 is the worst."""
    return [*SEVERITIES].index(severity)  # type: ignore[arg-type]


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Changed]:
    for name, now in new.items():
        before = old.get(name)
        if before and _apart(before, now):
            yield Changed(name, before, now)


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether no value is in both intervals; a high end of null is endless."""
    return _ends_below(one, other) or _ends_below(other, one)


def _ends_below(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    high, low = one.get("high"), other.get("low")
    return high is not None and low is not None and high < low
