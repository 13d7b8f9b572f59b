"""A bridge that delivers the stream records of DynamoDB Local to functions by their mappings.

On AWS, Lambda does that. ministack cannot, because it is not the database. The bridge delivers one
batch of one shard at a time. It obeys these settings of a mapping: BatchSize, a filter on
eventName, ReportBatchItemFailures, MaximumRetryAttempts and the on-failure queue. Only the bridge
knows the position of a mapping, so another bridge begins at the first record.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event
from typing import Any

import boto3
from botocore.config import Config
from keyhop.streams.dead_letters import as_event

from local.cloud import CREDENTIALS, REGION, Cloud, beside
from testing.servers import LOCAL_CREDENTIALS

IDLE_SECONDS = 0.08
"""The seconds between two looks at the streams, while the bridge runs in its thread."""

QUIET_LOOKS = 2
"""The number of consecutive looks that must find nothing before everything counts as delivered."""

INVOKE_SECONDS = 900
WITHOUT_END = -1
"""The retries of a mapping without a limit. The other mappings have their turn between them."""

Record = dict[str, Any]


@dataclass
class StreamBridge:
    """The bridge between the streams and the functions of one cloud.

    Attributes:
        functions, streams, queues: boto3's clients for lambda, dynamodbstreams and sqs.
        disturb: Gets the records of each page and returns those to deliver. A test repeats some of
            them, or changes their order.
        counts: The numbers of records that were read, delivered and given_up, and of attempts that
            failed.
    """

    functions: Any
    streams: Any
    queues: Any
    disturb: Callable[[list[Record]], list[Record]] = list
    counts: Counter[str] = field(default_factory=Counter)
    _last_read: dict[tuple[str, str], str] = field(default_factory=dict)
    _left: dict[tuple[str, str], list[list[Record]]] = field(default_factory=dict)
    _waiting: dict[tuple[str, str], list[list[Record]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Batches that come again, by mapping and shard."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Deliver from a thread until the block ends; then raise the error of the thread."""

        def run(over: Event) -> None:
            while not over.wait(IDLE_SECONDS):
                self.look()

        with beside(run):
            yield

    def deliver_all(self, seconds: float = 600) -> None:
        """Deliver all records, including those that the functions cause; raise TimeoutError.

        The default is for a busy machine with a long backlog.
        """
        deadline = time.monotonic() + seconds
        quiet = 0
        while quiet < QUIET_LOOKS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Records still come after {seconds:g} seconds.")
            quiet = 0 if self.look() else quiet + 1

    def look(self) -> int:
        """Deliver a page of each mapping's stream; return how many records were read."""
        pages = self.functions.get_paginator("list_event_source_mappings").paginate()
        mappings = [mapping for page in pages for mapping in page["EventSourceMappings"]]
        return sum(
            self._carry(mapping)
            for mapping in mappings
            if ":dynamodb:" in mapping["EventSourceArn"] and mapping["State"] == "Enabled"
        )

    def _carry(self, mapping: Mapping[str, Any]) -> int:
        """Deliver a page of the oldest shard that has records, or the rest of one.

        Return how many records were read, or remained.
        """
        patterns = _patterns(mapping)
        for shard in self._shards(mapping["EventSourceArn"]):
            place = mapping["UUID"], shard
            waiting = self._left.pop(place, None) or self._batches(mapping, shard, patterns)
            if waiting is None:
                continue
            count = sum(map(len, waiting))
            while waiting and self._deliver(mapping, shard, waiting[0]):
                waiting.pop(0)
            if waiting:
                self._left[place] = waiting
            return max(1, count)  # also of a page of which the filter lets nothing through
        return 0

    def _batches(
        self, mapping: Mapping[str, Any], shard: str, patterns: list[Mapping[str, Any]]
    ) -> list[list[Record]] | None:
        """Return the next page of a shard; None if there is none."""
        page = self._page(mapping, shard)
        if not page:
            return None
        self._last_read[mapping["UUID"], shard] = page[-1]["dynamodb"]["SequenceNumber"]
        self.counts["read"] += len(page)
        size = mapping["BatchSize"]
        events = [_event(record, mapping["EventSourceArn"]) for record in page]
        passed = [
            record
            for record in events
            if not patterns or any(_matches(p, record) for p in patterns)
        ]
        waiting = self.disturb(passed)
        return [waiting[at : at + size] for at in range(0, len(waiting), size)]

    def _shards(self, stream: str) -> list[str]:
        """Return the shards, parents first, by the time in an id; none if the table is gone."""
        try:
            described = self.streams.describe_stream(StreamArn=stream)["StreamDescription"]
        except self.streams.exceptions.ResourceNotFoundException:
            return []
        return sorted(shard["ShardId"] for shard in described["Shards"])

    def _page(self, mapping: Mapping[str, Any], shard: str) -> list[Record]:
        """Return the next records; none if the table has just been deleted.

        Records that are gone are passed over, as Lambda does. DynamoDB Local sometimes also says
        of a shard without records that they are gone.
        """
        last = self._last_read.get((mapping["UUID"], shard))
        places = [{"ShardIteratorType": "TRIM_HORIZON"}]
        if last:
            places.insert(0, {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last})
        errors = self.streams.exceptions
        for place in places:
            try:
                iterator = self.streams.get_shard_iterator(
                    StreamArn=mapping["EventSourceArn"], ShardId=shard, **place
                )
                page = self.streams.get_records(ShardIterator=iterator["ShardIterator"])
            except errors.TrimmedDataAccessException:
                continue
            except errors.ResourceNotFoundException:
                break
            return [r for r in page["Records"] if _sequence_number(r) > int(last or 0)]
        return []

    def _deliver(self, mapping: Mapping[str, Any], shard: str, records: list[Record]) -> bool:
        """Return whether the batch is done or given up; otherwise it must be delivered again."""
        failures, retries = 0, mapping["MaximumRetryAttempts"]
        while records and (failures <= retries or retries == WITHOUT_END):
            if retries == WITHOUT_END and failures:
                return False
            event = json.dumps({"Records": records})
            answer = self.functions.invoke(FunctionName=mapping["FunctionArn"], Payload=event)
            processed = _count_done(mapping, answer, records)
            self.counts["delivered"] += processed
            self.counts["failed"] += processed < len(records)
            failures = 1 if processed else failures + 1
            records = records[processed:]
        if records:
            self.counts["given_up"] += len(records)
            queue = mapping["DestinationConfig"]["OnFailure"]["Destination"].rpartition(":")[2]
            url = self.queues.get_queue_url(QueueName=queue)["QueueUrl"]
            message = _failure_message(mapping, shard, records, failures, answer)
            self.queues.send_message(QueueUrl=url, MessageBody=json.dumps(message))
        return True


def _event(record: Record, stream: str) -> Record:
    """Return a record as functions get it, written now: DynamoDB Local only reports the minute."""
    event = as_event(record, stream)
    event["dynamodb"]["ApproximateCreationDateTime"] = float(int(time.time()))
    return event


def _sequence_number(record: Record) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


def _patterns(mapping: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the patterns of the mapping's filter; none of them means that all records pass."""
    filters = (mapping.get("FilterCriteria") or {}).get("Filters") or ()
    return [json.loads(pattern_filter["Pattern"]) for pattern_filter in filters]


def _matches(pattern: Any, value: Any) -> bool:
    """Return whether a record passes a pattern; only lists of equal texts are supported."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            _matches(part, value.get(name)) for name, part in pattern.items()
        )
    if not all(isinstance(text, str) for text in pattern):
        raise ValueError(f"The bridge filters by equal texts only, not by {pattern}.")
    return value in pattern


def _count_done(
    mapping: Mapping[str, Any], answer: Mapping[str, Any], records: list[Record]
) -> int:
    """Return how many records were processed: those before the first that is reported as failed."""
    response = json.loads(answer["Payload"].read() or "null")
    if answer.get("FunctionError"):
        return 0
    if "ReportBatchItemFailures" not in (mapping.get("FunctionResponseTypes") or ()):
        return len(records)
    reported = {
        failure["itemIdentifier"] for failure in (response or {}).get("batchItemFailures") or ()
    }
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    if not reported <= set(numbers):
        return 0
    return next((at for at, number in enumerate(numbers) if number in reported), len(records))


def _failure_message(
    mapping: Mapping[str, Any],
    shard: str,
    records: list[Record],
    invocations: int,
    answer: Mapping[str, Any],
) -> dict[str, Any]:
    """Return AWS's message for the on-failure queue: where the records are, without the records."""
    first, last = records[0]["dynamodb"], records[-1]["dynamodb"]
    return {
        "requestContext": {
            "requestId": answer["ResponseMetadata"]["RequestId"],
            "functionArn": mapping["FunctionArn"],
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": invocations,
        },
        "responseContext": {
            "statusCode": answer["StatusCode"],
            "executedVersion": answer.get("ExecutedVersion", "$LATEST"),
            "functionError": answer.get("FunctionError"),
        },
        "version": "1.0",
        "timestamp": _iso(time.time()),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": first["SequenceNumber"],
            "endSequenceNumber": last["SequenceNumber"],
            "approximateArrivalOfFirstRecord": _iso(first["ApproximateCreationDateTime"]),
            "approximateArrivalOfLastRecord": _iso(last["ApproximateCreationDateTime"]),
            "batchSize": len(records),
            "streamArn": mapping["EventSourceArn"],
        },
    }


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bridge_for(
    cloud: Cloud, disturb: Callable[[list[Record]], list[Record]] = list
) -> StreamBridge:
    """Return the bridge of a laptop cloud."""
    # Whether to try again, the mapping decides.
    patient = Config(read_timeout=INVOKE_SECONDS, retries={"total_max_attempts": 1})
    functions = boto3.client(
        "lambda", endpoint_url=cloud.url, region_name=REGION, config=patient, **CREDENTIALS
    )
    streams = boto3.client("dynamodbstreams", endpoint_url=cloud.dynamodb, **LOCAL_CREDENTIALS)
    return StreamBridge(functions, streams, cloud.client("sqs"), disturb)
