import json
from typing import Any

import pytest

from infra.functions import LAMBDAS, SERVICE
from tests.infra.template import SHARDING_FUNCTIONS, Deployed

METRICS = (
    *("ShardsAdded", "ShardsRemoved", "RacesLost", "HotKeyThrottles", "KeysAtMaximum"),
    *("ItemsWritten", "ItemsFailed", "ItemsMoved", "DrainsProposed"),
)
ADDED = {"Keyhop-KeyAtMaximum", "Keyhop-FailedDrainShards"}


@pytest.fixture
def alarms(sharded: Deployed) -> dict[str, dict[str, Any]]:
    return sharded.alarms


@pytest.fixture
def dashboard(sharded: Deployed) -> str:
    return json.dumps({title: one for title, one in sharded.widgets.items() if "Sharded" in title})


def test_sharded_tables_have_alarms_that_tell_the_same_topic(kept: Deployed, alarms: dict):
    assert set(alarms) - set(kept.alarms) == ADDED
    assert len({json.dumps(alarm["AlarmActions"]) for alarm in alarms.values()}) == 1


def test_a_key_at_the_maximum_is_told(alarms: dict):
    told = alarms["Keyhop-KeyAtMaximum"]
    assert (told["Namespace"], told["MetricName"]) == ("Keyhop", "KeysAtMaximum")
    assert told["Dimensions"] == [{"Name": "service", "Value": SERVICE}]
    assert (told["Statistic"], told["Threshold"]) == ("Sum", 1)
    assert "sharding.mostShards" in told["AlarmDescription"]


def test_a_drain_that_failed_is_told(alarms: dict):
    told = alarms["Keyhop-FailedDrainShards"]
    assert (told["Namespace"], told["MetricName"]) == ("Keyhop", "NeedsAPerson")
    assert {"Name": "machine", "Value": "DrainShards"} in told["Dimensions"]
    assert "start the same input again" in told["AlarmDescription"]


def test_throttled_writes_are_no_throttled_run(alarms: dict):
    """The runs' alarm goes by the metric without a reason, which sharded tables do not write."""
    told = alarms["Keyhop-ThrottledRun"]
    assert [one["Name"] for one in told["Dimensions"]] == ["service"]
    text = (LAMBDAS / "handlers" / "telemetry.py").read_text()
    assert "report_throttles(table, usage.throttles)" in text[text.index("def report_sharding") :]


@pytest.mark.parametrize(
    "shown",
    [*METRICS, *(f"{name}: errors" for name in SHARDING_FUNCTIONS), "drains that failed"],
)
def test_the_dashboard_shows_what_happens_to_sharded_tables(dashboard: str, shown: str):
    assert shown in dashboard


@pytest.mark.parametrize("metric", METRICS)
def test_the_metrics_are_the_ones_that_the_functions_write(metric: str):
    modules = ("telemetry", "sharding")
    texts = [(LAMBDAS / "handlers" / f"{module}.py").read_text() for module in modules]
    assert any(f"{metric}=" in text for text in texts)


def test_without_sharded_tables_the_dashboard_has_none(kept: Deployed):
    body = kept.resolve(kept.only("AWS::CloudWatch::Dashboard")["Properties"]["DashboardBody"])
    assert "Sharded" not in body
