import json
from typing import Any

import pytest

from infra.functions import SERVICE
from tests.infra.template import ACCOUNT, FUNCTIONS, Deployed, states_arn


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
    assert {"Keyhop-FailedRun", "Keyhop-ThrottledRun", "Keyhop-WorkerErrors"} <= set(alarms)
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


@pytest.mark.parametrize(
    ("alarm", "metric"),
    [
        ("Keyhop-FailedRun", "ExecutionsFailed"),
        ("Keyhop-TimedOutRun", "ExecutionsTimedOut"),
        ("Keyhop-StoppedRun", "ExecutionsAborted"),
    ],
)
def test_a_run_that_does_not_end_well_is_told_whatever_its_end(
    alarms: dict, alarm: str, metric: str
):
    machine = states_arn("stateMachine:Keyhop-EnumerateKeys")
    told = alarms[alarm]
    assert (told["Namespace"], told["MetricName"]) == ("AWS/States", metric)
    assert told["Dimensions"] == [{"Name": "StateMachineArn", "Value": machine}]
    assert (told["Statistic"], told["Threshold"]) == ("Sum", 1)


def test_an_alarm_looks_at_one_metric(alarms: dict):
    """The laptop cloud knows no alarms on expressions, and the stack is the same on both."""
    assert not [name for name, alarm in alarms.items() if "Metrics" in alarm]


def test_silence_between_runs_is_no_alarm(alarms: dict):
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}


@pytest.mark.parametrize(
    ("alarm", "advice"),
    [
        ("Keyhop-FailedRun", '"resume"'),
        ("Keyhop-TimedOutRun", '"resume"'),
        ("Keyhop-StoppedRun", '"resume"'),
        ("Keyhop-ThrottledRun", '"maxReadRate"'),
        ("Keyhop-WorkerErrors", "workerMemoryMb"),
    ],
)
def test_an_alarm_says_what_to_do(alarms: dict, alarm: str, advice: str):
    assert advice in alarms[alarm]["AlarmDescription"]


def test_the_dashboard_shows_what_a_run_does(dashboard: dict):
    shown = {
        "Keys found": "KeysFound",
        "Read units a second, and the budget": "ReadBudget",
        "Throttles, by DynamoDB's reason": 'MetricName=\\"Throttles\\"',
        "Slices, requests and retries": "Slices",
        "Duration of a run, seconds": "RunSeconds",
        "Cost of a run, dollars": "RunDollars",
        "Runs": "ExecutionsFailed",
    }
    for title, metric in shown.items():
        assert metric in json.dumps(dashboard[title]["metrics"]), title


def test_the_read_rate_is_units_over_time_beside_its_budget(dashboard: dict):
    text = json.dumps(dashboard["Read units a second, and the budget"]["metrics"])
    assert "units / PERIOD(units)" in text
    assert '"ConsumedReadCapacityUnits", "TableName", "Flights"' in text


def test_every_function_has_its_errors_on_the_dashboard(dashboard: dict):
    text = json.dumps(dashboard["Errors of the functions"]["metrics"])
    for name in FUNCTIONS:
        assert f'"label": "{name}"' in text


def test_the_metrics_are_the_ones_that_the_functions_write(template: Deployed, dashboard: dict):
    """Namespace and dimension come from the functions' environment."""
    environment = template.environment("ScanSegments")
    (keys,) = dashboard["Keys found"]["metrics"]
    namespace, _, *dimension = keys[:4]
    assert namespace == environment["POWERTOOLS_METRICS_NAMESPACE"]
    assert dimension == ["service", environment["POWERTOOLS_SERVICE_NAME"]] == ["service", SERVICE]


def test_the_outputs_lead_to_the_dashboard(template: Deployed):
    url = template.resolve(template.body["Outputs"]["DashboardUrl"]["Value"])
    name = template.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardName"]
    assert url.endswith(f"#dashboards/dashboard/{name}")
