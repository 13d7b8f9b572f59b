"""The effects on keys: the part of the task `each` that differs from one effect to another."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, same_value
from keyhop.each.outcomes import Row
from keyhop.errors import CannotStart
from keyhop.retries import DEFAULT_PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Work:
    """The run's data that an effect needs.

    id, started: of the run, or if it is an undo, of the run that is undone. sentinel: attributes
    that identify the key index's sentinel items; None if the table can have none.
    """

    connection: Connection
    source: Source
    id: str
    started: str
    usage: Usage
    stop: Event
    patience: float = DEFAULT_PATIENCE_SECONDS
    sentinel: Key | None = None

    def check_place(self, item: Key) -> None:
        """Raise CannotStart if an item to write or delete has the sort key of sentinel items.

        item: the attributes that are the same for all keys.
        """
        sort = self.source.space.sort
        if sort is None or self.sentinel is None or sort.name not in item:
            return
        if same_value(item[sort.name], self.sentinel[sort.name]):
            raise CannotStart(f"The item's {sort.name!r} is where the key index has its sentinels.")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to process.

    id: the same if the rows are processed again. over: when it is set, no further rows are started.
    was_tried: returns whether another attempt has processed the rows, or is processing them now;
    this takes a request for each batch, so call it only if an equal item was found. noted: stores a
    text with the batch before it is processed; returns the text that an earlier attempt has stored,
    or None.
    """

    id: str
    rows: Sequence[Row]
    over: Event = field(default_factory=Event)
    was_tried: Callable[[], bool] = lambda: False
    noted: Callable[[str], str | None] = lambda text: None


class Effect(ABC):
    """An operation on each key, called by many threads at once.

    at_once: the number of rows in a batch. is_marked: whether attempts at rows are recorded.
    item_bytes: the estimated size of a write for a key. first: attributes of a collection's
    first item that a row must have (jobs/formats.FIRST).
    """

    at_once = 10
    is_marked = False
    item_bytes = 0.0
    first: frozenset[str] = frozenset()

    @abstractmethod
    def apply(self, batch: Batch) -> list[Row]:
        """Process a batch; return `done(row, outcome)` for each row, in order.

        If `over` is set in the meantime, return only the first rows. May be called again for the
        same rows after a crash. Raises what ends the run: GaveUp, NotPermitted, BudgetSpent,
        Stopped.
        """

    def wants(self, row: Row) -> bool:
        """Return whether a row needs processing."""
        return True

    def limit_writes(self, max_rate: float) -> None:
        """Limit this process's writes to `max_rate` write units a second from now on."""
        return

    def allow_writes(self, units: float | None) -> None:
        """Limit the write units from now on (BudgetSpent); None: no limit."""
        return
