"""The reads of a sample, within the run's budget and rate, and as the pages of a run.

Each segment of the run is drawn and has one row. A segment is read in memory, an ask at a time, and
its row is written at its end. So no checkpoint contains a key, and another process must read an
interrupted segment from the beginning.

The last drawn segments may remain unread if the remaining units may not suffice. That is decided
before a segment begins, from the cost of others, as if it were the most expensive: leaving out
those that turn out expensive would bias the sample.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Condition, Event, Lock
from typing import TypeVar

from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK, blocks_of
from keyhop.dynamodb.values import Key, size_of
from keyhop.errors import BudgetSpent, CannotStart, Stopped
from keyhop.jobs.pages import Learnt
from keyhop.report.sample.asks import Answer, Ask, Asks
from keyhop.report.sample.drawing import USUAL_UNITS, Drawing, Kind
from keyhop.report.sample.rows import Row, to_key
from keyhop.scan.page_size import FILL, ItemSize
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import PageResult, Position

T = TypeVar("T")
ASKS = "asks"
LONGEST_WAIT, MOST_WAITS = 1.0, 100
"""The seconds of a wait in which no segment ends, and the number of waits. After that a waiting
segment remains unread, as it may hold the thread that others need."""

DEARER, FEW, MOST_AT_ONCE = 1.25, 4, 8
"""The factor by which a segment may cost more than the most expensive one. Until FEW were read, one
is assumed to cost at most 1 / MOST_AT_ONCE of the allowed units."""


class Asker:
    """Sends requests, for any number of threads.

    Args:
        reader: The reader with the budget.
        means: The mean bytes of an item by index, and by "" for the table. Missing ones are
            measured, as whole items are read.
    """

    def __init__(self, reader: PageReader, means: Mapping[str, float]) -> None:
        self.reader = reader
        self._bytes: Counter[str] = Counter()
        self._items: Counter[str] = Counter()
        self._means = means
        self._lock = Lock()

    def send(self, ask: Ask, over: Event | None = None) -> Answer:
        """Send a request.

        Raises:
            KeyhopError: Any error of PageReader.send, except a refusal that is an answer.
        """
        index = ask.parameters.get("IndexName", "")
        size = ItemSize(self._mean(index), 1.0)
        if ask.limit is None:
            block = max(1, int(FILL * BLOCK_BYTES / size.mean))
            limit, units = self.reader.affordable(block, size)
        else:
            limit, units = ask.limit, UNITS_PER_BLOCK * size.blocks(ask.limit)
        parameters = {
            "TableName": self.reader.source.name,
            "ReturnConsumedCapacity": "TOTAL",
            "Limit": limit,
            **ask.parameters,
        }
        try:
            answer, spent = self.reader.send(ask.operation, parameters, units, over)
        except CannotStart:  # raised for a ValidationException
            if not ask.may_be_refused:
                raise
            return Answer((), None, 0.0, refused=True)
        items = answer["Items"]
        with self._lock:
            self._bytes[index] += sum(map(size_of, items))
            self._items[index] += len(items)
        return Answer(items, answer.get("LastEvaluatedKey"), spent)

    @property
    def item_units(self) -> float:
        """Return the read units of a page of one item of the table."""
        return UNITS_PER_BLOCK * blocks_of(self._mean(""))

    def run(self, asks: Asks[T], over: Event | None = None) -> T:
        """Send the requests one after the other, and return their result."""
        try:
            ask = next(asks)
            while True:
                ask = asks.send(self.send(ask, over))
        except StopIteration as end:
            result: T = end.value
            return result

    def _mean(self, index: str) -> float:
        with self._lock:
            if self._items[index]:
                return self._bytes[index] / self._items[index]
        return self._means.get(index, BLOCK_BYTES)


@dataclass(slots=True)
class _Work:
    """A segment in flight.

    Attributes:
        asks: Its requests.
        ask: The next request, not sent yet.
        units: The read units that it has cost.
        sent_count: The number of requests.
    """

    asks: Asks[Row]
    ask: Ask
    units: float = 0.0
    sent_count: int = 0


class SamplePages:
    """The reads of a sample (jobs/pages.Pages).

    Args:
        asker: The sender of requests.
        drawing: The drawn segments.
        examine: Returns the requests for a segment of the run.
    """

    def __init__(self, asker: Asker, drawing: Drawing, examine: Callable[[int], Asks[Row]]) -> None:
        self.usage = asker.reader.usage
        self.stop = asker.reader.stop
        self.in_flight = asker.reader.in_flight
        self._asker = asker
        self._drawing = drawing
        self._examine = examine
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._running: Counter[str] = Counter()
        self._dearest: dict[Kind, float] = {}
        self._read: Counter[str] = Counter()
        self._done: defaultdict[str, float] = defaultdict(float)
        self._open: dict[int, _Work] = {}
        self._lock = Lock()
        self._changed = Condition(self._lock)

    def go_on(self, learnt: Learnt | None) -> None:
        if learnt is not None:
            self._spent = defaultdict(float, learnt["spent"])
            self._read = Counter(learnt["read"])
            self._done = defaultdict(float, learnt["done"])
            self._dearest = {**self._dearest, **learnt["dearest"]}

    def learnt(self) -> Learnt:
        with self._lock:
            return {
                "spent": dict(self._spent),
                "read": dict(self._read),
                "done": dict(self._done),
                "dearest": dict(self._dearest),
            }

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Pages.step: a position counts requests, and is of no use to another process."""
        work = self._open.get(segment) or self._begin(segment, over)
        if work is None:
            return PageResult((), None)
        try:
            answer = self._asker.send(work.ask, over)
        except BudgetSpent:
            self._end(segment, work)
            return PageResult((), None)
        work.units += answer.units
        work.sent_count += 1
        with self._lock:
            self._spent[self._drawing.kind(segment)] += answer.units
        try:
            work.ask = work.asks.send(answer)
        except StopIteration as end:
            self._end(segment, work)
            return PageResult(_rows(end.value), None)
        return PageResult((), Position({ASKS: {"N": str(work.sent_count)}}))

    def _begin(self, segment: int, over: Event) -> _Work | None:
        """Begin a segment; return None if it might cost more than the units of its kind.

        It waits for the units that segments in flight leave unused.
        """
        kind = self._drawing.kind(segment)
        with self._changed:
            for _ in range(MOST_WAITS):
                if self._is_affordable(kind, self._running[kind]):
                    break
                is_known = self._read[kind] > 0
                if is_known and not self._is_affordable(kind, 0):
                    return None
                if over.is_set() or self.stop.is_set():
                    raise Stopped
                if not self._changed.wait(LONGEST_WAIT) and is_known:
                    return None
            else:
                return None
            self._running[kind] += 1
        asks = self._examine(segment)
        work = self._open[segment] = _Work(asks, next(asks))
        return work

    def _is_affordable(self, kind: Kind, in_flight: int) -> bool:
        """Return whether one more segment of a kind is affordable beside those in flight.

        Each is assumed to cost a little more than the most expensive one: those that end first are
        the cheapest, and the budget would cut off those with most keys.
        """
        running = [
            work.units for number, work in self._open.items() if self._drawing.kind(number) == kind
        ]
        if not self._running[kind] and not self._read[kind]:
            return True
        if self._drawing.through and self._is_enough(kind):
            return True
        dearest = max(self._mean(kind), self._dearest.get(kind, 0.0), *running, 0.0)
        worst = DEARER * dearest
        ahead = sum(worst - units for units in running) if in_flight else 0.0
        return self._spent[kind] + ahead + worst <= self._allowed(kind)

    def _is_enough(self, kind: Kind) -> bool:
        """Return whether the units suffice for every segment, by those that have ended."""
        read = self._read[kind]
        if read < FEW:
            return True
        return self._done[kind] / read * len(self._drawing.probed) <= self._allowed(kind)

    def _end(self, segment: int, work: _Work) -> None:
        kind = self._drawing.kind(segment)
        with self._changed:
            self._open.pop(segment, None)
            self._running[kind] -= 1
            self._read[kind] += 1
            self._done[kind] += work.units
            self._dearest[kind] = max(self._dearest.get(kind, 0.0), work.units)
            self._changed.notify_all()

    def _mean(self, kind: Kind) -> float:
        """Return the mean cost of a segment that has ended.

        With few of them, the result is at least the usual cost.
        """
        read, item = self._read[kind], self._asker.item_units
        mean = self._done[kind] / read if read else 0.0
        usual = min(USUAL_UNITS[kind] * item / UNITS_PER_BLOCK, self._allowed(kind) / MOST_AT_ONCE)
        return max(item, mean, usual if read < FEW else 0.0)

    def _allowed(self, kind: Kind) -> float:
        """Return the read units for segments of a kind, including those already spent."""
        budget, shares = self._asker.reader.budget, self._drawing.shares
        if shares is None or budget.max_units is None:
            return math.inf
        return shares[kind] * (budget.max_units - budget.spent + sum(self._spent.values()))


def _rows(row: Row) -> tuple[Key, ...]:
    return (to_key(row),)
