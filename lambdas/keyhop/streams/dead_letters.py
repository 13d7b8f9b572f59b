"""A mapping's failure queue: what lies in it is worked off, or said to be lost.

A message has no records, only where they are in the stream (AWS documentation, "Destinations for
failed invocations"): stream, shard, first and last sequence number. The stream keeps them for 24
hours; after that only a look at the whole table finds what they would have said.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.requester import error_code
from keyhop.errors import AwsRefused
from keyhop.streams.partition_worker import BatchResult, OnFailure, Record
from keyhop.streams.records import as_event
from keyhop.wording import counted

Rework = Callable[[Sequence[Record], OnFailure], BatchResult]
"""Works a batch of records again, as the function of the mapping does."""

MOST_PAGES = 1_000
"""Of GetRecords for one message: 10,000 records at most, and many empty pages."""

FORGOTTEN = {"TrimmedDataAccessException", "ResourceNotFoundException"}


@dataclass(slots=True)
class Reworked:
    """What was done. foreign: messages of other tables, left where they are."""

    messages: int = 0
    keys: int = 0
    failed: int = 0
    forgotten: int = 0
    discarded: int = 0
    foreign: int = 0
    why: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether nothing of the table is left in the queue."""
        return not self.failed and self.forgotten == self.discarded

    def to_json(self) -> dict[str, Any]:
        """Without `why`, which is for people."""
        return {name: count for name, count in asdict(self).items() if name != "why"}

    def text(self, table: str, remedy: str) -> str:
        """remedy: the command that finds what is lost."""
        lines = [
            f"{counted(self.messages, 'message')} of {table} worked, "
            f"{counted(self.keys, 'key')} reconciled"
        ]
        if self.failed:
            lines.append(f"  {self.failed:,} still fail, and stay in the queue: {self.why}")
        if self.forgotten:
            left = "deleted" if self.discarded else "left; delete them with --discard-old"
            lines.append(
                f"  {self.forgotten:,} point to records that the stream has forgotten ({left}): "
                f"{remedy} finds what they would have told"
            )
        if self.foreign:
            lines.append(f"  {self.foreign:,} belong to other tables, and are left")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The failure queue at `url`, as far as it is about one table. queues, streams: clients."""

    queues: Any
    streams: Any
    url: str
    table: str

    def work(self, rework: Rework, withdraw: Callable[[], None] | None = None) -> Reworked:
        """Work again what each message points to, and delete the message.

        Args:
            rework: works a batch of records, as the function of the mapping does.
            withdraw: called before a message is deleted whose records the stream has forgotten. It
                must record that what the function keeps is not to be trusted. If it raises an
                exception, the message stays. Without it, such messages stay.

        Raises:
            AwsRefused: the queue or the stream does not answer.
        """
        done = Reworked()
        try:
            for message in messages_in(self.queues, self.url):
                if self._is_done(message, rework, withdraw, done):
                    receipt = message["ReceiptHandle"]
                    self.queues.delete_message(QueueUrl=self.url, ReceiptHandle=receipt)
        except (BotoCoreError, ClientError) as error:
            raise AwsRefused(f"The queue or the stream does not answer: {error}") from error
        return done

    def _is_done(
        self,
        message: Mapping[str, Any],
        rework: Rework,
        withdraw: Callable[[], None] | None,
        done: Reworked,
    ) -> bool:
        """Work a message, and tell whether it may be deleted."""
        info = _batch_info(message["Body"])
        if info is None or f":table/{self.table}/stream/" not in info["streamArn"]:
            done.foreign += 1
            return False
        try:
            records, is_whole = self._records(info)
        except ClientError as error:
            if error_code(error) not in FORGOTTEN:
                raise
            done.forgotten += 1
            if withdraw is None:
                return False
            withdraw()
            done.discarded += 1
            return True
        errors: list[Exception] = []
        result = rework(records, errors.append)
        done.keys += result.keys
        if result.failed or not is_whole:
            done.failed += 1
            why = errors[0] if errors else AwsRefused("the stream did not bring all of the records")
            done.why = f"{type(why).__name__}: {why}"
            return False
        done.messages += 1
        return True

    def _records(self, info: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """The records of a batch, as Lambda gets them; whether these are all.

        GetRecords may bring nothing several times before it brings what is there.
        """
        found: list[dict[str, Any]] = []
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
                    found.append(as_event(record, info["streamArn"]))
                if number >= last:
                    return found, True
            place = page.get("NextShardIterator")
            if not place:
                return found, True
        return found, False


def messages_in(queues: Any, url: str) -> Iterator[Mapping[str, Any]]:
    """All of a queue, once; a message that is left is hidden for a while, then there again."""
    seen: set[str] = set()
    while True:
        answer = queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        fresh = [m for m in answer.get("Messages", ()) if m["MessageId"] not in seen]
        if not fresh:
            return
        seen.update(message["MessageId"] for message in fresh)
        yield from fresh


def _batch_info(body: str) -> Mapping[str, Any] | None:
    """Where a message's records are; None for what is no message of a stream's mapping."""
    try:
        info = json.loads(body)["DDBStreamBatchInfo"]
        int(info["endSequenceNumber"])
        return dict(info) if isinstance(info["streamArn"], str) else None
    except (ValueError, KeyError, TypeError):
        return None
