"""What a cutover sees of a deployment: the function that follows the streams, its failure queue."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import is_transient
from keyhop.errors import AwsRefused
from keyhop.rekey.control import Direction, Side
from keyhop.rekey.cutover.probe import PROBE
from keyhop.rekey.pair import Pair
from keyhop.retries import repeat
from keyhop.streams.dead_letters import messages_in

GIVEN_UP = "rekey"
"""In a message of the failure queue: the pair's destination; beside it `direction`, `key`, and
`places`, at which its item lay or was to lie. As an event it has Replicate settle these; it answers
as above, empty if that is done."""


FIRST_WAIT_SECONDS = 1.0
TRIES = 15
"""Of a question to Replicate, which may have been idle: they last about two minutes."""


@dataclass(slots=True)
class Redriven:
    """What became of the messages of a failure queue. others: of other pairs, and any other."""

    settled: int = 0
    left: int = 0
    others: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Deployed:
    """functions, queues: boto3's clients of Lambda and SQS. replicate: the function's name or ARN.
    queue: the ARN of its failure queue. stream_of: a table's stream, by the table's name.
    """

    functions: Any
    queues: Any
    replicate: str
    queue: str
    pair: Pair
    stream_of: Callable[[str], str | None]
    sleep: Callable[[float], None] = time.sleep

    def failed(self) -> int | None:
        """Messages in the failure queue; what came in the last minute may not count yet (AWS
        documentation).
        """
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        try:
            told = self.queues.get_queue_attributes(QueueUrl=self._url(), AttributeNames=names)
        except (BotoCoreError, ClientError):
            return None
        return sum(int(told["Attributes"][name]) for name in names)

    def mapped(self) -> dict[Direction, str]:
        """What is wrong with each direction's event source mapping; empty for nothing."""
        pages = self.functions.get_paginator("list_event_source_mappings")
        found = list(pages.paginate(FunctionName=self.replicate).search("EventSourceMappings[]"))
        return {
            "forward": why_not(found, self.stream_of(self.pair.source)),
            "reverse": why_not(found, self.stream_of(self.pair.destination)),
        }

    def way_back(self, side: Side) -> str | None:
        """Why Replicate could not write this table; empty if it can."""
        return self._asked(json.dumps({PROBE: self.pair.table(side)}))

    def redrive(self) -> Redriven:
        """Have Replicate settle what it gave up of this pair: that leaves the queue. Raises
        AwsRefused.
        """
        done = Redriven()
        try:
            url = self._url()
            for message in messages_in(self.queues, url):
                if _given_up(message["Body"]) != self.pair.destination:
                    done.others += 1
                elif why := self._asked(message["Body"]):
                    done.left, done.why = done.left + 1, why
                else:
                    self.queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    done.settled += 1
        except (BotoCoreError, ClientError) as error:
            raise AwsRefused(f"The queue or the function does not answer: {error}") from error
        return done

    def _url(self) -> str:
        told = self.queues.get_queue_url(QueueName=self.queue.rpartition(":")[2])
        return str(told["QueueUrl"])

    def _asked(self, event: str) -> str:
        """Return Replicate's answer: empty if nothing stands against it."""
        answer = repeat(
            lambda: self.functions.invoke(FunctionName=self.replicate, Payload=event.encode()),
            is_transient,
            first=FIRST_WAIT_SECONDS,
            is_enough=lambda error, attempts: attempts >= TRIES,
            sleep=self.sleep,
        )
        told = json.loads(answer["Payload"].read() or "null") or {}
        if "FunctionError" in answer:
            return f"the function failed ({told.get('errorType', 'it did not say why')})"
        return str(told.get("why_not", "the function does not know this question"))


@dataclass(frozen=True, slots=True)
class NotDeployed:
    """The same where no deployment is known. why: that nobody follows the streams; empty where that
    is not asked.
    """

    why: str = ""

    def failed(self) -> int | None:
        return 0

    def mapped(self) -> dict[Direction, str]:
        return {"forward": self.why, "reverse": self.why} if self.why else {}

    def way_back(self, side: Side) -> str | None:
        return None


def _given_up(body: str) -> Any:
    """The destination of the pair that a message is of; None for any other message."""
    try:
        told = json.loads(body)
    except ValueError:
        return None
    return told.get(GIVEN_UP) if isinstance(told, dict) else None


def why_not(mappings: list[Mapping[str, Any]], stream: str | None) -> str:
    """Why a stream is not followed as it must be; empty if it is. Pure."""
    if not stream:
        return "the table's stream is off"
    mine = [one for one in mappings if one.get("EventSourceArn") == stream]
    if not mine:
        return "nobody follows the stream"
    (one, *others) = mine
    if others:
        return "two mappings follow the stream"
    if one["State"] != "Enabled":
        return f"the mapping is {one['State']}"
    if one.get("ParallelizationFactor", 1) != 1:
        # A marker would tell of one of a shard's lanes only.
        return "the mapping has several batches of a shard at once"
    if str(one.get("LastProcessingResult") or "").startswith("PROBLEM"):
        return "the last batch had a problem"
    return ""
