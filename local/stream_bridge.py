"""Carries the stream records of DynamoDB Local to the deployed functions, as their mappings say.

AWS does that inside Lambda; ministack cannot, because the database is another one. There is one
lane: one batch of one shard at a time. Of a mapping's settings the bridge obeys BatchSize, a filter
on eventName, ReportBatchItemFailures, MaximumRetryAttempts and the on-failure queue. How far a
mapping is, only the bridge knows: another bridge begins at the first record.
"""

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event
from typing import Any

import boto3
from botocore.config import Config

from local.cloud import CREDENTIALS, REGION, Cloud
from testing.servers import LOCAL_CREDENTIALS

IDLE_SECONDS = 0.08
"""Between two looks at the streams, while the bridge runs by itself."""

QUIET_LOOKS = 2
"""So many looks in a row have to find nothing before all is delivered."""

INVOKE_SECONDS = 900

Record = dict[str, Any]


class StreamBridge:
    """functions, streams, queues: boto3's clients for lambda, dynamodbstreams and sqs.

    disturb: gets the records of each page and returns those to deliver: a test repeats some, or
    changes their order. counts: records that were read, delivered and given_up, attempts that
    failed.
    """

    def __init__(
        self,
        functions: Any,
        streams: Any,
        queues: Any,
        disturb: Callable[[list[Record]], list[Record]] = list,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._functions = functions
        self._streams = streams
        self._queues = queues
        self._disturb = disturb
        self._last_read: dict[tuple[str, str], str] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Deliver from a thread until the block ends; then raises what the thread has raised."""
        over = Event()

        def run() -> None:
            while not over.wait(IDLE_SECONDS):
                self.look()

        with ThreadPoolExecutor(1) as pool:
            lane = pool.submit(run)
            try:
                yield
            finally:
                over.set()
            lane.result()

    def settle(self, seconds: float) -> None:
        """Deliver all records, and those that the functions write by that; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        quiet = 0
        while quiet < QUIET_LOOKS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"Records still come after {seconds:g} seconds.")
            quiet = 0 if self.look() else quiet + 1

    def look(self) -> int:
        """Deliver a page of each mapping's stream; returns how many records were read."""
        pages = self._functions.get_paginator("list_event_source_mappings").paginate()
        mappings = [mapping for page in pages for mapping in page["EventSourceMappings"]]
        found = sum(
            self._carry(mapping)
            for mapping in mappings
            if ":dynamodb:" in mapping["EventSourceArn"] and mapping["State"] == "Enabled"
        )
        self.counts["read"] += found
        return found

    def _carry(self, mapping: Mapping[str, Any]) -> int:
        """Deliver a page of the oldest shard that has records."""
        wanted = _event_names(mapping)
        for shard in self._shards(mapping["EventSourceArn"]):
            page = self._page(mapping, shard)
            if page:
                records = [_as_lambda_gets(one, mapping) for one in page]
                passed = [one for one in records if not wanted or one["eventName"] in wanted]
                waiting = self._disturb(passed)
                for at in range(0, len(waiting), mapping["BatchSize"]):
                    self._deliver(mapping, shard, waiting[at : at + mapping["BatchSize"]])
                self._last_read[mapping["UUID"], shard] = page[-1]["dynamodb"]["SequenceNumber"]
                return len(page)
        return 0

    def _shards(self, stream: str) -> list[str]:
        """Parents before children: an id begins with the time; none if the table is gone."""
        try:
            described = self._streams.describe_stream(StreamArn=stream)["StreamDescription"]
        except self._streams.exceptions.ResourceNotFoundException:
            return []
        return sorted(shard["ShardId"] for shard in described["Shards"])

    def _page(self, mapping: Mapping[str, Any], shard: str) -> list[Record]:
        where = {"ShardIteratorType": "TRIM_HORIZON"}
        if last := self._last_read.get((mapping["UUID"], shard)):
            where = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last}
        found = self._streams.get_shard_iterator(
            StreamArn=mapping["EventSourceArn"], ShardId=shard, **where
        )
        page = self._streams.get_records(ShardIterator=found["ShardIterator"])
        return list(page["Records"])

    def _deliver(self, mapping: Mapping[str, Any], shard: str, records: list[Record]) -> None:
        failures = 0
        while records and failures <= mapping["MaximumRetryAttempts"]:
            event = json.dumps({"Records": records})
            answer = self._functions.invoke(FunctionName=mapping["FunctionArn"], Payload=event)
            done = _count_done(mapping, answer, records)
            self.counts["delivered"] += done
            self.counts["failed"] += done < len(records)
            failures = 1 if done else failures + 1
            records = records[done:]
        if records:
            self.counts["given_up"] += len(records)
            queue = mapping["DestinationConfig"]["OnFailure"]["Destination"].rpartition(":")[2]
            url = self._queues.get_queue_url(QueueName=queue)["QueueUrl"]
            message = _failure_message(mapping, shard, records, failures, answer)
            self._queues.send_message(QueueUrl=url, MessageBody=json.dumps(message))


def _event_names(mapping: Mapping[str, Any]) -> set[str]:
    """Those that the mapping's filter lets through; none: all."""
    filters = (mapping.get("FilterCriteria") or {}).get("Filters") or ()
    patterns = [json.loads(one["Pattern"]) for one in filters]
    if any(set(pattern) != {"eventName"} for pattern in patterns):
        raise NotImplementedError(f"The bridge filters by eventName only, not by {patterns}.")
    return {name for pattern in patterns for name in pattern["eventName"]}


def _as_lambda_gets(record: Mapping[str, Any], mapping: Mapping[str, Any]) -> Record:
    """A record of GetRecords as it is in an event: times are numbers, binary values base64."""
    event = {**record, "eventSourceARN": mapping["EventSourceArn"]}
    return dict(json.loads(json.dumps(event, default=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return base64.b64encode(value).decode("ascii")


def _count_done(
    mapping: Mapping[str, Any], answer: Mapping[str, Any], records: list[Record]
) -> int:
    """How many records an invocation has done: those before the first that is reported failed."""
    response = json.loads(answer["Payload"].read() or "null")
    if answer.get("FunctionError"):
        return 0
    if "ReportBatchItemFailures" not in (mapping.get("FunctionResponseTypes") or ()):
        return len(records)
    reported = {one["itemIdentifier"] for one in (response or {}).get("batchItemFailures") or ()}
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
    """What AWS tells the on-failure queue: where the records are, without the records."""
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
    """The bridge of a laptop cloud."""
    # Whether to try again, the mapping decides.
    patient = Config(read_timeout=INVOKE_SECONDS, retries={"total_max_attempts": 1})
    functions = boto3.client(
        "lambda", endpoint_url=cloud.url, region_name=REGION, config=patient, **CREDENTIALS
    )
    streams = boto3.client("dynamodbstreams", endpoint_url=cloud.dynamodb, **LOCAL_CREDENTIALS)
    return StreamBridge(functions, streams, cloud.client("sqs"), disturb)
