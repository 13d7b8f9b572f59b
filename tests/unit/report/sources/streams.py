"""A stream as DynamoDB Streams has it: shards with records, and readers that are too many."""

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
    """A record of the recorded table: keys customer and placed."""
    keys = {"customer": {"S": key}, "placed": {"S": sort or f"{at:.0f}"}}
    told: dict[str, Any] = {
        "ApproximateCreationDateTime": datetime.datetime.fromtimestamp(at // 1, datetime.UTC),
        "Keys": keys,
        "SequenceNumber": f"{at:021.0f}",
        "SizeBytes": 100,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if new is not None:
        told["NewImage"] = {**keys, **new}
    if old is not None:
        told["OldImage"] = {**keys, **old}
    return {"eventID": "1", "eventName": event, "dynamodb": told, **more}


@dataclass
class Shard:
    """records: oldest first. closed: it has no more to come. before: empty pages before each."""

    records: list[dict[str, Any]]
    parent: str | None = None
    closed: bool = False
    before: int = 0


@dataclass
class FakeStreams:
    """boto3's client `dynamodbstreams`. crowded: shards that refuse one more reader.

    by_time: whether it knows AT_TIMESTAMP. page: records of a page.
    """

    shards: dict[str, Shard]
    crowded: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    by_time: bool = True
    page: int = 1000
    reads: list[str] = field(default_factory=list)

    def describe_stream(self, **asked: Any) -> dict[str, Any]:
        self._check("DescribeStream", asked)
        shards = []
        for id_, shard in self.shards.items():
            between = {"StartingSequenceNumber": "1" * 21}
            if shard.closed:
                between["EndingSequenceNumber"] = "9" * 21
            entry: dict[str, Any] = {"ShardId": named(id_), "SequenceNumberRange": between}
            if shard.parent:
                entry["ParentShardId"] = named(shard.parent)
            shards.append(entry)
        return {"StreamDescription": {"StreamArn": ARN, "Shards": shards}}

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        self._check("GetShardIterator", asked)
        shard = asked["ShardId"]
        first = 0
        if asked["ShardIteratorType"] == "AT_TIMESTAMP":
            if not self.by_time:
                raise refusal("GetShardIterator", "ValidationException", "no such type")
            times = [moment(one) for one in self._of(shard).records]
            first = sum(at < asked["Timestamp"] for at in times)
        return {"ShardIterator": f"{shard}/{first}/0"}

    def get_records(self, **asked: Any) -> dict[str, Any]:
        self._check("GetRecords", asked)
        id_, first, empties = asked["ShardIterator"].split("/")
        self.reads.append(id_.rpartition("-")[2])
        if id_.rpartition("-")[2] in self.crowded:
            raise refusal("GetRecords", "LimitExceededException", "too many readers")
        shard = self._of(id_)
        at, seen = int(first), int(empties)
        if seen < shard.before:
            return {"Records": [], "NextShardIterator": f"{id_}/{at}/{seen + 1}"}
        page = shard.records[at : at + min(self.page, asked.get("Limit", 1000))]
        answer: dict[str, Any] = {"Records": page}
        if not (shard.closed and at + len(page) >= len(shard.records)):
            answer["NextShardIterator"] = f"{id_}/{at + len(page)}/0"
        return answer

    def _of(self, shard: str) -> Shard:
        return self.shards[shard.rpartition("-")[2]]

    def _check(self, operation: str, asked: dict[str, Any]) -> None:
        if code := self.refused.get(operation):
            raise refusal(operation, code)
        shape = MODEL.operation_model(operation).input_shape
        problems = ParamValidator().validate(asked, shape)
        assert not problems.has_errors(), problems.generate_report()


def moment(one: dict[str, Any]) -> datetime.datetime:
    at = one["dynamodb"]["ApproximateCreationDateTime"]
    assert isinstance(at, datetime.datetime)
    return at


def named(id_: str) -> str:
    return f"shardId-00000001795338000000-{id_}"
