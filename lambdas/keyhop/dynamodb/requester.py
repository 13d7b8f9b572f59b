"""Requests to DynamoDB: sent, counted, and repeated while that can help."""

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from threading import Event
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import DynamoDB
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import LONGEST_WAIT_SECONDS
from keyhop.dynamodb.refusals import error_code, explained, is_conflict, is_refused, is_transient
from keyhop.dynamodb.throttling import is_throttling, reason_names
from keyhop.dynamodb.usage import Usage
from keyhop.errors import GaveUp, KeyhopError
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, LONGEST_SECONDS, repeat

T = TypeVar("T")
WRITES = frozenset(
    {"put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"}
)
READS = frozenset({"scan", "query", "get_item", "batch_get_item"})


class Stopped(Exception):
    """The run was to stop, or the slice was over, while a thread waited; nothing was sent."""


@dataclass(slots=True, eq=False)
class Requester:
    """A sender of the requests of one table, which all threads of a process share.

    Attributes:
        client: Keyhop's client, or boto3's `client("dynamodb")` without retries, or the client of
            another `service`.
        table, arn: The name and the ARN of the table, for messages.
        throttling_codes: Error codes by which the service throttles, in addition to the usual ones.
        patience: The seconds without any success, in any thread, after which the requester gives
            up.
        pause: Waits between attempts. It may raise an exception to end the wait.
        on_throttle: Is called at each throttle, before the wait.
    """

    client: DynamoDB
    table: str
    _: KW_ONLY
    usage: Usage = field(default_factory=Usage)
    endpoint: Endpoint = field(default_factory=Endpoint)
    arn: str = ""
    service: str = "DynamoDB"
    throttling_codes: frozenset[str] = frozenset()
    patience: float = DEFAULT_PATIENCE_SECONDS
    longest_wait: float = LONGEST_SECONDS
    pause: Callable[[float], None] = time.sleep
    on_throttle: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    _failing_since: float | None = None

    def once(
        self, operation: str, least_units: float = 0.0, **parameters: Any
    ) -> tuple[dict[str, Any], float]:
        """Send one request, and count it; raise what the client of boto3 raises.

        Args:
            operation: The name of the request.
            least_units: The minimum that the service charges. Local databases report less.
            parameters: The parameters of the request.

        Returns:
            The answer and its units.
        """
        try:
            answer = send(self.client, operation, parameters)
        except ClientError as error:
            if is_refused(error):
                self._failing_since = None
            raise
        self._failing_since = None
        units = max(least_units, units_of(answer))
        self.usage.count_answer(units, operation in WRITES)
        return answer, units

    def call(self, operation: str, least_units: float = 0.0, **parameters: Any) -> dict[str, Any]:
        """Send a request, and repeat it if that can help. Raise the errors of `patiently`."""
        return self.patiently(lambda: self.once(operation, least_units, **parameters))[0]

    def patiently(
        self, attempt: Callable[[], T], pause: Callable[[float], None] | None = None
    ) -> T:
        """Repeat an attempt while it is throttled, conflicts with a transaction, or fails with a
        transient error.

        Raises:
            GaveUp: Nothing has succeeded for `patience` seconds.
            ClientError: A condition failed.
            KeyhopError: The service refused the request (see `explained`).
        """
        try:
            return repeat(
                attempt,
                lambda error: (
                    is_transient(error) or is_conflict(error) or self._is_throttled(error)
                ),
                longest=self.longest_wait,
                failed=self._failed,
                sleep=pause or self.pause,
            )
        except (ClientError, BotoCoreError) as error:
            if is_refused(error):
                raise
            raise self.explained(error) from error

    def explained(self, error: Exception) -> KeyhopError:
        return explained(error, self.endpoint, self.table, self.arn, self.service)

    def _failed(self, error: BaseException) -> None:
        self.usage.count(retries=1)
        if isinstance(error, ClientError) and self._is_throttled(error):
            self.usage.count_throttle(reason_names(error.response))
            self.on_throttle()
        now = self.clock()
        since = now if self._failing_since is None else self._failing_since
        self._failing_since = since
        if now - since >= self.patience and isinstance(error, BotoCoreError | ClientError):
            raise GaveUp(
                f"Nothing has succeeded for {self.patience:g} seconds. "
                f"Last: {self.explained(error)}"
            ) from error

    def _is_throttled(self, error: BaseException) -> bool:
        return isinstance(error, ClientError) and (
            is_throttling(error.response) or error_code(error) in self.throttling_codes
        )


def pause(stop: Event, over: Event | None, seconds: float) -> None:
    """Wait; raise Stopped as soon as the run will stop or the slice is over."""
    while not is_over(stop, over):
        if seconds <= 0:
            return
        step = seconds if over is None else min(seconds, LONGEST_WAIT_SECONDS)
        stop.wait(step)
        seconds -= step
    raise Stopped


def is_over(stop: Event, over: Event | None) -> bool:
    """Return whether the run will stop, or the slice is over."""
    return stop.is_set() or (over is not None and over.is_set())


def send(client: Any, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Send one request with Keyhop's client or boto3's."""
    if not hasattr(client, "call"):
        return dict(getattr(client, operation)(**parameters))
    answer: dict[str, Any] = client.call(operation, **parameters)
    return answer


def units_of(answer: Mapping[str, Any]) -> float:
    """Return the units that an answer reports, over all its tables."""
    capacity = answer.get("ConsumedCapacity") or {}
    if isinstance(capacity, list):  # a batch has one of each table
        return float(sum(entry.get("CapacityUnits", 0.0) for entry in capacity))
    return float(capacity.get("CapacityUnits", 0.0))
