"""Effects that send keys in batches to a function, a queue, or executions of a state machine.

Delivery is at least once: after a crash, batches that were not committed are sent again under the
same ids, by which the receiver can recognize them. A batch's id is made of the run, the position of
its rows in the list, and the keys. The same keys at the same position always have the same id, and
an id is never used for other keys, so a receiver that has seen an id can skip the batch.

A batch takes one unit of the run's write rate. If the receiver throttles or cannot be reached, the
request is retried, and finally raises GaveUp, after which the run can be resumed. If the receiver
itself fails TRIES times, the keys' outcome is `failed`.
"""

import hashlib
import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from threading import Event
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ReadTimeoutError

from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.rate_limit import Budget, Gate
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.requester import Requester, is_over, pause
from keyhop.dynamodb.values import Key, plain, to_json
from keyhop.each.effect import Batch, Effect, Work
from keyhop.each.outcomes import FAILED, SENT, Row, done
from keyhop.errors import CannotStart, Stopped
from keyhop.jobs.task import TaskOptions
from keyhop.retries import repeat
from keyhop.scan.in_flight import MOST

T = TypeVar("T")
TRIES = 3
"""The number of attempts for each key, if the function fails or reports the key as failed."""

FIRST_WAIT_SECONDS = 0.5
ANSWER_SECONDS = 50.0
"""The time within which a function must answer: a slice ends a minute before its deadline, and does
not wait longer. Work that takes longer belongs behind a queue.
"""

FUNCTION_BYTES = 6_000_000
"""The maximum payload of a synchronous invocation (Lambda quotas)."""

MACHINE_BYTES = 262_144
"""The maximum input of an execution (Step Functions quotas)."""

MESSAGE_BYTES = 262_144
"""The maximum size of a message. SQS accepts 1 MiB since August 2025, but queues may be configured
for less, as older ones are.
"""

REQUEST_BYTES = 1_048_576
"""The maximum size of all messages of a SendMessageBatch (SQS API reference)."""

MESSAGES = 10
LONGEST_NAME = 80
"""The maximum length of an execution's name. Names with characters other than letters, digits, -
and _ are not logged.
"""

LONGEST_DEDUPLICATION_ID = 128
BESIDE_KEYS_BYTES = 4_096
"""Space for the other content of a batch in JSON: the run, the table and the batch's id."""

_ERROR_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,80}")
_LATER = {"ExecutionLimitExceeded"}
"""Codes of temporary refusals that botocore does not classify as throttling."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_AT_AWS = re.compile(r"(^|\.)(amazonaws\.com(\.cn)?|api\.aws|c2s\.ic\.gov|sc2s\.sgov\.gov)$")
_ADDRESSES = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"}


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """The keys of one batch, as they are sent. page: their position in the list."""

    page: str
    keys: Sequence[Any]

    @property
    def id(self) -> str:
        return f"{self.page}-{_digest(_json(self.keys), 12)}"

    def part(self, places: Sequence[int]) -> "KeyBatch":
        """Return a batch of the keys at `places` only."""
        return KeyBatch(self.page, [self.keys[place] for place in places])


class Delivery(Effect):
    """Sends keys in batches.

    client: a client of the service that does not retry.
    """

    service: ClassVar[str]
    most_bytes: ClassVar[int]
    missing: ClassVar[frozenset[str]]
    """Error codes of a receiver that does not exist."""
    requests = 1
    """The maximum number of batches in a request."""

    def __init__(self, work: Work, receiver: str, size: int, client: Any) -> None:
        """Initialize; `size` is the maximum number of keys in a batch."""
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
        """Effect.limit_writes, where a batch is one unit."""
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
        """Send batches; return for each of their keys why it failed, or "".

        Raises Stopped, and GaveUp and its subclasses.
        """

    def _together(self, batches: Iterator[KeyBatch]) -> Iterator[Sequence[KeyBatch]]:
        """Yield the batches of each request."""
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
        """Send a request, and return `read(answer)`, or None if a refusal means that it was done
        before.

        Temporary failures are retried.
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
        """Return whether an error code means that the request was carried out before."""
        return False

    def _not_answered(self, error: Exception) -> Exception:
        """Return the exception to raise for a request that was not answered in time."""
        return error

    def _pause(self, over: Event, seconds: float) -> None:
        pause(self._work.stop, over, seconds)


class InvokeEffect(Delivery):
    """Invokes a function with each batch, and waits for its answer.

    The answer {"failed": [...]} lists the keys to send again, as they were sent or by their places.
    An answer without "failed" means that all keys are done. receiver: the function's name or ARN.
    """

    service = "Lambda"
    most_bytes = FUNCTION_BYTES
    missing = frozenset({"ResourceNotFoundException"})

    def _deliver(self, batches: Sequence[KeyBatch], over: Event) -> list[str]:
        (batch,) = batches
        errors = [""] * len(batch.keys)
        remaining: Sequence[int] = range(len(batch.keys))

        def attempt() -> None:
            nonlocal remaining
            retry = batch.part(remaining)
            failed = failed_of(self._answer(retry, over), retry.keys)
            remaining = [remaining[place] for place in failed]
            if failed:
                raise Nonsense("it reported the key as failed")

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
            for place in remaining:
                errors[place] = f"Not done in {TRIES} tries by the function; at last, {error}."
        return errors

    def _answer(self, batch: KeyBatch, over: Event) -> Any:
        """Invoke the function. Raise Nonsense if it fails, times out, or sends invalid JSON."""
        content = self._body(batch).encode()
        return self._call(
            over,
            "invoke",
            _payload_of,
            lambda: {
                "FunctionName": self._receiver,
                "InvocationType": "RequestResponse",
                "Payload": content,
            },
        )

    def _not_answered(self, error: Exception) -> Exception:
        return Nonsense(f"it did not respond within {ANSWER_SECONDS:g} seconds")


class QueueEffect(Delivery):
    """Sends a message for each batch, up to ten per request. receiver: the queue's URL.

    In a FIFO queue each batch is a separate group, so that no batch waits for another.
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
        remaining = {
            str(number): self._entry(number, batch) for number, batch in enumerate(batches)
        }
        refused: dict[int, str] = {}

        def read(answer: dict[str, Any]) -> None:
            failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
            for number in set(remaining) - set(failed):
                del remaining[number]
            for number, entry in failed.items():
                if entry["SenderFault"]:
                    refused[int(number)] = f"The queue refused the message ({entry['Code']})."
                    del remaining[number]
            if remaining:
                raise _later(failed[next(iter(remaining))], "SendMessageBatch")

        self._call(
            over,
            "send_message_batch",
            read,
            lambda: {"QueueUrl": self._receiver, "Entries": [*remaining.values()]},
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
    """Starts an execution for each batch, and does not wait for its end. receiver: the machine's
    ARN.

    The execution's name is derived from its input, so if an execution with this name exists, the
    batch was sent before. An EXPRESS machine does not report this, and starts another execution.
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


_KINDS: Mapping[str, tuple[type[Delivery], str]] = {
    "invoke": (InvokeEffect, "lambda"),
    "queue": (QueueEffect, "sqs"),
    "machine": (MachineEffect, "stepfunctions"),
}


def delivery(options: TaskOptions, work: Work) -> Delivery:
    """Return the effect for the options `kind`, `target` and `batch`."""
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


def _address_of(queue: str) -> str | None:
    """Return the address of the service that has this queue, such as an emulator's.

    boto3 sends a message to its configured SQS address, even if the queue's URL has another one.
    Return None if the queue is at AWS, or if the environment sets the address of SQS.
    """
    parts = urlsplit(queue)
    if _AT_AWS.search(parts.hostname or "") or _ADDRESSES & os.environ.keys():
        return None
    return f"{parts.scheme}://{parts.netloc}"


def _payload_of(answer: Mapping[str, Any]) -> Any:
    """Return the function's answer. Raise Nonsense if the answer cannot be used."""
    content = answer["Payload"].read()
    try:
        payload = json.loads(content) if content else None
    except ValueError as error:
        if "FunctionError" not in answer:
            raise Nonsense("its response was not JSON") from error
        payload = None
    if "FunctionError" in answer:
        raise Nonsense(f"it failed ({_error_type(payload)})")
    return payload


def _error_type(payload: Any) -> str:
    """Return the name of the function's exception, but not its message, which may hold keys."""
    name = payload.get("errorType") if isinstance(payload, Mapping) else None
    return name if isinstance(name, str) and _ERROR_TYPE.fullmatch(name) else "of an unknown error"


def _later(refusal: Mapping[str, Any], operation: str) -> ClientError:
    """Return a temporary refusal as an error that is retried."""
    error = {"Code": refusal["Code"], "Message": refusal.get("Message", "")}
    status: Any = {"HTTPStatusCode": HTTPStatus.SERVICE_UNAVAILABLE}
    return ClientError({"Error": error, "ResponseMetadata": status}, operation)


class Nonsense(ValueError):
    """An answer that does not say which keys have failed. The message holds no key."""


def body(run: str, batch: KeyBatch, table: str) -> str:
    """Return the body of a message as JSON in ASCII, so that it has as many bytes as characters."""
    return _json({"run": run, "batch": batch.id, "table": table, "keys": batch.keys})


def sent_key(partition: Key) -> Any:
    """Return a partition key as it is sent: a plain value, or several typed attributes."""
    if len(partition) == 1:
        return plain(*partition.values())
    return to_json(partition)


def batches_of(page: str, keys: Sequence[Any], size: int, most_bytes: int) -> Iterator[KeyBatch]:
    """Yield a page's batches, in order.

    size: the maximum number of keys in a batch. most_bytes: the maximum size of its keys together.
    A key that is larger than that is sent alone.
    """
    begin, total = 0, 0
    for number, key in enumerate(keys):
        cost = len(_json(key)) + 1
        if number > begin and (number - begin == size or total + cost > most_bytes):
            yield KeyBatch(page, keys[begin:number])
            begin, total = number, 0
        total += cost
    if begin < len(keys):
        yield KeyBatch(page, keys[begin:])


def failed_of(answer: Any, keys: Sequence[Any]) -> list[int]:
    """Return the places of the keys that an answer lists as failed. Raise Nonsense.

    The answer lists keys as they were sent, or by their places in the batch. If keys are numbers,
    it can list them only by value.
    """
    if not isinstance(answer, Mapping) or "failed" not in answer:
        return []
    named = answer["failed"]
    if not isinstance(named, list):
        raise Nonsense('"failed" in its response must be a list')
    places = {_json(key): place for place, key in enumerate(keys)}
    by_place = not any(isinstance(key, int | float) for key in keys)
    failed = set()
    for name in named:
        place = places.get(_json(_as_sent(name)))
        if place is None and by_place and type(name) is int and 0 <= name < len(keys):
            place = name
        if place is None:
            raise Nonsense('"failed" in its response names a key that was not in the batch')
        failed.add(place)
    return sorted(failed)


def name_of(id_: str, content: str, most: int) -> str:
    """Return a name of up to `most` letters, digits, - and _ for content that is sent under an id.

    The name includes a digest of the content, so equal names mean equal content.
    """
    return f"{_NOT_IN_A_NAME.sub('-', id_)[: most - 17]}-{_digest(content, 16)}"


def _digest(content: str, digits: int) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:digits]


def _as_sent(named: Any) -> Any:
    """Convert a whole number that another language has written as 5.0 or 1e21."""
    if isinstance(named, float) and named.is_integer():
        return int(named)
    return named


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
