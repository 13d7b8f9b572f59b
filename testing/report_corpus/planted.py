"""Fakes of AWS with the metrics, contributors and stream of a table of the corpus."""

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from testing.report_cloud import DescribedTables, FakeCloudWatch, Run
from testing.report_corpus.case import DAY, Case, Item, Write, item_json, shard_of
from testing.report_corpus.loading import key_names
from testing.report_corpus.virtual import index_sizes

MINUTE = 60.0
AGE_DAYS = 200
STREAM_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2026-01-01"
PAGE = 500
"""The maximum number of records in an answer of GetRecords."""


def cloudwatch_of(case: Case, table: str, now: float) -> FakeCloudWatch:
    """Return a CloudWatch with the metrics and contributors of a case."""
    fake = FakeCloudWatch(now)
    for metric in case.metrics:
        dimensions = {"TableName": table}
        if metric.index:
            dimensions["GlobalSecondaryIndexName"] = metric.index
        if metric.operation:
            dimensions["Operation"] = metric.operation
        for began, ended in _times(metric.days, metric.since, metric.busy, metric.every_days, now):
            fake.plant(metric.name, metric.per_minute, began, ended, **dimensions)
    if case.metrics:  # a table with metrics has zeros for what is idle
        fake.plant_life(table, [index.name for index in case.schema.indexes if not index.local])
    rules: dict[tuple[str, str], dict[tuple[str, ...], list[Run]]] = {}
    for contributor in case.insights:
        ended = now - contributor.ago
        run = Run(ended - contributor.minutes * MINUTE, ended, contributor.per_minute)
        keys = tuple(map(str, contributor.key))
        rule = rules.setdefault((contributor.kind, contributor.index), {})
        rule.setdefault(keys, []).append(run)
    for (kind, index), contributors in rules.items():
        fake.plant_rule(kind, contributors, table, index)
    return fake


def _times(
    days: float, since: float, busy: tuple[int, int], every_days: int, now: float
) -> Iterable[tuple[float, float]]:
    began, ended = (now - days * DAY) // 60 * 60, (now - since) // 60 * 60
    if busy == (0, 1440) and every_days == 1:
        return [(began, ended)]
    first = began // DAY * DAY
    spans = []
    for number in range(int(days) + 2):
        if number % every_days == 0:
            day = first + number * DAY
            spans.append((max(began, day + busy[0] * MINUTE), min(ended, day + busy[1] * MINUTE)))
    return [(start, end) for start, end in spans if start < end]


def described(
    client: Any, case: Case, table: str, cloudwatch: FakeCloudWatch, now: float
) -> DescribedTables:
    """Return a client that describes a table of the corpus, which is two hundred days old."""
    created = datetime.datetime.fromtimestamp(now - AGE_DAYS * DAY, datetime.UTC)
    description: dict[str, Any] = {"CreationDateTime": created, **case.overlay}
    if case.stream is not None:
        description["LatestStreamArn"] = STREAM_ARN.format(table=table)
        description["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
    indexes = index_sizes(case.schema, case.virtual, now) if case.virtual is not None else {}
    return DescribedTables(
        client, cloudwatch, table=description, indexes=indexes, ttl=case.schema.ttl
    )


class PlantedStream:
    """The operations of boto3's client `dynamodbstreams` that a reader uses, on planted records."""

    def __init__(self, case: Case, writes: Iterable[Write], now: float) -> None:
        names = key_names(case.schema)
        shards: dict[int, list[dict[str, Any]]] = {}
        ordered = sorted(writes, key=lambda write: -write.ago)
        for number, write in enumerate(ordered):
            image: Item = write.new or write.old or {}
            shard = shard_of(image[names[0]])
            shards.setdefault(shard, []).append(_record(names, write, number, now))
        self.shards = {f"shardId-{shard:020}": rows for shard, rows in sorted(shards.items())}

    def describe_stream(self, **request: Any) -> dict[str, Any]:
        shards = [
            {"ShardId": name, "SequenceNumberRange": {"StartingSequenceNumber": "1" + "0" * 20}}
            for name in self.shards
        ]
        after = request.get("ExclusiveStartShardId")
        return {
            "StreamDescription": {
                "StreamArn": request["StreamArn"],
                "StreamStatus": "ENABLED",
                "StreamViewType": "NEW_AND_OLD_IMAGES",
                "Shards": [shard for shard in shards if after is None or shard["ShardId"] > after],
            }
        }

    def get_shard_iterator(self, **request: Any) -> dict[str, Any]:
        kind, rows = request["ShardIteratorType"], self.shards[request["ShardId"]]
        at = 0
        if kind == "LATEST":
            at = len(rows)
        elif kind == "AT_TIMESTAMP":
            at = sum(
                row["dynamodb"]["ApproximateCreationDateTime"] < request["Timestamp"]
                for row in rows
            )
        elif kind.endswith("SEQUENCE_NUMBER"):
            numbers = [row["dynamodb"]["SequenceNumber"] for row in rows]
            after = kind.startswith("AFTER")
            at = sum(
                number < request["SequenceNumber"]
                or (after and number == request["SequenceNumber"])
                for number in numbers
            )
        return {"ShardIterator": f"{request['ShardId']}|{at}"}

    def get_records(self, **request: Any) -> dict[str, Any]:
        shard, _, at = request["ShardIterator"].partition("|")
        limit = min(PAGE, request.get("Limit", 1_000))
        rows = self.shards[shard][int(at) : int(at) + limit]
        return {"Records": rows, "NextShardIterator": f"{shard}|{int(at) + len(rows)}"}


def _record(names: Sequence[str], write: Write, number: int, now: float) -> dict[str, Any]:
    image: Item | None = write.new or write.old
    assert image is not None
    content: dict[str, Any] = {
        "ApproximateCreationDateTime": datetime.datetime.fromtimestamp(
            int(now - write.ago), datetime.UTC
        ),
        "Keys": item_json({name: image[name] for name in names}),
        "SequenceNumber": f"1{number:020}",
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if write.new is not None:
        content["NewImage"] = item_json(write.new)
    if write.old is not None:
        content["OldImage"] = item_json(write.old)
    content["SizeBytes"] = len(repr(content))
    return {
        "eventID": f"{number:032x}",
        "eventName": write.event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": content,
    }
