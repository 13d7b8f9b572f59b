"""The pages that a run reads: from segments of a table or an index, or from rows of another run.

A run numbers its segments from 0, and the source gives each number a meaning. The threads of a
slice share one source, which learns from their pages.

The segments of a list are small, because a request that finds nothing costs little. A run that
works on a list (`ListedPages`) has larger *cells* as its segments: as many neighbouring segments of
a group of the list as have about ROWS_PER_CELL rows. Nothing is read from the table.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Event, Lock
from typing import Any, Protocol

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal, Part, RunPlan
from keyhop.jobs.rows import Rows
from keyhop.scan.in_flight import InFlight
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import place_of, segment_at
from keyhop.scan.skip_scan import Page, PageResult, Position, advance

KEYS_AT_ONCE = 1_000

ROWS_PER_CELL = 1_000
FEWEST_ROWS_PER_CELL = 20
CELLS = 256
"""The number of cells, if there are enough rows. One thread at a time works on a cell."""

CELLS_PER_GROUP = 32
RowsOf = Callable[[Page, Sequence[Key]], Sequence[Key]]
"""Returns a row for each key that a page reports; these are the last keys of the page."""

Learnt = Mapping[str, Any]
"""The state that a source passes from slice to slice, as plain JSON in the checkpoint."""

ROWS = "rows"

Late = Mapping[int, int | None]
"""The number of rows of each cell, counted from its first one; None for all rows."""


class Pages(Protocol):
    """The source of a run's pages; when `stop` is set, the run must end."""

    usage: Usage
    stop: Event
    in_flight: InFlight

    def go_on(self, learnt: Learnt | None) -> None:
        """Continue with the state of earlier slices; None if there is none."""

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Read one page of a segment; raise Stopped if `over` was set while the page waited.

        Many threads call this, each with another segment.
        """

    def learnt(self) -> Learnt: ...


class TablePages:
    """The pages of a table or an index.

    Args:
        total: The number of segments of the Scan.
        sample: The numbers of the segments to read; None for all of them.
        visit: Receives each page before its keys count, and returns it with the keys that count.
        ledger: The statistics of the table, if more than its item size is known.
        most_items: The maximum number of items of a page; None for 1 MB.
        rows_of: Makes the rows to store from the keys that a page reports; None to store the keys.
    """

    def __init__(
        self,
        reader: PageReader,
        hop: bool,
        total: int,
        sample: Sequence[int] | None = None,
        visit: Callable[[Page, Event], Page] = lambda page, over: page,
        ledger: Ledger | None = None,
        most_items: int | None = None,
        rows_of: RowsOf | None = None,
    ) -> None:
        self.usage = reader.usage
        self.stop = reader.stop
        self.in_flight = reader.in_flight
        self._reader = reader
        self._space = reader.source.space
        self._pairs = reader.source.pairs
        self._fewest = reader.source.fewest_items
        self._hop = hop
        self._total = total
        self._numbers = range(total) if sample is None else sample
        self._visit = visit
        self._ledger = ledger or Ledger.for_table(reader.source.mean_item_bytes)
        self._most_items = most_items
        self._rows_of = rows_of
        self._lock = Lock()

    def go_on(self, learnt: Learnt | None) -> None:
        if learnt is not None:
            self._ledger = Ledger.from_json(dict(learnt))

    def learnt(self) -> Learnt:
        return self._ledger.to_json()

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        read = self._read_hopping if self._hop else self._read
        page = self._visit(read(self._numbers[segment], position, over), over)
        step = advance(self._space, position, page, self._hop)
        if step.no_progress or step.left_out:
            self.usage.count(no_progress=step.no_progress, left_out=step.left_out)
        if page.counts:
            step = replace(step, counts=page.counts)
        if self._rows_of is None:
            return step
        return replace(step, keys=self._rows_of(page, step.keys))

    def _read_hopping(self, number: int, position: Position, over: Event) -> Page:
        with self._lock:
            self._ledger.serve(self.in_flight.lanes)
            bet = self._ledger.bet(self._reader.most_items(self._ledger.size))
            fewest = 1 if position.undecided else self._fewest
            limit, units = self._reader.affordable(max(fewest, bet.limit), self._ledger.size)
            if self._pairs and limit is not None and limit < 2:
                limit, units = 2, UNITS_PER_BLOCK * self._ledger.size.blocks(2)
        try:
            page = self._reader.read(number, self._total, position.start, limit, units, over)
        except BaseException:
            with self._lock:
                self._ledger.abandon(bet)
            raise
        if self._pairs:
            page = page.without_a_first_item(self._space)
        with self._lock:
            self._ledger.settle(bet, page.runs_of_all, page.blocks, page.next is None)
        return page

    def _read(self, number: int, position: Position, over: Event) -> Page:
        with self._lock:
            limit, units = self._reader.affordable(self._most_items, self._ledger.size)
        page = self._reader.read(number, self._total, position.start, limit, units, over)
        with self._lock:
            self._ledger.size.learn(sum(page.runs_of_all), page.blocks)
        return page


class PartPages:
    """The keys of another run, mapped to as many others, with each part as a segment.

    For one thread only. The state that it passes on is the number of keys that have changed.
    """

    def __init__(
        self,
        journal: Journal,
        plan: RunPlan,
        parts: Sequence[Part],
        mapped: Callable[[Sequence[Key]], Sequence[Key]],
        stop: Event,
    ) -> None:
        self.usage = Usage()
        self.stop = stop
        self.in_flight = InFlight()
        self._journal = journal
        self._plan = plan
        self._parts = parts
        self._mapped = mapped
        self._changed = 0
        self._open: tuple[int, int, Iterator[Key]] = (-1, 0, iter(()))

    def go_on(self, learnt: Learnt | None) -> None:
        self._changed = learnt["changed"] if learnt else 0

    def learnt(self) -> Learnt:
        return {"changed": self._changed}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Return the next keys. The `start` of a position is the number of keys before it."""
        keys_done = int(position.start["keys"]["N"]) if position.start else 0
        if self._open[:2] != (segment, keys_done):
            self._open = segment, keys_done, self._keys_after(segment, keys_done)
        keys = list(islice(self._open[2], KEYS_AT_ONCE))
        mapped = self._mapped(keys)
        self.usage.count(items=len(keys))
        self._changed += sum(key != after for key, after in zip(keys, mapped, strict=True))
        if len(keys) < KEYS_AT_ONCE:
            return PageResult(mapped, None)
        keys_done += len(keys)
        self._open = segment, keys_done, self._open[2]
        return PageResult(mapped, Position({"keys": {"N": str(keys_done)}}))

    def _keys_after(self, segment: int, keys_done: int) -> Iterator[Key]:
        """Yield the keys of a part after the first ones. A run without keys has no part."""
        for part in self._parts[segment : segment + 1]:
            keys = (key for _, key in self._journal.keys(self._plan, part))
            yield from islice(keys, keys_done, None)


@dataclass(frozen=True, slots=True)
class ListInCells:
    """The result of a finished run, divided into cells.

    Attributes:
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
    def of(cls, journal: Journal, name: str, folder: str = "") -> "ListInCells":
        """Return the list of a run; raise CannotStart if the run is not finished.

        `folder` is the folder of the parts, if they belong to a run within this one.
        """
        manifest = journal.manifest()
        if manifest is None:
            has_begun = journal.plan() is not None
            state = "is not finished: go on with it first" if has_begun else "does not exist"
            raise CannotStart(f"The run {name!r}, whose keys are needed, {state}.")
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


@dataclass(slots=True)
class ListedPages:
    """The rows of a list (pages.Pages).

    Attributes:
        at_once: The number of rows to act on at once.
        work: Acts on rows, from the first one on: gets their cell, the number of rows of the cell
            before them, the rows, and an event, after which it may end early. It returns a result
            row for each row that it acted on, and the counts of the outcomes.
        began: Is called before a slice with the cells whose rows may have been acted on without a
            commit: the rows before the number, or all rows (None).
        wanted: Decides which rows to act on.
    """

    listing: ListInCells
    at_once: int
    work: Callable[[int, int, Sequence[Key], Event], tuple[Sequence[Key], Mapping[str, int]]]
    usage: Usage
    stop: Event
    in_flight: InFlight
    began: Callable[[Late], None]
    wanted: Callable[[Key, KeySpace], bool]
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
        results, counts = self.work(segment, number, rows, over) if rows else ((), {})
        if len(results) == len(rows):
            number += len(listed)
            self._open[segment, number] = source
        else:
            number += listed.index(rows[len(results)])
        self._working[segment] = number
        self.usage.count(items=len(listed))
        position = Position({ROWS: {"N": str(number)}})
        return PageResult(results, position, counts=counts)

    def _rows_from(self, cell: int, number: int) -> Iterator[Key]:
        listing = self.listing
        group, places, piece = listing.place(cell)
        segments = [segment_at(place, listing.plan.segments) for place in places]
        skip = piece * listing.rows_per_piece + number
        rows = self._rows.load([group]).after(skip, segments)
        is_last = piece + 1 == listing.pieces
        return rows if is_last else islice(rows, listing.rows_per_piece - number)
