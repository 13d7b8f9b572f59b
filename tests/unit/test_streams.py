"""Check a keeper's event source mapping, its outages by CloudWatch, and its failure queue."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from keyhop.errors import IndexBusy
from keyhop.streams.dead_letters import DeadLetters, Reworked
from keyhop.streams.event_source import (
    MOST_OUTAGE,
    SETTINGS,
    BatchResult,
    Mappings,
    Watch,
    modified_at,
)
from moto import mock_aws

from testing.keepers import KEEPER, QUEUE, FakeLambda

STREAM = "arn:aws:dynamodb:us-east-1:111122223333:table/Orders/stream/2026-11-01T00:00:00.000"


def attached(lambdas: FakeLambda) -> dict[str, Any]:
    """Return the mapping, after the attempts that it takes to enable it."""
    mappings = Mappings(lambdas, KEEPER, QUEUE)
    looks = 0
    while not mappings.attach(STREAM):
        looks += 1
        assert looks < 5
    (mapping,) = lambdas.mappings.values()
    return mapping


def test_no_record_is_dropped_because_of_its_age() -> None:
    """The stream may have been on for a day, and the mapping begins with its oldest record."""
    mapping = attached(FakeLambda())
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["MaximumRecordAgeInSeconds"] == -1
    assert 0 < mapping["MaximumRetryAttempts"] < 100, "retries of a poison record are limited"


def test_a_quiet_table_pays_no_invocation_for_each_record() -> None:
    assert 1 <= attached(FakeLambda())["MaximumBatchingWindowInSeconds"] <= 2


def test_a_mapping_of_an_older_version_is_updated_once() -> None:
    lambdas = FakeLambda()
    older = {"MaximumRecordAgeInSeconds": 21_600, "MaximumBatchingWindowInSeconds": 0}
    lambdas.create_event_source_mapping(
        **{**SETTINGS, **older, "MaximumRetryAttempts": 3}, EventSourceArn=STREAM
    )
    mapping = attached(lambdas)
    assert mapping["MaximumRecordAgeInSeconds"] == -1
    assert mapping["MaximumBatchingWindowInSeconds"] == 2
    assert mapping["MaximumRetryAttempts"] == 3, "the value of the user remains"
    changes = lambdas.changes
    attached(lambdas)
    assert lambdas.changes == changes


def test_a_mapping_of_an_older_version_gets_the_pattern_of_the_sentinels_place() -> None:
    """Otherwise the keeper never hears of a put over a sentinel."""
    lambdas = FakeLambda()
    attached(lambdas)
    mappings, pattern = Mappings(lambdas, KEEPER, QUEUE), modified_at("sk", {"S": "!keyhop"})
    assert not mappings.attach(STREAM, pattern)
    (mapping,) = lambdas.mappings.values()
    filters = mapping["FilterCriteria"]["Filters"]
    assert filters == [*SETTINGS["FilterCriteria"]["Filters"], {"Pattern": pattern}]
    changes = lambdas.changes
    assert mappings.attach(STREAM, pattern)
    assert lambdas.changes == changes


NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
VERIFICATION = NOW - timedelta(days=9)
FUNCTION, TABLE = "Keyhop-KeepIndex", "Orders"
WRITES = "ConsumedWriteCapacityUnits"


@pytest.fixture
def client() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("cloudwatch", region_name="us-east-1")


def count_batch(client: Any, when: datetime, age: timedelta) -> None:
    """Count a batch of the keeper, as Lambda does."""
    milliseconds = age / timedelta(milliseconds=1)
    put(client, "AWS/Lambda", "IteratorAge", "FunctionName", FUNCTION, when, milliseconds)


def count_writes(client: Any, metric: str, when: datetime, value: float) -> None:
    """Count changes of the table, as DynamoDB does."""
    put(client, "AWS/DynamoDB", metric, "TableName", TABLE, when, value)


def put(
    client: Any,
    namespace: str,
    name: str,
    dimension: str,
    entity: str,
    when: datetime,
    value: float,
) -> None:
    dimensions = [{"Name": dimension, "Value": entity}]
    datum = {"MetricName": name, "Dimensions": dimensions, "Timestamp": when, "Value": value}
    client.put_metric_data(Namespace=namespace, MetricData=[datum])


def longest(client: Any) -> float | None:
    return Watch(lambda service: client).longest_lag_seconds(FUNCTION, TABLE, VERIFICATION)


def test_an_outage_of_a_day_that_ended_long_ago_is_seen(client: Any) -> None:
    count_batch(client, VERIFICATION + timedelta(days=1), timedelta(seconds=1))
    count_batch(client, VERIFICATION + timedelta(days=3), timedelta(hours=23, minutes=59))
    count_batch(client, NOW - timedelta(hours=2), timedelta(seconds=1))
    assert (longest(client) or 0.0) > MOST_OUTAGE.total_seconds()


def test_records_from_before_the_verification_are_no_outage(client: Any) -> None:
    """A new keeper begins with the last day's records, just before the verification of a build."""
    count_batch(client, VERIFICATION + timedelta(minutes=5), timedelta(hours=23, minutes=59))
    count_batch(client, VERIFICATION + timedelta(hours=5), timedelta(seconds=40))
    assert longest(client) == 40.0


def test_an_outage_that_began_with_the_verification_is_seen(client: Any) -> None:
    count_batch(client, VERIFICATION + timedelta(hours=24), timedelta(hours=23, minutes=59))
    assert (longest(client) or 0.0) > MOST_OUTAGE.total_seconds()


def test_a_table_that_nobody_wrote_to_has_no_batches(client: Any) -> None:
    assert longest(client) == 0.0
    count_writes(client, WRITES, VERIFICATION + timedelta(days=1), 0.0)
    count_writes(client, WRITES, VERIFICATION - timedelta(days=1), 7.0)
    assert longest(client) == 0.0


def test_a_batch_that_hides_its_oldest_records_does_not_hide_an_outage(client: Any) -> None:
    """One batch after two days has all records of the last day; the youngest is a second old."""
    count_batch(client, VERIFICATION + timedelta(hours=2), timedelta(seconds=1))
    count_batch(client, VERIFICATION + timedelta(hours=50), timedelta(seconds=1))
    for hours in range(51, 9 * 24, 10):
        count_batch(client, VERIFICATION + timedelta(hours=hours), timedelta(seconds=1))
    assert longest(client) == 1.0, "nothing was written since then"
    count_writes(client, WRITES, VERIFICATION + timedelta(hours=20), 3.0)
    assert longest(client) is None


def test_writes_in_the_first_hour_without_a_batch_are_unknown(client: Any) -> None:
    count_writes(client, WRITES, VERIFICATION + timedelta(minutes=5), 1.0)
    assert longest(client) is None


def test_writes_in_hours_with_batches_are_no_outage(client: Any) -> None:
    for hours in range(0, 9 * 24, 19):
        count_batch(client, VERIFICATION + timedelta(hours=hours), timedelta(seconds=1))
        count_writes(client, WRITES, VERIFICATION + timedelta(hours=hours + 1), 1.0)
    assert longest(client) == 1.0


@pytest.mark.parametrize("metric", [WRITES, "TimeToLiveDeletedItemCount"])
def test_changes_without_any_batch_are_unknown(client: Any, metric: str) -> None:
    count_writes(client, metric, VERIFICATION + timedelta(days=1), 1.0)
    assert longest(client) is None


@pytest.mark.parametrize("refused", ["AWS/Lambda", "AWS/DynamoDB"])
def test_metrics_that_may_not_be_read_are_unknown(client: Any, refused: str) -> None:
    class Denied:
        def get_metric_statistics(self, **arguments: Any) -> Any:
            if arguments["Namespace"] == refused:
                error = {"Code": "AccessDenied", "Message": "not authorized"}
                raise ClientError({"Error": error}, "GetMetricStatistics")
            return client.get_metric_statistics(**arguments)

    assert longest(Denied()) is None


BATCH = {
    "streamArn": STREAM,
    "shardId": "s",
    "startSequenceNumber": "1",
    "endSequenceNumber": "2",
}
BODY = json.dumps({"DDBStreamBatchInfo": BATCH})
MESSAGE = {"MessageId": "m", "ReceiptHandle": "r", "Body": BODY}


@dataclass
class Queue:
    """A queue with one message, and the events in their order."""

    events: list[str] = field(default_factory=list)

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {"Messages": [] if "deleted" in self.events else [MESSAGE]}

    def delete_message(self, **_: Any) -> None:
        self.events.append("deleted")


class ForgetfulStream:
    def get_shard_iterator(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")


def process_queue(queue: Queue, withdraw: Callable[[], None] | None) -> Reworked:
    letters = DeadLetters(queue, ForgetfulStream(), "url", "Orders")
    return letters.work(lambda records, on_failure: BatchResult(0, 0, ()), withdraw)


def test_trust_is_withdrawn_before_a_message_is_deleted_unprocessed() -> None:
    queue = Queue()
    result = process_queue(queue, lambda: queue.events.append("withdrawn"))
    assert queue.events == ["withdrawn", "deleted"]
    assert (result.forgotten, result.discarded, result.is_clear) == (1, 1, True)


def test_a_message_stays_if_trust_cannot_be_withdrawn() -> None:
    def withdraw() -> None:
        raise IndexBusy("others change the entry all the time")

    queue = Queue()
    with pytest.raises(IndexBusy):
        process_queue(queue, withdraw)
    assert queue.events == []


def test_a_message_stays_if_nobody_asked_to_discard_it() -> None:
    queue = Queue()
    assert not process_queue(queue, None).is_clear
    assert queue.events == []
