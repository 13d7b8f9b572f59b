"""The task `rekey_digests`: read both tables, strongly consistent, and keep a row for each item.

A verification (task.py) makes this run first, with the same workers. The rows (rows.py) are sorted
into the buckets of the items' places, and the verification compares them bucket by bucket.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.units import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.layout import READING, Layout, layout_for_scan
from keyhop.jobs.pages import Pages
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.jobs.task import Ended, Summary, TaskOptions, TaskPlan, noted_examples
from keyhop.rekey.compare.rows import buckets_for
from keyhop.rekey.compare.sides import IN_ROWS, BothSides, Drawn, Rows
from keyhop.rekey.opening import OursOf, Rekey, TransformOf
from keyhop.rekey.pace import BACKFILL
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import RekeyStatus
from keyhop.rekey.task import RekeyTask
from keyhop.rekey.valve import SETTLED_SECONDS
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval
from keyhop.wording import counted

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
        segments = sum(sample.count for sample in samples)
        layout = Layout(
            segments,
            max(layout.threads for layout in layouts),
            sum(layout.processes for layout in layouts),
            buckets=buckets_for(items),
        )
        options = {
            **self._options,
            **rekey.identities(),
            "drawn": [sample.to_json() for sample in samples],
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
        rows = Rows(rekey.transform, plan.buckets, ours[0], ours[1], self._note)
        source, destination = map(Drawn.from_json, plan.options["drawn"])
        return BothSides(reader, self._other(rekey), (source, destination), rows)

    def finish(self, ended: Ended) -> Summary:
        """Check that each item that was read has a row (Task.finish)."""
        counts = ended.totals.counts
        read = sum(counts[name] for name in IN_ROWS)
        if ended.totals.keys != read:
            raise BrokenPromise(
                f"Of {counted(read, 'item')} that were read, {ended.totals.keys:,} were "
                f"noted: nothing can "
                "be said of the others."
            )
        return {**ended.summary, "examples": noted_examples(ended.journal)}

    def _other(self, rekey: Rekey) -> Source:
        return self.view(rekey.destination.source())

    def _await_the_backfill(self, rekey: Rekey) -> None:
        backfill = rekey.side.told(BACKFILL)
        if backfill is not None:
            self._wait(max(0.0, backfill["ended"] + SETTLED_SECONDS - self._now()))

    def _note(self, kind: str, example: Mapping[str, Any]) -> None:
        self.note_example(kind, dict(example), MOST_EXAMPLES)


def check_comparable(side: SideTable, repair: bool) -> None:
    """Raise CannotStart if a comparison would prove nothing, or could not repair."""
    figures = {BACKFILL: side.told(BACKFILL)}
    status = RekeyStatus(side.plan(), side.control(), 0.0, figures=figures)
    if why_not := status.why_not_compare(repair):
        raise CannotStart(why_not)


def comparing_seconds(rows: float, size_bytes: float) -> float:
    """Estimate how long one process compares so many rows and bytes of both tables, in seconds."""
    return size_bytes / PAGE_BYTES * READING.seconds / READING.in_flight() + rows * ROW_SECONDS


def _drawn(segments: int, share: float | None) -> Drawn:
    if share is None:
        return Drawn(segments)
    count = max(1, round(share * segments))
    return Drawn(segments, sorted(random.sample(range(segments), count)))


def _units(size_bytes: int, segments: int, share: float | None, items: float) -> float:
    """Estimate the read units of both scans, and of a sample's looks at each item."""
    scans = STRONG * UNITS_PER_BLOCK * (size_bytes / BLOCK_BYTES * (share or 1.0) + segments)
    return scans if share is None else scans + 2.0 * items


def _as_json(ours: Key | None) -> Any:
    return None if ours is None else to_json(ours)
