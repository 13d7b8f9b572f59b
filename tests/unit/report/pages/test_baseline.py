"""What has changed since an older report, and what the command ends with."""

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


def finding(id_: str, severity: Any = "medium", status: Any = "found", **more: Any) -> Finding:
    return Finding(id_, "a title", status, severity, more.pop("target", ""), "A sentence.", **more)


def old(*findings: Finding, **more: Any) -> Any:
    return json.loads(json.dumps(to_json(report(findings=findings, **more))))


def test_new_worse_better_and_gone() -> None:
    before = old(finding("A1"), finding("A2"), finding("A3"), finding("A4"))
    now = report(
        findings=(
            finding("A1", "high"),
            finding("A2", "low"),
            finding("A3"),
            finding("A4", status="clear"),
            finding("A5"),
        )
    )
    found = differences(before, now)
    assert [one.id for one in found.new] == ["A5"]
    assert [one.id for one in found.worse] == ["A1"]
    assert [one.id for one in found.better] == ["A2"]
    assert found.gone == (("A4", ""),)
    assert found.lost == ()


def test_what_was_found_and_is_not_known_now_has_not_gone() -> None:
    found = differences(old(finding("A4")), report(findings=(finding("A4", status="unknown"),)))
    assert found.gone == ()
    assert found.lost == (("A4", ""),)


def test_the_same_rule_of_another_index_is_another_finding() -> None:
    found = differences(
        old(finding("A9", target="byCity")), report(findings=(finding("A9", target="byStatus"),))
    )
    assert [one.target for one in found.new] == ["byStatus"]
    assert found.gone == (("A9", "byCity"),)


def test_what_was_only_clear_or_unknown_before_is_new() -> None:
    before = old(finding("A1", status="clear"), finding("A2", status="unknown"))
    found = differences(before, report(findings=(finding("A1"), finding("A2"))))
    assert [one.id for one in found.new] == ["A1", "A2"]


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        (Estimate(100, 90, 110, 9, "m"), False),
        (Estimate(120, 109, 130, 9, "m"), False),
        (Estimate(130, 120, 140, 9, "m"), True),
        (Estimate(50, 40, 60, 9, "m"), True),
        (Estimate.at_least(50, 9, "m"), False),
        (Estimate.at_least(111, 9, "m"), True),
    ],
)
def test_an_estimate_has_changed_only_where_intervals_have_nothing_in_common(
    now: Estimate, changes: bool
) -> None:
    before = old(estimates={"keys": Estimate(100, 90, 110, 9, "m").to_json()})
    found = differences(before, report(estimates={"keys": now.to_json()}))
    assert [one.name for one in found.estimates] == (["keys"] if changes else [])


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
                differences({**old(finding("A1")), field: wrong}, report())


def test_a_baseline_of_another_table_is_refused() -> None:
    before = old(finding("A1"))
    with pytest.raises(BaselineUnreadable, match="for the table 'Orders', and not for 'Others'"):
        differences(before, report(table={"name": "Others"}))


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


def test_with_a_baseline_only_what_is_new_or_worse_counts() -> None:
    was = (finding("A1", "high"), finding("A2", "medium"))
    same = report(findings=was)
    assert status_of(same, "high", baseline=differences(old(*was), same)) == 0
    worse = report(findings=(was[0], replace(was[1], severity="high")))
    assert status_of(worse, "high", baseline=differences(old(*was), worse)) == 5
    new = report(findings=(*was, finding("A3", "high")))
    assert status_of(new, "high", baseline=differences(old(*was), new)) == 5
    assert status_of(new, None, baseline=differences(old(*was), new)) == 0
