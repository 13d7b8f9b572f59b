"""ReportKeys: who may read what, what is refused at synth, what starts by itself and is watched."""

import json
from typing import Any

import pytest
from keyhop.report.sources import control_plane, insights, metrics, stream

from infra.config import Config, ConfigError, Reports
from infra.functions import SERVICE
from infra.monitoring import ANY_TABLE
from tests.infra.conftest import FAR_TABLE, deployed, stack_of
from tests.infra.template import (
    ACCOUNT,
    BUCKET_ARN,
    REGION,
    REPORT_FUNCTIONS,
    Deployed,
    function_arn,
    states_arn,
    table_arn,
)

WEEKLY = "rate(7 days)"
READERS = ("ExamineTable", "SampleTable")
WRITES = (
    *("PutItem", "DeleteItem", "UpdateItem", "ConditionCheckItem", "BatchWriteItem"),
    *("UpdateTable", "UpdateContributorInsights", "UpdateTimeToLive", "DeleteTable"),
)


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


def test_without_a_table_there_is_nothing_of_it() -> None:
    without = deployed(stack_of({"tables": ["Listed"]}))
    for name in (*REPORT_FUNCTIONS, "ReportKeys", "SampleKeys"):
        with pytest.raises(AssertionError):
            without.statements(name)


def test_who_samples_reads_the_tables_that_are_reported_on_and_no_others(
    reported: Deployed,
) -> None:
    for owner in ("SampleTable", "ExamineTable"):
        for table in (table_arn("Orders"), FAR_TABLE):
            for resource in (table, f"{table}/index/byCity"):
                assert reported.allows(owner, "dynamodb:Scan", resource)
            assert reported.allows(owner, "dynamodb:Query", table)
            assert not reported.allows(owner, "dynamodb:GetItem", table)
        for action in ("Scan", "Query", "DescribeTable"):
            assert not reported.allows(owner, f"dynamodb:{action}", table_arn("Flights"))


def test_who_shows_and_who_starts_read_no_item_of_a_table(reported: Deployed) -> None:
    for owner in ("ShowReport", "ReportKeys", "SampleKeys"):
        for action in ("Scan", "Query", "GetItem", "BatchGetItem", "PartiQLSelect"):
            for resource in (table_arn("Orders"), f"{table_arn('Orders')}/index/byCity"):
                assert not reported.allows(owner, f"dynamodb:{action}", resource), owner


def test_nobody_of_a_report_changes_a_table(reported: Deployed) -> None:
    for owner in (*REPORT_FUNCTIONS, "ReportKeys", "SampleKeys"):
        for action in WRITES:
            assert not reported.allows(owner, f"dynamodb:{action}", table_arn("Orders")), owner


def test_only_who_examines_asks_for_metrics_hot_keys_and_the_stream(reported: Deployed) -> None:
    orders = table_arn("Orders")
    rule = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:insight-rule"
    asked = {
        "dynamodb:DescribeTimeToLive": orders,
        "dynamodb:DescribeContributorInsights": orders,
        "cloudwatch:GetMetricData": "*",
        "cloudwatch:GetInsightRuleReport": f"{rule}/DynamoDBContributorInsights-PKC-Orders-1",
        "dynamodb:GetRecords": f"{orders}/stream/2026-11-21T09:00:00.000",
    }
    for action, resource in asked.items():
        assert reported.allows("ExamineTable", action, resource), action
        assert not reported.allows("SampleTable", action, resource), action
        assert not reported.allows("ShowReport", action, resource), action
    other = "cloudwatch:GetInsightRuleReport"
    assert not reported.allows("ExamineTable", other, f"{rule}/of-somebody-else")
    action = "dynamodb:DescribeContributorInsights"
    assert reported.allows("ExamineTable", action, f"{orders}/index/byCity")


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


def test_who_shows_the_latest_report_reads_that_and_nothing_else(reported: Deployed) -> None:
    latest = f"{BUCKET_ARN}/reports/Orders/report.json"
    assert reported.allows("ShowReport", "s3:GetObject", latest)
    assert not reported.allows("ShowReport", "s3:PutObject", latest)
    assert not reported.allows("ShowReport", "s3:GetObject", f"{BUCKET_ARN}/runs/r1/report.json")
    for action in ("Scan", "Query", "DescribeTable"):
        assert not reported.allows("ShowReport", f"dynamodb:{action}", table_arn("Orders"))


def test_a_table_of_ones_own_key_can_be_read(reported: Deployed) -> None:
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/0a1b-orders"
    for owner in READERS:
        through = {"kms__ViaService": f"dynamodb.{REGION}.amazonaws.com"}
        assert reported.allows(owner, "kms:Decrypt", key, **through)


def test_the_machine_takes_steps_and_starts_samples(reported: Deployed) -> None:
    names = reported.machine("ReportKeys")["DefinitionSubstitutions"]
    assert names["ExamineTableArn"] == function_arn("Keyhop-ExamineTable")
    assert names["SampleKeysArn"] == states_arn("stateMachine:Keyhop-SampleKeys")
    assert reported.allows("ReportKeys", "lambda:InvokeFunction", names["ExamineTableArn"])
    assert reported.allows("ReportKeys", "states:StartExecution", names["SampleKeysArn"])
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


def test_a_new_high_finding_and_a_report_that_fails_raise_alarms(reported: Deployed) -> None:
    found = reported.alarms["Keyhop-NewHighFinding"]
    assert (found["MetricName"], found["Threshold"]) == ("NewHighFindings", 1)
    dimensions = {one["Name"]: one["Value"] for one in found["Dimensions"]}
    assert dimensions == {"service": SERVICE}, "of all tables: an alarm looks at one metric"
    failed = reported.alarms["Keyhop-FailedReportKeys"]
    machine = reported.machine("ReportKeys")["DefinitionSubstitutions"]["Machine"]
    assert machine in [one["Value"] for one in failed["Dimensions"]]


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
