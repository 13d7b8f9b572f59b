"""What AWS would have seen of a table of the corpus: metrics, contributors and stream, in fakes."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from testing.report_cloud import DescribedTables, FakeCloudWatch, Run
from testing.report_corpus.case import DAY, Case, Item, Write, item_json, shard_of
from testing.report_corpus.loading import typed_name
from testing.report_corpus.virtual import index_sizes

MINUTE = 60.0
AGE_DAYS = 200
STREAM_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2026-01-01"
PAGE = 500
"""Records of a GetRecords."""


def cloudwatch_of(case: Case, table: str, now: float) -> FakeCloudWatch:
    """With the case's metrics and contributors."""
    fake = FakeCloudWatch(now)
    for metric in case.metrics:
        where = {"TableName": table}
        if metric.index:
            where["GlobalSecondaryIndexName"] = metric.index
        if metric.operation:
            where["Operation"] = metric.operation
        for began, ended in _times(metric.days, metric.since, metric.busy, metric.every_days, now):
            fake.plant(metric.name, metric.per_minute, began, ended, **where)
    if case.metrics:
        _idle(fake, case, table)
    rules: dict[tuple[str, str], dict[tuple[str, ...], list[Run]]] = {}
    for one in case.insights:
        ended = now - one.ago
        run = Run(ended - one.minutes * MINUTE, ended, one.per_minute)
        keys = tuple(map(str, one.key))
        rules.setdefault((one.kind, one.index), {}).setdefault(keys, []).append(run)
    for (kind, index), contributors in rules.items():
        fake.plant_rule(kind, contributors, table, index)
    return fake


def _idle(fake: FakeCloudWatch, case: Case, table: str) -> None:
    """Where a table has metrics, the service emits zeros of what is idle."""
    fake.plant_life(table, [one.name for one in case.schema.indexes if not one.local])


def _times(
    days: float, since: float, busy: tuple[int, int], every_days: int, now: float
) -> Iterable[tuple[float, float]]:
    began, ended = (now - days * DAY) // 60 * 60, (now - since) // 60 * 60
    if busy == (0, 1440) and every_days == 1:
        return [(began, ended)]
    first = began // DAY * DAY
    found = []
    for number in range(int(days) + 2):
        if number % every_days == 0:
            day = first + number * DAY
            found.append((max(began, day + busy[0] * MINUTE), min(ended, day + busy[1] * MINUTE)))
    return [(start, end) for start, end in found if start < end]


def described(
    client: Any, case: Case, table: str, cloudwatch: FakeCloudWatch, now: float
) -> DescribedTables:
    """The control plane of a table of the corpus, which is two hundred days old."""
    created = datetime.datetime.fromtimestamp(now - AGE_DAYS * DAY, datetime.UTC)
    told: dict[str, Any] = {"CreationDateTime": created, **case.overlay}
    if case.stream is not None:
        told["LatestStreamArn"] = STREAM_ARN.format(table=table)
        told["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
    indexes = index_sizes(case.schema, case.virtual, now) if case.virtual is not None else {}
    return DescribedTables(client, cloudwatch, table=told, indexes=indexes, ttl=case.schema.ttl)


class PlantedStream:
    """boto3's client `dynamodbstreams`, as far as a reader asks it, with planted records."""

    def __init__(self, case: Case, writes: Iterable[Write], now: float) -> None:
        names = [typed_name(one)[0] for one in (case.schema.partition, case.schema.sort) if one]
        shards: dict[int, list[dict[str, Any]]] = {}
        ordered = sorted(writes, key=lambda one: -one.ago)
        for number, write in enumerate(ordered):
            image: Item = write.new or write.old or {}
            shard = shard_of(image[names[0]])
            shards.setdefault(shard, []).append(_record(names, write, number, now))
        self.shards = {f"shardId-{shard:020}": rows for shard, rows in sorted(shards.items())}

    def describe_stream(self, **asked: Any) -> dict[str, Any]:
        shards = [
            {"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": "1" + "0" * 20}}
            for name in self.shards
        ]
        after = asked.get("ExclusiveStartShardId")
        return {
            "StreamDescription": {
                "StreamArn": asked["StreamArn"],
                "StreamStatus": "ENABLED",
                "StreamViewType": "NEW_AND_OLD_IMAGES",
                "Shards": [one for one in shards if after is None or one["ShardId"] > after],
            }
        }

    def get_shard_iterator(self, **asked: Any) -> dict[str, Any]:
        kind, rows = asked["ShardIteratorType"], self.shards[asked["ShardId"]]
        at = 0
        if kind == "LATEST":
            at = len(rows)
        elif kind == "AT_TIMESTAMP":
            at = sum(
                row["dynamodb"]["ApproximateCreationDateTime"] < asked["Timestamp"] for row in rows
            )
        elif kind.endswith("SEQUENCE_NUMBER"):
            numbers = [row["dynamodb"]["SequenceNumber"] for row in rows]
            after = kind.startswith("AFTER")
            at = sum(
                one < asked["SequenceNumber"] or (after and one == asked["SequenceNumber"])
                for one in numbers
            )
        return {"ShardIterator": f"{asked['ShardId']}|{at}"}

    def get_records(self, **asked: Any) -> dict[str, Any]:
        shard, _, at = asked["ShardIterator"].partition("|")
        limit = min(PAGE, asked.get("Limit", 1_000))
        rows = self.shards[shard][int(at) : int(at) + limit]
        return {"Records": rows, "NextShardIterator": f"{shard}|{int(at) + len(rows)}"}


def _record(names: Sequence[str], write: Write, number: int, now: float) -> dict[str, Any]:
    image: Item | None = write.new or write.old
    assert image is not None
    told: dict[str, Any] = {
        "ApproximateCreationDateTime": datetime.datetime.fromtimestamp(
            int(now - write.ago), datetime.UTC
        ),
        "Keys": item_json({name: image[name] for name in names}),
        "SequenceNumber": f"1{number:020}",
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if write.new is not None:
        told["NewImage"] = item_json(write.new)
    if write.old is not None:
        told["OldImage"] = item_json(write.old)
    told["SizeBytes"] = len(repr(told))
    return {
        "eventID": f"{number:032x}",
        "eventName": write.event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": told,
    }
