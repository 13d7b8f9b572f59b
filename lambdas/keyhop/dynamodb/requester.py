"""Requests to DynamoDB about items: sent, counted, and repeated while that can help.

A `Requester` serves all threads of a process that read or write one table. `ItemCalls` are the
requests about single items for a job: its writes are held back to a rate, and its reads are
strongly consistent.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from threading import Event
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection, DynamoDB
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import LONGEST_WAIT_SECONDS, Budget, Gate
from keyhop.dynamodb.refusals import (
    cancellations,
    error_code,
    explained,
    is_conflict,
    is_refused,
    is_transient,
    may_have_been_served,
)
from keyhop.dynamodb.throttling import is_throttling, reason_names
from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, size_of
from keyhop.errors import BudgetSpent, GaveUp, KeyhopError, Stopped
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, FIRST_SECONDS, LONGEST_SECONDS, repeat

T = TypeVar("T")
WRITES = frozenset(
    {"put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"}
)
READS = frozenset({"scan", "query", "get_item", "batch_get_item"})

LONGEST_BACKOFF_SECONDS = 5.0
_REFUSED_ITEM = {
    "ValidationException",
    "ValidationError",
    "ItemCollectionSizeLimitExceededException",
    "ItemCollectionSizeLimitExceeded",
}
"""The codes of a refusal that concerns one item only."""


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
    _succeeded_at: float = -math.inf

    def once(
        self, operation: str, least_units: float = 0.0, **parameters: Any
    ) -> tuple[dict[str, Any], float]:
        """Send one request, count it, and return the answer and its units.

        `least_units` is the minimum that the service charges; local databases report less. Errors
        are those of boto3's client.
        """
        began = self.clock()
        try:
            answer = send(self.client, operation, parameters)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and is_refused(error):
                self._succeed()
            elif self._failing_since is None:
                self._failing_since = max(began, self._succeeded_at)
            raise
        self._succeed()
        units = max(least_units, units_of(answer))
        self.usage.count_answer(units, operation in WRITES)
        return answer, units

    def call(self, operation: str, least_units: float = 0.0, **parameters: Any) -> dict[str, Any]:
        """Send a request, and repeat it if that can help. Raise the errors of `patiently`."""
        return self.patiently(lambda: self.once(operation, least_units, **parameters))[0]

    def patiently(
        self, attempt: Callable[[], T], pause: Callable[[float], None] | None = None
    ) -> T:
        """Repeat an attempt while it is throttled, in conflict, or fails with a transient error.

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
                sleep=lambda seconds: (pause or self.pause)(min(seconds, self._remaining())),
            )
        except (ClientError, BotoCoreError) as error:
            if is_refused(error):
                raise
            raise self.explained(error) from error

    def explained(self, error: Exception) -> KeyhopError:
        return explained(error, self.endpoint, self.table, self.arn, self.service)

    def _succeed(self) -> None:
        self._failing_since, self._succeeded_at = None, self.clock()

    def _remaining(self) -> float:
        """Return the seconds until the requester gives up if nothing succeeds."""
        since = self._failing_since
        return self.patience if since is None else max(0.0, since + self.patience - self.clock())

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


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write.

    Attributes:
        refused: The error of a condition that failed, which contains the present item; None if the
            item was written.
        unsure: Whether an answer was lost before. Then the present item may be the result of this
            call.
    """

    refused: ClientError | None = None
    unsure: bool = False
    units: float = 0.0

    @property
    def old(self) -> Key | None:
        """Return the item because of which a single write was refused; None if there is none."""
        return None if self.refused is None else self.refused.response.get("Item")


class Unanswered(Exception):
    """A write had no answer, so it may have taken effect, or may take effect yet."""


class ItemCalls:
    """Requests about single items, for any number of threads.

    Args:
        writes: Limits the write units per second and in total.
        patience: The number of seconds of nothing but failures after which GaveUp is raised.
        ends_at: A time of the connection's clock after which no call begins (GaveUp).
        check: Is called before each call. What it raises ends the call.
        slows: Whether a throttle slows down all writes instead of one.
        usage: Counts all requests.
        finishes: Whether calls may begin even if the run will stop. Then Stopped is raised only
            where a call would have to wait.

    Attributes:
        over: Is set when the slice that the calls belong to is over. Then no call begins (Stopped).
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        *,
        writes: Budget | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        ends_at: float | None = None,
        stop: Event | None = None,
        check: Callable[[], None] = lambda: None,
        slows: bool = True,
        usage: Usage | None = None,
        finishes: bool = False,
    ) -> None:
        self._finishes = finishes
        self.usage = usage or Usage()
        self.stop = stop or Event()
        self.over: Event | None = None
        self._check = check
        self._ends_at = ends_at
        self._table = table
        self._clock = connection.clock
        budget = writes or Budget()
        # Under a limit in total the first write goes alone: it shows what the others may cost.
        budget.sized = budget.max_units is None
        self._writes = Gate(budget, self._clock)
        self._requester = Requester(
            connection.client,
            table,
            usage=self.usage,
            endpoint=connection.endpoint,
            patience=patience,
            longest_wait=LONGEST_BACKOFF_SECONDS,
            pause=self.pause,
            on_throttle=self._writes.throttled if slows else lambda: None,
            clock=self._clock,
        )

    def end_at(self, moment: float) -> None:
        """Begin no call after this time of the clock."""
        self._ends_at = moment

    def limit_writes(self, max_rate: float) -> None:
        """Limit the writes to `max_rate` write units per second."""
        self._writes.limit_rate(max_rate)

    def allow_writes(self, units: float | None) -> None:
        """Spend at most this number of write units from now on; None for no limit."""
        budget = self._writes.budget
        budget.sized = units is None or budget.spent > 0
        self._writes.allow_more(units)

    def pause(self, seconds: float) -> None:
        """Wait before a call; raise Stopped, GaveUp if no time remains, or what `check` raises."""
        if self._ends_at is not None and self._clock() + seconds >= self._ends_at:
            raise GaveUp("The time was over.")
        if seconds > 0 or not self._finishes:
            pause(self.stop, self.over, seconds)
        self._check()

    def _read(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self.pause(0)
        # A strongly consistent read costs one unit at least.
        return self._requester.call(
            operation,
            1.0,
            TableName=self._table,
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
            **parameters,
        )

    def _read_batch(self, keys: Sequence[Key], projection: Mapping[str, Any]) -> list[Key]:
        """Return those of up to MOST_KEYS_AT_ONCE items that exist, in any order."""
        items_found: list[Key] = []
        request = {"Keys": keys, "ConsistentRead": True, **projection}
        waiting: dict[str, Any] = {self._table: request}
        pauses = 0
        began = self._clock()
        while waiting:
            self.pause(0)
            answer = self._requester.call(
                "batch_get_item", RequestItems=waiting, ReturnConsumedCapacity="TOTAL"
            )
            unprocessed = answer.get("UnprocessedKeys") or {}
            # DynamoDB Local charges nothing for an item that is not there; the service does.
            processed = _count_keys(waiting) - _count_keys(unprocessed)
            self.usage.count(read_units=max(0.0, processed - units_of(answer)))
            for items in answer["Responses"].values():
                items_found += items
            waiting = unprocessed
            if waiting:  # the service's other way to throttle
                self.usage.count(retries=1)
                self.pause(min(LONGEST_BACKOFF_SECONDS, FIRST_SECONDS * 2**pauses))
                pauses += 1
                if self._clock() - began > self._requester.patience:
                    raise GaveUp(f"Table {self._table!r} has no free read capacity.")
        return items_found

    def _write(
        self,
        operation: str,
        units: float,
        refused_units: float | None = None,
        once: bool = False,
        **parameters: Any,
    ) -> Written:
        """Make a conditional write of one item, or a transaction, that will probably cost `units`.

        A failed condition costs `refused_units`, or as much as the present item, which the answer
        contains (AWS documentation). With `once`, raise Unanswered instead of sending a request
        again that may have been served.
        """
        try:
            turn = self._writes.enter(units, lambda: self.pause(0))
        except BudgetSpent as error:
            spent = self._writes.budget.spent
            raise BudgetSpent(
                f"Of {self._writes.budget.max_units:g} write units {spent:g} are spent, and the "
                "next write may cost more than the rest."
            ) from error
        spent = 0.0
        unsure = False

        def attempt() -> float:
            nonlocal unsure
            try:
                return self._requester.once(
                    operation, ReturnConsumedCapacity="TOTAL", **parameters
                )[1]
            except (BotoCoreError, ClientError) as error:
                unsure = unsure or _may_have_been_written(error)
                if once and unsure:
                    raise Unanswered from error
                raise

        try:
            spent = self._requester.patiently(attempt)
            return Written(None, unsure, spent)
        except ClientError as error:
            if not is_refused(error):
                raise
            spent = refused_units or write_units(size_of(error.response.get("Item", {})))
            self.usage.count(requests=1, write_units=spent)
            return Written(error, unsure, spent)
        finally:
            self._writes.leave(turn, spent, sized=spent > 0)


def is_of_the_item(error: KeyhopError) -> bool:
    """Return whether the service does not accept this item; it may accept others."""
    cause = error.__cause__
    codes = {error_code(cause), *cancellations(cause)} if isinstance(cause, ClientError) else set()
    return bool(codes & _REFUSED_ITEM)


def _may_have_been_written(error: Exception) -> bool:
    """Return whether a write that ended with this error may have taken effect."""
    if isinstance(error, ClientError):
        return is_transient(error) and not is_throttling(error.response)
    return isinstance(error, BotoCoreError) and may_have_been_served(error)


def _count_keys(requested: Mapping[str, Any]) -> int:
    return sum(len(table["Keys"]) for table in requested.values())
