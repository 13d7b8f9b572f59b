"""The reader of Scan pages, which reserves, sends, retries, counts and reduces each page.

Only this module reads whole tables.
"""

import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from threading import Event, Lock
from typing import Any

from botocore.exceptions import BotoCoreError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget, Gate
from keyhop.dynamodb.refusals import may_have_been_served
from keyhop.dynamodb.requester import Requester, pause
from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.units import BLOCK_BYTES, FULL_PAGE_UNITS, UNITS_PER_BLOCK
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, has_values
from keyhop.errors import CannotStart, NotPermitted, StaleIndex
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.in_flight import InFlight
from keyhop.scan.page_size import ItemSize
from keyhop.scan.skip_scan import Page, collapse, without_ignored


@dataclass(eq=False)
class PageReader:
    """Reads Scan pages of one source, for all threads of a process.

    As soon as a page shows an item that the source suspects, the reader ignores such items.
    """

    connection: Connection
    source: Source
    budget: Budget
    _: KW_ONLY
    patience: float = DEFAULT_PATIENCE_SECONDS
    stop: Event = field(default_factory=Event)
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self._clock = self.connection.clock
        self.in_flight = InFlight(time.process_time)
        self._seconds_answered = 0.0
        self._lock = Lock()
        self._gate = Gate(self.budget, self._clock)
        self._parameters = _fixed_parameters(self.source)
        self._requester = Requester(
            self.connection.client,
            self.source.name,
            usage=self.usage,
            endpoint=self.connection.endpoint,
            arn=self.source.arn,
            patience=self.patience,
            on_throttle=self._throttled,
            clock=self._clock,
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
        """Read a page of a segment, after `start`, of at most `limit` items and about `units`.

        Raise Stopped if `over` is set while the page waits; also BudgetSpent, GaveUp, or what
        `explained` makes of a refusal.
        """
        parameters = dict(self._parameters)
        if segments > 1:
            parameters["Segment"] = segment
            parameters["TotalSegments"] = segments
        if limit is not None:
            parameters["Limit"] = limit
        if start is not None:
            parameters["ExclusiveStartKey"] = start
        response, spent = self.send("scan", parameters, units, over)
        rows = items = response["Items"]
        if self.source.only is not None:
            items = [item for item in rows if has_values(item, self.source.only)]
            self.usage.count(rows_elsewhere=len(rows) - len(items))
        keys, runs = collapse(items, self.source.space.names)
        page_items = items if self.source.attributes or self.source.whole else ()
        next_ = response.get("LastEvaluatedKey")
        page = Page(keys, runs, next_, spent, page_items, scan=parameters)
        suspects = self.source.suspects
        if suspects is not None and any(has_values(item, suspects) for item in items):
            self.source = replace(self.source, ignores=suspects, suspects=None)
        if self.source.ignores is not None:
            page = without_ignored(page, items, self.source.ignores)
        return page

    def send(
        self, operation: str, parameters: Mapping[str, Any], units: float, over: Event | None = None
    ) -> tuple[dict[str, Any], float]:
        """Send a Scan or Query that is paid for as a page; return its answer and its read units.

        Raises:
            StaleIndex: A trusted index refuses the request, because it was deleted since then or
                may not be read.
            KeyhopError: Any error of `read`.
        """
        try:
            answer, spent = self._requester.patiently(
                lambda: self._attempt(operation, parameters, units, over),
                pause=lambda seconds: pause(self.stop, over, seconds),
            )
        except (CannotStart, NotPermitted) as error:
            if not self.source.trusted:
                raise
            raise StaleIndex(f"The key index could not be read: {error}") from error
        self.usage.count(items=len(answer["Items"]))
        return answer, spent

    def beside(self, source: Source) -> "PageReader":
        """Return a reader of another source with the same budget, usage, and requests in flight."""
        reader = replace(self, source=source)
        reader._gate, reader.in_flight = self._gate, self.in_flight
        return reader

    def end_first_look(self) -> None:
        """Stop asking for attributes that no page contained: they cost a third more CPU time."""
        self.source = replace(self.source, suspects=None)
        self._parameters = _fixed_parameters(self.source)

    def affordable(self, limit: int | None, size: ItemSize) -> tuple[int | None, float]:
        """Return up to `limit` items that the budget allows, and their expected read units.

        A `limit` of None asks for a whole page of 1 MB, and is returned as None if the budget
        allows one: a Limit could only make such a page shorter.
        """
        maximum = self.most_items(size)
        if maximum is not None and (limit is None or limit > maximum):
            limit = maximum
        return limit, FULL_PAGE_UNITS if limit is None else UNITS_PER_BLOCK * size.blocks(limit)

    def most_items(self, size: ItemSize) -> int | None:
        """Return the maximum items of the next page; None for a page of 1 MB."""
        room = self._gate.room()
        if room is None:
            return 1
        if room >= FULL_PAGE_UNITS:
            return None
        return max(1, int(room // UNITS_PER_BLOCK * BLOCK_BYTES / size.mean))

    @property
    def latency(self) -> float:
        """Return the mean seconds that a request took; 0 before the first."""
        return self._seconds_answered / max(1, self.usage.requests)

    def limit_rate(self, max_rate: float) -> None:
        self._gate.limit_rate(max_rate)

    def book(self, units: float) -> None:
        """Subtract reads of this table that were made in another way from the budget."""
        self._gate.book(units)

    def wait_until_paid(self, over: Event | None = None) -> None:
        """Wait until the rate has paid for all reads so far; raise Stopped if `over` is set."""
        turn = self._gate.enter(0.0, lambda: pause(self.stop, over, 0.0))
        self._gate.leave(turn, 0.0)

    def _throttled(self) -> None:
        self.in_flight.throttled()
        self._gate.throttled()

    def _attempt(
        self, operation: str, parameters: Mapping[str, Any], units: float, over: Event | None
    ) -> tuple[dict[str, Any], float]:
        sent_at = self._clock()
        turn = self._gate.enter(units, lambda: pause(self.stop, over, 0.0))
        spent = 0.0
        sized = False
        try:
            began = self._clock()
            self.in_flight.waited(sent_at, began)
            response, spent = self._requester.once(operation, UNITS_PER_BLOCK, **parameters)
            with self._lock:
                self._seconds_answered += self._clock() - began
            sized = bool(response["Items"])
            return response, spent
        except BotoCoreError as error:
            if may_have_been_served(error):
                spent = units
            raise
        finally:
            self._gate.leave(turn, spent, units, sized)


def _fixed_parameters(source: Source) -> dict[str, Any]:
    parameters: dict[str, Any] = {"TableName": source.name, "ReturnConsumedCapacity": "TOTAL"}
    if source.whole:
        parameters["Select"] = "ALL_ATTRIBUTES"
    else:
        marks = (*(source.only or ()), *(source.ignores or source.suspects or ()))
        projected = [*source.space.names, *source.attributes, *marks]
        names = {f"#k{i}": name for i, name in enumerate(projected)}
        parameters["Select"] = "SPECIFIC_ATTRIBUTES"
        parameters["ProjectionExpression"] = ", ".join(names)
        parameters["ExpressionAttributeNames"] = names
    if source.index:
        parameters["IndexName"] = source.index
    if source.strong:
        parameters["ConsistentRead"] = True
    return parameters
