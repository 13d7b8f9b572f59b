"""Tests of the alarms and the dashboard, and of the metrics that they use."""

import json
import re

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


def test_the_email_address_receives_every_alarm(template: Deployed):
    (topic,) = template.of_type("AWS::SNS::Topic")
    subscription = template.only("AWS::SNS::Subscription")["Properties"]
    assert subscription["Endpoint"] == "keeper@example.com"
    assert subscription["TopicArn"] == {"Ref": topic}
    for alarm in template.alarms.values():
        assert alarm["AlarmActions"] == [topic]


def test_the_alarms_exist_without_an_email_address(plain: Deployed):
    assert plain.alarms
    assert not plain.of_type("AWS::SNS::Subscription")


def test_the_topic_policy_lets_the_alarms_publish(template: Deployed):
    """A topic policy replaces the default policy, which lets the account's services publish."""
    policy = template.only("AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]["Statement"]
    (allowed,) = [
        template.resolve(statement) for statement in policy if statement["Effect"] == "Allow"
    ]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Action"] == "sns:Publish"
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}


@pytest.mark.parametrize(
    ("name", "base", "added_names"),
    [
        ("template", None, {"FailedRun", "ThrottledRun"}),
        (
            *("indexed", "template"),
            {"KeyIndexDrift", "KeyIndexFailures", "KeeperBehind", "KeyIndexOccupied"}
            | {f"Failed{machine}" for machine in KEY_INDEX_MACHINES},
        ),
        ("sharded", "indexed", {"KeyAtMaximum", "FailedDrainShards"}),
    ],
)
def test_alarms_notify_one_topic_and_only_of_what_needs_a_person(
    request: pytest.FixtureRequest, name: str, base: str | None, added_names: set[str]
):
    """RaiseAlarm counts neither refused inputs nor stopped executions nor retried errors.

    The laptop cloud has no alarms on expressions, and the stack is the same on both. Silence
    between runs raises no alarm.
    """
    alarms = request.getfixturevalue(name).alarms
    base_alarms = request.getfixturevalue(base).alarms if base else {}
    assert set(alarms) - set(base_alarms) == {f"Keyhop-{alarm}" for alarm in added_names}
    assert len({json.dumps(alarm["AlarmActions"]) for alarm in alarms.values()}) == 1
    assert not [alarm for alarm in alarms.values() if "Metrics" in alarm]
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}


@pytest.mark.parametrize(
    ("deployment", "alarm", "machine"),
    [
        ("template", "FailedRun", "EnumerateKeys"),
        *(("indexed", f"Failed{name}", name) for name in KEY_INDEX_MACHINES),
        ("sharded", "FailedDrainShards", "DrainShards"),
        ("reported", "FailedReportKeys", "ReportKeys"),
    ],
)
def test_a_failed_execution_raises_an_alarm(
    request: pytest.FixtureRequest, deployment: str, alarm: str, machine: str
):
    properties = request.getfixturevalue(deployment).alarms[f"Keyhop-{alarm}"]
    assert (properties["Namespace"], properties["MetricName"]) == ("Keyhop", "NeedsAPerson")
    dimensions = {dimension["Name"]: dimension["Value"] for dimension in properties["Dimensions"]}
    assert dimensions == {"service": SERVICE, "machine": machine}
    assert (properties["Statistic"], properties["Threshold"]) == ("Sum", 1)


@pytest.mark.parametrize(
    ("deployment", "alarm", "metric", "more_fields"),
    [
        # The drift of a day.
        ("indexed", "KeyIndexDrift", ("Keyhop", "KeyIndexDrift", "Sum", 1), {"Period": 86400}),
        (
            *("indexed", "KeyIndexFailures"),
            ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 1),
            {},
        ),
        # A keeper that stays behind, not one that is behind for a moment.
        (
            *("indexed", "KeeperBehind", ("AWS/Lambda", "IteratorAge", "Maximum", 15 * 60 * 1000)),
            {"Period": 300, "EvaluationPeriods": 3},
        ),
        ("sharded", "KeyAtMaximum", ("Keyhop", "KeysAtMaximum", "Sum", 1), {}),
        ("reported", "NewHighFinding", ("Keyhop", "NewHighFindings", "Sum", 1), {}),
    ],
)
def test_an_alarm_uses_its_metric(
    request: pytest.FixtureRequest,
    deployment: str,
    alarm: str,
    metric: tuple[str, str, str, int],
    more_fields: dict[str, int],
):
    properties = request.getfixturevalue(deployment).alarms[f"Keyhop-{alarm}"]
    fields = ("Namespace", "MetricName", "Statistic", "Threshold")
    assert tuple(properties[field] for field in fields) == metric
    assert {field: properties[field] for field in more_fields} == more_fields
    if metric[0] == "Keyhop":  # An alarm has one metric, which is that of all tables.
        assert properties["Dimensions"] == [{"Name": "service", "Value": SERVICE}]


@pytest.mark.parametrize(
    ("deployment", "alarm", "advice"),
    [
        ("template", "FailedRun", '"resume"'),
        ("template", "FailedRun", "its cause says why and what to do"),
        ("template", "ThrottledRun", '"maxReadRate"'),
        ("indexed", "KeyIndexDrift", f"s3://{BUCKET}/runs/RUN/verification.json"),
        ("indexed", "KeyIndexDrift", "failure queue"),
        ("indexed", "KeyIndexFailures", f"keyhop index redrive TABLE --queue {QUEUE_URL}"),
        ("indexed", "KeyIndexFailures", "VerifyKeyIndex"),
        ("indexed", "KeeperBehind", "throttles"),
        *(
            ("indexed", f"Failed{name}", "its cause says why and what to do")
            for name in KEY_INDEX_MACHINES
        ),
        ("sharded", "KeyAtMaximum", "sharding.mostShards"),
        ("sharded", "FailedDrainShards", "start the same input again"),
    ],
)
def test_an_alarm_explains_what_to_do(
    request: pytest.FixtureRequest, deployment: str, alarm: str, advice: str
):
    alarms = request.getfixturevalue(deployment).alarms
    assert advice in alarms[f"Keyhop-{alarm}"]["AlarmDescription"]


def test_throttled_writes_are_not_reported_as_a_throttled_run(sharded: Deployed):
    """The runs' alarm uses the metric without a reason, which sharded tables do not write."""
    dimensions = sharded.alarms["Keyhop-ThrottledRun"]["Dimensions"]
    assert [dimension["Name"] for dimension in dimensions] == ["service"]
    text = (LAMBDAS / "handlers" / "telemetry.py").read_text()
    assert "report_throttles(table, usage.throttles)" in text[text.index("def report_sharding") :]


@pytest.mark.parametrize(
    ("deployment", "rows", "labels"),
    [
        (
            *("indexed", "Key index"),
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
def test_the_dashboard_shows_a_feature_only_where_it_is_deployed(
    request: pytest.FixtureRequest,
    plain: Deployed,
    deployment: str,
    rows: str,
    labels: tuple[str, ...],
):
    widgets = request.getfixturevalue(deployment).widgets
    text = json.dumps({title: widget for title, widget in widgets.items() if rows in title})
    assert [label for label in labels if label not in text] == []
    assert rows not in json.dumps(plain.dashboard)


@pytest.mark.parametrize(
    ("handlers", "metrics"),
    [
        (["keep_index"], OF_KEEPER),
        (["manage_index"], ("KeyIndexDrift",)),
        (["telemetry", "sharding"], OF_SHARDING),
    ],
)
def test_the_functions_write_the_metrics_of_a_feature(
    handlers: list[str], metrics: tuple[str, ...]
):
    written = "".join((LAMBDAS / "handlers" / f"{name}.py").read_text() for name in handlers)
    assert [metric for metric in metrics if f"{metric}=" not in written] == []


def test_the_machine_writes_the_metric_of_its_alarm(template: Deployed):
    names = template.machine("EnumerateKeys")["DefinitionSubstitutions"]
    alarm = template.alarms["Keyhop-FailedRun"]
    assert names["Namespace"] == alarm["Namespace"]
    dimensions = [dimension["Value"] for dimension in alarm["Dimensions"]]
    assert sorted(dimensions) == sorted((names["Service"], names["Machine"]))
    for namespace, allowed in (("Keyhop", True), ("AWS/EC2", False)):
        request = ("EnumerateKeys", "cloudwatch:PutMetricData", "*")
        assert template.allows(*request, cloudwatch__namespace=namespace) is allowed


def test_the_dashboard_shows_what_a_run_does(template: Deployed):
    metrics_by_title = {
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
    for title, metric in metrics_by_title.items():
        assert metric in json.dumps(template.widgets[title]["metrics"]), title


def test_the_read_rate_is_units_per_second_beside_the_allowed_rate(template: Deployed):
    text = json.dumps(template.widgets["Read units a second"]["metrics"])
    assert "units5 / PERIOD(units5)" in text
    assert f'"ConsumedReadCapacityUnits", "TableName", "{ANY_TABLE}"' in text


def test_the_dashboard_has_a_choice_of_tables(template: Deployed):
    """A pattern variable replaces the text everywhere in the body, including queries."""
    body = template.dashboard
    (variable,) = body["variables"]
    assert (variable["type"], variable["pattern"]) == ("pattern", ANY_TABLE)
    names = [value["value"] for value in variable["values"]]
    assert names == ["Flights", "Orders", "Bestellungen"][: len(names)]
    assert variable["defaultValue"] == names[0]
    text = json.dumps(body["widgets"])
    assert not [name for name in names if name in text]
    assert text.count(ANY_TABLE) > 10


def test_the_functions_write_the_metrics_of_a_table(template: Deployed):
    source = (LAMBDAS / "handlers" / "telemetry.py").read_text()
    source += (LAMBDAS / "handlers" / "job.py").read_text()
    text = json.dumps(template.dashboard["widgets"])
    names = set(re.findall(r'"Keyhop", "(\w+)", "service", "[\w-]+", "table"', text))
    assert len(names) >= 7
    assert [name for name in names if f"{name}=" not in source] == []


def test_a_text_explains_what_to_do_and_links_executions_files_and_logs(template: Deployed):
    (text,) = [widget for widget in template.dashboard["widgets"] if widget["type"] == "text"]
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


def test_the_dashboard_lists_runs_from_the_log_lines_that_report_them(template: Deployed):
    query = template.widgets[f"Runs of {ANY_TABLE} that reported in the time shown"]["query"]
    groups = template.of_type("AWS::Logs::LogGroup")
    log_groups = [
        groups[source]["Properties"]["LogGroupName"]
        for source in re.findall(r"SOURCE '(\w+)'", query)
    ]
    names = ("PlanRun", "ScanSegments", "VerifyRun")
    assert log_groups == [f"/aws/lambda/Keyhop-{name}" for name in names]
    assert f'filter table = "{ANY_TABLE}" and ispresent(run)' in query
    assert "sum(SegmentsDone.0) / max(SegmentsPlanned.0)" in query
    assert query.count("by run") == 1


def test_the_dashboard_shows_the_errors_of_every_function(template: Deployed):
    text = json.dumps(template.widgets["Errors of the functions"]["metrics"])
    for name in FUNCTIONS:
        assert f'"label": "{name}"' in text


def test_the_metrics_have_the_namespace_and_the_service_of_the_functions(template: Deployed):
    environment = template.environment("ScanSegments")
    graph = template.widgets["Keys found"]["metrics"]
    metrics = [metric for metric in graph if "KeysFound" in metric]
    namespace, _, *dimensions = metrics[0][:6]
    assert namespace == environment["POWERTOOLS_METRICS_NAMESPACE"]
    service = environment["POWERTOOLS_SERVICE_NAME"]
    assert dimensions == ["service", service, "table", ANY_TABLE]
    assert service == SERVICE


def test_an_output_links_the_dashboard(template: Deployed):
    url = template.resolve(template.body["Outputs"]["DashboardUrl"]["Value"])
    name = template.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardName"]
    assert url.endswith(f"#dashboards/dashboard/{name}")
