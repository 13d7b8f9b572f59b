"""A log of writes and reads that checks that each read has seen all finished writes."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from testing.virtual_time import VirtualClock


@dataclass
class Entry:
    """A write of an item: its version, None for a delete. ended: None while it is in flight."""

    version: int | None
    began: float
    ended: float | None = None


@dataclass
class Log:
    """The log of one key. Each item has one writer, so its writes do not overlap.

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
        """Record the start and the end of a write. A write that raises has no end."""
        entry = Entry(version, self._now())
        self._items[sort].append(entry)
        yield
        entry.ended = self._now()
        self.writes += 1

    @contextmanager
    def read(self) -> Iterator[list[dict[str, Any]]]:
        """Check the strongly consistent read of all items that the caller adds to the list."""
        began = self._now()
        items: list[dict[str, Any]] = []
        yield items
        self.reads += 1
        at = f"read {self.reads} at {self.clock.time():.2f}: "
        versions: dict[str, int] = {}
        for item in items:
            if item["at"] in versions:
                self.wrong.append(f"{at}{item['at']} twice")
            versions[item["at"]] = int(item["version"])
        for sort, entries in self._items.items():
            legal = self._legal(entries, began)
            if versions.get(sort) not in legal:
                self.wrong.append(f"{at}{sort} is {versions.get(sort)}, not of {legal}")

    def last(self) -> dict[str, int]:
        """Return the last version of each item that was not deleted."""
        versions = {}
        for sort, entries in self._items.items():
            assert all(entry.ended is not None for entry in entries)
            if entries[-1].version is not None:
                versions[sort] = entries[-1].version
        return versions

    @staticmethod
    def _legal(entries: list[Entry], began: float) -> list[int | None]:
        """Return the last version that was finished before the read began, and all later ones."""
        legal: list[int | None] = [None]
        for entry in entries:
            if entry.ended is not None and entry.ended < began:
                legal = []
            legal.append(entry.version)
        return legal

    def _now(self) -> float:
        """Return the number of the next event."""
        self._number += 1
        return self._number
