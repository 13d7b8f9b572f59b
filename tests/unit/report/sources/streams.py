"""A fake of DynamoDB Streams: shards with records, and shards with too many readers."""

import datetime
from dataclasses import dataclass, field
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from testing.report_cloud import refusal

ARN = "arn:aws:dynamodb:eu-central-1:111122223333:table/Orders/stream/2026-01-10T09:31:00.000"
MODEL = botocore.session.Session().get_service_model("dynamodbstreams")


def record(
    at: float,
    key: str,
    sort: str = "",
    event: str = "INSERT",
    new: dict[str, Any] | None = None,
    old: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a stream record of the recorded table, whose keys are customer and placed."""
    keys = {"customer": {"S": key}, "placed": {"S": sort or f"{at:.0f}"}}
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": datetime.datetime.fromtimestamp(at // 1, datetime.UTC),
        "Keys": keys,
        "SequenceNumber": f"{at:021.0f}",
        "SizeBytes": 100,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if new is not None:
        change["NewImage"] = {**keys, **new}
    if old is not None:
        change["OldImage"] = {**keys, **old}
    return {"eventID": "1", "eventName": event, "dynamodb": change, **more}


@dataclass
class Shard:
    """A shard with its records, oldest first, and this many empty pages before each page."""

    records: list[dict[str, Any]]
    parent: str | None = None
    closed: bool = False
    empty_pages: int = 0


@dataclass
class FakeStreams:
    """A fake of boto3's client `dynamodbstreams`.

    Attributes:
        shards: The shards by their short names.
        crowded: The shards that have too many readers.
        refused: The error codes of refused operations.
        by_time: Whether an iterator can start at a timestamp.
        page: The number of records in a page.
        reads: The short name of the shard of each GetRecords.
    """

    shards: dict[str, Shard]
    crowded: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    by_time: bool = True
    page: int = 1000
    reads: list[str] = field(default_factory=list)

    def describe_stream(self, **request: Any) -> dict[str, Any]:
        self._check("DescribeStream", request)
        shards = []
        for name, shard in self.shards.items():
            numbers = {"StartingSequenceNumber": "1" * 21}
            if shard.closed:
                numbers["EndingSequenceNumber"] = "9" * 21
            entry: dict[str, Any] = {"ShardId": shard_id(name), "SequenceNumberRange": numbers}
            if shard.parent:
                entry["ParentShardId"] = shard_id(shard.parent)
            shards.append(entry)
        return {"StreamDescription": {"StreamArn": ARN, "Shards": shards}}

    def get_shard_iterator(self, **request: Any) -> dict[str, Any]:
        self._check("GetShardIterator", request)
        name = request["ShardId"].rpartition("-")[2]
        first = 0
        if request["ShardIteratorType"] == "AT_TIMESTAMP":
            if not self.by_time:
                raise refusal("GetShardIterator", "ValidationException", "no such type")
            times = [time_of(record) for record in self.shards[name].records]
            first = sum(time < request["Timestamp"] for time in times)
        return {"ShardIterator": f"{name}/{first}/0"}

    def get_records(self, **request: Any) -> dict[str, Any]:
        self._check("GetRecords", request)
        name, *numbers = request["ShardIterator"].split("/")
        first, empty_pages = map(int, numbers)
        self.reads.append(name)
        if name in self.crowded:
            raise refusal("GetRecords", "LimitExceededException", "too many readers")
        shard = self.shards[name]
        if empty_pages < shard.empty_pages:
            return {"Records": [], "NextShardIterator": f"{name}/{first}/{empty_pages + 1}"}
        page = shard.records[first : first + min(self.page, request.get("Limit", 1000))]
        response: dict[str, Any] = {"Records": page}
        if not (shard.closed and first + len(page) >= len(shard.records)):
            response["NextShardIterator"] = f"{name}/{first + len(page)}/0"
        return response

    def _check(self, operation: str, request: dict[str, Any]) -> None:
        if code := self.refused.get(operation):
            raise refusal(operation, code)
        shape = MODEL.operation_model(operation).input_shape
        problems = ParamValidator().validate(request, shape)
        assert not problems.has_errors(), problems.generate_report()


def time_of(record: dict[str, Any]) -> datetime.datetime:
    time = record["dynamodb"]["ApproximateCreationDateTime"]
    assert isinstance(time, datetime.datetime)
    return time


def shard_id(name: str) -> str:
    return f"shardId-00000001795338000000-{name}"
