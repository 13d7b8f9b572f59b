"""One Scan page: the only place that sends read requests.

Each page is reserved in the budget, sent, retried while that can help, counted, and reduced to what
the walk needs. The transport can be changed behind `PageReader.read` alone.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from threading import Condition, Event, Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from keyhop.dynamodb.capacity import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK, charged_units
from keyhop.dynamodb.client import DynamoDB, Endpoint, explained, is_transient, may_have_been_served
from keyhop.dynamodb.tables import DEFAULT_PATIENCE_SECONDS, Target
from keyhop.dynamodb.throttling import is_throttling, reason_names
from keyhop.dynamodb.usage import Tally
from keyhop.dynamodb.values import Key
from keyhop.errors import GaveUp
from keyhop.key_index.sentinel import MARKER, Sentinel
from keyhop.scan.page_size import ItemSize
from keyhop.scan.rate_limit import Budget
from keyhop.scan.skip_scan import Page, collapse

FIRST_BACKOFF_SECONDS = 0.05
LONGEST_BACKOFF_SECONDS = 20.0
LONGEST_WAIT_SECONDS = 0.2
"""A worker that waits for others looks whether the run was stopped this often."""

FULL_PAGE_UNITS = UNITS_PER_BLOCK * PAGE_BYTES / BLOCK_BYTES


class Stopped(Exception):
    """The run was to stop, or the slice was over, while a worker waited; nothing was sent."""


class Patience:
    """How long failures are borne: until nothing has succeeded for `seconds`, over all workers."""

    def __init__(self, seconds: float) -> None:
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


class PageReader:
    """Reads Scan pages of one table or index; shared by all threads of a process."""

    def __init__(
        self,
        client: DynamoDB,
        target: Target,
        budget: Budget,
        *,
        endpoint: Endpoint | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        stop: Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self.budget = budget
        self.stop = stop or Event()
        self.tally = Tally()
        self._seconds_answered = 0.0
        self._client = client
        self._endpoint = endpoint or Endpoint()
        self._patience = Patience(patience)
        self._clock = clock
        self._lock = Lock()
        self._settled = Condition(self._lock)
        self._parameters = _fixed_parameters(target)

    def read(
        self,
        segment: int,
        segments: int,
        start: Key | None,
        limit: int | None,
        units: float,
        over: Event | None = None,
    ) -> Page:
        """One page of a segment, after `start`, of at most `limit` items; `units` as expected.

        over: when it is set, a page that waits for its turn or for its next attempt is given up
        (Stopped), as when the run is to stop.
        Raises Stopped, BudgetSpent, GaveUp, or what `explained` makes of a refusal.
        """
        parameters = dict(self._parameters)
        if segments > 1:
            parameters["Segment"] = segment
            parameters["TotalSegments"] = segments
        if limit is not None:
            parameters["Limit"] = limit
        if start is not None:
            parameters["ExclusiveStartKey"] = start
        try:
            response, spent = self._attempt(parameters, units, over)
        except (BotoCoreError, ClientError) as error:
            response, spent = self._retry(error, parameters, units, over)
        items = response["Items"]
        elsewhere = 0
        sentinel = self.target.sentinel
        if sentinel is not None and self.target.index is not None:
            items = [item for item in items if sentinel.is_at_place(item)]
            elsewhere = len(response["Items"]) - len(items)
        keys, runs = collapse(items, self.target.space.names)
        marks: tuple[bool, ...] = ()
        if sentinel is not None and self.target.index is None:
            marks = _marks(items, runs, sentinel)
        with self._lock:
            self.tally.requests += 1
            self.tally.items += len(response["Items"])
            self.tally.units += spent
            if elsewhere:
                self.tally.index["rows_elsewhere"] += elsewhere
        return Page(keys, runs, response.get("LastEvaluatedKey"), spent, marks)

    def affordable(self, limit: int | None, size: ItemSize) -> tuple[int | None, float]:
        """At most `limit` items that the budget has room for, and their expected read units.

        None for `limit` asks for a whole page of 1 MB, and stays None if there is room for one: a
        Limit could only make such a page shorter.
        """
        with self._lock:
            if self.budget.is_blind:
                return 1, UNITS_PER_BLOCK * size.blocks(1)
            room = self.budget.page_units(self._clock())
        units = FULL_PAGE_UNITS if limit is None else UNITS_PER_BLOCK * size.blocks(limit)
        if units <= room:
            return limit, units
        fitting = max(1, int(room / UNITS_PER_BLOCK * BLOCK_BYTES / size.mean))
        return fitting, UNITS_PER_BLOCK * size.blocks(fitting)

    @property
    def latency(self) -> float:
        """Mean seconds that a request took; 0 before the first."""
        return self._seconds_answered / self.tally.requests if self.tally.requests else 0.0

    def limit_rate(self, max_rate: float) -> None:
        """From now on, hold the reads under `max_rate` read units a second."""
        with self._lock:
            self.budget.limit_rate(self._clock(), max_rate)

    def count_no_progress(self) -> None:
        """Count a page that brought the walk no further."""
        with self._lock:
            self.tally.no_progress += 1

    def book(self, units: float, found: Mapping[str, float]) -> None:
        """Count reads that were made otherwise, for the budget as well, and what a walk found."""
        with self._lock:
            self.budget.settle(self._clock(), 0.0, units, expected=units)
            self.tally.units += units
            self.tally.index.update(found)

    def _attempt(
        self, parameters: dict[str, Any], units: float, over: Event | None
    ) -> tuple[dict[str, Any], float]:
        with self._settled:
            while self.budget.must_wait(self.budget.with_surprise(units)):
                if self._is_over(over):
                    raise Stopped
                self._settled.wait(LONGEST_WAIT_SECONDS)
            reserved = self.budget.with_surprise(units)
            delay = self.budget.reserve(self._clock(), reserved)
        spent = 0.0
        sized = False
        try:
            self._wait(delay, over)
            began = self._clock()
            response = self._client.scan(**parameters)
            took = self._clock() - began
            spent = charged_units(response.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))
            sized = bool(response["Items"])
            self._patience.succeeded()
            with self._lock:
                self._seconds_answered += took
            return response, spent
        except BotoCoreError as error:
            if may_have_been_served(error):
                spent = units
            raise
        finally:
            with self._settled:
                self.budget.settle(self._clock(), reserved, spent, units)
                self.budget.sized = self.budget.sized or sized
                self._settled.notify_all()

    def _retry(
        self, first: Exception, parameters: dict[str, Any], units: float, over: Event | None
    ) -> tuple[dict[str, Any], float]:
        failures = [first]

        def attempt() -> tuple[dict[str, Any], float]:
            if failures:
                raise failures.pop()  # the failure that brought us here counts as the first attempt
            return self._attempt(parameters, units, over)

        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            wait=wait_random_exponential(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS),
            before_sleep=self._book_failure,
            sleep=lambda seconds: self._wait(seconds, over),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except (BotoCoreError, ClientError) as error:
            raise explained(error, self._endpoint, self.target.name, self.target.arn) from error

    def _book_failure(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        now = self._clock()
        with self._lock:
            self.tally.retries += 1
            if isinstance(error, ClientError) and is_throttling(error.response):
                self.tally.throttles.update(reason_names(error.response))
                self.budget.throttled(now)
            exhausted = self._patience.failed(now)
        if exhausted and isinstance(error, (BotoCoreError, ClientError)):
            why = explained(error, self._endpoint, self.target.name, self.target.arn)
            raise GaveUp(
                f"Nothing has succeeded for {self._patience.seconds:g} seconds. Last: {why}"
            ) from error

    def _wait(self, seconds: float, over: Event | None) -> None:
        """Wait; raises Stopped as soon as the run is to stop, or the slice is over."""
        while not self._is_over(over):
            if seconds <= 0:
                return
            step = seconds if over is None else min(seconds, LONGEST_WAIT_SECONDS)
            self.stop.wait(step)
            seconds -= step
        raise Stopped

    def _is_over(self, over: Event | None) -> bool:
        return self.stop.is_set() or (over is not None and over.is_set())


def _marks(items: Sequence[Key], runs: Sequence[int], sentinel: Sentinel) -> tuple[bool, ...]:
    ends = list(accumulate(runs))
    return tuple(
        any(sentinel.is_one(item) for item in items[end - run : end])
        for run, end in zip(runs, ends, strict=True)
    )


def _fixed_parameters(target: Target) -> dict[str, Any]:
    wanted = list(target.space.names)
    if target.sentinel is not None:
        wanted.append(target.sentinel.sort.name)
        if target.index is None:
            wanted.append(MARKER)
    names = {f"#k{i}": name for i, name in enumerate(wanted)}
    parameters: dict[str, Any] = {
        "TableName": target.name,
        "Select": "SPECIFIC_ATTRIBUTES",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if target.index:
        parameters["IndexName"] = target.index
    return parameters
