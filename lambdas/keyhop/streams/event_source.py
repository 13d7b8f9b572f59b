"""Event source mappings: how a function comes to follow the stream of a table.

The stack does not make them. They are made when an index is built or a re-key begins, because only
then the table certainly has a stream, whose ARN changes whenever the stream is turned off and on.
So no user has to enter an ARN or to deploy twice, and a verification replaces a mapping to a former
stream.
"""

import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import BUSY
from keyhop.dynamodb.values import TypedValue, to_json

Record = Mapping[str, Any]
"""A stream record as Lambda passes it to a function."""

OnFailure = Callable[[Exception], None]
"""A function that is called with each error. The error contains no key."""

KEEPER = "KeepIndex"
"""The end of the name of the keeper function."""

LAG_MINUTES = 5

HOUR = timedelta(hours=1)

MOST_OUTAGE = timedelta(hours=20)
"""The longest accepted lag of a keeper, or time without a batch. A stream keeps records for 24
hours (Developer Guide, Streams); those that it deletes before the keeper has read them are lost."""

CHANGES = ("ConsumedWriteCapacityUnits", "TimeToLiveDeletedItemCount")
"""The metrics of a table that show changes. A deletion by TTL consumes no write units."""

NO_AGE = -1

SETTINGS: Mapping[str, Any] = {
    # All records that the stream still has: LATEST could miss some while the mapping starts.
    "StartingPosition": "TRIM_HORIZON",
    # Records of sentinels pass, because a keeper must look after each write (protocol.py). Each
    # table has another pattern for changes of items in the sentinel's place (modified_at).
    "FilterCriteria": {"Filters": [{"Pattern": '{"eventName": ["INSERT", "REMOVE"]}'}]},
    "BatchSize": 500,
    # A table with few writes pays for an invocation every few seconds instead of for each record.
    "MaximumBatchingWindowInSeconds": 2,
    "ParallelizationFactor": 4,
    "BisectBatchOnFunctionError": True,
    "MaximumRetryAttempts": 16,
    # No record is given up for its age: a stream that was on already has records of a day, and a
    # keeper that is behind catches up. The retries limit the delay by a record that always fails.
    "MaximumRecordAgeInSeconds": NO_AGE,
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
}
"""The settings of the keeper's mappings. A record that still fails after 16 retries goes to the
failure queue, so that it does not delay others for a day. An attempt retries throttled requests for
most of the function's time, so all attempts take a quarter of an hour."""

OF_TIME = ("MaximumRecordAgeInSeconds", "MaximumBatchingWindowInSeconds")


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The numbers of records and of distinct partition keys, and the sequence numbers to repeat."""

    records: int
    keys: int
    failed: tuple[str, ...]

    def to_response(self) -> dict[str, Any]:
        """Return the response to the event source mapping (ReportBatchItemFailures)."""
        return {"batchItemFailures": [{"itemIdentifier": number} for number in self.failed]}


@dataclass(frozen=True, slots=True)
class Mappings:
    """The mappings of a function, by its name or ARN; `queue` is the ARN of the failure queue."""

    client: Any
    function: str
    queue: str
    settings: Mapping[str, Any] = field(default_factory=lambda: SETTINGS)

    def attach(self, stream: str, also: str | None = None) -> bool:
        """Make the function follow the stream, and no older stream of its table.

        Args:
            also: A filter pattern in addition to those of the settings.

        Returns:
            Whether the mapping is enabled. Until then, this must be called again.
        """
        mappings = self.of_table(stream)
        current = [mapping for mapping in mappings if mapping["EventSourceArn"] == stream]
        self._delete([mapping for mapping in mappings if mapping not in current])
        if not current:
            self.client.create_event_source_mapping(
                EventSourceArn=stream,
                FunctionName=self.function,
                DestinationConfig={"OnFailure": {"Destination": self.queue}},
                **_with_pattern(self.settings, also),
            )
            return False
        (mapping, *_) = current
        if mapping["State"] == "Disabled":
            self.client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)
            return False
        if mapping.get("MaximumRecordAgeInSeconds", NO_AGE) != NO_AGE:
            # A person has set one: the mapping would give up records that are older.
            of_time = {name: self.settings[name] for name in OF_TIME}
            self.client.update_event_source_mapping(UUID=mapping["UUID"], **of_time)
            return False
        if also is not None and not _has_pattern(mapping, also):
            # An older version made it, and passes no changes of items in the sentinel's place.
            criteria = _with_pattern(self.settings, also)["FilterCriteria"]
            self.client.update_event_source_mapping(UUID=mapping["UUID"], FilterCriteria=criteria)
            return False
        return bool(mapping["State"] == "Enabled")

    def detach(self, stream: str) -> bool:
        """Remove the mappings of the stream's table; returns whether there are none."""
        return self._delete(self.of_table(stream))

    def detach_all_but(self, tables: Sequence[str]) -> bool:
        """Remove those to streams of other tables; returns whether there are none."""
        streams = tuple(f":table/{name}/stream/" for name in tables)
        return self._delete(
            [m for m in self._all() if not any(k in m.get("EventSourceArn", "") for k in streams)]
        )

    def of_table(self, stream: str) -> list[dict[str, Any]]:
        """Return the function's mappings to a stream of the same table."""
        table = stream.partition("/stream/")[0] + "/stream/"
        return [m for m in self._all() if m.get("EventSourceArn", "").startswith(table)]

    def tables(self) -> set[str]:
        """Return the names of the tables whose streams it follows."""
        arns = (mapping.get("EventSourceArn", "") for mapping in self._all())
        return {arn.partition("/stream/")[0].rpartition("/")[2] for arn in arns}

    def other_functions(self, stream: str) -> list[str]:
        """Return the other functions that follow the stream."""
        name = self.function.rpartition(":")[2]
        names = {
            function_name(mapping["FunctionArn"])
            for mapping in _mappings_of_stream(self.client, stream)
        }
        return sorted(names - {name})

    def _all(self) -> list[dict[str, Any]]:
        pages = self.client.get_paginator("list_event_source_mappings")
        return list(pages.paginate(FunctionName=self.function).search("EventSourceMappings[]"))

    def _delete(self, mappings: list[dict[str, Any]]) -> bool:
        """Delete mappings; return whether there were none. One that is changing now is refused."""
        for mapping in mappings:
            if mapping["State"] == "Deleting":
                continue
            try:
                self.client.delete_event_source_mapping(UUID=mapping["UUID"])
            except ClientError as error:
                if error_code(error) not in ("ResourceNotFoundException", BUSY):
                    raise
        return not mappings


def modified_at(name: str, value: TypedValue) -> str:
    """Return the filter pattern for changes of items with this sort key. It compares texts."""
    ((type_, text),) = to_json({name: value})[name].items()
    texts = [text]
    if type_ == "N":  # which is written with an exponent or without one
        texts = list(dict.fromkeys([text, format(Decimal(text), "f"), str(Decimal(text))]))
    keys = {name: {type_: texts}}
    return json.dumps({"eventName": ["MODIFY"], "dynamodb": {"Keys": keys}}, ensure_ascii=False)


def _has_pattern(mapping: Mapping[str, Any], pattern: str) -> bool:
    """Return whether the filter of a mapping has a pattern, or is not visible."""
    filters = mapping.get("FilterCriteria", {}).get("Filters", [])
    return not filters or any(
        json.loads(each["Pattern"]) == json.loads(pattern) for each in filters
    )


def _with_pattern(settings: Mapping[str, Any], pattern: str | None) -> dict[str, Any]:
    if pattern is None:
        return dict(settings)
    filters = [*settings["FilterCriteria"]["Filters"], {"Pattern": pattern}]
    return {**settings, "FilterCriteria": {"Filters": filters}}


@dataclass(frozen=True, slots=True)
class Follower:
    """A keeper's mapping.

    Attributes:
        modified: When the mapping, or its state, was last changed.
        problem: The problem of the last batch, if any.
        queue: The ARN of the failure queue.
    """

    uuid: str
    function: str
    state: str
    modified: str
    problem: str
    queue: str

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> "Follower":
        """Convert Lambda's description of a mapping."""
        result = str(mapping.get("LastProcessingResult") or "")
        return cls(
            mapping["UUID"],
            function_name(mapping["FunctionArn"]),
            mapping["State"],
            _moment(mapping.get("LastModified")),
            result if result.startswith("PROBLEM") else "",
            mapping.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", ""),
        )


def _moment(modified: datetime | int | None) -> str:
    """Return one text on all machines: boto3's times are in the zone of the machine."""
    if isinstance(modified, datetime):
        return modified.astimezone(UTC).isoformat()
    return str(modified or "")


@dataclass(frozen=True, slots=True)
class Watch:
    """Finds the keepers of tables. None means unknown.

    Attributes:
        client_of: Makes a client of an AWS service.
        keeper: The name of the function; empty for any function with the name of a keeper.
    """

    client_of: Callable[[str], Any]
    keeper: str = ""

    @classmethod
    def from_here(cls, endpoint: Endpoint) -> "Watch | None":
        """Return a watch for a command; None for a local database without a laptop cloud."""
        names = ("AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL")
        endpoint_url = next(filter(None, map(os.environ.get, names)), None)
        if endpoint.is_loopback and not endpoint_url:
            return None
        return cls(lambda service: aws_client(service, endpoint, attempts=2))

    def followers(self, stream: str) -> tuple[Follower, ...] | None:
        """Return the keepers' mappings to a stream; None if they cannot be seen."""
        try:
            mappings = _mappings_of_stream(self.client_of("lambda"), stream)
            followers = map(Follower.of, mappings)
            return tuple(each for each in followers if self._is_keeper(each.function))
        except (BotoCoreError, ClientError):
            return None

    def lag_seconds(self, function: str) -> float | None:
        """Return the greatest age of a batch that the function got in the last minutes.

        0 if it got none. If it got none although there were some, its mapping shows that
        (Follower.problem).
        """
        since = datetime.now(UTC) - timedelta(minutes=LAG_MINUTES)
        points = self._metric("AWS/Lambda", "IteratorAge", function, since, timedelta(minutes=1))
        return None if points is None else _greatest_age(points)

    def longest_lag_seconds(self, function: str, table: str, since: datetime) -> float | None:
        """Return the longest delay of the function, with records younger than `since`.

        A function that could not work for longer than a stream keeps records has lost some. Its
        first batch afterwards is as old, unless it reaches from the oldest record to a young one:
        IteratorAge is the age of the last record of a batch. So it also counts as unknown if the
        function got no batch for MOST_OUTAGE in which the table was written to. (The keeper gets
        inserts and deletions only. No metric separates these from updates, so a table that has
        only updates, for so long, looks like one whose keeper is away.)

        Args:
            table: The name of the table whose stream the function follows.

        Returns:
            Seconds; None if it cannot be seen.
        """
        points = self._metric("AWS/Lambda", "IteratorAge", function, since, HOUR)
        if points is None:
            return None
        batches = sorted(point["Timestamp"] for point in points)
        moments = [since - HOUR, *batches, datetime.now(UTC)]  # so the first hour is in a gap
        gaps = [(a, b) for a, b in itertools.pairwise(moments) if b - a > MOST_OUTAGE]
        for metric in CHANGES if gaps else ():
            changes = self._metric("AWS/DynamoDB", metric, table, since, HOUR)
            if changes is None:
                return None
            written = [change["Timestamp"] for change in changes if change["Sum"]]
            if any(a < moment < b for moment in written for a, b in gaps):
                return None
        return _greatest_age(
            [
                point
                for point in points
                if point["Timestamp"] + HOUR - timedelta(milliseconds=point["Maximum"]) > since
            ]
        )

    def _metric(
        self, namespace: str, name: str, resource: str, since: datetime, period: timedelta
    ) -> list[dict[str, Any]] | None:
        """Return a metric's datapoints until now; None if CloudWatch does not answer."""
        dimension = "FunctionName" if namespace == "AWS/Lambda" else "TableName"
        try:
            answer = self.client_of("cloudwatch").get_metric_statistics(
                Namespace=namespace,
                MetricName=name,
                Dimensions=[{"Name": dimension, "Value": resource}],
                StartTime=since,
                EndTime=datetime.now(UTC),
                Period=int(period.total_seconds()),
                Statistics=["Maximum", "Sum"],
            )
        except (BotoCoreError, ClientError):
            return None
        return list(answer["Datapoints"])

    def failures(self, queue: str) -> int | None:
        """Return the number of messages in a failure queue."""
        try:
            client = self.client_of("sqs")
            url = client.get_queue_url(QueueName=queue.rpartition(":")[2])["QueueUrl"]
            return count_messages(client, url)
        except (BotoCoreError, ClientError):
            return None

    def _is_keeper(self, function: str) -> bool:
        return function == self.keeper if self.keeper else function.endswith(KEEPER)


def count_messages(queues: Any, url: str) -> int:
    """Return the approximate number of messages in a queue, with those that are hidden now."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = queues.get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return sum(int(answer["Attributes"][name]) for name in names)


def _greatest_age(points: Sequence[Mapping[str, Any]]) -> float:
    """Return the greatest IteratorAge of these datapoints, in seconds; 0 of none."""
    return max((point["Maximum"] / 1000 for point in points), default=0.0)


def _mappings_of_stream(client: Any, stream: str) -> list[Mapping[str, Any]]:
    """Return the event source mappings of a stream, as Lambda describes them."""
    pages = client.get_paginator("list_event_source_mappings").paginate(EventSourceArn=stream)
    return list(pages.search("EventSourceMappings[]"))


def function_name(arn: str) -> str:
    """Return the name in a function's ARN."""
    return arn.partition(":function:")[2].partition(":")[0] or arn
