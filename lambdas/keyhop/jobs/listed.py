"""Pages of the rows that another run has listed. Nothing is read from the table.

The segments of a list are small, because a request that finds nothing costs little. A run that
works on a list has larger *cells* as its segments: as many neighbouring segments of a group of the
list as have about ROWS_PER_CELL rows. Positions count rows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Event

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.pages import Learnt
from keyhop.jobs.rows import Rows
from keyhop.scan.in_flight import InFlight
from keyhop.scan.segments import place_of, segment_at
from keyhop.scan.skip_scan import PageResult, Position

ROWS_PER_CELL = 1_000
FEWEST_ROWS_PER_CELL = 20
CELLS = 256
"""The number of cells, if there are enough rows. One thread at a time works on a cell."""

CELLS_PER_GROUP = 32
ROWS = "rows"

Late = Mapping[int, int | None]
"""The number of rows of each cell, counted from its first one; None for all rows."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of a finished run, divided into cells.

    Attributes:
        journal: The files of the run.
        plan: Its plan.
        rows: The number of rows.
        width: How many segments of the list make a cell.
        pieces: How many cells a segment of the list makes, if it is larger than one.
        rows_per_piece: The rows of each of these cells but the last one.
    """

    journal: Journal
    plan: RunPlan
    rows: int
    width: int
    pieces: int
    rows_per_piece: int

    @classmethod
    def of(cls, journal: Journal, name: str, folder: str = "") -> "Listing":
        """Return the list of a run.

        Args:
            journal: The files of the run.
            name: Its name, for messages.
            folder: The folder of the parts, if they belong to a run within this one.

        Raises:
            CannotStart: The run is not finished.
        """
        manifest = journal.manifest()
        if manifest is None:
            has_begun = journal.plan() is not None
            state = "is not finished: go on with it first" if has_begun else "does not exist"
            raise CannotStart(f"The run {name!r}, whose keys are asked for, {state}.")
        if folder and all(part["name"].startswith(f"{folder}/") for part in manifest["parts"]):
            journal = journal.within(folder) if manifest["parts"] else journal
        plan = journal.plan()
        assert plan is not None
        rows = manifest["keys"]
        rows_per_cell = min(ROWS_PER_CELL, max(FEWEST_ROWS_PER_CELL, rows // CELLS))
        mean = rows / plan.segments
        pieces = max(1, math.ceil(mean / rows_per_cell)) if plan.groups == 1 else 1
        segments = max(1, round(rows_per_cell / max(1.0, mean)))
        return cls(journal, plan, rows, segments, pieces, rows_per_cell)

    @property
    def cells(self) -> int:
        sizes = (self.plan.group_size(group) for group in range(self.plan.groups))
        return sum(math.ceil(size / self.width) for size in sizes) * self.pieces

    @property
    def groups(self) -> int:
        """The number of groups: that of the list, so that each group has its own parts to read."""
        if self.plan.groups > 1:
            return self.plan.groups
        return math.ceil(self.cells / CELLS_PER_GROUP)

    def place(self, cell: int) -> tuple[int, range, int]:
        """Return a cell's group of the list, its places in that group, and its piece of them."""
        place, piece = divmod(place_of(cell, self.cells), self.pieces)
        number, group = divmod(place, self.plan.groups)
        places = range(group, self.plan.segments, self.plan.groups)
        return group, places[number * self.width : (number + 1) * self.width], piece


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows to act on.

    Attributes:
        cell: The number of their cell.
        number: The number of rows of the cell before them.
        rows: The rows.
        over: When it is set, the action may end early.
    """

    cell: int
    number: int
    rows: Sequence[Key]
    over: Event


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action on rows, from the first one on.

    Attributes:
        rows: A result row for each row that was acted on.
        counts: The counts of the outcomes (Commit.counts).
    """

    rows: Sequence[Key]
    counts: Mapping[str, int]


@dataclass(slots=True)
class ListedPages:
    """The rows of a list (pages.Pages).

    Attributes:
        listing: The list.
        at_once: The number of rows to act on at once.
        work: Acts on rows. It may end early if `over` is set.
        usage: Counts the rows.
        stop: When it is set, the run must end.
        in_flight: The number of actions at once.
        began: Is called before a slice with the cells whose rows may have been acted on without a
            commit: the rows before the number, or all rows (None).
        wanted: Decides which rows to act on.
    """

    listing: Listing
    at_once: int
    work: Callable[[Taken], Done]
    usage: Usage
    stop: Event
    in_flight: InFlight = field(default_factory=InFlight)
    began: Callable[[Late], None] = lambda late: None
    wanted: Callable[[Key, KeySpace], bool] = lambda row, space: True
    _rows: Rows = field(init=False)
    _open: dict[tuple[int, int], Iterator[Key]] = field(default_factory=dict)
    _working: dict[int, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows = Rows(self.listing.journal, self.listing.plan)

    def go_on(self, learnt: Learnt | None) -> None:
        late = learnt["late"] if learnt else {}
        # An entry stays until its cell is worked on, even if that is some slices later.
        self._working = {int(cell): number for cell, number in late.items()}
        self.began(self._working.copy())

    def learnt(self) -> Learnt:
        """Return the cells with rows that may have been acted on and are not committed."""
        late = self._working.copy()
        self.began(late)
        return {"late": {str(cell): number for cell, number in sorted(late.items())}}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Act on the next rows of a cell. A position's `start` is the number of rows before it."""
        number = int(position.start[ROWS]["N"]) if position.start else 0
        source = self._open.pop((segment, number), None) or self._rows_from(segment, number)
        listed = list(islice(source, self.at_once))
        if not listed:
            self._working.pop(segment, None)  # all rows of the cell are committed
            return PageResult((), None)
        space = self.listing.plan.space
        rows = [row for row in listed if self.wanted(row, space)]
        self._working[segment] = None
        result = self.work(Taken(segment, number, rows, over)) if rows else Done((), {})
        if len(result.rows) == len(rows):
            number += len(listed)
            self._open[segment, number] = source
        else:
            number += listed.index(rows[len(result.rows)])
        self._working[segment] = number
        self.usage.count(items=len(listed))
        position = Position({ROWS: {"N": str(number)}})
        return PageResult(result.rows, position, counts=result.counts)

    def _rows_from(self, cell: int, number: int) -> Iterator[Key]:
        listing = self.listing
        group, places, piece = listing.place(cell)
        segments = [segment_at(place, listing.plan.segments) for place in places]
        skip = piece * listing.rows_per_piece + number
        rows = self._rows.load([group]).after(skip, segments)
        is_last = piece + 1 == listing.pieces
        return rows if is_last else islice(rows, listing.rows_per_piece - number)
