"""Which rows an earlier or a parallel attempt may have processed without committing.

When a run finds an item that is equal to the one it would put, the item was put by this run only if
an earlier attempt at the same rows ended without a commit, or if another attempt is in flight.
Otherwise it is a user's item. Therefore a file is created before the first write in a cell
(jobs/pages.py), and again in each slice, named after the cell and the first row of the slice. Only
one attempt succeeds in creating the file. The others find it, and create a second file to inform
the first attempt.
"""

from dataclasses import dataclass, field
from threading import Lock

from keyhop.jobs.pages import Late
from keyhop.storage.store import Store

FOLDER = "tried"


@dataclass(slots=True)
class Attempts:
    """The attempts of one process.

    late: by cell, the row up to which the last slice may have processed rows without counting them.
    """

    store: Store
    _seen: dict[int, bool] = field(default_factory=dict)
    _late: Late = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def begin_slice(self, late: Late) -> None:
        """Start a slice: rows are processed again from its beginning."""
        with self._lock:
            self._seen.clear()
            self._late = late

    def enter(self, cell: int, number: int) -> None:
        """Record an attempt at the rows of a cell from `number` on before they are processed."""
        if cell in self._seen:
            return
        is_first = self.store.create(_name(cell, number), b"")
        if not is_first:
            self.store.create(_again(cell), b"")
        with self._lock:
            end = self._late.get(cell, 0)
            self._seen[cell] = not is_first or end is None or number < end

    def leave(self, cell: int, number: int) -> None:
        """Withdraw an attempt that has not started any row, so that the next one is the first."""
        with self._lock:
            if self._seen.pop(cell, True):
                return
        self.store.delete(_name(cell, number))

    def was_tried(self, cell: int) -> bool:
        """Return whether another attempt may have processed rows of a cell that was entered."""
        with self._lock:
            was_seen = self._seen.get(cell, True)
        return was_seen or self.store.read(_again(cell)) is not None

    def kept_text(self, cell: int, number: int, text: str) -> str | None:
        """Store a text with rows; return the text of an earlier attempt, if there is one."""
        name = f"{_name(cell, number)}-seen"
        if self.store.create(name, text.encode()):
            return None
        return (self.store.read(name) or b"").decode()


def _name(cell: int, number: int) -> str:
    return f"{FOLDER}/{cell:08}-{number}"


def _again(cell: int) -> str:
    return f"{FOLDER}/{cell:08}-again"
