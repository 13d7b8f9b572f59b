"""Tests of the changes since an older report, and of the exit status of the command."""

import json
from dataclasses import replace
from typing import Any

import pytest
from keyhop.errors import BaselineUnreadable
from keyhop.report.estimate import Estimate
from keyhop.report.findings import Finding, Price
from keyhop.report.pages.baseline import differences, status_of
from keyhop.report.pages.document import to_json

from tests.unit.report.pages.example import report


def finding(
    rule_id: str,
    severity: Any = "medium",
    status: Any = "found",
    target: str = "",
    price: Price | None = None,
) -> Finding:
    return Finding(rule_id, "a title", status, severity, target, "A sentence.", price=price)


def baseline_of(*findings: Finding, **fields: Any) -> Any:
    return json.loads(json.dumps(to_json(report(findings=findings, **fields))))


def test_findings_are_new_worse_better_or_gone() -> None:
    baseline = baseline_of(finding("A1"), finding("A2"), finding("A3"), finding("A4"))
    current = report(
        findings=(
            finding("A1", "high"),
            finding("A2", "low"),
            finding("A3"),
            finding("A4", status="clear"),
            finding("A5"),
        )
    )
    changes = differences(baseline, current)
    assert [change.id for change in changes.new] == ["A5"]
    assert [change.id for change in changes.worse] == ["A1"]
    assert [change.id for change in changes.better] == ["A2"]
    assert changes.gone == (("A4", ""),)
    assert changes.lost == ()


def test_a_finding_that_is_unknown_now_is_lost_and_not_gone() -> None:
    current = report(findings=(finding("A4", status="unknown"),))
    changes = differences(baseline_of(finding("A4")), current)
    assert changes.gone == ()
    assert changes.lost == (("A4", ""),)


def test_the_same_rule_for_another_index_is_another_finding() -> None:
    current = report(findings=(finding("A9", target="byStatus"),))
    changes = differences(baseline_of(finding("A9", target="byCity")), current)
    assert [change.target for change in changes.new] == ["byStatus"]
    assert changes.gone == (("A9", "byCity"),)


def test_a_finding_that_was_clear_or_unknown_before_is_new() -> None:
    baseline = baseline_of(finding("A1", status="clear"), finding("A2", status="unknown"))
    changes = differences(baseline, report(findings=(finding("A1"), finding("A2"))))
    assert [change.id for change in changes.new] == ["A1", "A2"]


@pytest.mark.parametrize(
    ("current", "is_changed"),
    [
        (Estimate(100, 90, 110, 9, "m"), False),
        (Estimate(120, 109, 130, 9, "m"), False),
        (Estimate(130, 120, 140, 9, "m"), True),
        (Estimate(50, 40, 60, 9, "m"), True),
        (Estimate.at_least(50, 9, "m"), False),
        (Estimate.at_least(111, 9, "m"), True),
    ],
)
def test_an_estimate_has_changed_only_if_the_intervals_do_not_overlap(
    current: Estimate, is_changed: bool
) -> None:
    baseline = baseline_of(estimates={"keys": Estimate(100, 90, 110, 9, "m").to_json()})
    changes = differences(baseline, report(estimates={"keys": current.to_json()}))
    assert [change.name for change in changes.estimates] == (["keys"] if is_changed else [])


@pytest.mark.parametrize(
    "baseline",
    [None, [], {}, {"schema": "keyhop-report/0"}, {"schema": 7}, "text", {"schema": None}],
)
def test_another_schema_gives_one_clear_sentence(baseline: Any) -> None:
    with pytest.raises(BaselineUnreadable, match="make a new one with `keyhop report TABLE"):
        differences(baseline, report())


def test_a_damaged_baseline_gives_one_clear_sentence() -> None:
    for field in ("findings", "estimates", "table"):
        for wrong in (None, 3, [3], {"keys": 3}):
            with pytest.raises(BaselineUnreadable):
                differences({**baseline_of(finding("A1")), field: wrong}, report())


def test_a_baseline_of_another_table_is_refused() -> None:
    with pytest.raises(BaselineUnreadable, match="for the table 'Orders', and not for 'Others'"):
        differences(baseline_of(finding("A1")), report(table={"name": "Others"}))


FLAG, NO_FLAG = Price(0, "--code DIR"), Price(0, "")


@pytest.mark.parametrize(
    ("findings", "fail_on", "strict", "status"),
    [
        ((finding("A1", "high"),), None, False, 0),
        ((finding("A1", "high"),), "high", False, 5),
        ((finding("A1", "medium"),), "high", False, 0),
        ((finding("A1", "medium"),), "low", False, 5),
        ((finding("A1", "high", "unknown", price=FLAG),), "info", False, 0),
        ((finding("A1", "high", "unknown", price=FLAG),), "info", True, 6),
        ((finding("A1", "high", "unknown", price=NO_FLAG),), "info", True, 0),
        ((finding("A1", "high", "unknown"),), "info", True, 0),
        ((finding("A1", "high"), finding("A2", "low", "unknown", price=FLAG)), "high", True, 5),
        ((finding("A1", "high"), finding("A2", "low", "unknown", price=FLAG)), None, True, 6),
    ],
)
def test_the_exit_status(
    findings: tuple[Finding, ...], fail_on: Any, strict: bool, status: int
) -> None:
    assert status_of(report(findings=findings), fail_on, strict) == status


def test_with_a_baseline_only_new_and_worse_findings_count() -> None:
    before = (finding("A1", "high"), finding("A2", "medium"))

    def status(fail_on: Any, *findings: Finding) -> int:
        current = report(findings=findings)
        return status_of(current, fail_on, baseline=differences(baseline_of(*before), current))

    assert status("high", *before) == 0
    assert status("high", before[0], replace(before[1], severity="high")) == 5
    assert status("high", *before, finding("A3", "high")) == 5
    assert status(None, *before, finding("A3", "high")) == 0
