"""The task `rekey_verify`: both tables read through, strongly, and all that differs looked at.

Each item becomes a row (rows.py) in the bucket of its place; when all is read, the buckets are
compared, one by one, and their candidates looked at until they are equal, or really differ. Those
that do are repaired, if asked for, as the stream's worker would: from what the source says now.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import BrokenPromise, CannotStart, NoProgress
from keyhop.jobs.groups import wishes_of_fleet
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Layout, layout_for_scan
from keyhop.jobs.model import RunPlan
from keyhop.jobs.nested import begun_within, work_within
from keyhop.jobs.pages import Pages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Options, Summary, Task, TaskPlan, noted_examples
from keyhop.rekey.backfill import source_of
from keyhop.rekey.compare.buckets import BucketPages
from keyhop.rekey.compare.looks import PAUSES, Found, Looks, Reads, Settle
from keyhop.rekey.compare.outcome import VERIFY, told_of
from keyhop.rekey.compare.rows import buckets_for
from keyhop.rekey.compare.sides import IN_ROWS, UNMAPPED, BothSides, Drawn, Rows
from keyhop.rekey.digest import key_digest
from keyhop.rekey.opening import OursOf, Rekey, TransformOf, opened, opened_for
from keyhop.rekey.pace import BACKFILL, UNMAPPABLE
from keyhop.rekey.side.layout import LAG
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.valve import SETTLED_SECONDS
from keyhop.rekey.worker.replicate import Replicator
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval

STRONG = 2.0
"""Times the price of an eventually consistent read."""

FOLDER = "compare"
"""Where the run within the run has its files: its parts hold the differences, with their keys."""

THREADS = 2
"""That compare: each holds a bucket in memory."""

MOST_EXAMPLES = 100

SettleOf = Callable[[Connection, Rekey], Settle]
"""What repairs."""


def settle_forward(connection: Connection, rekey: Rekey) -> Settle:
    """As the stream's worker does; one at a time."""
    worker = Replicator.of(
        rekey.pair, "forward", rekey.transform, lambda name: connection, side=rekey.side
    )
    lock = Lock()

    def settle(source: Key, places: Sequence[Key]) -> bool:
        with lock:
            return worker.settle(source, places)

    return settle


class VerifyTask(Task):
    """options: `rekey`, the destination's name; `repair`; `sample`, a share of both tables.

    transform_of, ours_of: as of BackfillTask. now: seconds since 1970. wait: for a backfill that
    has only just ended. pauses: see Looks.
    """

    visits = True
    outputs: Mapping[str, str] = {"verify": "compared"}

    def __init__(
        self,
        connection: Connection,
        options: Options,
        transform_of: TransformOf,
        ours_of: OursOf = lambda table: None,
        settle_of: SettleOf = settle_forward,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
        pauses: tuple[float, float] = PAUSES,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._options = options
        self._transform_of = transform_of
        self._ours_of = ours_of
        self._settle_of = settle_of
        self._now = now
        self._wait = wait
        self._pauses = pauses
        self._lock = Lock()

    @property
    def _name(self) -> str:
        return str(self._options["rekey"])

    def reads(self, asked: Table) -> Table:
        """Task.reads: the source, of the re-key into the table that was asked for."""
        return source_of(self._connection, asked)

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan; waits until nothing of a backfill can still be written. Raises CannotStart."""
        rekey = opened(self._connection, self._name, self._transform_of)
        control = rekey.side.control()
        if self._options.get("repair") and not control.replicating:
            raise CannotStart(
                "Nothing replicates at the moment, and what repairs is what replicates: start, or "
                "resume, that first (keyhop rekey start), or verify without repair."
            )
        if control.serving != "source":
            raise CannotStart(
                f"Table {rekey.pair.destination!r} is served already: a verify compares it with a "
                "source that is."
            )
        if not request.plan_only:
            self._await_the_backfill(rekey)
        source, other = self.view(rekey.source.source()), self._other(rekey)
        share = self._options.get("sample")
        layouts = [
            layout_for_scan(one.size_bytes or None, wishes_of_fleet(request, one.size_bytes, False))
            for one in (source, other)
        ]
        drawn = [_drawn(layout.segments, share) for layout in layouts]
        items = (source.item_count + other.item_count) * (share or 1.0)
        segments = sum(one.count for one in drawn)
        buckets = buckets_for(items)
        layout = Layout(
            segments,
            max(layout.threads for layout in layouts),
            sum(layout.processes for layout in layouts),
            buckets=buckets,
        )
        options = {
            **self._options,
            **rekey.identities(),
            "drawn": [one.to_json() for one in drawn],
            "buckets": buckets,
            "ours": [_told(self._ours_of(each)) for each in (rekey.source, rekey.destination)],
        }
        units = _units(source.size_bytes + other.size_bytes, segments, share, items)
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
        """Task.view: whole items, strongly consistent."""
        return replace(source, whole=True, strong=True)

    def settings(self) -> Mapping[str, Any]:
        return {"repair": self._options.get("repair"), "sample": self._options.get("sample")}

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        rekey = opened_for(self._connection, self._name, self._transform_of, reader)
        rekey.check_same(plan.options)
        ours = [one and from_json(one) for one in plan.options["ours"]]
        rows = Rows(rekey.transform, plan.buckets, ours[0], ours[1], self._note)
        source, destination = map(Drawn.from_json, plan.options["drawn"])
        return BothSides(reader, self._other(rekey), (source, destination), rows)

    def finish(self, ended: Ended) -> Summary | None:
        """Task.finish: the buckets are compared by a run within this one."""
        rekey = opened(self._connection, self._name, self._transform_of, stop=ended.stop)
        rekey.check_same(ended.plan.options)
        journal = ended.journal.within(FOLDER)
        plan = begun_within(
            journal,
            ended.plan,
            task="rekey_compare",
            method="scan",
            reason="to compare the buckets",
            segments=ended.plan.buckets,
        )
        usage = Usage()
        totals, has_moved = work_within(
            journal, plan, lambda: self._buckets(ended, rekey, usage), THREADS, ended.over_at
        )
        if not totals.finished:
            if not has_moved and not ended.stop.is_set():
                raise NoProgress(
                    "There was no time to compare a single bucket: give workers more time "
                    "(workerTimeoutSeconds), or verify with keyhop rekey verify, which has no "
                    "deadline."
                )
            return None
        journal.sweep(totals.parts)
        counts = ended.totals.counts + totals.counts
        if ended.totals.keys != sum(counts[name] for name in IN_ROWS):
            raise BrokenPromise(
                f"Of {sum(counts[name] for name in IN_ROWS):,} items that were read, "
                f"{ended.totals.keys:,} were noted: nothing can be said of the others."
            )
        examples = {**noted_examples(ended.journal), **self.examples}
        told = told_of(ended.plan, counts, self._now())
        if told["share"] == 1.0:
            without = {"count": told[UNMAPPED], "examples": examples.get(UNMAPPED, [])[:10]}
            rekey.side.tell(UNMAPPABLE, {**without, "at": told["at"], "run": ended.plan.id})
        rekey.side.tell(VERIFY, told)
        listed = [part.summary() for part in totals.parts]
        return {
            **ended.summary,
            "keys": totals.keys,
            "counts": dict(sorted(counts.items())),
            "verify": told,
            "examples": examples,
            "looks": {
                "read_units": round(totals.usage.read_units, 3),
                "write_units": round(totals.usage.write_units, 3),
            },
            "parts": [{**part, "name": f"{FOLDER}/{part['name']}"} for part in listed],
        }

    def _buckets(self, ended: Ended, rekey: Rekey, usage: Usage) -> BucketPages:
        source, destination = (
            Reads(self._connection, name, stop=ended.stop, usage=usage)
            for name in (rekey.pair.source, rekey.pair.destination)
        )
        repairs = ended.plan.options.get("repair")
        settle = self._settle_of(self._connection, rekey) if repairs else None
        looks = Looks(
            rekey.transform,
            source,
            destination,
            settle,
            sampled=ended.plan.options.get("sample") is not None,
            pauses=self._pauses,
            lag=lambda: self._lag(rekey),
        )
        parts = ended.totals.parts
        return BucketPages(
            ended.journal, ended.plan, parts, looks, ended.stop, self._note_found, usage
        )

    def _other(self, rekey: Rekey) -> Source:
        return self.view(rekey.destination.source())

    def _await_the_backfill(self, rekey: Rekey) -> None:
        told = rekey.side.told(BACKFILL)
        if told is None:
            return
        if told["ended"] is None:
            raise CannotStart(
                f"The backfill {told['run']!r} has not ended, so a verify would prove nothing: "
                "wait for it, or go on with it."
            )
        self._wait(max(0.0, told["ended"] + SETTLED_SECONDS - self._now()))

    def _lag(self, rekey: Rekey) -> float:
        """In seconds; 0 if nobody has told lately."""
        told = rekey.side.told(f"{LAG}.forward") or {"at": 0.0}
        return float(told["seconds"]) if self._now() - told["at"] <= STALE_SECONDS else 0.0

    def _note(self, kind: str, example: Mapping[str, Any]) -> None:
        with self._lock:
            named = self.examples.setdefault(kind, [])
            if len(named) < MOST_EXAMPLES:
                named.append(dict(example))

    def _note_found(self, found: Found) -> None:
        place = key_digest(found.candidate.place).hex()
        self._note(found.finding, {"place": place, "repaired": found.is_repaired})


def _drawn(segments: int, share: float | None) -> Drawn:
    if share is None:
        return Drawn(segments)
    count = max(1, round(share * segments))
    return Drawn(segments, sorted(random.sample(range(segments), count)))


def _units(size_bytes: int, segments: int, share: float | None, items: float) -> float:
    """Of both scans; of a sample, each item is looked at too, and what belongs to it."""
    scans = STRONG * UNITS_PER_BLOCK * (size_bytes / BLOCK_BYTES * (share or 1.0) + segments)
    return scans if share is None else scans + 2.0 * items


def _told(ours: Key | None) -> Any:
    return None if ours is None else to_json(ours)
