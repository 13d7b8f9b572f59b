import json
from typing import Any

import pytest

from infra.functions import SERVICE
from tests.infra.template import (
    BUCKET,
    KEY_INDEX_FUNCTIONS,
    KEY_INDEX_MACHINES,
    QUEUE_URL,
    Deployed,
)

ADDED = {
    *("Keyhop-KeyIndexDrift", "Keyhop-KeyIndexFailures", "Keyhop-KeeperBehind"),
    "Keyhop-KeyIndexOccupied",
    *(f"Keyhop-Failed{name}" for name in KEY_INDEX_MACHINES),
}


@pytest.fixture
def alarms(kept: Deployed) -> dict[str, dict[str, Any]]:
    return kept.alarms


@pytest.fixture
def dashboard(kept: Deployed) -> str:
    return json.dumps({title: one for title, one in kept.widgets.items() if "Key index" in title})


def test_key_indexes_have_alarms_that_tell_the_same_topic(template: Deployed, alarms: dict):
    assert set(alarms) - set(template.alarms) == ADDED
    assert len({json.dumps(alarm["AlarmActions"]) for alarm in alarms.values()}) == 1


def test_drift_of_a_day_is_told(alarms: dict):
    told = alarms["Keyhop-KeyIndexDrift"]
    assert (told["Namespace"], told["MetricName"]) == ("Keyhop", "KeyIndexDrift")
    assert told["Dimensions"] == [{"Name": "service", "Value": SERVICE}]
    assert (told["Statistic"], told["Period"], told["Threshold"]) == ("Sum", 86400, 1)


def test_records_that_were_given_up_are_told(kept: Deployed, alarms: dict):
    told = alarms["Keyhop-KeyIndexFailures"]
    assert told["Namespace"] == "AWS/SQS"
    assert told["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert (told["Statistic"], told["Threshold"]) == ("Maximum", 1)


def test_a_keeper_that_stays_behind_is_told_and_a_burst_is_not(alarms: dict):
    told = alarms["Keyhop-KeeperBehind"]
    assert (told["Namespace"], told["MetricName"]) == ("AWS/Lambda", "IteratorAge")
    assert (told["Statistic"], told["Threshold"]) == ("Maximum", 15 * 60 * 1000)
    assert (told["Period"], told["EvaluationPeriods"]) == (300, 3)


@pytest.mark.parametrize("machine", KEY_INDEX_MACHINES)
def test_an_execution_that_failed_is_told(alarms: dict, machine: str):
    told = alarms[f"Keyhop-Failed{machine}"]
    assert (told["Namespace"], told["MetricName"]) == ("Keyhop", "NeedsAPerson")
    assert {"Name": "machine", "Value": machine} in told["Dimensions"]


@pytest.mark.parametrize(
    ("alarm", "advice"),
    [
        ("KeyIndexDrift", f"s3://{BUCKET}/runs/RUN/verification.json"),
        ("KeyIndexDrift", "failure queue"),
        ("KeyIndexFailures", f"keyhop index redrive TABLE --queue {QUEUE_URL}"),
        ("KeyIndexFailures", "VerifyKeyIndex"),
        ("KeeperBehind", "throttles"),
        *((f"Failed{name}", "its cause says why and what to do") for name in KEY_INDEX_MACHINES),
    ],
)
def test_an_alarm_says_what_to_do(alarms: dict, alarm: str, advice: str):
    assert advice in alarms[f"Keyhop-{alarm}"]["AlarmDescription"]


def test_alarms_are_simple_ones_and_silence_is_none(alarms: dict):
    assert not [name for name, alarm in alarms.items() if "Metrics" in alarm]
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}


@pytest.mark.parametrize(
    "metric",
    [
        *("IteratorAge", "KeysReconciled", "SentinelsPut", "SentinelsDeleted", "RecordsFailed"),
        *("ApproximateNumberOfMessagesVisible", "KeyIndexDrift", "Invocations"),
        *(f"{name}: errors" for name in KEY_INDEX_FUNCTIONS),
        *(f"{name}: failed" for name in KEY_INDEX_MACHINES),
    ],
)
def test_the_dashboard_shows_what_keepers_do(dashboard: str, metric: str):
    assert metric in dashboard


@pytest.mark.parametrize(
    ("metric", "handler"),
    [
        ("KeysReconciled", "keep_index"),
        ("SentinelsPut", "keep_index"),
        ("SentinelsDeleted", "keep_index"),
        ("RecordsFailed", "keep_index"),
        ("KeyIndexDrift", "manage_index"),
    ],
)
def test_the_metrics_are_the_ones_that_the_functions_write(metric: str, handler: str):
    from infra.functions import LAMBDAS

    assert f"{metric}=" in (LAMBDAS / "handlers" / f"{handler}.py").read_text()


def test_without_a_key_index_the_dashboard_has_none(template: Deployed):
    body = template.resolve(
        template.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardBody"]
    )
    assert "Key index" not in body
