"""The other readers of a table's stream, and its write rate, if they are accessible."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.tables import Table
from keyhop.rekey.life_cycle.features import ClientOf
from keyhop.streams.event_source import function_name

MOST_READERS = 2
"""Readers of a shard at a time, beyond which DynamoDB Streams may throttle (AWS documentation)."""

OURS = ("Replicate", "CutOver")
"""Functions that a re-key adds to the readers of the stream. CutOver reads it for some seconds,
before it freezes writes, to find a key of each shard.
"""

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Readers:
    """The detected functions and EventBridge pipes that read a stream before a re-key, and why
    others are not. Programs that read it themselves (Kinesis Client Library) can never be detected.
    """

    functions: tuple[str, ...] = ()
    pipes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def during_cutover(self) -> tuple[str, ...]:
        """Return the names of all readers while CutOver reads the stream too."""
        return self.functions + self.pipes + OURS

    @property
    def are_too_many(self) -> bool:
        """Return whether DynamoDB may throttle some of them during a cutover."""
        return len(self.during_cutover) > MOST_READERS

    def to_json(self) -> dict[str, Any]:
        """Return the readers that were detected, and their number during a cutover."""
        return {**asdict(self), "during_cutover": len(self.during_cutover)}


def readers_of(client_of: ClientOf | None, stream: str) -> Readers:
    """Return the readers of a stream that is enabled."""
    if client_of is None:
        return Readers(unseen=("there are no other services beside this database",))
    functions: set[str] = set()
    pipes: set[str] = set()
    unseen = []
    try:
        pages = client_of("lambda").get_paginator("list_event_source_mappings")
        for mapping in pages.paginate(EventSourceArn=stream).search("EventSourceMappings[]"):
            functions.add(function_name(mapping["FunctionArn"]))
    except (BotoCoreError, ClientError) as error:
        unseen.append(f"functions: {type(error).__name__}")
    try:
        pages_of_pipes = (
            client_of("pipes").get_paginator("list_pipes").paginate(SourcePrefix=stream)
        )
        pipes = {pipe["Name"] for pipe in pages_of_pipes.search("Pipes[]")}
    except (BotoCoreError, ClientError) as error:
        unseen.append(f"EventBridge pipes: {type(error).__name__}")
    return Readers(tuple(sorted(functions)), tuple(sorted(pipes)), tuple(unseen))


def write_rate(client_of: ClientOf | None, table: Table) -> float | None:
    """Return the write units a second over the last day; None if they are not accessible."""
    if client_of is None:
        return None
    now = datetime.now(UTC)
    try:
        answer = client_of("cloudwatch").get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName="ConsumedWriteCapacityUnits",
            Dimensions=[{"Name": "TableName", "Value": table.bare_name}],
            StartTime=now - DAY,
            EndTime=now,
            Period=3600,
            Statistics=["Sum"],
        )
    except (BotoCoreError, ClientError):
        return None
    return float(sum(datapoint["Sum"] for datapoint in answer["Datapoints"])) / DAY.total_seconds()
