"""Whether a keeper was away for so long that its stream has forgotten records, by CloudWatch."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from keyhop.streams.event_source import MOST_OUTAGE, Watch
from moto import mock_aws

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
VERIFICATION = NOW - timedelta(days=9)
FUNCTION, TABLE = "Keyhop-KeepIndex", "Orders"


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("cloudwatch", region_name="us-east-1")


def worked(client: Any, when: datetime, age: timedelta) -> None:
    """Lambda counts a batch of the keeper."""
    put(
        client,
        "AWS/Lambda",
        "IteratorAge",
        "FunctionName",
        FUNCTION,
        when,
        age / timedelta(milliseconds=1),
    )


def written(client: Any, metric: str, when: datetime, value: float) -> None:
    """DynamoDB counts changes of the table."""
    put(client, "AWS/DynamoDB", metric, "TableName", TABLE, when, value)


def put(
    client: Any, namespace: str, name: str, dimension: str, of: str, when: datetime, value: float
) -> None:
    client.put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": dimension, "Value": of}],
                "Timestamp": when,
                "Value": value,
            }
        ],
    )


def longest(client: Any) -> float | None:
    return Watch(lambda service: client).longest_lag_seconds(FUNCTION, TABLE, VERIFICATION)


def test_an_outage_of_a_day_that_ended_long_ago_is_seen(client: Any) -> None:
    worked(client, VERIFICATION + timedelta(days=1), timedelta(seconds=1))
    worked(client, VERIFICATION + timedelta(days=3), timedelta(hours=23, minutes=59))
    worked(client, NOW - timedelta(hours=2), timedelta(seconds=1))
    assert (longest(client) or 0.0) > MOST_OUTAGE.total_seconds()


def test_records_from_before_the_verification_are_no_outage(client: Any) -> None:
    """A new keeper begins with the last day's records, just before the verification of a build."""
    worked(client, VERIFICATION + timedelta(minutes=5), timedelta(hours=23, minutes=59))
    worked(client, VERIFICATION + timedelta(hours=5), timedelta(seconds=40))
    assert longest(client) == 40.0


def test_an_outage_that_began_with_the_verification_is_seen(client: Any) -> None:
    worked(client, VERIFICATION + timedelta(hours=24), timedelta(hours=23, minutes=59))
    assert (longest(client) or 0.0) > MOST_OUTAGE.total_seconds()


def test_a_table_that_nobody_wrote_to_has_no_batches(client: Any) -> None:
    assert longest(client) == 0.0
    written(client, "ConsumedWriteCapacityUnits", VERIFICATION + timedelta(days=1), 0.0)
    written(client, "ConsumedWriteCapacityUnits", VERIFICATION - timedelta(days=1), 7.0)
    assert longest(client) == 0.0


def test_a_batch_that_hides_its_oldest_records_hides_no_outage(client: Any) -> None:
    """After two days one batch has all records of the last day; the youngest is a second old."""
    worked(client, VERIFICATION + timedelta(hours=2), timedelta(seconds=1))
    worked(client, VERIFICATION + timedelta(hours=50), timedelta(seconds=1))
    for hours in range(51, 9 * 24, 10):
        worked(client, VERIFICATION + timedelta(hours=hours), timedelta(seconds=1))
    assert longest(client) == 1.0, "nothing was written meanwhile"
    written(client, "ConsumedWriteCapacityUnits", VERIFICATION + timedelta(hours=20), 3.0)
    assert longest(client) is None


def test_writes_in_the_first_hour_that_no_batch_brought_are_unknown(client: Any) -> None:
    written(client, "ConsumedWriteCapacityUnits", VERIFICATION + timedelta(minutes=5), 1.0)
    assert longest(client) is None


def test_writes_in_hours_with_batches_are_no_outage(client: Any) -> None:
    for hours in range(0, 9 * 24, 19):
        worked(client, VERIFICATION + timedelta(hours=hours), timedelta(seconds=1))
        written(
            client, "ConsumedWriteCapacityUnits", VERIFICATION + timedelta(hours=hours + 1), 1.0
        )
    assert longest(client) == 1.0


@pytest.mark.parametrize("metric", ["ConsumedWriteCapacityUnits", "TimeToLiveDeletedItemCount"])
def test_no_batch_of_a_table_with_changes_is_unknown(client: Any, metric: str) -> None:
    written(client, metric, VERIFICATION + timedelta(days=1), 1.0)
    assert longest(client) is None


@pytest.mark.parametrize("refused", ["AWS/Lambda", "AWS/DynamoDB"])
def test_metrics_that_may_not_be_read_are_unknown(client: Any, refused: str) -> None:
    class Denied:
        def get_metric_statistics(self, **asked: Any) -> Any:
            if asked["Namespace"] == refused:
                error = {"Code": "AccessDenied", "Message": "not authorized"}
                raise ClientError({"Error": error}, "GetMetricStatistics")
            return client.get_metric_statistics(**asked)

    assert longest(Denied()) is None
