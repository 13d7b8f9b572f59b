"""Effects that hand keys to somebody else: to a function, to a queue, to executions of a machine.

At least once: whoever is killed sends again what was not committed, under the same ids. What the
receiver does with a batch must bear that; the id tells him that he has seen it. A batch takes one
unit of the run's write rate. A receiver that is throttled, or cannot be reached, is asked
again, in the end with GaveUp: the run goes on later. What he does with keys is his: where he fails,
and that TRIES times, the keys' outcome is `failed`.
"""

import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from threading import Event
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ReadTimeoutError

from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.gate import Gate
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.requester import Requester, Stopped, is_over, pause
from keyhop.each.batches import (
    KeyBatch,
    Nonsense,
    batches_of,
    body,
    failed_of,
    name_of,
    sent_key,
)
from keyhop.each.effect import Batch, Effect, Work
from keyhop.each.outcomes import FAILED, SENT, Row, done
from keyhop.errors import CannotStart
from keyhop.jobs.task import TaskOptions
from keyhop.retries import repeat
from keyhop.scan.in_flight import MOST

T = TypeVar("T")

TRIES = 3
"""Of each key, with a function that fails, or says that the key has."""

FIRST_WAIT_SECONDS = 0.5
ANSWER_SECONDS = 50.0
"""A function must answer within that: a slice ends a minute before its deadline, and waits for
nobody longer. What takes longer belongs behind a queue."""

FUNCTION_BYTES = 6_000_000
"""Of a synchronous invocation: 6 MB (Lambda quotas)."""
MACHINE_BYTES = 262_144
"""Of an execution's input (Step Functions quotas)."""
MESSAGE_BYTES = 262_144
"""SQS takes four times that (since August 2025), but not where a queue was made to take less, as
all were before."""
REQUEST_BYTES = 1_048_576
"""Of all messages of a SendMessageBatch (SQS API reference)."""
MESSAGES = 10
LONGEST_NAME = 80
"""Of an execution. Names with other than letters, digits, - and _ are not logged."""
LONGEST_DEDUPLICATION_ID = 128

BESIDE_KEYS_BYTES = 4_096
"""Of a batch in JSON: the run, the table and the batch's id take no more."""

_ERROR_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,80}")
_LATER = {"ExecutionLimitExceeded"}
"""Refusals that are no throttles by their codes, and end all the same."""


class Delivery(Effect):
    """Sends keys in batches.

    client: of the service; it does not retry by itself.
    """

    service: ClassVar[str]
    most_bytes: ClassVar[int]
    missing: ClassVar[frozenset[str]]
    """Codes by which the service says that there is no such receiver."""
    requests = 1
    """Batches of a request at most."""

    def __init__(self, work: Work, receiver: str, size: int, client: Any) -> None:
        """size: keys of a batch at most."""
        self.at_once = size * self.requests
        self._work = work
        self._receiver = receiver
        self._size = size
        clock = work.connection.clock
        self._gate = Gate(Budget(), clock)
        self._requester = Requester(
            client,
            work.source.name,
            usage=work.usage,
            endpoint=work.connection.endpoint,
            service=self.service,
            patience=work.patience,
            on_throttle=self._gate.throttled,
            clock=clock,
        )

    def limit_writes(self, max_rate: float) -> None:
        """Effect.limit_writes: a batch is one unit."""
        self._gate.limit_rate(max_rate)

    def apply(self, batch: Batch) -> list[Row]:
        """Effect.apply."""
        rows: list[Row] = []
        space = self._work.source.space
        keys = [sent_key(space.partition_of(row)) for row in batch.rows]
        room = self.most_bytes - BESIDE_KEYS_BYTES
        for together in self._together(batches_of(batch.id, keys, self._size, room)):
            if is_over(self._work.stop, batch.over):
                break
            try:
                errors = self._in_turn(together, batch.over)
            except Stopped:
                break
            for error, row in zip(errors, batch.rows[len(rows) :], strict=False):
                rows.append(done(row, FAILED if error else SENT, error))
        return rows

    @abstractmethod
    def _deliver(self, batches: Sequence[KeyBatch], over: Event) -> list[str]:
        """Send batches; returns, for each of their keys, why it failed, or "".

        Raises Stopped, GaveUp and its kin.
        """

    def _together(self, batches: Iterator[KeyBatch]) -> Iterator[Sequence[KeyBatch]]:
        """What is sent by one request."""
        return ((batch,) for batch in batches)

    def _body(self, batch: KeyBatch) -> str:
        return body(self._work.id, batch, self._work.source.name)

    def _in_turn(self, batches: Sequence[KeyBatch], over: Event) -> list[str]:
        turn = self._gate.enter(len(batches), lambda: self._pause(over, 0.0))
        try:
            return self._deliver(batches, over)
        finally:
            self._gate.leave(turn, turn.units)

    def _call(
        self,
        over: Event,
        operation: str,
        read: Callable[[dict[str, Any]], T],
        parameters: Callable[[], Mapping[str, Any]],
    ) -> T | None:
        """What `read` makes of the answer, or None where there is no need of one; sent again while
        that may help.
        """

        def once() -> T | None:
            try:
                return read(self._requester.once(operation, **parameters())[0])
            except ReadTimeoutError as error:
                raise self._not_answered(error) from error
            except ClientError as error:
                code = error_code(error)
                if self._is_done(code):
                    return None
                if code in self.missing:
                    message = f"{self._receiver} is not there to send keys to ({code})."
                    raise CannotStart(message) from error
                if code in _LATER:
                    raise _later(error.response["Error"], operation) from error
                raise

        return self._requester.patiently(once, partial(self._pause, over))

    def _is_done(self, code: str) -> bool:
        """Whether a refusal says that it was done before."""
        return False

    def _not_answered(self, error: Exception) -> Exception:
        """What becomes of a request that was sent, and not answered."""
        return error

    def _pause(self, over: Event, seconds: float) -> None:
        pause(self._work.stop, over, seconds)


class InvokeEffect(Delivery):
    """Invokes a function with each batch, and waits for its answer.

    What has no "failed" says that all keys are done; {"failed": [...]} names those that are sent
    again, as they were sent or by their places. receiver: its name or ARN.
    """

    service = "Lambda"
    most_bytes = FUNCTION_BYTES
    missing = frozenset({"ResourceNotFoundException"})

    def _deliver(self, batches: Sequence[KeyBatch], over: Event) -> list[str]:
        (batch,) = batches
        errors = [""] * len(batch.keys)
        left: Sequence[int] = range(len(batch.keys))

        def attempt() -> None:
            nonlocal left
            sent = batch.part(left)
            failed = failed_of(self._answer(sent, over), sent.keys)
            left = [left[place] for place in failed]
            if failed:
                raise Nonsense("it said that the key has failed")

        try:
            repeat(
                attempt,
                lambda error: isinstance(error, Nonsense),
                first=FIRST_WAIT_SECONDS,
                failed=lambda error: self._work.usage.count(retries=1),
                is_enough=lambda error, attempts: attempts >= TRIES,
                sleep=partial(self._pause, over),
            )
        except Nonsense as error:
            for place in left:
                errors[place] = f"Not done in {TRIES} tries by the function; at last, {error}."
        return errors

    def _answer(self, batch: KeyBatch, over: Event) -> Any:
        """Raises Nonsense if the function fails, is late, or answers what is no JSON."""
        content = self._body(batch).encode()
        return self._call(
            over,
            "invoke",
            _told,
            lambda: {
                "FunctionName": self._receiver,
                "InvocationType": "RequestResponse",
                "Payload": content,
            },
        )

    def _not_answered(self, error: Exception) -> Exception:
        return Nonsense(f"it did not answer within {ANSWER_SECONDS:g} seconds")


class QueueEffect(Delivery):
    """Sends a message for each batch, several at a time. receiver: the queue's URL.

    In a FIFO queue each batch is a group of its own, so that none waits for another.
    """

    service = "SQS"
    most_bytes = MESSAGE_BYTES
    requests = MESSAGES
    missing = frozenset({"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"})

    def _together(self, batches: Iterator[KeyBatch]) -> Iterator[Sequence[KeyBatch]]:
        together: list[KeyBatch] = []
        size = 0
        for batch in batches:
            length = len(self._body(batch))
            if together and (len(together) == MESSAGES or size + length > REQUEST_BYTES):
                yield together
                together, size = [], 0
            together.append(batch)
            size += length
        if together:
            yield together

    def _deliver(self, batches: Sequence[KeyBatch], over: Event) -> list[str]:
        left = {str(number): self._entry(number, batch) for number, batch in enumerate(batches)}
        refused: dict[int, str] = {}

        def read(answer: dict[str, Any]) -> None:
            failed = {one["Id"]: one for one in answer.get("Failed", ())}
            for number in set(left) - set(failed):
                del left[number]
            for number, one in failed.items():
                if one["SenderFault"]:
                    refused[int(number)] = f"The queue refused the message ({one['Code']})."
                    del left[number]
            if left:
                raise _later(failed[next(iter(left))], "SendMessageBatch")

        self._call(
            over,
            "send_message_batch",
            read,
            lambda: {"QueueUrl": self._receiver, "Entries": [*left.values()]},
        )
        return [refused.get(number, "") for number, batch in enumerate(batches) for _ in batch.keys]

    def _entry(self, number: int, batch: KeyBatch) -> dict[str, str]:
        text = self._body(batch)
        entry = {"Id": str(number), "MessageBody": text}
        if not self._receiver.endswith(".fifo"):
            return entry
        name = name_of(batch.id, text, LONGEST_DEDUPLICATION_ID)
        return {**entry, "MessageGroupId": name, "MessageDeduplicationId": name}


class MachineEffect(Delivery):
    """Starts an execution for each batch, and does not wait for its end. receiver: the ARN.

    Its name stands for its input. So that one of the name is there already says that it was started
    before; an EXPRESS machine does not say so, and starts another.
    """

    service = "Step Functions"
    most_bytes = MACHINE_BYTES
    missing = frozenset({"StateMachineDoesNotExist", "StateMachineDeleting"})

    def _deliver(self, batches: Sequence[KeyBatch], over: Event) -> list[str]:
        (batch,) = batches
        text = self._body(batch)
        parameters = {
            "stateMachineArn": self._receiver,
            "name": name_of(batch.id, text, LONGEST_NAME),
            "input": text,
        }
        self._call(over, "start_execution", lambda answer: None, lambda: parameters)
        return [""] * len(batch.keys)

    def _is_done(self, code: str) -> bool:
        return code == "ExecutionAlreadyExists"


def _told(answer: Mapping[str, Any]) -> Any:
    """What a function has answered; raises Nonsense if it is no answer."""
    content = answer["Payload"].read()
    try:
        told = json.loads(content) if content else None
    except ValueError as error:
        if "FunctionError" not in answer:
            raise Nonsense("its answer was no JSON") from error
        told = None
    if "FunctionError" in answer:
        raise Nonsense(f"it failed ({_error_type(told)})")
    return told


def _error_type(told: Any) -> str:
    """The name of its exception, if that looks like one; its message may hold keys."""
    name = told.get("errorType") if isinstance(told, Mapping) else None
    return name if isinstance(name, str) and _ERROR_TYPE.fullmatch(name) else "of an unknown error"


def _later(refusal: Mapping[str, Any], operation: str) -> ClientError:
    """A refusal for the moment, which the service does not tell as such."""
    told = {"Code": refusal["Code"], "Message": refusal.get("Message", "")}
    status: Any = {"HTTPStatusCode": HTTPStatus.SERVICE_UNAVAILABLE}
    return ClientError({"Error": told, "ResponseMetadata": status}, operation)


_AT_AWS = re.compile(r"(^|\.)(amazonaws\.com(\.cn)?|api\.aws|c2s\.ic\.gov|sc2s\.sgov\.gov)$")

_ADDRESSES = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"}

_KINDS: Mapping[str, tuple[type[Delivery], str]] = {
    "invoke": (InvokeEffect, "lambda"),
    "queue": (QueueEffect, "sqs"),
    "machine": (MachineEffect, "stepfunctions"),
}


def _address_of(queue: str) -> str | None:
    """Return the address of the service that has this queue, such as an emulator's.

    boto3 sends a message to the address of SQS that it knows, whatever the queue's URL says. None
    if the queue is at AWS, or if the environment says where SQS is.
    """
    parts = urlsplit(queue)
    if _AT_AWS.search(parts.hostname or "") or _ADDRESSES & os.environ.keys():
        return None
    return f"{parts.scheme}://{parts.netloc}"


def delivery(options: TaskOptions, work: Work) -> Delivery:
    """Of the options of an effect: `kind`, `target`, `batch`."""
    kind, service = _KINDS[options["kind"]]
    client = aws_client(
        service,
        work.connection.endpoint,
        attempts=1,
        url=_address_of(options["target"]) if service == "sqs" else None,
        read_timeout=ANSWER_SECONDS,
        max_pool_connections=MOST,
    )
    return kind(work, options["target"], options["batch"], client)
