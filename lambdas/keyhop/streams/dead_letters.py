"""The failure queue of an event source mapping: process its messages again, or report their loss.

A message has no records, but their place in the stream (AWS documentation, "Destinations for failed
invocations"): the stream, the shard, and the first and the last sequence number. The stream keeps
the records for 24 hours. After that, only reading the whole table shows what they contained.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import error_code
from keyhop.errors import AwsRefused
from keyhop.streams.event_source import BatchResult, OnFailure, Record, count_messages
from keyhop.wording import counted

Rework = Callable[[Sequence[Record], OnFailure], BatchResult]
"""A function that processes a batch of records again, as the function of the mapping does."""

MOST_PAGES = 1_000
"""The maximum number of GetRecords pages for a message. It has up to 10,000 records, and the
stream may return many empty pages."""

FORGOTTEN = {"TrimmedDataAccessException", "ResourceNotFoundException"}


@dataclass(slots=True)
class Reworked:
    """The result of processing a queue.

    Attributes:
        messages: The messages whose records were processed.
        keys: The keys of these records.
        failed: The messages whose records failed again.
        forgotten: The messages whose records the stream has deleted.
        discarded: Those of them that were deleted from the queue.
        foreign: The messages of other tables, which stay in the queue.
        why: The error of the last failure.
    """

    messages: int = 0
    keys: int = 0
    failed: int = 0
    forgotten: int = 0
    discarded: int = 0
    foreign: int = 0
    why: str = ""

    @property
    def is_clear(self) -> bool:
        """Return whether the queue has no more messages of the table."""
        return not self.failed and self.forgotten == self.discarded

    def to_json(self) -> dict[str, Any]:
        """Return the counts."""
        return {name: count for name, count in asdict(self).items() if name != "why"}

    def text(self, table: str, remedy: str) -> str:
        """Describe the result; `remedy` is the command that finds the lost changes."""
        lines = [
            f"{counted(self.messages, 'message')} of {table} worked, "
            f"{counted(self.keys, 'key')} reconciled"
        ]
        if self.failed:
            lines.append(f"  {self.failed:,} still fail, and stay in the queue: {self.why}")
        if self.forgotten:
            fate = "deleted" if self.discarded else "left; delete them with discard_old=True"
            lines.append(
                f"  {self.forgotten:,} point to records that the stream has forgotten ({fate}): "
                f"{remedy} finds the lost changes"
            )
        if self.foreign:
            lines.append(f"  {self.foreign:,} belong to other tables, and are left")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The messages of one table in a failure queue.

    Attributes:
        queues: A client of SQS.
        streams: A client of DynamoDB Streams.
    """

    queues: Any
    streams: Any
    url: str
    table: str

    def waiting(self) -> int:
        """Return the approximate number of messages in the queue, of whatever tables.

        Raises:
            AwsRefused: The queue does not answer.
        """
        try:
            return count_messages(self.queues, self.url)
        except (BotoCoreError, ClientError) as error:
            raise AwsRefused(f"The queue does not respond: {error}") from error

    def work(self, rework: Rework, withdraw: Callable[[], None] | None = None) -> Reworked:
        """Process the records of each message again, and delete the message.

        Args:
            withdraw: Is called before a message is deleted whose records the stream has deleted.
                It must record that the key index is no longer trusted. If it raises an exception,
                the message stays. Without it, such messages stay.

        Raises:
            AwsRefused: The queue or the stream does not answer.
        """
        reworked = Reworked()
        try:
            for message in messages_in(self.queues, self.url):
                if self._is_done(message, rework, withdraw, reworked):
                    receipt = message["ReceiptHandle"]
                    self.queues.delete_message(QueueUrl=self.url, ReceiptHandle=receipt)
        except (BotoCoreError, ClientError) as error:
            raise AwsRefused(f"The queue or the stream does not respond: {error}") from error
        return reworked

    def _is_done(
        self,
        message: Mapping[str, Any],
        rework: Rework,
        withdraw: Callable[[], None] | None,
        counts: Reworked,
    ) -> bool:
        """Process a message, and return whether it may be deleted."""
        info = _batch_info(message["Body"])
        if info is None or f":table/{self.table}/stream/" not in info["streamArn"]:
            counts.foreign += 1
            return False
        try:
            records, is_whole = self._records(info)
        except ClientError as error:
            if error_code(error) not in FORGOTTEN:
                raise
            counts.forgotten += 1
            if withdraw is None:
                return False
            withdraw()
            counts.discarded += 1
            return True
        errors: list[Exception] = []
        result = rework(records, errors.append)
        counts.keys += result.keys
        if result.failed or not is_whole:
            counts.failed += 1
            why = (
                errors[0] if errors else AwsRefused("the stream did not return all of the records")
            )
            counts.why = f"{type(why).__name__}: {why}"
            return False
        counts.messages += 1
        return True

    def _records(self, info: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Return the records of a batch as Lambda passes them, and whether these are all.

        GetRecords may return several empty pages before the records.
        """
        records: list[dict[str, Any]] = []
        place = self.streams.get_shard_iterator(
            StreamArn=info["streamArn"],
            ShardId=info["shardId"],
            ShardIteratorType="AT_SEQUENCE_NUMBER",
            SequenceNumber=info["startSequenceNumber"],
        )["ShardIterator"]
        last = int(info["endSequenceNumber"])
        for _ in range(MOST_PAGES):
            page = self.streams.get_records(ShardIterator=place)
            for record in page["Records"]:
                number = int(record["dynamodb"]["SequenceNumber"])
                if number <= last:
                    records.append(as_event(record, info["streamArn"]))
                if number >= last:
                    return records, True
            place = page.get("NextShardIterator")
            if not place:
                return records, True
        return records, False


def messages_in(queues: Any, url: str) -> Iterator[Mapping[str, Any]]:
    """Yield each message of a queue once. A message that is not deleted is hidden for a while."""
    receipts: set[str] = set()
    while True:
        answer = queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        fresh = [m for m in answer.get("Messages", ()) if m["MessageId"] not in receipts]
        if not fresh:
            return
        receipts.update(message["MessageId"] for message in fresh)
        yield from fresh


def _batch_info(body: str) -> Mapping[str, Any] | None:
    """Read the place of a message's records; return None for a message of another kind."""
    try:
        info = json.loads(body)["DDBStreamBatchInfo"]
        int(info["endSequenceNumber"])
        return dict(info) if isinstance(info["streamArn"], str) else None
    except (ValueError, KeyError, TypeError):
        return None


def as_event(record: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """Convert a record of GetRecords to the form in which Lambda passes it.

    Times become numbers, and binary values become base64. `stream` is the ARN of the stream.
    """
    event = {**record, "eventSourceARN": stream}
    return dict(json.loads(json.dumps(event, default=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return base64.b64encode(value).decode("ascii")
