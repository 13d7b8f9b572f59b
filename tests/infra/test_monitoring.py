"""Alarms and the dashboard: what they go by and say; functions write what is shown."""

import json
import re
from typing import Any

import pytest

from infra.functions import LAMBDAS, SERVICE
from infra.monitoring import ANY_TABLE
from tests.infra.template import (
    ACCOUNT,
    BUCKET,
    FUNCTIONS,
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    QUEUE_URL,
    REGION,
    SHARDING_FUNCTIONS,
    Deployed,
    states_arn,
)

OF_SHARDING = (
    *("ShardsAdded", "ShardsRemoved", "RacesLost", "HotKeyThrottles", "KeysAtMaximum"),
    *("ItemsWritten", "ItemsFailed", "ItemsMoved", "DrainsProposed"),
)
OF_KEEPER = ("KeysReconciled", "SentinelsPut", "SentinelsDeleted", "RecordsFailed")


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


@pytest.mark.parametrize(
    ("name", "less", "added"),
    [
        ("template", None, {"FailedRun", "ThrottledRun"}),
        (
            *("kept", "template"),
            {"KeyIndexDrift", "KeyIndexFailures", "KeeperBehind", "KeyIndexOccupied"}
            | {f"Failed{machine}" for machine in KEY_INDEX_MACHINES},
        ),
        ("sharded", "kept", {"KeyAtMaximum", "FailedDrainShards"}),
    ],
)
def test_alarms_tell_one_topic_what_needs_a_person_and_nothing_else(
    request: pytest.FixtureRequest, name: str, less: str | None, added: set[str]
):
    """Not a refused input, not one's own stop, not what is tried again: RaiseAlarm counts.

    The laptop cloud knows no alarms on expressions, and the stack is the same on both. Silence
    between runs is no alarm.
    """
    alarms = request.getfixturevalue(name).alarms
    others = request.getfixturevalue(less).alarms if less else {}
    assert set(alarms) - set(others) == {f"Keyhop-{one}" for one in added}
    assert len({json.dumps(alarm["AlarmActions"]) for alarm in alarms.values()}) == 1
    assert not [one for one, alarm in alarms.items() if "Metrics" in alarm]
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}


@pytest.mark.parametrize(
    ("deployment", "alarm", "machine"),
    [
        ("template", "FailedRun", "EnumerateKeys"),
        *(("kept", f"Failed{name}", name) for name in KEY_INDEX_MACHINES),
        ("sharded", "FailedDrainShards", "DrainShards"),
        ("reported", "FailedReportKeys", "ReportKeys"),
    ],
)
def test_an_execution_that_failed_is_told(
    request: pytest.FixtureRequest, deployment: str, alarm: str, machine: str
):
    told = request.getfixturevalue(deployment).alarms[f"Keyhop-{alarm}"]
    assert (told["Namespace"], told["MetricName"]) == ("Keyhop", "NeedsAPerson")
    dimensions = {one["Name"]: one["Value"] for one in told["Dimensions"]}
    assert dimensions == {"service": SERVICE, "machine": machine}
    assert (told["Statistic"], told["Threshold"]) == ("Sum", 1)


@pytest.mark.parametrize(
    ("deployment", "alarm", "metric", "more"),
    [
        # drift of a day
        ("kept", "KeyIndexDrift", ("Keyhop", "KeyIndexDrift", "Sum", 1), {"Period": 86400}),
        (
            *("kept", "KeyIndexFailures"),
            ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 1),
            {},
        ),
        # a keeper that stays behind, and no burst
        (
            *("kept", "KeeperBehind", ("AWS/Lambda", "IteratorAge", "Maximum", 15 * 60 * 1000)),
            {"Period": 300, "EvaluationPeriods": 3},
        ),
        ("sharded", "KeyAtMaximum", ("Keyhop", "KeysAtMaximum", "Sum", 1), {}),
        ("reported", "NewHighFinding", ("Keyhop", "NewHighFindings", "Sum", 1), {}),
    ],
)
def test_an_alarm_goes_by_its_metric(
    request: pytest.FixtureRequest,
    deployment: str,
    alarm: str,
    metric: tuple[str, str, str, int],
    more: dict[str, int],
):
    told = request.getfixturevalue(deployment).alarms[f"Keyhop-{alarm}"]
    fields = ("Namespace", "MetricName", "Statistic", "Threshold")
    assert tuple(told[field] for field in fields) == metric
    assert {field: told[field] for field in more} == more
    if metric[0] == "Keyhop":  # of all tables: an alarm looks at one metric
        assert told["Dimensions"] == [{"Name": "service", "Value": SERVICE}]


@pytest.mark.parametrize(
    ("deployment", "alarm", "advice"),
    [
        ("template", "FailedRun", '"resume"'),
        ("template", "FailedRun", "its cause says why and what to do"),
        ("template", "ThrottledRun", '"maxReadRate"'),
        ("kept", "KeyIndexDrift", f"s3://{BUCKET}/runs/RUN/verification.json"),
        ("kept", "KeyIndexDrift", "failure queue"),
        ("kept", "KeyIndexFailures", f"keyhop index redrive TABLE --queue {QUEUE_URL}"),
        ("kept", "KeyIndexFailures", "VerifyKeyIndex"),
        ("kept", "KeeperBehind", "throttles"),
        *(
            ("kept", f"Failed{name}", "its cause says why and what to do")
            for name in KEY_INDEX_MACHINES
        ),
        ("sharded", "KeyAtMaximum", "sharding.mostShards"),
        ("sharded", "FailedDrainShards", "start the same input again"),
    ],
)
def test_an_alarm_says_what_to_do(
    request: pytest.FixtureRequest, deployment: str, alarm: str, advice: str
):
    alarms = request.getfixturevalue(deployment).alarms
    assert advice in alarms[f"Keyhop-{alarm}"]["AlarmDescription"]


def test_throttled_writes_are_no_throttled_run(sharded: Deployed):
    """The runs' alarm goes by the metric without a reason, which sharded tables do not write."""
    told = sharded.alarms["Keyhop-ThrottledRun"]
    assert [one["Name"] for one in told["Dimensions"]] == ["service"]
    text = (LAMBDAS / "handlers" / "telemetry.py").read_text()
    assert "report_throttles(table, usage.throttles)" in text[text.index("def report_sharding") :]


@pytest.mark.parametrize(
    ("deployment", "rows", "shown"),
    [
        (
            *("kept", "Key index"),
            (
                *("IteratorAge", *OF_KEEPER, "ApproximateNumberOfMessagesVisible"),
                *("KeyIndexDrift", "Invocations"),
                *(f"{name}: errors" for name in KEY_INDEX_FUNCTIONS),
                *(f"{name}: failed" for name in KEY_INDEX_MACHINES),
            ),
        ),
        (
            *("sharded", "Sharded"),
            (
                *OF_SHARDING,
                *(f"{name}: errors" for name in SHARDING_FUNCTIONS),
                "drains that failed",
            ),
        ),
    ],
)
def test_the_dashboard_shows_a_feature_and_nothing_of_it_without(
    request: pytest.FixtureRequest,
    plain: Deployed,
    deployment: str,
    rows: str,
    shown: tuple[str, ...],
):
    widgets = request.getfixturevalue(deployment).widgets
    text = json.dumps({title: one for title, one in widgets.items() if rows in title})
    assert [one for one in shown if one not in text] == []
    assert rows not in json.dumps(plain.dashboard)


@pytest.mark.parametrize(
    ("handlers", "metrics"),
    [
        (["keep_index"], OF_KEEPER),
        (["manage_index"], ("KeyIndexDrift",)),
        (["telemetry", "sharding"], OF_SHARDING),
    ],
)
def test_the_metrics_of_a_feature_are_the_ones_that_the_functions_write(
    handlers: list[str], metrics: tuple[str, ...]
):
    written = "".join((LAMBDAS / "handlers" / f"{name}.py").read_text() for name in handlers)
    assert [metric for metric in metrics if f"{metric}=" not in written] == []


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
