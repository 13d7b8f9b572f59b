"""Messages of a failure queue whose records the stream has forgotten."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import IndexBusy
from keyhop.streams.dead_letters import DeadLetters, Reworked
from keyhop.streams.event_source import BatchResult

BATCH = {
    "streamArn": "arn:aws:dynamodb:us-east-1:111122223333:table/Orders/stream/2026-11-01",
    "shardId": "s",
    "startSequenceNumber": "1",
    "endSequenceNumber": "2",
}
MESSAGE = {
    "MessageId": "m",
    "ReceiptHandle": "r",
    "Body": json.dumps({"DDBStreamBatchInfo": BATCH}),
}


@dataclass
class Queue:
    """A queue with one message; events: what has happened, in order."""

    events: list[str] = field(default_factory=list)

    def receive_message(self, **_: Any) -> dict[str, Any]:
        return {"Messages": [] if "deleted" in self.events else [MESSAGE]}

    def delete_message(self, **_: Any) -> None:
        self.events.append("deleted")


class ForgetfulStream:
    def get_shard_iterator(self, **_: Any) -> None:
        raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, "GetShardIterator")


def work(queue: Queue, withdraw: Callable[[], None] | None) -> Reworked:
    letters = DeadLetters(queue, ForgetfulStream(), "url", "Orders")
    return letters.work(lambda records, on_failure: BatchResult(0, 0, ()), withdraw)


def test_trust_is_withdrawn_before_a_message_is_deleted_unprocessed() -> None:
    queue = Queue()
    done = work(queue, lambda: queue.events.append("withdrawn"))
    assert queue.events == ["withdrawn", "deleted"]
    assert (done.forgotten, done.discarded, done.is_clear) == (1, 1, True)


def test_a_message_stays_if_trust_cannot_be_withdrawn() -> None:
    def withdraw() -> None:
        raise IndexBusy("others change the entry all the time")

    queue = Queue()
    with pytest.raises(IndexBusy):
        work(queue, withdraw)
    assert queue.events == []


def test_a_message_stays_if_nobody_asked_to_discard_it() -> None:
    queue = Queue()
    assert not work(queue, None).is_clear
    assert queue.events == []
