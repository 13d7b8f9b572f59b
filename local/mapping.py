"""AWS's event source mapping for DynamoDB Streams, the pure part: settings, batches, verdicts."""

import base64
import json
import random
import re
import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from moto.events.exceptions import InvalidEventPatternException
from moto.events.models import EventPattern

STREAM = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:table/([^/]+)/stream/.+")
QUEUE = re.compile(r"arn:[^:]*:sqs:[^:]*:[^:]*:([^:]+)")
LONGEST_EVENT = 6_000_000
"""Bytes of the records in an event; Lambda takes 6 MB."""

RETRIES_EXHAUSTED = "RetryAttemptsExhausted"
AGE_EXCEEDED = "RecordAgeExceeded"


class MappingRefused(Exception):
    """A mapping cannot be obeyed; the message is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What AWS may do at any time, and seldom does. duplicates: share of records that come again.

    A duplicate comes later, even after younger records of its item. With `shuffled`, the order of
    different items is arbitrary; that of one item is kept.
    """

    duplicates: float = 0.0
    shuffled: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A stream record. item: its keys, as text; arrived: epoch; text: as JSON, for the event."""

    item: str
    sequence: str
    shard: str
    arrived: float
    text: str
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """An event source mapping. retries and longest_age (seconds): None is no limit."""

    uuid: str
    function: str
    stream: str
    enabled: bool
    starting_position: str
    batch_size: int
    lanes: int
    retries: int | None
    longest_age: int | None
    bisects: bool
    reports_failures: bool
    queue: str | None
    patterns: tuple[str, ...]

    @property
    def table(self) -> str:
        """The name of the table whose stream it is."""
        found = STREAM.fullmatch(self.stream)
        return found[1] if found else self.stream


def settings_of(entry: Mapping[str, Any]) -> Settings | None:
    """A mapping as the API lists it; None if no DynamoDB stream is its source.

    Raises MappingRefused. What is left out is as AWS has it by default.
    """
    stream = entry.get("EventSourceArn", "")
    if not STREAM.fullmatch(stream):
        return None
    position = entry.get("StartingPosition", "")
    if position not in ("TRIM_HORIZON", "LATEST"):
        raise MappingRefused(
            f"StartingPosition of a DynamoDB stream is TRIM_HORIZON or LATEST, not {position!r}."
        )
    filters = (entry.get("FilterCriteria") or {}).get("Filters") or ()
    return Settings(
        uuid=entry["UUID"],
        function=entry["FunctionArn"],
        stream=stream,
        enabled=entry.get("State") in ("Enabled", "Creating"),
        starting_position=position,
        batch_size=int(entry.get("BatchSize", 100)),
        lanes=int(entry.get("ParallelizationFactor", 1)),
        retries=_limit(entry.get("MaximumRetryAttempts", -1)),
        longest_age=_limit(entry.get("MaximumRecordAgeInSeconds", -1)),
        bisects=bool(entry.get("BisectBatchOnFunctionError")),
        reports_failures="ReportBatchItemFailures" in (entry.get("FunctionResponseTypes") or ()),
        queue=_queue_of(entry),
        patterns=tuple(each.get("Pattern", "") for each in filters),
    )


def _limit(given: Any) -> int | None:
    return None if int(given) < 0 else int(given)


def _queue_of(entry: Mapping[str, Any]) -> str | None:
    """The name of the SQS queue to which failed batches are told."""
    failure = (entry.get("DestinationConfig") or {}).get("OnFailure") or {}
    destination = failure.get("Destination")
    if not destination:
        return None
    found = QUEUE.fullmatch(destination)
    if not found:
        raise MappingRefused(
            f"The pump sends failed batches to an SQS queue only, not to {destination}."
        )
    return found[1]


class Filter:
    """The patterns of a mapping: one that matches is enough. Raises MappingRefused."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [_compiled(pattern) for pattern in patterns]

    def passes(self, text: str) -> bool:
        """Whether a record, as JSON, is for the function."""
        if not self._patterns:
            return True
        record = json.loads(text)
        return any(pattern.matches_event(record) for pattern in self._patterns)


def _compiled(pattern: str) -> EventPattern:
    try:
        if not isinstance(json.loads(pattern), dict):
            raise MappingRefused(f"A filter pattern has to be a JSON object: {pattern}")
        return EventPattern.load(pattern)
    except ValueError as error:
        raise MappingRefused(f"A filter pattern has to be JSON: {pattern}") from error
    except InvalidEventPatternException as error:
        raise MappingRefused(f"A filter pattern is wrong: {pattern}: {error.message}") from error


def record_of(raw: Mapping[str, Any], stream: str, shard: str, now: float) -> Record:
    """A record of GetRecords as the event will have it; now: when it was read."""
    change = raw["dynamodb"]
    event = {**raw, "eventSourceARN": stream}
    if who := raw.get("userIdentity"):
        # The function sees it in lower case.
        event["userIdentity"] = {"type": who["Type"], "principalId": who["PrincipalId"]}
    return Record(
        item=_json(change["Keys"], sort_keys=True),
        sequence=change["SequenceNumber"],
        shard=shard,
        arrived=_arrived(change.get("ApproximateCreationDateTime"), now),
        text=_json(event),
    )


def _arrived(stamp: datetime | None, now: float) -> float:
    """DynamoDB Local rounds down to the minute: a record counts as young as it may be."""
    if stamp is None:
        return now
    told = stamp.timestamp()
    return told if told % 60 else min(told + 60, max(told, now))


def _json(value: Any, sort_keys: bool = False) -> str:
    return json.dumps(value, default=_plain, sort_keys=sort_keys, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """Times are epoch numbers in an event, binary values base64."""
    if isinstance(value, datetime):
        told = value.timestamp()
        return int(told) if told.is_integer() else told
    return base64.b64encode(bytes(value)).decode("ascii")


def event_of(records: Iterable[Record]) -> bytes:
    """What the function is invoked with."""
    return b'{"Records":[' + ",".join(record.text for record in records).encode() + b"]}"


def lane_of(item: str, lanes: int) -> int:
    """All records of an item go to the same lane."""
    return zlib.crc32(item.encode()) % lanes


def shuffled(records: Sequence[Record], chance: random.Random) -> list[Record]:
    """The records in an arbitrary order, those of an item in theirs."""
    of_item: dict[str, deque[Record]] = defaultdict(deque)
    for record in records:
        of_item[record.item].append(record)
    items = [record.item for record in records]
    chance.shuffle(items)
    return [of_item[item].popleft() for item in items]


@dataclass(frozen=True, slots=True)
class Reply:
    """What an invocation came to. error: FunctionError; answer: the function's response."""

    error: str | None
    answer: Any
    request: str
    status: int = 200
    version: str = "$LATEST"


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are delivered together. failures: attempts that count against the retries.

    last: the reply to the last of its invocations.
    """

    records: tuple[Record, ...]
    failures: int = 0
    invocations: int = 0
    last: Reply | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows from a reply: records that are done, batches to try again, one to give up."""

    done: tuple[Record, ...] = ()
    again: tuple[Batch, ...] = ()
    given_up: Batch | None = None
    failed: bool = True

    @property
    def moved(self) -> bool:
        """Whether what is tried next is not the same batch."""
        return bool(self.done) or len(self.again) != 1


def next_batch(pending: deque[Record], size: int) -> Batch | None:
    """Take a batch off what waits, of `size` records or as many as fit into an event."""
    taken: list[Record] = []
    length = 0
    while pending and len(taken) < size:
        length += len(pending[0].text.encode()) + 1
        if taken and length > LONGEST_EVENT:
            break
        taken.append(pending.popleft())
    return Batch(tuple(taken)) if taken else None


def split_by_age(settings: Settings, batch: Batch, now: float) -> tuple[Batch | None, Batch | None]:
    """The records of a batch that are too old, and the others."""
    limit = settings.longest_age
    if limit is None:
        return None, batch
    old = tuple(record for record in batch.records if now - record.arrived > limit)
    young = tuple(record for record in batch.records if now - record.arrived <= limit)
    return (
        replace(batch, records=old) if old else None,
        replace(batch, records=young) if young else None,
    )


def judge(settings: Settings, batch: Batch, reply: Reply) -> Verdict:
    """What AWS does next. Only an exception bisects, and bisecting does not consume a retry."""
    tried = replace(batch, invocations=batch.invocations + 1, last=reply)
    if reply.error is None:
        failed = first_failed(reply.answer, batch.records) if settings.reports_failures else None
        if failed is None:
            return Verdict(done=batch.records, failed=False)
        if failed > 0:
            rest = Batch(batch.records[failed:], failures=1, invocations=1, last=reply)
            return _tried_again(settings, rest, batch.records[:failed])
    elif settings.bisects and len(batch.records) > 1:
        middle = len(batch.records) // 2
        halves = (tried.records[:middle], tried.records[middle:])
        return Verdict(again=tuple(replace(tried, records=half) for half in halves))
    return _tried_again(settings, replace(tried, failures=tried.failures + 1), ())


def _tried_again(settings: Settings, batch: Batch, done: tuple[Record, ...]) -> Verdict:
    if settings.retries is not None and batch.failures > settings.retries:
        return Verdict(done=done, given_up=batch)
    return Verdict(done=done, again=(batch,))


def first_failed(answer: Any, records: Sequence[Record]) -> int | None:
    """Where the first record stands that a response calls failed; None if there is none.

    A response that names no record of the batch, or makes no sense, fails all of it. The first by
    its place, which is the lowest sequence number unless the records were shuffled.
    """
    if answer is None:
        return None
    if not isinstance(answer, dict):
        return 0
    failures = answer.get("batchItemFailures")
    if failures is None:
        return None
    if not isinstance(failures, list):
        return 0
    places = {record.sequence: at for at, record in reversed(list(enumerate(records)))}
    named = [each.get("itemIdentifier") if isinstance(each, dict) else None for each in failures]
    return min((places.get(name, 0) if name else 0 for name in named), default=None)


def failure_message(settings: Settings, batch: Batch, condition: str, now: float) -> str:
    """What the on-failure destination is sent: where the records are, without the records."""
    first, last, reply = batch.records[0], batch.records[-1], batch.last
    told = {
        "requestContext": {
            "requestId": reply.request if reply else None,
            "functionArn": settings.function,
            "condition": condition,
            "approximateInvokeCount": batch.invocations,
        },
        "responseContext": {
            "statusCode": reply.status if reply else None,
            "executedVersion": reply.version if reply else None,
            "functionError": reply.error if reply else None,
        },
        "version": "1.0",
        "timestamp": _iso(now, "milliseconds"),
        "DDBStreamBatchInfo": {
            "shardId": first.shard,
            "startSequenceNumber": first.sequence,
            "endSequenceNumber": last.sequence,
            "approximateArrivalOfFirstRecord": _iso(first.arrived, "seconds"),
            "approximateArrivalOfLastRecord": _iso(last.arrived, "seconds"),
            "batchSize": len(batch.records),
            "streamArn": settings.stream,
        },
    }
    return json.dumps(told)


def _iso(moment: float, precision: str) -> str:
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec=precision)
    return text.replace("+00:00", "Z")
