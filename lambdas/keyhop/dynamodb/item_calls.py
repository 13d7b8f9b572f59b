"""Requests about single items of one table, for a job: repeated, counted, and writes held back.

All calls are retried while that can help. Reads are strongly consistent.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget, Gate
from keyhop.dynamodb.refusals import (
    cancellations,
    error_code,
    is_refused,
    is_transient,
    may_have_been_served,
)
from keyhop.dynamodb.requester import Requester, pause, units_of
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, size_of
from keyhop.errors import BudgetSpent, GaveUp, KeyhopError
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, FIRST_SECONDS

LONGEST_BACKOFF_SECONDS = 5.0
MOST_KEYS_AT_ONCE = 100
"""Of one BatchGetItem (AWS documentation)."""
WRITE_UNIT_BYTES = 1024
_REFUSED_ITEM = {
    "ValidationException",
    "ValidationError",
    "ItemCollectionSizeLimitExceededException",
    "ItemCollectionSizeLimitExceeded",
}
"""What the service says of an item that it does not take, and not of all of them."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write.

    Attributes:
        refused: The error of a condition that failed, which contains the present item; None if the
            item was written.
        unsure: Whether an answer was lost before. Then the present item may be the result of this
            call.
        units: The write units of the call.
    """

    refused: ClientError | None = None
    unsure: bool = False
    units: float = 0.0

    @property
    def old(self) -> Key | None:
        """The item that a single write was refused for; None if there is none."""
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
        budget.sized = True  # what a write costs is known before the first one
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
        self._writes.allow_more(units)

    def pause(self, seconds: float) -> None:
        """Wait before a call.

        Raises:
            Stopped: The run will stop, or the slice is over.
            GaveUp: No time remains.
            Exception: What `check` raises.
        """
        if self._ends_at is not None and self._clock() + seconds >= self._ends_at:
            raise GaveUp("There was no time left.")
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
                    raise GaveUp(f"Table {self._table!r} has no room for reads.")
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

        Args:
            operation: The name of the request.
            units: The expected write units.
            refused_units: The write units if a condition fails; None for those of the present item,
                which the answer contains (AWS documentation).
            once: Whether to raise Unanswered instead of sending a request again that may have been
                served.
            parameters: The parameters of the request.
        """
        try:
            turn = self._writes.enter(units, lambda: self.pause(0))
        except BudgetSpent as error:
            spent = self._writes.budget.spent
            raise BudgetSpent(
                f"Of {self._writes.budget.max_units:g} write units {spent:g} are spent, and the "
                "next write may cost more than what is left."
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
            spent = refused_units or _units_of_item(error.response.get("Item"))
            self.usage.count(requests=1, write_units=spent)
            return Written(error, unsure, spent)
        finally:
            self._writes.leave(turn, spent)


def write_units(item_bytes: float) -> float:
    """Return the write units of writing an item of this size into a table without indexes."""
    return float(max(1, math.ceil(item_bytes / WRITE_UNIT_BYTES)))


def is_of_the_item(error: KeyhopError) -> bool:
    """Whether the service does not take this item; it may well take others."""
    cause = error.__cause__
    codes = {error_code(cause), *cancellations(cause)} if isinstance(cause, ClientError) else set()
    return bool(codes & _REFUSED_ITEM)


def _units_of_item(item: Key | None) -> float:
    return write_units(0 if item is None else size_of(item))


def _may_have_been_written(error: Exception) -> bool:
    """Whether a write that ended so may have taken effect."""
    if isinstance(error, ClientError):
        return is_transient(error) and not is_throttling(error.response)
    return isinstance(error, BotoCoreError) and may_have_been_served(error)


def _count_keys(requested: Mapping[str, Any]) -> int:
    return sum(len(table["Keys"]) for table in requested.values())
