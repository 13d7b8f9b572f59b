"""Requests to DynamoDB: sent, counted, and repeated while that can help. Nothing else sends any."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import DynamoDB, Endpoint, explained, is_transient
from keyhop.dynamodb.throttling import is_throttling, reason_names
from keyhop.dynamodb.usage import Usage
from keyhop.errors import GaveUp
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, LONGEST_SECONDS, repeat

T = TypeVar("T")
CONDITION_FAILED = "ConditionalCheckFailedException"
WRITES = frozenset(
    {"put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"}
)
READS = frozenset({"scan", "query", "get_item", "batch_get_item"})


class Stopped(Exception):
    """The run was to stop, or the slice was over, while a thread waited; nothing was sent."""


class Patience:
    """How long failures are borne: until nothing has succeeded for `seconds`, over all threads."""

    def __init__(self, seconds: float = DEFAULT_PATIENCE_SECONDS) -> None:
        self.seconds = seconds
        self._failing_since: float | None = None

    def succeeded(self) -> None:
        """A request succeeded."""
        self._failing_since = None

    def failed(self, now: float) -> bool:
        """A request failed; whether patience has run out."""
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since >= self.seconds


class Requester:
    """Sends the requests of one table; shared by all threads of a process.

    client: Keyhop's, or boto3's `client("dynamodb")`, which should not retry by itself. arn: the
    table's, for messages. pause: waits between attempts, and may raise what ends the waiting.
    on_throttle: told of each throttle before the wait.
    """

    def __init__(
        self,
        client: DynamoDB,
        table: str,
        *,
        usage: Usage | None = None,
        endpoint: Endpoint | None = None,
        arn: str = "",
        patience: float = DEFAULT_PATIENCE_SECONDS,
        longest_wait: float = LONGEST_SECONDS,
        pause: Callable[[float], None] = time.sleep,
        on_throttle: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self.table = table
        self.usage = usage if usage is not None else Usage()
        self.patience = Patience(patience)
        self._endpoint = endpoint or Endpoint()
        self._arn = arn
        self._longest_wait = longest_wait
        self._pause = pause
        self._on_throttle = on_throttle
        self._clock = clock

    def once(
        self, operation: str, least_units: float = 0.0, **parameters: Any
    ) -> tuple[dict[str, Any], float]:
        """One request, by boto3's name for it, counted; and its units.

        least_units: what the service charges at least; local databases report less.
        Raises what boto3's client raises.
        """
        try:
            answer: dict[str, Any] = send(self.client, operation, parameters)
        except ClientError as error:
            if error_code(error) == CONDITION_FAILED:
                self.patience.succeeded()
            raise
        self.patience.succeeded()
        units = max(least_units, units_of(answer))
        self.usage.count_answer(units, operation in WRITES)
        return answer, units

    def call(self, operation: str, least_units: float = 0.0, **parameters: Any) -> dict[str, Any]:
        """A request that may be repeated, and is. Raises as `patiently`."""
        return self.patiently(lambda: self.once(operation, least_units, **parameters))[0]

    def patiently(
        self, attempt: Callable[[], T], pause: Callable[[float], None] | None = None
    ) -> T:
        """Repeat a whole attempt while it is throttled, or fails for the moment.

        pause: waits in this call, in place of the usual. Raises GaveUp, what `explained` makes of a
        refusal, and a condition that failed as it is.
        """
        try:
            return repeat(
                attempt,
                is_transient,
                longest=self._longest_wait,
                failed=self._failed,
                sleep=pause or self._pause,
            )
        except ClientError as error:
            if error_code(error) == CONDITION_FAILED:
                raise
            raise self.explained(error) from error
        except BotoCoreError as error:
            raise self.explained(error) from error

    def explained(self, error: Exception) -> Exception:
        """The error that a user can act on."""
        return explained(error, self._endpoint, self.table, self._arn)

    def _failed(self, error: BaseException) -> None:
        self.usage.count(retries=1)
        if isinstance(error, ClientError) and is_throttling(error.response):
            self.usage.count_throttle(reason_names(error.response))
            self._on_throttle()
        if self.patience.failed(self._clock()) and isinstance(error, BotoCoreError | ClientError):
            raise GaveUp(
                f"Nothing has succeeded for {self.patience.seconds:g} seconds. "
                f"Last: {self.explained(error)}"
            ) from error


def send(client: Any, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One request by Keyhop's client or by boto3's."""
    call = getattr(client, "call", None)
    answer: dict[str, Any] = (
        call(operation, **parameters)
        if call is not None
        else getattr(client, operation)(**parameters)
    )
    return answer


def units_of(answer: Mapping[str, Any]) -> float:
    """Units that an answer reports, over all its tables."""
    capacity = answer.get("ConsumedCapacity") or {}
    if isinstance(capacity, list):  # a batch has one of each table
        return float(sum(entry.get("CapacityUnits", 0.0) for entry in capacity))
    return float(capacity.get("CapacityUnits", 0.0))


def error_code(error: BaseException) -> str:
    """The service's error code; empty for what is no answer."""
    if not isinstance(error, ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))
