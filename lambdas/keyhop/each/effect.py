"""What is done with keys: the part of the task `each` that differs from effect to effect."""

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
    """What an effect is told once. id, started: of the run; of the one that is undone, if it
    undoes. sentinel: what tells the key index's items; None where the table can have none.
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
        """Refuse what is to be written, or deleted, if it has the sort key of sentinels.

        item: what of it is the same for all keys. Raises CannotStart.
        """
        sort = self.source.space.sort
        if sort is None or self.sentinel is None or sort.name not in item:
            return
        if same_value(item[sort.name], self.sentinel[sort.name]):
            raise CannotStart(f"The item's {sort.name!r} is where the key index has its sentinels.")


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows to do something about. id: the same whenever they are done again. over: when it is set,
    no more of them are begun. was_tried: whether they may have been worked before, or are by
    somebody else at this very moment; a request, once for a batch, so it is asked only of items
    that were found to be equal. noted: keeps a text with the batch, before anything is done about
    it; returns the one that an earlier attempt has kept, or None.
    """

    id: str
    rows: Sequence[Row]
    over: Event = field(default_factory=Event)
    was_tried: Callable[[], bool] = lambda: False
    noted: Callable[[str], str | None] = lambda text: None


class Effect(ABC):
    """Something that is done for each key; many threads at once.

    at_once: rows that are handed over together. is_marked: whether it matters if rows were tried
    before. item_bytes: of what is written for a key, about. first: attributes of a collection's
    first item that a row must have (jobs/listed.FIRST).
    """

    at_once = 10
    is_marked = False
    item_bytes = 0.0
    first: frozenset[str] = frozenset()

    @abstractmethod
    def apply(self, batch: Batch) -> list[Row]:
        """Do it; returns `done(row, outcome)` of each row, in order; of the first ones only, if it
        is over meanwhile. May be called again for the same rows, after a crash.

        Raises what ends the run: GaveUp, NotPermitted, BudgetSpent, Stopped.
        """

    def wants(self, row: Row) -> bool:
        """Whether anything is to be done about a row; others pass."""
        return True

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold this process's writes under `max_rate` write units a second."""
        return

    def allow_writes(self, units: float | None) -> None:
        """From now on, spend no more than so many write units (BudgetSpent); None: any number."""
        return
