"""Read both tables, strongly consistent, in one run: the source's segments, then the destination's.

Each item becomes a row (rows.py); that of a source item says what it should be in the destination.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any, Self

from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.values import Item, Key, has_values, same_item
from keyhop.jobs.pages import Learnt, TablePages
from keyhop.rekey.compare.rows import row_of
from keyhop.rekey.digest import key_digest
from keyhop.rekey.transform import KeyNames, Transform
from keyhop.rekey.worker.images import is_marker
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page, PageResult, Position
from keyhop.template import Unmappable

SOURCE_ITEMS, DESTINATION_ITEMS = "source_items", "destination_items"
UNMAPPED, IRREVERSIBLE, LEFT_OUT, OURS = "unmappable", "irreversible", "left_out", "ours"
"""The counts of items; `irreversible` ones are not the same after the way back."""

IN_ROWS = (SOURCE_ITEMS, IRREVERSIBLE, DESTINATION_ITEMS)
"""The counts of the items that become rows."""

Note = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The segments of a table that are read: all of `total`, or those in `numbers`."""

    total: int
    numbers: Sequence[int] | None = None

    @property
    def count(self) -> int:
        return self.total if self.numbers is None else len(self.numbers)

    def to_json(self) -> dict[str, Any]:
        return {"total": self.total, "numbers": self.numbers and list(self.numbers)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        return cls(content["total"], content["numbers"])


@dataclass(frozen=True, slots=True)
class Rows:
    """Makes rows of items, by the attributes (`ours`) that identify sentinels in each table."""

    transform: Transform
    buckets: int
    source_ours: Key | None
    destination_ours: Key | None
    note: Note

    def of_source(self, items: Sequence[Item]) -> tuple[list[Key], Counter[str]]:
        counts: Counter[str] = Counter()
        rows = []
        for item in items:
            kind, row = self._of_one(item)
            counts[kind] += 1
            if row is not None:
                rows.append(row)
        return rows, counts

    def of_destination(self, items: Sequence[Item]) -> tuple[list[Key], Counter[str]]:
        places = self.transform.destination
        copies = [item for item in items if not _is(self.destination_ours, item, places)]
        counts = Counter({DESTINATION_ITEMS: len(copies), OURS: len(items) - len(copies)})
        return [row_of(item, places.of(item), None, self.buckets) for item in copies], +counts

    def _of_one(self, item: Item) -> tuple[str, Key | None]:
        transform = self.transform
        if _is(self.source_ours, item, transform.source):
            return OURS, None
        owner = transform.source.of(item)
        try:
            mapped = transform.forward(item)
        except Unmappable as error:
            self._example(UNMAPPED, owner, str(error))
            return UNMAPPED, None
        if mapped is None:
            return LEFT_OUT, None
        row = row_of(mapped, transform.destination.of(mapped), owner, self.buckets)
        if (why := self._why_irreversible(item, mapped)) is not None:
            self._example(IRREVERSIBLE, owner, why)
            return IRREVERSIBLE, row
        return SOURCE_ITEMS, row

    def _why_irreversible(self, item: Item, mapped: Item) -> str | None:
        try:
            returned = self.transform.back(mapped)
        except Unmappable as error:
            return str(error)
        if returned is not None and same_item(returned, item):
            return None
        names = sorted(
            name
            for name in {*item, *(returned or {})}
            if returned is None
            or not (name in item and name in returned and item[name] == returned[name])
        )
        return (
            f"the way back changes {', '.join(names[:5])}" if returned else "there is no way back"
        )

    def _example(self, kind: str, owner: Key, why: str) -> None:
        self.note(kind, {"key": key_digest(owner).hex(), "why": why})


class BothSides:
    """The pages of both tables (pages.Pages), with the segments of the source numbered first."""

    def __init__(
        self, reader: PageReader, target: Source, samples: tuple[Drawn, Drawn], rows: Rows
    ) -> None:
        """Take the reader of the source, and the destination as `target`."""
        self.usage = reader.usage
        self.stop = reader.stop
        self.in_flight = reader.in_flight
        self._first_of_other = samples[0].count
        sides = (
            (reader, samples[0], rows.of_source),
            (reader.beside(target), samples[1], rows.of_destination),
        )
        self._sides = [
            TablePages(
                side,
                hop=False,
                total=segments.total,
                sample=segments.numbers,
                visit=_noting(rows_of),
                note_of=lambda page, keys: page.items,
            )
            for side, segments, rows_of in sides
        ]
        self._lock = Lock()

    def go_on(self, learnt: Learnt | None) -> None:
        if learnt is not None:
            for side, progress in zip(self._sides, learnt["sides"], strict=True):
                side.go_on(progress)

    def learnt(self) -> Learnt:
        return {"sides": [side.learnt() for side in self._sides]}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Read the next page of a segment (Pages.step)."""
        if segment < self._first_of_other:
            return self._sides[0].step(segment, position, over)
        return self._sides[1].step(segment - self._first_of_other, position, over)


def _noting(
    rows_of: Callable[[Sequence[Item]], tuple[list[Key], Counter[str]]],
) -> Callable[[Page, Event], Page]:
    def visited(page: Page, over: Event) -> Page:
        rows, counts = rows_of(page.items)
        return replace(page, keys=(), runs=(), items=rows, counts=counts)

    return visited


def _is(ours: Key | None, item: Item, names: KeyNames) -> bool:
    return is_marker(item, names) or (ours is not None and has_values(item, ours))
