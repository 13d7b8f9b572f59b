"""ReportKeys: who may read what, what is refused at synth, what starts by itself and is watched."""

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


def told(report: Any) -> Any:
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
def test_a_table_says_whether_and_when_it_is_reported_on(report: Any, reports: Any) -> None:
    assert told(report) == reports
    assert (reports is None) or told(report).given == reports.given


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
def test_what_is_wrong_is_refused_with_what_is_right(report: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        told(report)
    assert "Orders" in str(error.value)
    assert sentence in str(error.value)


@pytest.mark.parametrize("source", [control_plane, metrics, insights, stream])
def test_who_asks_may_make_the_calls_that_the_sources_say_they_make(
    reported: Deployed, source: Any
) -> None:
    here = table_arn("Orders").partition("table/")[0]
    for action, places in source.ACTIONS.items():
        for place in places:
            named = place.format(table="Orders").replace("*", "x") if place != "*" else "*"
            at = here.replace(":dynamodb:", ":cloudwatch:") if "insight" in place else here
            resource = named if named == "*" else f"{at}{named}"
            if named.startswith("insight-rule"):
                resource = resource.replace("Insightsx", "Insights-PKC-Orders-1")
            assert reported.allows("ExamineTable", action, resource), (action, resource)


def test_the_machine_takes_steps_and_starts_samples(reported: Deployed) -> None:
    names = reported.machine("ReportKeys")["DefinitionSubstitutions"]
    assert names["ExamineTableArn"] == function_arn("Keyhop-ExamineTable")
    assert names["SampleKeysArn"] == states_arn("stateMachine:Keyhop-SampleKeys")
    assert reported.machine("SampleKeys")["DefinitionSubstitutions"]["Task"] == "report"
    samples = reported.machine("SampleKeys")["DefinitionSubstitutions"]["ScanSegmentsArn"]
    assert samples == function_arn("Keyhop-SampleTable")


def test_a_report_starts_by_itself_where_a_schedule_is(reported: Deployed) -> None:
    (rule,) = [
        reported.resolve(one["Properties"])
        for one in reported.of_type("AWS::Events::Rule").values()
    ]
    assert rule["ScheduleExpression"] == WEEKLY
    (target,) = rule["Targets"]
    assert json.loads(target["Input"]) == {
        "table": "Orders",
        "maxReadUnits": 300,
        "scheduled": True,
    }
    assert target["Arn"] == states_arn("stateMachine:Keyhop-ReportKeys")


def test_the_functions_know_the_tables_that_are_reported_on(reported: Deployed) -> None:
    for name in REPORT_FUNCTIONS:
        assert json.loads(reported.environment(name)["KEYHOP_TABLES"]) == ["Orders", FAR_TABLE]


def test_the_dashboard_asks_for_the_latest_report_on_the_table_that_is_shown(
    reported: Deployed,
) -> None:
    (widget,) = [one for one in reported.dashboard["widgets"] if one["type"] == "custom"]
    asked = widget["properties"]
    assert asked["endpoint"] == function_arn("Keyhop-ShowReport")
    assert asked["params"] == {"table": ANY_TABLE}
    assert asked["updateOn"] == {"refresh": True, "resize": False, "timeRange": False}
    permissions = reported.of_type("AWS::Lambda::Permission")
    assert not permissions, "CloudWatch invokes it as whoever looks at the dashboard"


def test_findings_are_shown_by_severity(reported: Deployed) -> None:
    shown = json.dumps(reported.widgets["Reports on keys: findings, by severity"]["metrics"])
    for severity in ("high", "medium", "low", "info"):
        assert f'"Findings", "Severity", "{severity}", "service"' in shown
