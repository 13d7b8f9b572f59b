"""Sends the requests of a sample, within the run's budget and rate (scan/reader.py)."""

from collections import Counter
from collections.abc import Mapping
from threading import Event, Lock
from typing import TypeVar

from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK, blocks_of
from keyhop.dynamodb.values import size_of
from keyhop.errors import CannotStart
from keyhop.report.sample.asks import Answer, Ask, Asks
from keyhop.scan.page_size import FILL, ItemSize
from keyhop.scan.reader import PageReader

T = TypeVar("T")


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
