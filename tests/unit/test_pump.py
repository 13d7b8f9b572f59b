"""The stream pump against small stand-ins of Lambda, SQS and a stream, all in this process."""

import base64
import json
import random
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.mapping import (
    Batch,
    Filter,
    MappingRefused,
    Record,
    Reply,
    Settings,
    Trouble,
    first_failed,
    judge,
    lane_of,
    next_batch,
    record_of,
    settings_of,
    shuffled,
    split_by_age,
)
from local.pump import Pump

SECONDS = 30
"""More than anything here takes, on a busy machine too."""

NOW = 1_790_000_000.5
STREAM = "arn:aws:dynamodb:ddblocal:000000000000:table/Orders/stream/2026-11-21T11:00:27.117"
QUEUE = "arn:aws:sqs:us-east-1:000000000000:dead"
ONLY_INSERTS = {"Filters": [{"Pattern": json.dumps({"eventName": ["INSERT"]})}]}
REPORTS = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}

Handler = Callable[[dict[str, Any]], Any]


def entry(**more: Any) -> dict[str, Any]:
    """A mapping as the API lists it."""
    return {
        "UUID": "one",
        "FunctionArn": "keeper",
        "EventSourceArn": STREAM,
        "State": "Enabled",
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 100,
        **more,
    }


def settings(**more: Any) -> Settings:
    found = settings_of(entry(**more))
    assert found is not None
    return found


def raw(number: int, pk: str = "a", sk: Any = None, name: str = "INSERT") -> dict[str, Any]:
    """A record as boto3 returns it; its sequence number is `number`."""
    keys = {"pk": {"S": pk}, "sk": sk or {"S": "1"}}
    return {
        "eventID": f"event-{number}",
        "eventName": name,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "ddblocal",
        "dynamodb": {
            "ApproximateCreationDateTime": datetime.fromtimestamp(NOW, UTC),
            "Keys": keys,
            "NewImage": {**keys, "n": {"N": str(number)}},
            "SequenceNumber": f"{number:021}",
            "SizeBytes": 10,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


def record(number: int, pk: str = "a", arrived: float = NOW) -> Record:
    return Record(pk, str(number), "shard", arrived, "{}")


def item_of(pk: str) -> str:
    return record_of(raw(0, pk=pk), STREAM, "s0", NOW).item


def records(count: int) -> tuple[Record, ...]:
    return tuple(record(number) for number in range(count))


def numbers(event: dict[str, Any]) -> list[int]:
    return [int(each["dynamodb"]["SequenceNumber"]) for each in event["Records"]]


class Cloud:
    """Lambda, SQS and DynamoDB Streams, as far as the pump uses them."""

    def __init__(self, handler: Handler = lambda event: None, **mapping: Any) -> None:
        self.handler = handler
        self.mappings = [entry(**mapping)]
        self.shards: dict[str, list[dict[str, Any]]] = {"s0": []}
        self.parents: dict[str, str] = {}
        self.closed: set[str] = set()
        self.expired: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def write(self, count: int = 1, shard: str = "s0", first: int | None = None, **more: Any):
        """Put records into a shard; their sequence numbers follow one another."""
        content = self.shards[shard]
        start = len(content) if first is None else first
        content.extend(raw(number, **more) for number in range(start, start + count))

    def write_all(self, items: list[str]) -> None:
        self.shards["s0"].extend(raw(at, pk=item) for at, item in enumerate(items))

    @property
    def seen(self) -> list[int]:
        """The sequence numbers of all records in all events, in order."""
        return [number for event in self.events for number in numbers(event)]

    def invoke(self, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803
        event = json.loads(Payload)
        with self.lock:
            self.events.append(event)
        answer = {"StatusCode": 200, "ExecutedVersion": "$LATEST"}
        try:
            told = json.dumps(self.handler(event))
        except ValueError as error:
            answer |= {"FunctionError": "Unhandled"}
            told = json.dumps({"errorMessage": str(error)})
        return {**answer, "Payload": BytesIO(told.encode())}

    def get_paginator(self, operation: str) -> "Cloud":
        assert operation == "list_event_source_mappings"
        return self

    def paginate(self) -> Iterator[Any]:
        for mapping in list(self.mappings):
            yield {"EventSourceMappings": [mapping]}

    def describe_stream(self, StreamArn: str, **start: str) -> Any:  # noqa: N803
        """One shard a page."""
        if StreamArn != STREAM:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "DescribeStream")
        names = list(self.shards)
        at = names.index(start["ExclusiveStartShardId"]) + 1 if start else 0
        ends = {"EndingSequenceNumber": "9"} if names[at] in self.closed else {}
        shard = {"ShardId": names[at], "SequenceNumberRange": ends}
        if names[at] in self.parents:
            shard["ParentShardId"] = self.parents[names[at]]
        more = {"LastEvaluatedShardId": names[at]} if at + 1 < len(names) else {}
        return {"StreamDescription": {"Shards": [shard], **more}}

    def get_shard_iterator(self, ShardId: str, ShardIteratorType: str, **more: str) -> Any:  # noqa: N803
        at = len(self.shards[ShardId]) if ShardIteratorType == "LATEST" else 0
        if ShardIteratorType == "AFTER_SEQUENCE_NUMBER":
            sequence = [each["dynamodb"]["SequenceNumber"] for each in self.shards[ShardId]]
            at = sequence.index(more["SequenceNumber"]) + 1
        return {"ShardIterator": f"{ShardId} {at} renewed"}

    def get_records(self, ShardIterator: str, Limit: int) -> Any:  # noqa: N803
        if ShardIterator in self.expired:
            raise ClientError({"Error": {"Code": "ExpiredIteratorException"}}, "GetRecords")
        shard, at, *_ = ShardIterator.split()
        page = self.shards[shard][int(at) : int(at) + Limit]
        place = int(at) + len(page)
        at_end = shard in self.closed and place == len(self.shards[shard])
        after = {} if at_end else {"NextShardIterator": f"{shard} {place}"}
        return {"Records": page, **after}

    def get_queue_url(self, QueueName: str) -> Any:  # noqa: N803
        return {"QueueUrl": f"url of {QueueName}"}

    def send_message(self, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        assert QueueUrl == "url of dead"
        self.messages.append(json.loads(MessageBody))

    def pump(self, **more: Any) -> Pump:
        return Pump(self, self, self, clock=lambda: NOW, **more)


@contextmanager
def settled(cloud: Cloud, trouble: Trouble | None = None) -> Iterator[Pump]:
    """A pump that has delivered all that the cloud has."""
    with cloud.pump(trouble=trouble) as pump:
        pump.settle(SECONDS)
        yield pump


def orders(cloud: Cloud) -> dict[str, list[int]]:
    """For each item, the sequence numbers in the order in which they were delivered."""
    found: dict[str, list[int]] = defaultdict(list)
    for event in cloud.events:
        for each in event["Records"]:
            found[each["dynamodb"]["Keys"]["pk"]["S"]].append(
                int(each["dynamodb"]["SequenceNumber"])
            )
    return found


def lanes_at_work() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "lane Orders" in thread.name]


def poisoned(*poison: int) -> Handler:
    def handler(event: dict[str, Any]) -> None:
        if set(poison) & set(numbers(event)):
            raise ValueError("poison")

    return handler


# Settings.


def test_settings_left_out_are_as_aws_has_them_by_default() -> None:
    given = entry()
    del given["BatchSize"]
    found = settings_of(given)
    assert found is not None
    assert (found.batch_size, found.lanes, found.retries, found.longest_age) == (100, 1, None, None)
    assert (found.bisects, found.reports_failures, found.queue) == (False, False, None)
    assert found.table == "Orders"


def test_a_mapping_of_a_queue_is_none_of_the_pumps() -> None:
    assert settings_of(entry(EventSourceArn=QUEUE)) is None


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"StartingPosition": "AT_TIMESTAMP"}, "TRIM_HORIZON or LATEST"),
        (
            {"DestinationConfig": {"OnFailure": {"Destination": "arn:aws:sns:us-east-1:0:topic"}}},
            "an SQS queue only",
        ),
    ],
)
def test_what_the_pump_cannot_do_is_refused(more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MappingRefused, match=sentence):
        settings_of(entry(**more))


# Filters.


@pytest.mark.parametrize("pattern", ["", "{", "[1]", '{"eventName": []}', '{"eventName": "x"}'])
def test_a_malformed_pattern_is_refused_by_a_sentence(pattern: str) -> None:
    with pytest.raises(MappingRefused, match="filter pattern"):
        Filter([pattern])


def test_one_pattern_that_matches_is_enough() -> None:
    no_sentinels = {
        "eventName": ["INSERT"],
        "dynamodb": {"Keys": {"sk": {"S": [{"anything-but": ["!keyhop"]}]}}},
    }
    accepts = Filter([json.dumps(no_sentinels), json.dumps({"eventName": ["REMOVE"]})])

    def passes(name: str, sk: str) -> bool:
        made = record_of(raw(1, sk={"S": sk}, name=name), STREAM, "s0", NOW)
        return accepts.passes(made.text)

    assert passes("INSERT", "x")
    assert not passes("INSERT", "!keyhop")
    assert passes("REMOVE", "!keyhop")
    assert not passes("MODIFY", "x")


# Records, batches, lanes.


def test_a_record_is_in_the_shape_that_lambda_gives_it() -> None:
    given = raw(7, sk={"B": b"\xff\x00"}, name="REMOVE")
    given["dynamodb"]["OldImage"] = {"bs": {"BS": [b"\x01"]}, "m": {"M": {"b": {"B": b"q"}}}}
    given["userIdentity"] = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    told = json.loads(record_of(given, STREAM, "s0", NOW).text)
    assert told["eventSourceARN"] == STREAM
    assert told["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    change = told["dynamodb"]
    assert change["ApproximateCreationDateTime"] == NOW
    assert base64.b64decode(change["Keys"]["sk"]["B"]) == b"\xff\x00"
    assert change["OldImage"] == {"bs": {"BS": ["AQ=="]}, "m": {"M": {"b": {"B": "cQ=="}}}}


@pytest.mark.parametrize(("read", "arrived"), [(1230, 1230), (9999, 1260), (1000, 1200)])
def test_a_stamp_of_a_whole_minute_was_rounded_down(read: int, arrived: int) -> None:
    given = raw(1)
    given["dynamodb"]["ApproximateCreationDateTime"] = datetime.fromtimestamp(1200, UTC)
    assert record_of(given, STREAM, "s0", read).arrived == arrived


def test_a_batch_ends_at_the_size_of_an_event() -> None:
    large = Record("a", "1", "shard", NOW, "x" * 2_500_000)
    pending = deque([large] * 5)
    assert [len(next_batch(pending, 100).records) for _ in range(3)] == [2, 2, 1]  # type: ignore[union-attr]
    assert next_batch(pending, 100) is None


def test_an_item_keeps_to_a_lane_and_items_are_spread_over_all() -> None:
    lanes = [lane_of(f"item {number}", 10) for number in range(1000)]
    assert lanes == [lane_of(f"item {number}", 10) for number in range(1000)]
    assert set(lanes) == set(range(10))


def test_shuffling_keeps_the_order_of_each_item() -> None:
    given = [record(number, pk=f"k{number % 5}") for number in range(100)]
    found = shuffled(given, random.Random(1))
    assert found != given
    for item in {each.item for each in given}:
        assert [r for r in found if r.item == item] == [r for r in given if r.item == item]
    assert found == shuffled(given, random.Random(1))


# Verdicts.


@pytest.mark.parametrize(
    ("answer", "at"),
    [
        (None, None),
        ({}, None),
        ({"batchItemFailures": None}, None),
        ({"batchItemFailures": []}, None),
        ({"batchItemFailures": [{"itemIdentifier": "3"}, {"itemIdentifier": "2"}]}, 2),
        ({"batchItemFailures": [{"itemIdentifier": "3"}, {"itemIdentifier": ""}]}, 0),
        ({"batchItemFailures": [{"itemIdentifier": None}]}, 0),
        ({"batchItemFailures": [{"wrong": "3"}]}, 0),
        ({"batchItemFailures": [{"itemIdentifier": "not of this batch"}]}, 0),
        ({"batchItemFailures": "3"}, 0),
        ("done", 0),
    ],
)
def test_which_record_a_response_calls_the_first_failed(answer: Any, at: int | None) -> None:
    assert first_failed(answer, records(5)) == at


def failing(mapping: Settings, batch: Batch, answer: Any = None) -> Any:
    error = "Unhandled" if answer is None else None
    return judge(mapping, batch, Reply(error, answer, "request"))


def test_a_partial_response_moves_on_and_the_rest_has_failed_once() -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "2"}]}
    verdict = failing(settings(**REPORTS, MaximumRetryAttempts=1), Batch(records(5), 1), answer)
    assert verdict.done == records(2)
    assert verdict.again == (Batch(records(5)[2:], failures=1, invocations=1),)


def test_a_partial_response_does_not_bisect() -> None:
    mapping = settings(**REPORTS, BisectBatchOnFunctionError=True)
    verdict = failing(mapping, Batch(records(4)), {"batchItemFailures": [{"itemIdentifier": "0"}]})
    assert verdict.again == (Batch(records(4), failures=1, invocations=1),)


def test_a_response_counts_for_nothing_if_the_mapping_does_not_ask_for_it() -> None:
    verdict = failing(settings(), Batch(records(4)), {"batchItemFailures": [{}]})
    assert verdict.done == records(4)


def test_an_exception_bisects_and_consumes_no_retry() -> None:
    mapping = settings(BisectBatchOnFunctionError=True, MaximumRetryAttempts=0)
    halves = failing(mapping, Batch(records(5))).again
    assert [half.records for half in halves] == [records(2), records(5)[2:]]
    assert {(half.failures, half.invocations) for half in halves} == {(0, 1)}
    assert failing(mapping, Batch(records(1))).given_up is not None


def test_records_that_are_too_old_leave_their_batch() -> None:
    mapping = settings(MaximumRecordAgeInSeconds=60)
    batch = Batch((record(1, arrived=NOW - 61), record(2, arrived=NOW - 60)), 3, 4)
    old, young = split_by_age(mapping, batch, NOW)
    assert old == Batch(batch.records[:1], 3, 4)
    assert young == Batch(batch.records[1:], 3, 4)
    assert split_by_age(settings(), batch, NOW + 1e9) == (None, batch)


# The pump.


def test_every_record_is_delivered_once_in_batches_of_the_size() -> None:
    cloud = Cloud(BatchSize=7)
    cloud.write(2500)
    with settled(cloud) as pump:
        assert cloud.seen == list(range(2500))
        assert max(len(event["Records"]) for event in cloud.events) == 7
        assert pump.counts.delivered == 2500
        assert pump.counts.invocations == len(cloud.events)
    assert not lanes_at_work()


def test_latest_begins_with_what_is_written_later() -> None:
    cloud = Cloud(StartingPosition="LATEST")
    cloud.write(3)
    with settled(cloud) as pump:
        assert cloud.seen == []
        cloud.write(2)
        pump.settle(SECONDS)
        assert cloud.seen == [3, 4]


def test_filtered_records_are_done() -> None:
    cloud = Cloud(poisoned(0, 1, 2), FilterCriteria=ONLY_INSERTS)
    cloud.write(3, name="MODIFY")
    cloud.write(2)
    with settled(cloud) as pump:
        assert cloud.seen == [3, 4]
        assert (pump.counts.filtered, pump.counts.delivered) == (3, 2)


def test_a_malformed_filter_is_told_by_settle() -> None:
    cloud = Cloud(FilterCriteria={"Filters": [{"Pattern": "{"}]})
    with cloud.pump() as pump, pytest.raises(RuntimeError, match="filter pattern has to be JSON"):
        pump.settle(SECONDS)


def test_lanes_work_at_once_and_keep_the_order_of_each_item() -> None:
    together = threading.Barrier(4)

    def handler(event: dict[str, Any]) -> None:
        if {0, 1, 2, 3} & set(numbers(event)):
            together.wait(SECONDS)

    lanes = {lane_of(item_of(f"k{number}"), 4): f"k{number}" for number in range(99)}
    items = list(lanes.values()) * 50
    cloud = Cloud(handler, ParallelizationFactor=4, BatchSize=3)
    cloud.write_all(items)
    with settled(cloud):
        assert sorted(cloud.seen) == list(range(200))
        assert all(order == sorted(order) for order in orders(cloud).values())


def test_shards_are_read_when_their_parents_are_done() -> None:
    fails = iter(range(4))

    def handler(event: dict[str, Any]) -> None:
        if 45 in numbers(event) and next(fails, None) is not None:
            raise ValueError("not yet")

    cloud = Cloud(handler, BatchSize=10, ParallelizationFactor=2)
    cloud.shards = {"grandchild": [], "child": [], "s0": []}
    cloud.parents = {"child": "s0", "grandchild": "child"}
    cloud.closed = {"s0", "child"}
    for at, shard in enumerate(("s0", "child", "grandchild")):
        cloud.write(50, shard, first=at * 50)
    with settled(cloud):
        assert cloud.seen == [*range(50), *[*range(40, 50)] * 4, *range(50, 150)]


def test_latest_passes_over_shards_that_are_closed_and_reads_their_successors_whole() -> None:
    cloud = Cloud(StartingPosition="LATEST")
    cloud.shards = {"s0": [], "s1": []}
    cloud.parents = {"s1": "s0"}
    cloud.closed = {"s0"}
    cloud.write(3)
    with settled(cloud) as pump:
        cloud.write(2, "s1", first=3)
        pump.settle(SECONDS)
        cloud.shards["s2"] = []
        cloud.parents["s2"] = "s1"
        cloud.write(2, "s2", first=5)
        cloud.closed = {"s0", "s1"}
        pump.settle(SECONDS)
        assert cloud.seen == [3, 4, 5, 6]


def test_an_iterator_that_is_too_old_is_renewed_where_it_was() -> None:
    cloud = Cloud()
    cloud.write(3)
    with settled(cloud) as pump:
        cloud.expired = {"s0 3"}
        cloud.write(2)
        pump.settle(SECONDS)
        assert cloud.seen == [0, 1, 2, 3, 4]


def test_a_partial_failure_restarts_at_the_lowest_failed_record() -> None:
    failed: Counter[int] = Counter()

    def handler(event: dict[str, Any]) -> Any:
        bad = [number for number in numbers(event) if number in (3, 5) and failed[number] < 2]
        failed.update(bad)
        names = [f"{number:021}" for number in reversed(bad)]
        return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}

    cloud = Cloud(handler, **REPORTS)
    cloud.write(8)
    with settled(cloud) as pump:
        assert [numbers(event) for event in cloud.events] == [
            list(range(8)),
            [3, 4, 5, 6, 7],
            [3, 4, 5, 6, 7],
        ]
        assert (pump.counts.delivered, pump.counts.failed) == (8, 2)


def test_bisecting_isolates_the_poison_and_the_others_go_on() -> None:
    cloud = Cloud(
        poisoned(13),
        BisectBatchOnFunctionError=True,
        MaximumRetryAttempts=1,
        DestinationConfig={"OnFailure": {"Destination": QUEUE}},
    )
    cloud.write(40)
    with settled(cloud) as pump:
        good = (numbers(event) for event in cloud.events if 13 not in numbers(event))
        assert list(chain.from_iterable(good)) == [number for number in range(40) if number != 13]
        assert cloud.events.count({"Records": [cloud_record(cloud, 13)]}) == 2
        assert (pump.counts.given_up, pump.counts.queued, pump.counts.delivered) == (1, 1, 39)
        (message,) = cloud.messages
        assert message["DDBStreamBatchInfo"]["batchSize"] == 1
        assert message["DDBStreamBatchInfo"]["startSequenceNumber"] == f"{13:021}"


def cloud_record(cloud: Cloud, number: int) -> Any:
    return json.loads(record_of(cloud.shards["s0"][number], STREAM, "s0", NOW).text)


def test_a_batch_whose_retries_are_exhausted_is_told_to_the_queue() -> None:
    cloud = Cloud(
        poisoned(2),
        BatchSize=4,
        MaximumRetryAttempts=2,
        DestinationConfig={"OnFailure": {"Destination": QUEUE}},
    )
    cloud.write(6)
    with settled(cloud) as pump:
        assert [numbers(event) for event in cloud.events] == [[0, 1, 2, 3]] * 3 + [[4, 5]]
        assert (pump.counts.given_up, pump.counts.delivered) == (4, 2)
    (message,) = cloud.messages
    assert message["requestContext"].pop("requestId")
    at = "2026-09-21T14:13:20"
    assert message == {
        "requestContext": {
            "functionArn": "keeper",
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": 3,
        },
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "version": "1.0",
        "timestamp": f"{at}.500Z",
        "DDBStreamBatchInfo": {
            "shardId": "s0",
            "startSequenceNumber": f"{0:021}",
            "endSequenceNumber": f"{3:021}",
            "approximateArrivalOfFirstRecord": f"{at}Z",
            "approximateArrivalOfLastRecord": f"{at}Z",
            "batchSize": 4,
            "streamArn": STREAM,
        },
    }


def test_records_that_grow_too_old_while_they_fail_are_told_to_the_queue() -> None:
    now = [NOW]

    def handler(event: dict[str, Any]) -> None:
        now[0] += 40
        raise ValueError("always")

    cloud = Cloud(
        handler,
        MaximumRecordAgeInSeconds=60,
        DestinationConfig={"OnFailure": {"Destination": QUEUE}},
    )
    cloud.write(3)
    with Pump(cloud, cloud, cloud, clock=lambda: now[0]) as pump:
        pump.settle(SECONDS)
        assert pump.counts.given_up == 3
    (message,) = cloud.messages
    assert message["requestContext"]["condition"] == "RecordAgeExceeded"
    assert message["requestContext"]["approximateInvokeCount"] == 2
    assert message["responseContext"]["functionError"] == "Unhandled"


def test_records_that_were_too_old_before_the_first_attempt_had_no_response() -> None:
    cloud = Cloud(
        MaximumRecordAgeInSeconds=60, DestinationConfig={"OnFailure": {"Destination": QUEUE}}
    )
    cloud.write(2)
    with Pump(cloud, cloud, cloud, clock=lambda: NOW + 61) as pump:
        pump.settle(SECONDS)
        assert cloud.events == []
    (message,) = cloud.messages
    assert message["requestContext"]["approximateInvokeCount"] == 0
    assert message["responseContext"]["statusCode"] is None


def test_a_function_that_is_not_there_consumes_no_retries() -> None:
    cloud = Cloud(MaximumRetryAttempts=0)
    cloud.write(1)
    invoke, calls = cloud.invoke, iter(range(3))

    def not_there(**given: Any) -> Any:
        if next(calls, None) is not None:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "Invoke")
        return invoke(**given)

    cloud.invoke = not_there  # type: ignore[method-assign]
    with settled(cloud) as pump:
        assert (pump.counts.delivered, pump.counts.failed) == (1, 3)


def test_what_functions_write_is_delivered_before_the_pump_has_settled() -> None:
    def handler(event: dict[str, Any]) -> None:
        if len(cloud.shards["s0"]) < 20:
            cloud.write()

    cloud = Cloud(handler)
    cloud.write()
    with settled(cloud):
        assert cloud.seen == list(range(20))


def test_settle_says_what_still_waits() -> None:
    cloud = Cloud(poisoned(0))
    cloud.write(3)
    with cloud.pump() as pump:
        wait_for(lambda: pump.counts.failed > 1)
        with pytest.raises(
            TimeoutError, match=r"3 records of Orders wait for keeper, last failure .*poison"
        ):
            pump.settle(0.01)


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait without sleeping: until it has happened, or the time is over."""
    looked = threading.Event()
    for _ in range(SECONDS * 100):
        if happened():
            return
        looked.wait(0.01)
    raise AssertionError("it did not happen")


def test_records_wait_in_the_stream_while_the_pump_is_paused() -> None:
    cloud = Cloud()
    with settled(cloud) as pump:
        pump.pause()
        cloud.write(3)
        with pytest.raises(TimeoutError, match="the pump is paused"):
            pump.settle(0.3)
        assert cloud.seen == []
        pump.resume()
        pump.settle(SECONDS)
        assert cloud.seen == [0, 1, 2]


def test_a_mapping_that_is_disabled_goes_on_where_it_was() -> None:
    cloud = Cloud()
    cloud.write(2)
    with settled(cloud) as pump:
        cloud.mappings = [entry(State="Disabled")]
        pump.settle(SECONDS)
        cloud.write(2)
        pump.settle(SECONDS)
        assert cloud.seen == [0, 1]
        cloud.mappings = [entry()]
        pump.settle(SECONDS)
        assert cloud.seen == [0, 1, 2, 3]


def test_mappings_come_and_go_and_change() -> None:
    cloud = Cloud()
    cloud.mappings = []
    cloud.write(4)
    with settled(cloud) as pump:
        assert cloud.events == []
        cloud.mappings = [entry(BatchSize=4), entry(UUID="two", EventSourceArn=QUEUE)]
        pump.settle(SECONDS)
        cloud.mappings = [entry(BatchSize=1, ParallelizationFactor=3)]
        pump.settle(SECONDS)
        cloud.write(2)
        pump.settle(SECONDS)
        assert [numbers(event) for event in cloud.events] == [[0, 1, 2, 3], [4], [5]]
        cloud.mappings = []
        pump.settle(SECONDS)
        cloud.write(2)
        pump.settle(SECONDS)
        assert len(cloud.seen) == 6


def test_a_mapping_that_is_deleted_gives_up_what_fails() -> None:
    cloud = Cloud(poisoned(0))
    cloud.write(1)
    with cloud.pump() as pump:
        wait_for(lambda: pump.counts.failed > 0)
        cloud.mappings = []
        pump.settle(SECONDS)
        wait_for(lambda: not lanes_at_work())


def test_a_stream_that_is_not_there_is_told_and_holds_up_nobody() -> None:
    cloud = Cloud()
    other = STREAM.replace("Orders", "Gone")
    cloud.mappings += [entry(UUID="two", EventSourceArn=other)]
    cloud.write(2)
    with settled(cloud) as pump:
        assert cloud.seen == [0, 1]
        (problem,) = pump.problems
        assert "The stream of Gone cannot be read" in problem


def test_two_functions_of_a_stream_get_all_of_it_each() -> None:
    cloud = Cloud()
    cloud.mappings += [entry(UUID="two", FunctionArn="other")]
    cloud.write(5)
    with settled(cloud):
        assert Counter(cloud.seen) == dict.fromkeys(range(5), 2)


def test_duplicates_come_later_and_after_others() -> None:
    cloud = Cloud(BatchSize=5)
    cloud.write_all([f"k{number % 10}" for number in range(400)])
    with settled(cloud, Trouble(duplicates=0.3, seed=2)) as pump:
        found = Counter(cloud.seen)
        assert set(found) == set(range(400))
        assert set(found.values()) == {1, 2}
        assert 60 < pump.counts.repeated < 180
        assert pump.counts.delivered == 400 + pump.counts.repeated
        assert any(order != sorted(order) for order in orders(cloud).values())
        assert list(found) == list(range(400))


def test_shuffled_records_keep_the_order_of_each_item() -> None:
    cloud = Cloud(BatchSize=10)
    cloud.write_all([f"k{number % 20}" for number in range(400)])
    with settled(cloud, Trouble(shuffled=True, seed=3)):
        assert sorted(cloud.seen) == list(range(400))
        assert cloud.seen != list(range(400))
        assert all(order == sorted(order) for order in orders(cloud).values())


def test_trouble_is_the_same_for_the_same_seed() -> None:
    def delivered(seed: int) -> list[int]:
        cloud = Cloud()
        cloud.write_all([f"k{number % 20}" for number in range(100)])
        with settled(cloud, Trouble(duplicates=0.2, shuffled=True, seed=seed)):
            return cloud.seen

    assert delivered(1) == delivered(1)
    assert delivered(1) != delivered(2)


def test_an_unforeseen_error_is_told_by_settle() -> None:
    cloud = Cloud()
    cloud.invoke = None  # type: ignore[assignment,method-assign]
    cloud.write(1)
    with cloud.pump() as pump, pytest.raises(RuntimeError, match="The pump has failed"):
        pump.settle(SECONDS)


def test_stop_does_not_wait_for_a_batch_that_fails_forever() -> None:
    cloud = Cloud(poisoned(0))
    cloud.write(1)
    pump = cloud.pump()
    pump.start()
    wait_for(lambda: pump.counts.failed > 2)
    pump.stop()
    with pytest.raises(RuntimeError, match="does not run"):
        pump.settle(SECONDS)
