"""The task `rekey_digests`: read both tables, strongly consistent, and keep a row for each item.

A verification (task.py) makes this run first, with the same workers. It reads the source's
segments, then the destination's. Each item becomes a row (rows.py); that of a source item says what
it should be in the destination. The rows are sorted into the buckets of the items' places, and the
verification compares them bucket by bucket.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Lock
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.units import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Item, Key, from_json, has_values, same_item, to_json
from keyhop.errors import BrokenPromise, CannotStart, TableNotFound
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.layout import READING, Layout, layout_for_scan
from keyhop.jobs.pages import Learnt, Pages, TablePages
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.jobs.task import Ended, Summary, TaskOptions, TaskPlan, noted_examples
from keyhop.rekey.compare.rows import buckets_for, row_of
from keyhop.rekey.side.layout import BACKFILL, VERIFYING
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import RekeyStatus
from keyhop.rekey.task import (
    SETTLED_SECONDS,
    OursOf,
    Rekey,
    RekeyTask,
    SignsOfLife,
    TransformOf,
)
from keyhop.rekey.transform import KeyNames, Transform, key_digest
from keyhop.rekey.worker.images import is_marker
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page, PageResult, Position
from keyhop.scan.statistics import Interval
from keyhop.template import Unmappable
from keyhop.wording import counted

SOURCE_ITEMS, DESTINATION_ITEMS = "source_items", "destination_items"
UNMAPPED, IRREVERSIBLE, LEFT_OUT, OURS = "unmappable", "irreversible", "left_out", "ours"
"""The counts of items; `irreversible` ones are not the same after the way back."""

IN_ROWS = (SOURCE_ITEMS, IRREVERSIBLE, DESTINATION_ITEMS)
"""The counts of the items that become rows."""

Sample = Mapping[str, Any]
"""The segments of a table that are read: all of `total`, or those in `numbers`."""

Note = Callable[[str, Key, str], None]
"""Take note of a source item's key, by the kind of the item, and of the reason for the kind."""


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
            self.note(UNMAPPED, owner, str(error))
            return UNMAPPED, None
        if mapped is None:
            return LEFT_OUT, None
        row = row_of(mapped, transform.destination.of(mapped), owner, self.buckets)
        if (why := self._why_irreversible(item, mapped)) is not None:
            self.note(IRREVERSIBLE, owner, why)
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
            f"the way back changes {', '.join(names[:5])}"
            if returned
            else "the way back makes nothing of it"
        )


class BothSides:
    """The pages of both tables (pages.Pages), with the segments of the source numbered first."""

    def __init__(
        self,
        reader: PageReader,
        target: Source,
        samples: Sequence[Sample],
        rows: Rows,
        sign: Callable[[], None],
    ) -> None:
        """Take the reader of the source, the destination as `target`, and a sample of each. `sign`
        is called at each step.
        """
        self._sign = sign
        self.usage = reader.usage
        self.stop = reader.stop
        self.in_flight = reader.in_flight
        self._first_of_other = _count(samples[0])
        sides = (
            (reader, samples[0], rows.of_source),
            (reader.beside(target), samples[1], rows.of_destination),
        )
        self._sides = [
            TablePages(
                side,
                hop=False,
                total=segments["total"],
                sample=segments["numbers"],
                visit=_noting(rows_of),
                rows_of=lambda page, keys: page.items,
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
        self._sign()
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


STRONG = 2.0
"""The price of a strongly consistent read, as a multiple of an eventually consistent one."""

MOST_EXAMPLES = 100

ROW_SECONDS = 1 / 10_000
"""The CPU time for the digest of an item and the comparison of its row (rows.ROWS_PER_BUCKET)."""


class DigestsTask(RekeyTask):
    """Makes the digests of both tables; `wait` waits for a backfill that has only just ended."""

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        transform_of: TransformOf,
        ours_of: OursOf = lambda table: None,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(connection, options, transform_of, ours_of, now)
        self._wait = wait

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Plan the run (Task.plan) after the last write of a backfill, or raise CannotStart."""
        rekey = self._opened()
        check_comparable(rekey.side, bool(self._options.get("repair")))
        if not request.dry_run:
            self._await_the_backfill(rekey)
        source, target = self.view(rekey.source.source()), self._other(rekey)
        share = self._options.get("share")
        layouts = [
            layout_for_scan(
                side.size_bytes or None, wishes_of_fleet(request, side.size_bytes, False)
            )
            for side in (source, target)
        ]
        samples = [_drawn(layout.segments, share) for layout in layouts]
        items = (source.item_count + target.item_count) * (share or 1.0)
        segments = sum(map(_count, samples))
        layout = Layout(
            segments,
            max(layout.threads for layout in layouts),
            sum(layout.processes for layout in layouts),
            buckets=buckets_for(items),
        )
        options = {
            **self._options,
            **rekey.identities(),
            "drawn": samples,
            "ours": [_as_json(self._ours_of(each)) for each in (rekey.source, rekey.destination)],
            "turns": rekey.side.control().turns,
        }
        units = _units(source.size_bytes + target.size_bytes, segments, share, items)
        reason = "to compare both tables" if share is None else f"to compare {share:g} of both"
        return TaskPlan(
            source,
            "scan",
            reason,
            options,
            layout=layout,
            rows=round(items),
            units=Interval(units, units, units),
        )

    def view(self, source: Source) -> Source:
        """Ask for whole items, strongly consistent (Task.view)."""
        return replace(source, whole=True, strong=True)

    def settings(self) -> Mapping[str, Any]:
        return {"repair": self._options.get("repair"), "share": self._options.get("share")}

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        rekey = self._opened_for(reader, plan.options)
        ours = [attributes and from_json(attributes) for attributes in plan.options["ours"]]
        note = partial(self._note, rekey.side)
        rows = Rows(rekey.transform, plan.buckets, ours[0], ours[1], note)
        signs = SignsOfLife(rekey.side, VERIFYING, plan, self._now)
        return BothSides(reader, self._other(rekey), plan.options["drawn"], rows, signs.give)

    def finish(self, ended: Ended) -> Summary:
        """Check that each item that was read has a row (Task.finish)."""
        counts = ended.totals.counts
        read = sum(counts[name] for name in IN_ROWS)
        if ended.totals.keys != read:
            raise BrokenPromise(
                f"Of {counted(read, 'item')} that were read, {ended.totals.keys:,} were noted. "
                "The result of the others is unknown."
            )
        return {**ended.summary, "examples": noted_examples(ended.journal)}

    def _other(self, rekey: Rekey) -> Source:
        return self.view(rekey.destination.source())

    def _await_the_backfill(self, rekey: Rekey) -> None:
        backfill = rekey.side.told(BACKFILL)
        if backfill is not None:
            self._wait(max(0.0, backfill["ended"] + SETTLED_SECONDS - self._now()))

    def _note(self, side: SideTable, kind: str, key: Key, why: str) -> None:
        """Keep an example, and record an unmappable one in the side table, whose list names it."""
        if kind == UNMAPPED and len(self.examples.get(kind, ())) < MOST_EXAMPLES:
            side.unmapped("forward", key, why)
        self.note_example(kind, {"key": key_digest(key).hex(), "why": why}, MOST_EXAMPLES)


def check_comparable(side: SideTable, repair: bool) -> None:
    """Raise CannotStart if a comparison would prove nothing, or could not repair."""
    figures = {BACKFILL: side.told(BACKFILL)}
    status = RekeyStatus(side.plan(), side.control(), 0.0, figures=figures)
    if why_not := status.why_not_compare(repair):
        raise CannotStart(why_not)


def comparing_seconds(rows: float, size_bytes: float) -> float:
    """Estimate how long one process compares so many rows and bytes of both tables, in seconds."""
    return size_bytes / PAGE_BYTES * READING.seconds / READING.in_flight() + rows * ROW_SECONDS


def _drawn(segments: int, share: float | None) -> Sample:
    if share is None:
        return {"total": segments, "numbers": None}
    count = max(1, round(share * segments))
    return {"total": segments, "numbers": sorted(random.sample(range(segments), count))}


def _count(sample: Sample) -> int:
    """Return how many segments a sample has."""
    return sample["total"] if sample["numbers"] is None else len(sample["numbers"])


def _units(size_bytes: int, segments: int, share: float | None, items: float) -> float:
    """Estimate the read units of both scans, and of a sample's looks at each item."""
    scans = STRONG * UNITS_PER_BLOCK * (size_bytes / BLOCK_BYTES * (share or 1.0) + segments)
    return scans if share is None else scans + 2.0 * items


def _as_json(ours: Key | None) -> Any:
    return None if ours is None else to_json(ours)


def nothing_to_compare(side: SideTable) -> str | None:
    """Return why a scheduled comparison has nothing to compare, or None if there is something.
    Before the end of the backfill, it would report all items that are not yet copied as missing.
    """
    try:
        control, backfill = side.control(), side.told(BACKFILL)
    except (TableNotFound, CannotStart):
        return "no re-key is in progress"
    if control.serving == "destination":
        return "the destination serves already"
    if control.stage != "open":
        return "a cutover is under way"
    if not control.replicating:
        return "nothing replicates at the moment"
    if backfill is None or backfill.get("ended") is None:
        return "the backfill has not ended"
    return None
