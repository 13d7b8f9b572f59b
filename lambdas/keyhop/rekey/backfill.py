"""The task `rekey_backfill`: put each item of the source into the destination if its place is free.

An item that exists there was brought by the stream, which is newer, or by this backfill before it
was killed. If it has another owner, the source item is recorded as a claim before its page counts
as done. The worker of the stream settles these claims.

After the puts of a page, the backfill reads their source items a second time, and claims each place
that its item has left. Before that, a kill leaves the place to verify
(docs/internals/rekey-protocol.md).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from threading import Event, Lock
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.own_table import OwnTable
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.requester import Written, is_over, pause
from keyhop.dynamodb.schema import indexes_of
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.units import BLOCK_BYTES, write_units
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Item, Key, from_json, has_values, to_json
from keyhop.errors import AwsRefused, CannotStart, GaveUp, RunConflict, Stopped
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.pages import Pages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, TaskOptions, TaskPlan, noted_examples
from keyhop.rekey.compare.looks import Reads
from keyhop.rekey.compare.rows import item_at
from keyhop.rekey.request import NO_STREAM, SHARDS
from keyhop.rekey.side.layout import BACKFILL, LAG, THROTTLE, UNMAPPABLE
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import Pace, pace_of, why_not_mine
from keyhop.rekey.task import FRESH_SECONDS, OursOf, RekeyTask, SignsOfLife, TransformOf
from keyhop.rekey.transform import Transform, key_digest, key_text
from keyhop.rekey.worker.images import is_marker
from keyhop.rekey.worker.protocol import WAIT_SECONDS
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page
from keyhop.template import Unmappable


class NotTaken(ValueError):
    """DynamoDB rejects an item: it is too large, or an index requires another type."""


class Destination(OwnTable):
    """The destination table of a backfill, for any number of threads; see ItemCalls."""

    def put_if_absent(self, item: Item, partition: str) -> Written:
        """Put an item if there is none with its key, or raise NotTaken."""
        try:
            return self.put_if(item, {partition: None})
        except (AwsRefused, CannotStart) as error:
            cause = error.__cause__
            if cause is not None and error_code(cause) in _OF_THE_ITEM:
                raise NotTaken("DynamoDB did not accept the item") from error
            raise


_OF_THE_ITEM = {"ValidationException", "ItemCollectionSizeLimitExceededException"}

PAUSE_SECONDS = 1.0


class Valve:
    """The pause and stop switch of a worker of the backfill, for all of its threads, by the side
    table, which is read every few seconds.

    No write begins later than FRESH_SECONDS after a look at the side table. So the last write of a
    backfill ends within that time and the life of a request after its end was recorded, and a
    verification waits for both (SETTLED_SECONDS). One exception is a function that is frozen
    between its look and its write: the write is conditional on an empty place, and the next
    verification finds it.

    The gates of a cutover are shut while a backfill is running. A backfill that begins right after
    the gates were checked pauses from `closing` on, whose lease is longer than both times. So no
    backfill writes to a table that serves, where the application may have deleted the item.
    """

    def __init__(
        self,
        side: SideTable,
        run: str,
        changed: Callable[[Pace], None],
        stop: Event,
        sign: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.over: Event | None = None
        self._side = side
        self._run = run
        self._changed = changed
        self._stop = stop
        self._sign = sign
        self._clock = clock
        self._now = now
        self._pace = Pace()
        self._looked_at: float | None = None
        self._lock = Lock()

    def check(self) -> None:
        """Wait before a write while the backfill is paused. Raise RunConflict if this run may not
        write any more, or Stopped if it is to stop.
        """
        while self._look().is_paused:
            pause(self._stop, self.over, PAUSE_SECONDS)

    def _look(self) -> Pace:
        with self._lock:
            while self._looked_at is None or self._clock() - self._looked_at >= FRESH_SECONDS:
                self._pace, self._looked_at = self._read_pace()
            return self._pace

    def _read_pace(self) -> tuple[Pace, float]:
        """Return the pace, and the moment before it was read, from which its age counts."""
        looked_at = self._clock()
        self._sign()
        why = why_not_mine(self._side.told(BACKFILL), self._run)
        control = self._side.control()
        if control.serving != "source":
            why = "The destination serves by now"
        if why is not None:
            raise RunConflict(f"{why}: nothing more is written for the run {self._run!r}.")
        if control.stage != "open":
            return replace(self._pace, share=0.0, reason="the serving table changes"), looked_at
        pace = pace_of(self._side.told(THROTTLE), self._side.told(f"{LAG}.forward"), self._now())
        if pace != self._pace:
            self._changed(pace)
        return pace, looked_at


ITEMS_AT_ONCE = 250
"""Items of a page. For items of 1 KB, its last, half-used block is less than a hundredth of it, and
only a few items are in memory or are put again if the worker is killed.
"""

MOST_TRIES = 5
"""Tries to put an item whose place was taken, and was free again before the owner could be read."""

COPIED, THERE, CLAIMED = "copied", "there", "claimed"
LEFT_OUT, OURS, UNMAPPED = "left_out", "ours", "unmappable"
"""The outcomes of an item (Commit.counts). `ours` are sentinels of a key index, and markers."""

MOST_EXAMPLES = 100
"""Examples of unmappable items of each worker, for the side table; the manifest has digests."""


class BackfillTask(RekeyTask):
    """Copies all items of the source, with the options of RekeyTask, `max_write_rate` in write
    units a second, and `accept` as in BackfillInput.
    """

    outputs: Mapping[str, str] = {"counts": "outcomes", "write_units": "writeUnits"}
    items_at_once = ITEMS_AT_ONCE

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        transform_of: TransformOf,
        ours_of: OursOf = lambda table: None,
        is_sharded: Callable[[Table], bool] = lambda table: False,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(connection, options, transform_of, ours_of, now)
        self.max_write_rate = options.get("max_write_rate")
        self._is_sharded = is_sharded
        self._indexes = 0
        self._share = 1.0
        self._pace = Pace()

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Plan the run (Task.plan), or raise CannotStart if the re-key cannot be backfilled now."""
        rekey = self._opened()
        control = rekey.side.control()
        if control.serving != "source" or control.stage != "open":
            raise CannotStart(
                f"Table {rekey.pair.destination!r} is served already, or about to be: there is "
                "nothing to backfill after a cutover."
            )
        accepted = self._options.get("accept", ())
        if not control.replicating and NO_STREAM not in accepted:
            raise CannotStart(
                "Nothing replicates yet, so the backfill would miss writes that come during it: "
                f"begin with start, which turns that on first (or accept {NO_STREAM}, and repair "
                "the differences with a verification)."
            )
        if SHARDS not in accepted:
            check_unsharded(rekey.source, self._is_sharded)
        source = self.view(rekey.source.source())
        ours = self._ours_of(rekey.source)
        options = {
            **self._options,
            **rekey.identities(),
            "ours": None if ours is None else to_json(ours),
        }
        self._indexes = len(indexes_of(rekey.destination.description))
        rows = source.item_count or None
        return TaskPlan(source, "scan", "to copy every item", options, rows=rows)

    def view(self, source: Source) -> Source:
        """Ask for whole items (Task.view)."""
        return replace(source, whole=True)

    def units_per_key(self, source: Source) -> tuple[float, float]:
        """Estimate an item's write units for its put, which is assumed to enter each index of the
        destination, and read units for the second look, by a strongly consistent Scan.
        """
        item_bytes = math.ceil(source.mean_item_bytes or 1.0)
        return write_units(item_bytes) * (1 + self._indexes), item_bytes / BLOCK_BYTES

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        self._rekey = rekey = self._opened_for(reader, plan.options)
        signs = SignsOfLife(rekey.side, BACKFILL, plan, self._now)
        self._valve = Valve(
            rekey.side, plan.id, self._change_pace, reader.stop, signs.give, now=self._now
        )
        self._stop = reader.stop
        ours = plan.options.get("ours")
        self._destination = Destination(
            self._connection,
            rekey.pair.destination,
            writes=Budget(_finite(self.max_write_rate)),
            patience=reader.patience,
            stop=reader.stop,
            check=self._valve.check,
            usage=reader.usage,
        )
        calls: dict[str, Any] = {"patience": reader.patience, "stop": reader.stop}
        self._copier = Copier(
            rekey.transform,
            self._destination,
            Reads(self._connection, rekey.pair.source, finishes=True, **calls),
            self._side(finishes=True, usage=reader.usage, **calls),
            ours=None if ours is None else from_json(ours),
            note=self._note,
            spent=partial(_book, reader),
        )
        return super().pages(journal, plan, reader, ledger)

    def visit(self, page: Page, over: Event) -> Page:
        """Copy the items of a page; the first one that was not processed begins the next slice."""
        self._destination.over = self._valve.over = over
        counts, count = self._copier.copy(page, lambda: is_over(self._stop, over))
        if count < len(page.items):
            if not count:
                raise Stopped
            page = replace(page, next=self._rekey.transform.source.of(page.items[count - 1]))
        return replace(page, keys=(), runs=(), items=(), counts=counts)

    def limit_writes(self, max_rate: float) -> None:
        if self.max_write_rate:
            self._share = max_rate / self.max_write_rate
        self._limit()

    def finish(self, ended: Ended) -> Summary:
        """Record in the side table that the backfill writes nothing more (Task.finish)."""
        side = self._side(stop=ended.stop)
        counts, examples = ended.totals.counts, noted_examples(ended.journal).get(UNMAPPED, [])
        at = self._now()
        side.tell(
            UNMAPPABLE,
            {"count": counts[UNMAPPED], "examples": examples[:10], "at": at, "run": ended.plan.id},
        )
        backfill = side.told(BACKFILL)
        if backfill is not None and backfill["run"] == ended.plan.id and backfill["ended"] is None:
            side.tell(BACKFILL, {**backfill, "ended": at, "counts": dict(counts)})
        return {**ended.summary, "unmappable": examples}

    def _note(self, key: Key, why: str) -> None:
        """Record an unmappable item as an example, and in the side table's list, which the gate of
        the cutover uses and the stream keeps up to date.
        """
        named = self.examples.setdefault(UNMAPPED, [])
        if len(named) < MOST_EXAMPLES:
            self._rekey.side.unmapped("forward", key, why)
            named.append({"key": key_digest(key).hex(), "why": why})

    def _change_pace(self, pace: Pace) -> None:
        self._pace = pace
        self._limit()

    def _limit(self) -> None:
        rate = self.max_write_rate if self._pace.rate is None else self._pace.rate
        rate_limit = max(1.0, (math.inf if rate is None else rate) * self._share * self._pace.share)
        self._destination.limit_writes(rate_limit)


Put = tuple[Key, Key, bool]
"""A put of a page that may have taken effect: its place, the owner of its item, and whether an
answer was lost, so that it may take effect later than the others.
"""


class Copier:
    """Copies pages of source items; for any number of threads at once.

    When a slice is over, `source` (for second reads) and `side` (for claims) must not refuse a
    request. `ours` are the attributes that identify sentinels of a key index, `note` receives an
    unmappable item's key and the reason, and `spent` the usage of the second reads.
    """

    def __init__(
        self,
        transform: Transform,
        destination: Destination,
        source: Reads,
        side: SideTable,
        *,
        ours: Key | None = None,
        note: Callable[[Key, str], None] = lambda key, why: None,
        spent: Callable[[Usage], None] = lambda usage: None,
    ) -> None:
        self._transform = transform
        self._destination = destination
        self._source = source
        self._side = side
        self._ours = ours
        self._note = note
        self._spent = spent

    def copy(
        self, page: Page, is_over: Callable[[], bool] = lambda: False
    ) -> tuple[Counter[str], int]:
        """Put the items of a page into empty places, and read their source items a second time.

        Return the items' outcomes by name, and the number of items that were processed before
        `is_over`. Raise Stopped if the second reads would have to wait, and the run is to stop.
        """
        counts: Counter[str] = Counter()
        puts: list[Put] = []
        count = 0
        for item in page.items:
            if is_over():
                break
            try:
                counts[self._copied(item, puts)] += 1
            except Stopped:
                break
            count += 1
        self._look_again(puts, page)
        return counts, count

    def _copied(self, item: Item, puts: list[Put]) -> str:
        """Copy an item, and return its outcome."""
        transform = self._transform
        if is_marker(item, transform.source):
            return OURS
        if self._ours is not None and has_values(item, self._ours):
            return OURS
        try:
            copy = transform.forward(item)
            if copy is None:
                return LEFT_OUT
            return self._put(transform.source.of(item), copy, puts)
        except (Unmappable, NotTaken) as error:
            self._note(transform.source.of(item), str(error))
            return UNMAPPED

    def _put(self, owner: Key, item: Item, puts: list[Put]) -> str:
        transform = self._transform
        place = transform.destination.of(item)
        for _ in range(MOST_TRIES):
            written = self._destination.put_if_absent(item, transform.destination.partition)
            if written.refused is None or written.unsure:
                puts.append((place, owner, written.unsure))
            if written.refused is None:
                return COPIED
            old = written.old or self._destination.get(place)
            if old is None:
                continue
            current_owner = transform.owner_of(old)
            if current_owner is not None and key_text(current_owner) == key_text(owner):
                return THERE
            self._side.claim("forward", place, owner)
            return CLAIMED
        raise GaveUp("Other writers kept creating and deleting an item in the destination.")

    def _look_again(self, puts: list[Put], page: Page) -> None:
        """Claim each place that its source item has left, or may have left, since the put."""
        if any(is_unsure for _, _, is_unsure in puts):
            self._source.pause(WAIT_SECONDS)
        try:
            sources = self._source.items((owner for _, owner, _ in puts), page)
        finally:
            self._spent(self._source.usage.take())
        for place, owner, _ in puts:
            source = sources.get(key_text(owner))
            if source is None or item_at(self._transform, place, source) is None:
                self._side.claim("forward", place, owner, is_due=True)


def check_unsharded(source: Table, is_sharded: Callable[[Table], bool]) -> None:
    """Raise CannotStart for a table whose keys are spread over shards."""
    if is_sharded(source):
        raise CannotStart(
            f"Table {source.bare_name!r} is sharded: its items lie under physical keys, which end "
            "with a shard's number, and would be re-keyed by those. Drain each key to one shard "
            f"first. Or, if the template's match separates the suffix, accept {SHARDS}."
        )


def _book(reader: PageReader, used: Usage) -> None:
    """Count the usage of the second reads, and delay the pages for it if there is a read rate."""
    reader.usage.add(used)
    reader.book(used.read_units)


def _finite(rate: float | None) -> float | None:
    return None if rate is None or math.isinf(rate) else rate
