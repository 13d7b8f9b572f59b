"""Tests that our fake of CloudWatch and moto's give a report the same facts."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from keyhop.report.facts import TABLE, Throttles
from keyhop.report.sources.metrics import look
from moto import mock_aws

from testing.report_cloud import FakeCloudWatch
from tests.unit.report.sources.tables import DAY, NOW, orders

Plant = Callable[..., None]
CITY = {"TableName": "Orders", "GlobalSecondaryIndexName": "byCity"}


def fake_cloud() -> tuple[Any, Plant]:
    cloud = FakeCloudWatch(NOW)
    return cloud, cloud.plant


def moto_cloud() -> tuple[Any, Plant]:
    client = boto3.client("cloudwatch", region_name="us-east-1")

    def plant(metric: str, each: float, began: float, **where: str) -> None:
        # A count of requests is a count of their latencies.
        times = round(each) if metric == "SuccessfulRequestLatency" else 1
        datum = {
            "MetricName": metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in where.items()],
            "Timestamp": datetime.fromtimestamp(began, UTC),
            "Value": each,
        }
        client.put_metric_data(Namespace="AWS/DynamoDB", MetricData=[datum] * times)

    return client, plant


@pytest.fixture(params=[fake_cloud, moto_cloud])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        yield request.param()


def test_the_facts_are_the_planted_ones(cloud: tuple[Any, Plant]):
    client, plant = cloud
    plant("ConsumedReadCapacityUnits", 0.0, NOW - 7200, TableName="Orders")
    plant("ConsumedWriteCapacityUnits", 600.0, NOW - 7200, TableName="Orders")
    plant("ConsumedWriteCapacityUnits", 60.0, NOW - 60, TableName="Orders")
    plant("ConsumedReadCapacityUnits", 5.0, NOW - 3 * DAY, **CITY)
    plant("WriteKeyRangeThroughputThrottleEvents", 4.0, NOW - 600, **CITY)
    plant("SuccessfulRequestLatency", 3.0, NOW - 600, TableName="Orders", Operation="Scan")
    plant("ReturnedItemCount", 70.0, NOW - 600, TableName="Orders", Operation="Scan")
    facts = look(client, orders(), NOW, 2 * DAY).facts
    assert facts.consumed[("write", TABLE)] == 660.0
    assert facts.peak[("write", TABLE)] == 10.0
    assert facts.minutes == ((NOW - 7200, 600.0), (NOW - 60, 60.0))
    assert facts.throttles[("write", "key range", "byCity")] == Throttles(4.0, NOW - 540)
    assert facts.throttles[("write", "key range", TABLE)] == Throttles(0.0, None)
    assert (facts.calls["Scan"], facts.returned["Scan"]) == (3.0, 70.0)
    assert facts.read_days == {"byCity": 1}
