"""One Scan page: the only place that reads tables through.

Each page is reserved in the budget, sent, retried while that can help, counted, and reduced to what
the walk needs.
"""

from threading import Condition, Event, Lock
from typing import Any

from botocore.exceptions import BotoCoreError

from keyhop.dynamodb.capacity import (
    BLOCK_BYTES,
    PAGE_BYTES,
    UNITS_PER_BLOCK,
)
from keyhop.dynamodb.client import Connection, may_have_been_served
from keyhop.dynamodb.requester import Requester, Stopped
from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, same_value
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.page_size import ItemSize
from keyhop.scan.rate_limit import Budget
from keyhop.scan.skip_scan import Page, collapse

LONGEST_WAIT_SECONDS = 0.2
"""A thread that waits for others looks whether the run was stopped this often."""

FULL_PAGE_UNITS = UNITS_PER_BLOCK * PAGE_BYTES / BLOCK_BYTES


class PageReader:
    """Reads Scan pages of one source; shared by all threads of a process."""

    def __init__(
        self,
        connection: Connection,
        source: Source,
        budget: Budget,
        *,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        stop: Event | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.source = source
        self.budget = budget
        self.stop = stop or Event()
        self.usage = usage if usage is not None else Usage()
        self.connection = connection
        self.patience = patience
        self._clock = connection.clock
        self._seconds_answered = 0.0
        self._lock = Lock()
        self._settled = Condition(self._lock)
        self._parameters = _fixed_parameters(source)
        self._requester = self.requester(pause=lambda seconds: pause(self.stop, None, seconds))

    def requester(self, **more: Any) -> Requester:
        """For other requests about the same table, counted in the same usage."""
        return Requester(
            self.connection.client,
            self.source.name,
            usage=self.usage,
            endpoint=self.connection.endpoint,
            arn=self.source.arn,
            patience=self.patience,
            on_throttle=self._on_throttle,
            clock=self._clock,
            **more,
        )

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
        response, spent = self._requester.patiently(
            lambda: self._attempt(parameters, units, over),
            pause=lambda seconds: pause(self.stop, over, seconds),
        )
        rows = items = response["Items"]
        self.usage.count(items=len(rows))
        if self.source.only is not None:
            items = [item for item in rows if _counts(item, self.source.only)]
            self.usage.count(rows_elsewhere=len(rows) - len(items))
        keys, runs = collapse(items, self.source.space.names)
        shown = items if self.source.attributes else ()
        return Page(keys, runs, response.get("LastEvaluatedKey"), spent, shown)

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
        return self._seconds_answered / self.usage.requests if self.usage.requests else 0.0

    def limit_rate(self, max_rate: float) -> None:
        """From now on, hold the reads under `max_rate` read units a second."""
        with self._lock:
            self.budget.limit_rate(self._clock(), max_rate)

    def book(self, units: float) -> None:
        """Take reads of this table that were made otherwise off the budget."""
        with self._lock:
            self.budget.settle(self._clock(), 0.0, units, expected=units)

    def _attempt(
        self, parameters: dict[str, Any], units: float, over: Event | None
    ) -> tuple[dict[str, Any], float]:
        with self._settled:
            while self.budget.must_wait(self.budget.with_surprise(units)):
                if is_over(self.stop, over):
                    raise Stopped
                self._settled.wait(LONGEST_WAIT_SECONDS)
            reserved = self.budget.with_surprise(units)
            delay = self.budget.reserve(self._clock(), reserved)
        spent = 0.0
        sized = False
        try:
            pause(self.stop, over, delay)
            began = self._clock()
            response, spent = self._requester.once("scan", UNITS_PER_BLOCK, **parameters)
            took = self._clock() - began
            sized = bool(response["Items"])
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

    def _on_throttle(self) -> None:
        with self._lock:
            self.budget.throttled(self._clock())


def pause(stop: Event, over: Event | None, seconds: float) -> None:
    """Wait; raises Stopped as soon as the run is to stop, or the slice is over."""
    while not is_over(stop, over):
        if seconds <= 0:
            return
        step = seconds if over is None else min(seconds, LONGEST_WAIT_SECONDS)
        stop.wait(step)
        seconds -= step
    raise Stopped


def is_over(stop: Event, over: Event | None) -> bool:
    """Whether the run is to stop, or the slice is over."""
    return stop.is_set() or (over is not None and over.is_set())


def _counts(item: Key, only: Key) -> bool:
    return all(same_value(item[name], value) for name, value in only.items())


def _fixed_parameters(source: Source) -> dict[str, Any]:
    wanted = [*source.space.names, *source.attributes, *(source.only or ())]
    names = {f"#k{i}": name for i, name in enumerate(wanted)}
    parameters: dict[str, Any] = {
        "TableName": source.name,
        "Select": "SPECIFIC_ATTRIBUTES",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if source.index:
        parameters["IndexName"] = source.index
    return parameters
