import json
import re
from typing import Any

import pytest

from infra.functions import LAMBDAS, SERVICE
from infra.monitoring import ANY_TABLE
from tests.infra.template import ACCOUNT, BUCKET, FUNCTIONS, REGION, Deployed, states_arn


@pytest.fixture
def alarms(template: Deployed) -> dict[str, dict[str, Any]]:
    return template.alarms


@pytest.fixture
def dashboard(template: Deployed) -> dict[str, dict[str, Any]]:
    return template.widgets


def test_whoever_is_named_gets_an_email_of_every_alarm(template: Deployed, alarms: dict):
    (topic,) = template.of_type("AWS::SNS::Topic")
    subscription = template.only("AWS::SNS::Subscription")["Properties"]
    assert subscription["Endpoint"] == "keeper@example.com"
    assert subscription["TopicArn"] == {"Ref": topic}
    for alarm in alarms.values():
        assert alarm["AlarmActions"] == [topic]


def test_the_alarms_are_there_without_an_email_address(plain: Deployed):
    assert plain.alarms
    assert not plain.of_type("AWS::SNS::Subscription")


def test_the_alarms_may_publish_although_the_topic_has_a_policy_of_its_own(template: Deployed):
    """A policy of one's own replaces the one by which an account's services may publish."""
    policy = template.only("AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    (allowed,) = [template.resolve(one) for one in policy if one["Effect"] == "Allow"]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Action"] == "sns:Publish"
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}


def test_alarms_tell_what_needs_a_person_and_nothing_else(alarms: dict):
    """Not a refused input, not one's own stop, not what is tried again: RaiseAlarm counts."""
    assert set(alarms) == {"Keyhop-FailedRun", "Keyhop-ThrottledRun"}
    told = alarms["Keyhop-FailedRun"]
    assert (told["Namespace"], told["MetricName"]) == ("Keyhop", "NeedsAPerson")
    assert {one["Name"]: one["Value"] for one in told["Dimensions"]} == {
        "service": SERVICE,
        "machine": "EnumerateKeys",
    }
    assert (told["Statistic"], told["Threshold"]) == ("Sum", 1)


def test_the_alarm_goes_by_what_the_machine_counts_and_may_count(template: Deployed, alarms: dict):
    machine = template.machine("EnumerateKeys")
    names = machine["DefinitionSubstitutions"]
    told = alarms["Keyhop-FailedRun"]
    assert names["Namespace"] == told["Namespace"]
    dimensions = [one["Value"] for one in told["Dimensions"]]
    assert sorted(dimensions) == sorted((names["Service"], names["Machine"]))
    for namespace, allowed in (("Keyhop", True), ("AWS/EC2", False)):
        context = {"cloudwatch__namespace": namespace}
        action = "cloudwatch:PutMetricData"
        assert template.allows("EnumerateKeys", action, "*", **context) is allowed


def test_an_alarm_looks_at_one_metric(alarms: dict):
    """The laptop cloud knows no alarms on expressions, and the stack is the same on both."""
    assert not [name for name, alarm in alarms.items() if "Metrics" in alarm]


def test_silence_between_runs_is_no_alarm(alarms: dict):
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}


@pytest.mark.parametrize(
    ("alarm", "advice"),
    [
        ("Keyhop-FailedRun", '"resume"'),
        ("Keyhop-ThrottledRun", '"maxReadRate"'),
        ("Keyhop-FailedRun", "its cause says why and what to do"),
    ],
)
def test_an_alarm_says_what_to_do(alarms: dict, alarm: str, advice: str):
    assert advice in alarms[alarm]["AlarmDescription"]


def test_the_dashboard_shows_what_a_run_does(dashboard: dict):
    shown = {
        "Done, %": "RUNNING_SUM(FILL(done, 0)) / RUNNING_SUM(FILL(planned, 0))",
        "Keys found": "KeysFound",
        "Cost of reads so far, dollars": "RUNNING_SUM(units) * 0.0000001250",
        "Minutes left": "SegmentsPlanned",
        "Read units a second": "AllowedRate",
        "Throttles, by DynamoDB's reason": 'MetricName=\\"Throttles\\"',
        "Duration of a run, seconds": "RunSeconds",
        "Cost of a run, dollars": "RunDollars",
        "Executions": "ExecutionsFailed",
    }
    for title, metric in shown.items():
        assert metric in json.dumps(dashboard[title]["metrics"]), title


def test_the_read_rate_is_units_over_time_beside_what_is_allowed(dashboard: dict):
    text = json.dumps(dashboard["Read units a second"]["metrics"])
    assert "units5 / PERIOD(units5)" in text
    assert f'"ConsumedReadCapacityUnits", "TableName", "{ANY_TABLE}"' in text


def test_one_dashboard_serves_all_tables_by_a_choice(template: Deployed):
    """A pattern variable changes the text wherever it stands in the body, queries included."""
    body = template.dashboard
    (variable,) = body["variables"]
    assert (variable["type"], variable["pattern"]) == ("pattern", ANY_TABLE)
    names = [value["value"] for value in variable["values"]]
    assert names == ["Flights", "Orders", "Bestellungen"][: len(names)]
    assert variable["defaultValue"] == names[0]
    text = json.dumps(body["widgets"])
    assert not [name for name in names if name in text]
    assert text.count(ANY_TABLE) > 10


def test_the_metrics_of_a_table_are_the_ones_that_the_functions_write(template: Deployed):
    written = (LAMBDAS / "handlers" / "telemetry.py").read_text()
    written += (LAMBDAS / "handlers" / "job.py").read_text()
    text = json.dumps(template.dashboard["widgets"])
    shown = re.findall(r'"Keyhop", "(\w+)", "service", "[\w-]+", "table"', text)
    assert len(set(shown)) >= 7
    assert [name for name in set(shown) if f"{name}=" not in written] == []


def test_a_text_says_what_to_do_and_leads_to_executions_files_and_logs(template: Deployed):
    (text,) = [one for one in template.dashboard["widgets"] if one["type"] == "text"]
    markdown = text["properties"]["markdown"]
    machine = states_arn("stateMachine:Keyhop-EnumerateKeys")
    for link in (
        f"https://console.aws.amazon.com/states/home?region={REGION}#/statemachines/view/{machine}",
        f"https://console.aws.amazon.com/s3/buckets/{BUCKET}?region={REGION}&prefix=runs/",
        "#logsV2:log-groups$3FlogGroupNameFilter$3DKeyhop-",
    ):
        assert f"({link})" in markdown or f"{link})" in markdown
    assert "maxReadRate" in markdown
    assert '"resume"' in markdown


def test_runs_are_listed_one_by_one_from_the_lines_that_report_them(
    template: Deployed, dashboard: dict
):
    query = dashboard[f"Runs of {ANY_TABLE} that reported in the time shown"]["query"]
    groups = template.of_type("AWS::Logs::LogGroup")
    asked = [
        groups[source]["Properties"]["LogGroupName"]
        for source in re.findall(r"SOURCE '(\w+)'", query)
    ]
    assert asked == [f"/aws/lambda/Keyhop-{n}" for n in ("PlanRun", "ScanSegments", "VerifyRun")]
    assert f'filter table = "{ANY_TABLE}" and ispresent(run)' in query
    assert "sum(SegmentsDone.0) / max(SegmentsPlanned.0)" in query
    assert query.count("by run") == 1


def test_every_function_has_its_errors_on_the_dashboard(dashboard: dict):
    text = json.dumps(dashboard["Errors of the functions"]["metrics"])
    for name in FUNCTIONS:
        assert f'"label": "{name}"' in text


def test_the_metrics_have_the_namespace_and_the_service_of_the_functions(
    template: Deployed, dashboard: dict
):
    environment = template.environment("ScanSegments")
    keys = [one for one in dashboard["Keys found"]["metrics"] if "KeysFound" in one]
    namespace, _, *dimensions = keys[0][:6]
    assert namespace == environment["POWERTOOLS_METRICS_NAMESPACE"]
    service = environment["POWERTOOLS_SERVICE_NAME"]
    assert dimensions == ["service", service, "table", ANY_TABLE]
    assert service == SERVICE


def test_the_outputs_lead_to_the_dashboard(template: Deployed):
    url = template.resolve(template.body["Outputs"]["DashboardUrl"]["Value"])
    name = template.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardName"]
    assert url.endswith(f"#dashboards/dashboard/{name}")
