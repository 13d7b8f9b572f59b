"""Tests of the latest report on a table: its folder, its widget, and the counts of findings."""

import json
import os
from typing import Any

import pytest
from handlers import show_report
from handlers.telemetry import report_findings
from keyhop.report.latest import PAGE, WIDGETS, Latest, folder_of
from keyhop.storage.store import Memory

from tests.unit.invocations import Context

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/Orders"


def test_tables_of_the_same_name_have_separate_folders() -> None:
    assert folder_of("Orders") == "Orders"
    assert folder_of(ARN) == "us-east-1/123456789012/Orders"


def test_the_latest_report_replaces_the_one_before() -> None:
    latest = Latest(Memory())
    assert (latest.report(), latest.widget("light")) == (None, None)
    latest.keep({PAGE: "<p>old</p>", WIDGETS["light"]: "<i>old</i>"})
    latest.keep({PAGE: "<p>new</p>", WIDGETS["light"]: "<i>ü</i>"})
    assert latest.widget("light") == latest.widget("of tomorrow") == "<i>ü</i>"


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Latest:
    monkeypatch.setenv("KEYHOP_BUCKET", "results")
    monkeypatch.setenv("KEYHOP_TABLES", json.dumps(["Orders", ARN.replace("Orders", "Far")]))
    latest = Latest(Memory())

    def latest_in(s3: Any, bucket: str, table: str) -> Latest:
        assert (bucket, table) == ("results", "Orders")
        return latest

    monkeypatch.setattr(show_report, "latest_in", latest_in)
    monkeypatch.setattr(show_report, "s3_client", lambda: None)
    assert os.environ["KEYHOP_BUCKET"] == "results"
    return latest


def show(**parameters: Any) -> str:
    return str(show_report.handler({**parameters, "widgetContext": {"theme": "dark"}}, Context()))


def test_the_widget_is_that_of_the_latest_report(dashboard: Latest) -> None:
    assert "no report on Orders yet" in show(table="Orders")
    dashboard.keep({WIDGETS["dark"]: "<svg/>", WIDGETS["light"]: "<b/>"})
    assert show(table="Orders") == "<svg/>"


def test_the_widget_of_a_table_without_reports_explains_them(dashboard: Latest) -> None:
    html = show(table="<b>Other")
    assert "report" in html
    assert "<b>" not in html


def test_the_widget_describes_its_parameters(dashboard: Latest) -> None:
    assert "table: Orders" in show(describe=True)


def test_findings_are_counted_by_severity_including_zeros(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A zero replaces the count of the report before. New findings of severity high are also
    counted for all tables together, for the alarm."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Keyhop")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "enumerate-keys")
    report_findings(ARN, {"high": 1, "medium": 0}, new_high=1)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    counts = [(line["Severity"], line["Findings"]) for line in lines if "Findings" in line]
    assert counts == [("high", [1.0]), ("medium", [0.0])]
    (new,) = [line for line in lines if "NewHighFindings" in line]
    assert new["NewHighFindings"] == [1.0]
    (metric,) = new["_aws"]["CloudWatchMetrics"]
    assert [sorted(names) for names in metric["Dimensions"]] == [["service"], ["service", "table"]]
    report_findings("Orders", {}, new_high=0)
    assert capsys.readouterr().out == ""
