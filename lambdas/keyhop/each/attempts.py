"""Which rows may have been worked by an attempt that is not committed.

An item that is found to be as a run would have put it was put by that run, if an earlier attempt at
the same rows ended without a commit, or another one is at work; else it is somebody's own. So
before the first write in a cell (jobs/listed.py), and again in each slice, a file is created, named
by the cell and the row that the slice begins with: of any number of attempts one creates it, and
the others see it, and leave another one, for that one to see.
"""

from dataclasses import dataclass, field
from threading import Lock

from keyhop.jobs.listed import Late, Taken
from keyhop.storage.store import Store

FOLDER = "tried"


@dataclass(slots=True)
class Attempts:
    """Of one process. late: rows that the last slice may have worked, and has not counted."""

    store: Store
    _seen: dict[int, bool] = field(default_factory=dict)
    _late: Late = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin_slice(self, late: Late) -> None:
        """A slice has ended, or none has begun: whatever is worked now is worked anew."""
        with self._lock:
            self._seen.clear()
            self._late = late

    def enter(self, taken: Taken) -> None:
        """Before anything is done about these rows."""
        cell = taken.cell
        if cell in self._seen:
            return
        is_first = self.store.create(_name(taken), b"")
        if not is_first:
            self.store.create(_again(cell), b"")
        with self._lock:
            end = self._late.get(cell, 0)
            self._seen[cell] = not is_first or end is None or taken.number < end

    def leave(self, taken: Taken) -> None:
        """None of the rows was begun: whoever begins with them is the first, if this one was."""
        with self._lock:
            if self._seen.pop(taken.cell, True):
                return
        self.store.delete(_name(taken))

    def was_tried(self, cell: int) -> bool:
        """Whether rows of a cell that is entered may have been worked by somebody else."""
        with self._lock:
            seen = self._seen.get(cell, True)
        return seen or self.store.read(_again(cell)) is not None

    def noted(self, taken: Taken, text: str) -> str | None:
        """Keep a text with these rows; or the one that an earlier attempt has kept, if one has."""
        name = f"{_name(taken)}-seen"
        if self.store.create(name, text.encode()):
            return None
        return (self.store.read(name) or b"").decode()


def _name(taken: Taken) -> str:
    return f"{FOLDER}/{taken.cell:08}-{taken.number}"


def _again(cell: int) -> str:
    return f"{FOLDER}/{cell:08}-again"
