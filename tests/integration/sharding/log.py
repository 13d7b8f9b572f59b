"""What was written and read, and when; and whether each read has seen what it had to."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from testing.virtual_time import VirtualClock


@dataclass
class Entry:
    """A write of an item: its version, None for a delete. ended: None while it is under way."""

    version: int | None
    began: float
    ended: float | None = None


@dataclass
class Log:
    """Of one key. Each item has one writer, so its writes follow one another.

    wrong: reads that missed a finished write, saw an older one, or an item twice.
    """

    clock: VirtualClock
    ends: float
    reads: int = 0
    writes: int = 0
    wrong: list[str] = field(default_factory=list)
    _items: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    _number: int = 0

    @contextmanager
    def write(self, sort: str, version: int | None) -> Iterator[None]:
        """A write, from its beginning to its end; one that raises has no end."""
        entry = Entry(version, self._now())
        self._items[sort].append(entry)
        yield
        entry.ended = self._now()
        self.writes += 1

    @contextmanager
    def read(self) -> Iterator[list[dict[str, Any]]]:
        """A strongly consistent read of all items, which go into the list; it is judged after."""
        began = self._now()
        seen: list[dict[str, Any]] = []
        yield seen
        self.reads += 1
        at = f"read {self.reads} at {self.clock.time():.2f}: "
        found: dict[str, int] = {}
        for item in seen:
            if item["at"] in found:
                self.wrong.append(f"{at}{item['at']} twice")
            found[item["at"]] = int(item["version"])
        for sort, entries in self._items.items():
            legal = self._legal(entries, began)
            if found.get(sort) not in legal:
                self.wrong.append(f"{at}{sort} is {found.get(sort)}, not of {legal}")

    def last(self) -> dict[str, int]:
        """What each item must be in the end."""
        told = {}
        for sort, entries in self._items.items():
            assert all(entry.ended is not None for entry in entries)
            if entries[-1].version is not None:
                told[sort] = entries[-1].version
        return told

    @staticmethod
    def _legal(entries: list[Entry], began: float) -> list[int | None]:
        """The last version that was finished before the read began, and all later ones."""
        legal: list[int | None] = [None]
        for entry in entries:
            if entry.ended is not None and entry.ended < began:
                legal = []
            legal.append(entry.version)
        return legal

    def _now(self) -> float:
        """A moment of its own for each event, in the order in which they happen."""
        self._number += 1
        return self._number
