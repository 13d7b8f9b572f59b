"""The stream bridge on streams of DynamoDB Local; function and queue run in this process."""

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from threading import Event
from typing import Any

import boto3
import pytest
from keyhop.key_index.sentinel import LEAST_SORT_KEY
from keyhop.streams.event_source import SETTINGS, modified_at

from local.stream_bridge import StreamBridge
from testing.databases import Database
from testing.key_index_tables import STREAM
from testing.servers import LOCAL_CREDENTIALS

SECONDS = 60
QUEUE = "arn:aws:sqs:us-east-1:000000000000:dead"
REPORTS = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}


class Functions:
    """Lambda and SQS with one mapping. `handler` returns a response or raises ValueError."""

    def __init__(self, stream: str, **more: Any) -> None:
        self.mappings = [
            {
                "UUID": "one",
                "FunctionArn": "keeper",
                "EventSourceArn": stream,
                "State": "Enabled",
                "BatchSize": 50,
                "MaximumRetryAttempts": 2,
                "DestinationConfig": {"OnFailure": {"Destination": QUEUE}},
                **more,
            }
        ]
        self.handler: Callable[[list[dict[str, Any]]], Any] = lambda records: None
        self.batches: list[list[dict[str, Any]]] = []
        self.messages: list[dict[str, Any]] = []

    @property
    def batches_of_sort_keys(self) -> list[list[str]]:
        return [[sort_key(record) for record in batch] for batch in self.batches]

    def get_paginator(self, operation: str) -> "Functions":
        assert operation == "list_event_source_mappings"
        return self

    def paginate(self) -> Iterator[Any]:
        yield {"EventSourceMappings": self.mappings}

    def invoke(self, FunctionName: str, Payload: str) -> Any:  # noqa: N803
        assert FunctionName == "keeper"
        records = json.loads(Payload)["Records"]
        self.batches.append(records)
        answer = {"StatusCode": 200, "ResponseMetadata": {"RequestId": "request"}}
        try:
            response = self.handler(records)
        except ValueError as error:
            answer["FunctionError"] = "Unhandled"
            response = {"errorMessage": str(error)}
        return {**answer, "Payload": BytesIO(json.dumps(response).encode())}

    def get_queue_url(self, QueueName: str) -> Any:  # noqa: N803
        return {"QueueUrl": f"url of {QueueName}"}

    def send_message(self, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        assert QueueUrl == "url of dead"
        self.messages.append(json.loads(MessageBody))


class Followed:
    """A table with a stream, and the functions that follow it."""

    def __init__(self, database: Database, table: str, sort: str = "S", **mapping: Any) -> None:
        database.create(table, sort=("sk", sort), **STREAM)
        self.database, self.client, self.table = database, database.client, table
        stream = self.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        self.functions = Functions(stream, **mapping)
        self.streams = boto3.client(
            "dynamodbstreams", endpoint_url=database.url, **LOCAL_CREDENTIALS
        )

    def bridge(self, **more: Any) -> StreamBridge:
        return StreamBridge(self.functions, self.streams, self.functions, **more)

    def put(self, *sort_keys: str, pk: str = "k", **attributes: Any) -> None:
        for sort in sort_keys:
            item = {"pk": {"S": pk}, "sk": {"S": sort}, **attributes}
            self.client.put_item(TableName=self.table, Item=item)


Follow = Callable[..., Followed]


@pytest.fixture
def follow(dynamodb: Database, table_name: str) -> Follow:
    return partial(Followed, dynamodb, table_name)


def sort_key(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["Keys"]["sk"]["S"])


def number(record: dict[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def reporting(*poison: str) -> Callable[[list[dict[str, Any]]], Any]:
    """A handler that reports the records with these sort keys."""
    return lambda records: {
        "batchItemFailures": [
            {"itemIdentifier": number(record)} for record in records if sort_key(record) in poison
        ]
    }


def test_every_change_is_delivered_once_in_order_in_limited_batches(follow: Follow) -> None:
    followed = follow(BatchSize=7)
    bridge = followed.bridge()
    for version in range(3):
        items = (
            {"pk": {"S": f"k{n % 10}"}, "sk": {"S": str(n)}, "v": {"N": str(version)}}
            for n in range(100)
        )
        followed.database.fill(followed.table, items)
        bridge.deliver_all(SECONDS)
    names = defaultdict(list)
    for batch in followed.functions.batches:
        assert len(batch) <= 7
        for record in batch:
            names[sort_key(record)].append(record["eventName"])
    assert len(names) == 100
    assert set(map(tuple, names.values())) == {("INSERT", "MODIFY", "MODIFY")}
    assert bridge.counts == {"read": 300, "delivered": 300, "failed": 0}


def test_writes_of_the_function_are_delivered_too(follow: Follow) -> None:
    followed = follow()

    def write(records: list[dict[str, Any]]) -> None:
        latest = max(int(sort_key(record)) for record in records)
        if latest < 30:
            followed.put(str(latest + 1))

    followed.functions.handler = write
    followed.put("0")
    followed.bridge().deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [[str(at)] for at in range(31)]


def test_a_running_bridge_raises_the_functions_error_at_the_end(follow: Follow) -> None:
    followed = follow()
    reached = Event()

    def break_down(records: list[dict[str, Any]]) -> None:
        reached.set()
        raise KeyError("not foreseen")

    def run() -> None:
        with followed.bridge().running():
            followed.put("a")
            assert reached.wait(SECONDS)

    followed.functions.handler = break_down
    with pytest.raises(KeyError, match="not foreseen"):
        run()


def test_filters_and_the_form_of_records(follow: Follow) -> None:
    pattern = json.dumps({"eventName": ["INSERT", "REMOVE"]})
    followed = follow("B", FilterCriteria={"Filters": [{"Pattern": pattern}]})
    key = {"pk": {"S": "k"}, "sk": {"B": b"\xff\x00"}}
    for at in range(3):
        followed.client.put_item(TableName=followed.table, Item={**key, "n": {"N": str(at)}})
    followed.client.delete_item(TableName=followed.table, Key=key)
    followed.bridge().deliver_all(SECONDS)
    ((inserted, removed),) = followed.functions.batches
    assert (inserted["eventName"], removed["eventName"]) == ("INSERT", "REMOVE")
    assert inserted["eventSourceARN"] == followed.functions.mappings[0]["EventSourceArn"]
    change = inserted["dynamodb"]
    assert change["Keys"]["sk"] == {"B": base64.b64encode(b"\xff\x00").decode()}
    assert change["ApproximateCreationDateTime"] > 1_600_000_000


@pytest.mark.parametrize("type_", ["S", "N", "B"])
def test_the_keepers_filter_passes_modifications_in_the_sentinels_place_only(
    follow: Follow, type_: str
) -> None:
    place = LEAST_SORT_KEY[type_]
    another_place = {"S": {"S": "a"}, "N": {"N": "1"}, "B": {"B": b"a"}}[type_]
    patterns = [*SETTINGS["FilterCriteria"]["Filters"], {"Pattern": modified_at("sk", place)}]
    followed = follow(type_, FilterCriteria={"Filters": patterns})
    for sort_key in (place, another_place):
        for at in range(3):
            item = {"pk": {"S": "k"}, "sk": sort_key, "n": {"N": str(at)}}
            followed.client.put_item(TableName=followed.table, Item=item)
    followed.bridge().deliver_all(SECONDS)
    events = [record["eventName"] for batch in followed.functions.batches for record in batch]
    assert events == ["INSERT", "MODIFY", "MODIFY", "INSERT"]


def test_a_filter_by_more_than_equal_texts_is_refused(follow: Follow) -> None:
    pattern = json.dumps({"eventName": [{"prefix": "IN"}]})
    followed = follow(FilterCriteria={"Filters": [{"Pattern": pattern}]})
    followed.put("a")
    with pytest.raises(ValueError, match="equal texts only"):
        followed.bridge().look()


def test_records_from_the_first_reported_one_are_delivered_again(follow: Follow) -> None:
    followed = follow(**REPORTS)
    followed.functions.handler = reporting("e", "c")
    followed.put(*"abcdef")
    bridge = followed.bridge()
    bridge.look()
    attempts = followed.functions.batches_of_sort_keys
    assert attempts == [list("abcdef"), list("cdef"), list("cdef")]
    assert (bridge.counts["delivered"], bridge.counts["given_up"]) == (2, 4)
    followed.put("g")
    bridge.deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys[3:] == [["g"]]


@pytest.mark.parametrize("reports", [{}, REPORTS])
def test_a_batch_whose_retries_are_exhausted_is_reported_to_the_queue(
    follow: Follow, reports: dict[str, Any]
) -> None:
    followed = follow(BatchSize=4, **reports)

    def fail(records: list[dict[str, Any]]) -> None:
        if "b" in map(sort_key, records):
            raise ValueError("poison")

    followed.functions.handler = fail
    followed.put(*"abcdef")
    bridge = followed.bridge()
    bridge.deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [list("abcd")] * 3 + [list("ef")]
    assert bridge.counts == {"read": 6, "delivered": 2, "failed": 3, "given_up": 4}
    (message,) = followed.functions.messages
    given_up = followed.functions.batches[0]
    batch = message.pop("DDBStreamBatchInfo")
    assert batch.pop("shardId")
    assert batch.pop("approximateArrivalOfFirstRecord").endswith("Z")
    assert batch.pop("approximateArrivalOfLastRecord").endswith("Z")
    assert batch == {
        "startSequenceNumber": number(given_up[0]),
        "endSequenceNumber": number(given_up[3]),
        "batchSize": 4,
        "streamArn": followed.functions.mappings[0]["EventSourceArn"],
    }
    assert message.pop("timestamp").endswith("Z")
    assert message == {
        "requestContext": {
            "requestId": "request",
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
    }


def test_a_response_is_ignored_if_the_mapping_does_not_use_it(follow: Follow) -> None:
    followed = follow()
    followed.functions.handler = reporting("a")
    followed.put("a", "b")
    followed.bridge().deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [["a", "b"]]


def test_a_response_that_names_no_record_of_the_batch_fails_the_whole_batch(
    follow: Follow,
) -> None:
    followed = follow(**REPORTS)
    followed.functions.handler = lambda records: {"batchItemFailures": [{"itemIdentifier": ""}]}
    followed.put("a", "b")
    followed.bridge().deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [["a", "b"]] * 3


def test_the_argument_disturb_changes_pages(follow: Follow) -> None:
    followed = follow()
    followed.put(*"abc")
    followed.bridge(disturb=lambda page: [*reversed(page), page[0]]).deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [["c", "b", "a", "a"]]


def test_a_disabled_mapping_waits_and_a_deleted_table_blocks_nothing(follow: Follow) -> None:
    followed = follow()
    followed.put("a")
    bridge = followed.bridge()
    (mapping,) = followed.functions.mappings
    gone = mapping["EventSourceArn"].replace(followed.table, f"{followed.table}-gone")
    mapping["State"] = "Disabled"
    followed.functions.mappings.insert(0, {**mapping, "UUID": "two", "EventSourceArn": gone})
    bridge.deliver_all(SECONDS)
    assert followed.functions.batches == []
    for each in followed.functions.mappings:
        each["State"] = "Enabled"
    bridge.deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [["a"]]


class FailingStreams:
    """A streams client whose next calls of GetRecords fail with these errors."""

    def __init__(self, streams: Any, *errors: str) -> None:
        self._streams, self._errors = streams, list(errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streams, name)

    def get_records(self, **request: Any) -> Any:
        if self._errors:
            code = self._errors.pop(0)
            raise self.exceptions.from_code(code)({"Error": {"Code": code}}, "GetRecords")
        return self._streams.get_records(**request)


TRIMMED = "TrimmedDataAccessException"


@pytest.mark.parametrize("errors", [(TRIMMED,), (TRIMMED, TRIMMED), ("ResourceNotFoundException",)])
def test_expired_records_and_a_deleted_table_do_not_stop_the_bridge(
    follow: Follow, errors: tuple[str, ...]
) -> None:
    followed = follow()
    followed.put("a")
    bridge = followed.bridge()
    bridge.deliver_all(SECONDS)
    followed.put("b")
    bridge.streams = FailingStreams(followed.streams, *errors)
    bridge.look()
    bridge.deliver_all(SECONDS)
    assert followed.functions.batches_of_sort_keys == [["a"], ["b"]]


def test_a_delivery_of_all_records_has_a_timeout(follow: Follow) -> None:
    followed = follow()
    followed.functions.handler = lambda records: followed.put("again", n={"N": str(len(records))})
    followed.put("a")
    with pytest.raises(TimeoutError, match="Records still come after 0 seconds"):
        followed.bridge().deliver_all(0)


def test_a_batch_with_unlimited_retries_is_delivered_again_unchanged(follow: Follow) -> None:
    followed = follow(BatchSize=2, MaximumRetryAttempts=-1, FunctionResponseTypes=[])
    failures = iter([True, True, False, True, False])

    def fail(records: list[dict[str, Any]]) -> None:
        if next(failures):
            raise ValueError

    followed.functions.handler = fail
    for name in "abc":
        followed.put(name)
    bridge = followed.bridge()
    bridge.deliver_all(SECONDS)
    first, second = ["a", "b"], ["c"]
    assert followed.functions.batches_of_sort_keys == [first, first, first, second, second]
    assert bridge.counts["given_up"] == 0
    assert followed.functions.messages == []
