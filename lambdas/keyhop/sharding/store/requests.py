"""Requests about single items, which are counted, and retried while this can help."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.refusals import CONFLICT, CONFLICTS, cancellations, error_code, is_transient
from keyhop.dynamodb.requester import READS, WRITES, send, units_of
from keyhop.dynamodb.throttling import is_throttling, reason_names
from keyhop.dynamodb.usage import Usage
from keyhop.retries import repeat

T = TypeVar("T")

FIRST_BACKOFF_SECONDS = 0.05
LONGEST_BACKOFF_SECONDS = 0.5


class Overtaken(Exception):
    """Read again, because the data has changed; nothing was written. A message is for the user."""


@dataclass(slots=True)
class Call:
    """Metadata of the requests of one user's call, except those about the table `excluded`: the
    ReturnConsumedCapacity and consumed capacity of each, the ResponseMetadata of the last, and the
    failures after which a request was repeated.
    """

    excluded: str
    capacity: str = "NONE"
    metadata: dict[str, Any] = field(default_factory=dict)
    consumed: list[Any] = field(default_factory=list)
    repeated: list[BaseException] = field(default_factory=list)

    def note(self, answer: dict[str, Any]) -> None:
        self.metadata = answer.get("ResponseMetadata", self.metadata)
        if self.capacity != "NONE" and "ConsumedCapacity" in answer:
            capacity = answer["ConsumedCapacity"]  # a list for a batch or a transaction
            self.consumed += capacity if isinstance(capacity, list) else [capacity]


@dataclass(slots=True)
class Requests:
    """Sends requests, and retries one call for `patience` seconds at most.

    `client` is Keyhop's, or boto3's `client("dynamodb")` without retries (total_max_attempts=1),
    which would hide throttling. `usage` includes requests for metadata. Its counters are
    metadata_reads, looks (reads of an item's possible shards before a write), moves (of items
    between shards), hot_throttles (of a hot key range of the table), shards_added, shards_removed,
    races_lost, at_maximum (a hot key had the maximum number of shards), and probes.
    """

    client: Any
    clock: Clock = field(default_factory=SystemClock)
    patience: float = 30.0
    usage: Usage = field(default_factory=Usage)
    chance: random.Random = field(default_factory=random.Random)
    _here: threading.local = field(default_factory=threading.local)

    @contextmanager
    def noting(self, call: Call | None) -> Iterator[None]:
        """Record this thread's requests in `call`, within the context."""
        self._here.call = call
        try:
            yield
        finally:
            self._here.call = None

    @property
    def call_noted(self) -> Call | None:
        """The call in which this thread's requests are recorded."""
        return getattr(self._here, "call", None)

    def refusal(self, code: str, message: str, operation: str, **more: Any) -> ClientError:
        """Return an error as the client would raise it, of a class of its `exceptions`."""
        exceptions = getattr(self.client, "exceptions", None)
        kind = ClientError if exceptions is None else exceptions.from_code(code)
        error: ClientError = kind({"Error": {"Code": code, "Message": message}, **more}, operation)
        return error

    def once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Send and count one request, named as in boto3. Raise the errors of boto3's client."""
        call = self.call_noted
        if call is not None and _table_of(parameters) == call.excluded:
            call = None
        if operation in WRITES or operation in READS:
            by_index = call is not None and call.capacity == "INDEXES"
            parameters["ReturnConsumedCapacity"] = "INDEXES" if by_index else "TOTAL"
        self.usage.count(requests=1)
        try:
            answer = send(self.client, operation, parameters)
        except ClientError as error:
            if is_throttled(error):
                self.usage.count_throttle(reason_names(error.response))
            raise
        kind = "write_units" if operation in WRITES else "read_units"
        self.usage.count(**{kind: units_of(answer)})
        if call is not None:
            call.note(answer)
        return answer

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Send a request that may be repeated, with retries."""
        return self.patiently(lambda: self.once(operation, **parameters))

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Repeat an attempt while it is throttled, fails temporarily, or raises Overtaken; a nested
        call has the same deadline.
        """
        outer: float | None = getattr(self._here, "deadline", None)
        deadline = self.clock.monotonic() + self.patience if outer is None else outer
        self._here.deadline = deadline
        try:
            return repeat(
                attempt,
                may_succeed_later,
                first=FIRST_BACKOFF_SECONDS,
                longest=LONGEST_BACKOFF_SECONDS,
                failed=self._failed,
                is_enough=lambda *_: self.clock.monotonic() >= deadline,
                sleep=self.clock.sleep,
            )
        finally:
            self._here.deadline = outer

    def _failed(self, error: BaseException) -> None:
        self.usage.count(retries=1)
        call = self.call_noted
        if call is not None and not isinstance(error, Overtaken):
            call.repeated.append(error)


def _table_of(parameters: Mapping[str, Any]) -> str | None:
    """Return a request's table, or that of a transaction's first item; None for a batch."""
    parts = [part for item in parameters.get("TransactItems", ()) for part in item.values()]
    table: str | None = (parts or [parameters])[0].get("TableName")
    return table


def may_succeed_later(error: BaseException) -> bool:
    """Return whether the same request may succeed soon.

    A conflict is repeated even if a condition failed too: the part in conflict, perhaps the check
    of the metadata, was not evaluated, so the failed condition is not an answer yet.
    """
    if isinstance(error, Overtaken) or error_code(error) in CONFLICTS:
        return True
    if isinstance(error, ClientError) and CONFLICT in cancellations(error):
        return True
    return is_throttled(error) or is_transient(error)


def is_throttled(error: BaseException) -> bool:
    """Return whether a request was throttled, and so has certainly written nothing."""
    if not isinstance(error, ClientError):
        return False
    return is_throttling(error.response)


def is_ambiguous(error: BaseException) -> bool:
    """Return whether a failed request may have written: it had no answer, or an unclear one."""
    if isinstance(error, ClientError):
        return not is_throttled(error) and is_transient(error)
    return isinstance(error, BotoCoreError)
