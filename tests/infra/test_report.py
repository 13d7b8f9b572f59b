"""Tests of the deployment of ReportKeys: settings, permissions, schedule and dashboard."""

import json
from typing import Any

import pytest
from keyhop.report.sources import control_plane, insights, metrics, stream

from infra.config import Config, ConfigError, Reports
from infra.monitoring import ANY_TABLE
from tests.infra.conftest import FAR_TABLE
from tests.infra.template import (
    REPORT_FUNCTIONS,
    Deployed,
    function_arn,
    states_arn,
    table_arn,
)

WEEKLY = "rate(7 days)"


def report_of(report: Any) -> Any:
    return Config.from_context({"tables": [{"table": "Orders", "report": report}]}).tables[0].report


@pytest.mark.parametrize(
    ("report", "reports"),
    [
        (True, Reports()),
        ({}, Reports()),
        (False, None),
        ({"schedule": WEEKLY}, Reports(WEEKLY)),
        ({"schedule": "never"}, Reports()),
        ({"schedule": WEEKLY, "maxReadUnits": 300}, Reports(WEEKLY, {"maxReadUnits": 300})),
    ],
)
def test_the_setting_of_a_table_enables_and_schedules_its_report(report: Any, reports: Any) -> None:
    assert report_of(report) == reports
    assert (reports is None) or report_of(report).given == reports.given


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        ("weekly", "true, or an object"),
        ({"schedule": "weekly"}, "report.schedule"),
        ({"maxReadUnits": 300}, "with a schedule"),
        ({"schedule": WEEKLY, "maxReadUnit": 300}, "did you mean maxReadUnits?"),
        ({"schedule": WEEKLY, "maxReadUnits": -1}, "maxReadUnits must be"),
        ({"schedule": WEEKLY, "table": "Other"}, "without table"),
    ],
)
def test_an_error_explains_the_correct_setting(report: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        report_of(report)
    assert "Orders" in str(error.value)
    assert sentence in str(error.value)


@pytest.mark.parametrize("source", [control_plane, metrics, insights, stream])
def test_examine_table_may_make_the_calls_that_the_sources_declare(
    reported: Deployed, source: Any
) -> None:
    prefix = table_arn("Orders").partition("table/")[0]
    for action, places in source.ACTIONS.items():
        for place in places:
            resource = place
            if place != "*":
                resource = prefix + place.format(table="Orders").replace("*", "x")
            if "insight" in place:
                resource = resource.replace(":dynamodb:", ":cloudwatch:")
                resource = resource.replace("Insightsx", "Insights-PKC-Orders-1")
            assert reported.allows("ExamineTable", action, resource), (action, resource)


def test_the_machine_invokes_examine_table_and_starts_samples(reported: Deployed) -> None:
    report = reported.machine("ReportKeys")["DefinitionSubstitutions"]
    assert report["ExamineTableArn"] == function_arn("Keyhop-ExamineTable")
    assert report["SampleKeysArn"] == states_arn("stateMachine:Keyhop-SampleKeys")
    sample = reported.machine("SampleKeys")["DefinitionSubstitutions"]
    assert sample["Task"] == "report"
    assert sample["ScanSegmentsArn"] == function_arn("Keyhop-SampleTable")


def test_a_schedule_starts_a_report(reported: Deployed) -> None:
    (rule,) = map(reported.resolve, reported.properties_of("AWS::Events::Rule"))
    assert rule["ScheduleExpression"] == WEEKLY
    (target,) = rule["Targets"]
    assert json.loads(target["Input"]) == {
        "table": "Orders",
        "maxReadUnits": 300,
        "scheduled": True,
    }
    assert target["Arn"] == states_arn("stateMachine:Keyhop-ReportKeys")


def test_the_functions_know_the_tables_with_reports(reported: Deployed) -> None:
    for name in REPORT_FUNCTIONS:
        assert json.loads(reported.environment(name)["KEYHOP_TABLES"]) == ["Orders", FAR_TABLE]


def test_the_dashboard_shows_the_latest_report_on_the_chosen_table(reported: Deployed) -> None:
    (properties,) = [
        widget["properties"]
        for widget in reported.dashboard["widgets"]
        if widget["type"] == "custom"
    ]
    assert properties["endpoint"] == function_arn("Keyhop-ShowReport")
    assert properties["params"] == {"table": ANY_TABLE}
    assert properties["updateOn"] == {"refresh": True, "resize": False, "timeRange": False}
    permissions = reported.of_type("AWS::Lambda::Permission")
    assert not permissions, "CloudWatch invokes it as the user of the dashboard"


def test_the_dashboard_shows_findings_by_severity(reported: Deployed) -> None:
    metrics_text = json.dumps(reported.widgets["Reports on keys: findings, by severity"]["metrics"])
    for severity in ("high", "medium", "low", "info"):
        assert f'"Findings", "Severity", "{severity}", "service"' in metrics_text
