"""The deployed parts that a cutover checks: the replicating function and its failure queue."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import is_transient
from keyhop.dynamodb.requester import ItemCalls
from keyhop.errors import AwsRefused, KeyhopError
from keyhop.rekey.control import Direction, Side
from keyhop.rekey.pair import Pair
from keyhop.retries import repeat
from keyhop.streams.dead_letters import messages_in

PROBE = "probe"
"""The key of the event that asks Replicate to test a table: {"probe": the table's name}. It answers
{"why_not": text}, which is empty if the table can be written.
"""

GIVEN_UP = "rekey"
"""The key of the pair's destination in a message of the failure queue. The message also has
`direction`, `key` and `places`, where its item was or should be. As an event, the message makes
Replicate settle these; its answer is as for a probe, and is empty on success.
"""


FIRST_WAIT_SECONDS = 1.0
TRIES = 15
"""Tries of a request to Replicate, which may have been idle: they take about two minutes."""


@dataclass(slots=True)
class Redriven:
    """The outcome of the messages of a failure queue; `others` are not of this pair."""

    settled: int = 0
    left: int = 0
    others: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Deployed:
    """The deployment of a pair, with boto3's clients of Lambda and SQS, the name or ARN of the
    function, and the ARN of its failure queue. `stream_of` returns a table's stream by its name.
    """

    functions: Any
    queues: Any
    replicate: str
    queue: str
    pair: Pair
    stream_of: Callable[[str], str | None]
    sleep: Callable[[float], None] = time.sleep

    def failed(self) -> int | None:
        """Return the messages in the failure queue; the last minute's may be missing (AWS)."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        try:
            answer = self.queues.get_queue_attributes(QueueUrl=self._url(), AttributeNames=names)
        except (BotoCoreError, ClientError):
            return None
        return sum(int(answer["Attributes"][name]) for name in names)

    def mapped(self) -> dict[Direction, str]:
        """Return the problem of each direction's event source mapping; empty if there is none."""
        pages = self.functions.get_paginator("list_event_source_mappings")
        try:
            entries = pages.paginate(FunctionName=self.replicate).search("EventSourceMappings[]")
            mappings = list(entries)
        except (BotoCoreError, ClientError):
            why = "lambda:ListEventSourceMappings of the function is refused here"
            return {"forward": why, "reverse": why}
        return {
            "forward": why_not(mappings, self.stream_of(self.pair.source)),
            "reverse": why_not(mappings, self.stream_of(self.pair.destination)),
        }

    def way_back(self, side: Side) -> str | None:
        """Return why Replicate could not write this table; empty if it can."""
        return self._asked(json.dumps({PROBE: self.pair.table(side)}))

    def redrive(self) -> Redriven:
        """Have Replicate settle this pair's items that it gave up, and delete their messages. Raise
        AwsRefused if the queue or the function does not answer.
        """
        outcome = Redriven()
        try:
            url = self._url()
            for message in messages_in(self.queues, url):
                if _given_up(message["Body"]) != self.pair.destination:
                    outcome.others += 1
                elif why := self._asked(message["Body"]):
                    outcome.left, outcome.why = outcome.left + 1, why
                else:
                    self.queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    outcome.settled += 1
        except (BotoCoreError, ClientError) as error:
            raise AwsRefused(f"The queue or the function does not respond: {error}") from error
        return outcome

    def _url(self) -> str:
        answer = self.queues.get_queue_url(QueueName=self.queue.rpartition(":")[2])
        return str(answer["QueueUrl"])

    def _asked(self, event: str) -> str:
        """Return Replicate's answer to an event; empty if it has no objection."""
        answer = repeat(
            lambda: self.functions.invoke(FunctionName=self.replicate, Payload=event.encode()),
            is_transient,
            first=FIRST_WAIT_SECONDS,
            is_enough=lambda error, attempts: attempts >= TRIES,
            sleep=self.sleep,
        )
        content = json.loads(answer["Payload"].read() or "null") or {}
        if "FunctionError" in answer:
            return f"the function failed ({content.get('errorType', 'it did not say why')})"
        return str(content.get("why_not", "the function does not know this question"))


@dataclass(frozen=True, slots=True)
class NotDeployed:
    """A replacement for Deployed; `why` says that nobody follows the streams, unless unchecked."""

    why: str = ""

    def failed(self) -> int | None:
        return 0

    def mapped(self) -> dict[Direction, str]:
        return {"forward": self.why, "reverse": self.why} if self.why else {}

    def way_back(self, side: Side) -> str | None:
        return None


class Probe(ItemCalls):
    """Writes of one table that must be refused. They prove the permission and the connection."""

    def why_not(self, key: Mapping[str, Any]) -> str:
        """Return why the table cannot be written; empty if it can. No item has the `key`."""
        name = next(iter(key))
        never: dict[str, Any] = {
            "ConditionExpression": "attribute_exists(#p) AND attribute_not_exists(#p)",
            "ExpressionAttributeNames": {"#p": name},
        }
        try:
            put = self._write("put_item", 1.0, 1.0, TableName=self._table, Item=dict(key), **never)
            delete = self._write(
                "delete_item", 1.0, 1.0, TableName=self._table, Key=dict(key), **never
            )
        except KeyhopError as error:
            return str(error)
        if put.refused is None or delete.refused is None:
            return "a write was made that must be refused"
        return ""


def _given_up(body: str) -> Any:
    """Return the destination of the pair that a message belongs to; None for any other message."""
    try:
        content = json.loads(body)
    except ValueError:
        return None
    return content.get(GIVEN_UP) if isinstance(content, dict) else None


def why_not(mappings: list[Mapping[str, Any]], stream: str | None) -> str:
    """Return why a stream is not followed as it must be; empty if it is. Pure."""
    if not stream:
        return "the table's stream is off"
    matching = [candidate for candidate in mappings if candidate.get("EventSourceArn") == stream]
    if not matching:
        return "nobody follows the stream"
    (mapping, *duplicates) = matching
    if duplicates:
        return "two mappings follow the stream"
    if mapping["State"] != "Enabled":
        return f"the mapping is {mapping['State']}"
    if mapping.get("ParallelizationFactor", 1) != 1:
        # A marker would prove nothing about the other parallel batches of its shard.
        return "the mapping has several batches of a shard at once"
    if str(mapping.get("LastProcessingResult") or "").startswith("PROBLEM"):
        return "the last batch had a problem"
    return ""
