"""The task `rekey_backfill`: put every item of the source into the destination where nothing is.

What is there already came from the stream, which is newer, or from this backfill before it was
killed. After it has put items, the backfill looks at their source items again: one that does not
belong to its place any more was moved or deleted between the read and the put, after the stream's
worker had found that place empty. Such a place, and one that another owner has, is noted as a claim
before the page counts; the worker settles claims. What a kill between put and look leaves wrong,
verify finds (docs/rekey-protocol.md).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from keyhop.dynamodb.capacity import blocks_of
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.items import Item, size_of
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.values import Key, from_json, has_values, to_json
from keyhop.errors import CannotStart, GaveUp
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.pages import Pages, TablePages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Options, Summary, TaskPlan, noted_examples
from keyhop.rekey.compare.looks import Reads
from keyhop.rekey.destination import Destination, NotTaken
from keyhop.rekey.digest import key_digest
from keyhop.rekey.opening import OursOf, Rekey, TransformOf
from keyhop.rekey.pace import BACKFILL, UNMAPPABLE, Pace
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.task import RekeyTask
from keyhop.rekey.transform import Unmappable
from keyhop.rekey.valve import REQUEST_SECONDS, Valve
from keyhop.rekey.worker.images import is_marker
from keyhop.scan.item_calls import write_units
from keyhop.scan.page_size import Ledger
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader, is_over
from keyhop.scan.skip_scan import Page

ITEMS_AT_ONCE = 250
"""Of a page: of items of 1 KB its last, half-used block is less than a hundredth of it, and not
many items are in memory, or have to be put again if the worker is killed."""

MOST_TRIES = 5
"""Of an item whose place was taken, and free again before it could be seen by what."""

COPIED, THERE, CLAIMED, MOVED = "copied", "there", "claimed", "moved"
LEFT_OUT, OURS, UNMAPPED = "left_out", "ours", "unmappable"
"""What becomes of an item (Commit.counts). moved: it was put, and did not belong there any more.
ours: sentinels of a key index, and markers."""

MOST_EXAMPLES = 100
"""Of items without a form under the other key, of each worker: so many are listed in the side
table, and named, by digests of their keys, in the manifest."""


class BackfillTask(RekeyTask):
    """options: also `max_write_rate`; `without_stream`, to copy though nothing replicates;
    `with_shards`, if the template deals with the suffixes of a sharded table.

    is_sharded: whether a table is, as far as the deployment knows. The others: see RekeyTask.
    """

    outputs: Mapping[str, str] = {"counts": "outcomes", "write_units": "writeUnits"}

    def __init__(
        self,
        connection: Connection,
        options: Options,
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
        """Task.plan. Raises CannotStart unless the re-key is one to be backfilled now."""
        rekey = self._opened()
        control = rekey.side.control()
        if control.serving != "source" or control.stage != "open":
            raise CannotStart(
                f"Table {rekey.pair.destination!r} is served already, or about to be: there is "
                "nothing to backfill after a cutover."
            )
        if not control.replicating and not self._options.get("without_stream"):
            raise CannotStart(
                "Nothing replicates yet, so the backfill would miss what is written meanwhile: "
                "begin with keyhop rekey start, which turns that on first (or give withoutStream, "
                "and let a verify repair what it finds)."
            )
        if not self._options.get("with_shards"):
            check_unsharded(rekey.source, self._is_sharded)
        source = self.view(rekey.source.source())
        ours = self._ours_of(rekey.source)
        options = {
            **self._options,
            **rekey.identities(),
            "ours": None if ours is None else to_json(ours),
        }
        self._indexes = len(rekey.destination.global_indexes)
        rows = source.item_count or None
        return TaskPlan(source, "scan", "to copy every item", options, rows=rows)

    def view(self, source: Source) -> Source:
        """Task.view: whole items."""
        return replace(source, whole=True)

    def units_per_key(self, source: Source) -> tuple[float, float]:
        """Task.units_per_key, of an item: it is assumed to enter each index of the destination, and
        is read once more, strongly, when it has been put.
        """
        mean_bytes = math.ceil(source.mean_item_bytes or 1.0)
        return write_units(mean_bytes) * (1 + self._indexes), blocks_of(mean_bytes)

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        self._rekey = rekey = self._opened_for(reader, plan.options)
        _note_begun(rekey, plan, self._now())
        self._valve = Valve(rekey.side, plan.id, self._change_pace, reader.stop, now=self._now)
        self._stop = reader.stop
        ours = plan.options.get("ours")
        self._ours = None if ours is None else from_json(ours)
        self._destination = Destination(
            self._connection,
            rekey.pair.destination,
            writes=Budget(_finite(self.max_write_rate)),
            patience=reader.patience,
            stop=reader.stop,
            check=self._valve.check,
            usage=reader.usage,
        )
        # The second looks, and the claims that follow from them, are made also when the slice ends.
        more: dict[str, Any] = {"patience": reader.patience, "usage": reader.usage}
        self._source = Reads(self._connection, rekey.pair.source, **more)
        self._beside = self._side(**more)
        self._book = reader.book
        return TablePages.of(plan, reader, self.visit, ledger, most_items=ITEMS_AT_ONCE)

    def visit(self, page: Page, over: Event) -> Page:
        """Task.visit: put its items one by one, then look again at those that were put.

        What is not put when the slice ends, the next slice begins with.
        """
        self._destination.over = self._valve.over = over
        counts: Counter[str] = Counter()
        puts: list[_Put] = []
        done: Item | None = None
        try:
            for item in page.items:
                try:
                    if is_over(self._stop, over):
                        raise Stopped
                    counts[self._settled(item, puts)] += 1
                except Stopped:
                    if done is None:
                        raise
                    page = replace(page, next=self._rekey.transform.source.of(done))
                    break
                done = item
        finally:
            moved = self._look_again(puts)
        counts.update({MOVED: moved, COPIED: -moved})
        return replace(page, keys=(), runs=(), items=(), counts=+counts)

    def limit_writes(self, max_rate: float) -> None:
        if self.max_write_rate:
            self._share = max_rate / self.max_write_rate
        self._limit()

    def finish(self, ended: Ended) -> Summary:
        """Task.finish; tells the side table that nothing is written any more."""
        side = self._side(stop=ended.stop)
        counts, examples = ended.totals.counts, noted_examples(ended.journal).get(UNMAPPED, [])
        at = self._now()
        side.tell(
            UNMAPPABLE,
            {"count": counts[UNMAPPED], "examples": examples[:10], "at": at, "run": ended.plan.id},
        )
        told = side.told(BACKFILL)
        if told is not None and told["run"] == ended.plan.id and told["ended"] is None:
            side.tell(BACKFILL, {**told, "ended": at, "counts": dict(counts)})
        return {**ended.summary, "unmappable": examples}

    def _look_again(self, puts: Sequence["_Put"]) -> int:
        """Claim the places that have been put, and to which their source items do not belong now.

        Their items were moved or deleted after they had been read; the stream's worker may have
        come to those places before the puts, when there was nothing to remove. Returns how many.
        """
        if not puts:
            return 0
        if any(put.unsure for put in puts):  # an earlier attempt may still take effect
            self._source.pause(REQUEST_SECONDS)
        items = self._source.items(put.owner for put in puts)
        moved = 0
        for put in puts:
            item = items.get(key_text(put.owner))
            if item is None or not self._belongs(item, put.place):
                self._beside.claim("forward", put.place, put.owner, is_due=True)
                moved += put.is_copied
            self._book(blocks_of(0 if item is None else size_of(item)))
        return moved

    def _belongs(self, item: Item, place: Key) -> bool:
        transform = self._rekey.transform
        try:
            there = transform.forward(item)
        except Unmappable:
            return False
        return there is not None and key_text(transform.destination.of(there)) == key_text(place)

    def _settled(self, item: Item, puts: list["_Put"]) -> str:
        """Do what must be done about an item, and return what became of it."""
        transform = self._rekey.transform
        if self._ours is not None and has_values(item, self._ours):
            return OURS
        if is_marker(item, transform.source):
            return OURS
        try:
            there = transform.forward(item)
            if there is None:
                return LEFT_OUT
            return self._put(transform.source.of(item), there, puts)
        except (Unmappable, NotTaken) as error:
            self._note(transform.source.of(item), str(error))
            return UNMAPPED

    def _put(self, owner: Key, item: Item, puts: list["_Put"]) -> str:
        transform = self._rekey.transform
        place = transform.destination.of(item)
        for _ in range(MOST_TRIES):
            written = self._destination.put_if_absent(item, transform.destination.partition)
            if written.refused is None or written.unsure:
                puts.append(_Put(owner, place, written.refused is None, written.unsure))
            if written.refused is None:
                return COPIED
            old = written.old or self._destination.read(place)
            if old is None:
                continue
            other = transform.owner_of(old)
            if other is not None and key_text(other) == key_text(owner):
                return THERE
            self._rekey.side.claim("forward", place, owner)
            return CLAIMED
        raise GaveUp("A place in the destination was taken and left again all the time.")

    def _note(self, key: Key, why: str) -> None:
        """The side table's list is what the cutover's gate goes by, and the stream keeps true."""
        named = self.examples.setdefault(UNMAPPED, [])
        if len(named) < MOST_EXAMPLES:
            self._rekey.side.unmapped("forward", key, why)
            named.append({"key": key_digest(key).hex(), "why": why})

    def _change_pace(self, pace: Pace) -> None:
        self._pace = pace
        self._limit()

    def _limit(self) -> None:
        rate = self.max_write_rate if self._pace.rate is None else self._pace.rate
        least = max(1.0, (math.inf if rate is None else rate) * self._share * self._pace.share)
        self._destination.limit_writes(least)


@dataclass(frozen=True, slots=True)
class _Put:
    """An item that was put, or may have been.

    Attributes:
        is_copied: Whether the put succeeded in the end.
        unsure: Whether an answer was lost on the way: then an attempt may take effect later.
    """

    owner: Key
    place: Key
    is_copied: bool
    unsure: bool


def check_unsharded(source: Table, is_sharded: Callable[[Table], bool]) -> None:
    """Raises CannotStart for a table whose keys are spread over shards."""
    if is_sharded(source):
        raise CannotStart(
            f"Table {source.bare_name!r} is sharded: its items lie under physical keys, which "
            "end with a shard's number, and would be re-keyed by those. Bring each key back "
            "to one shard first (keyhop shards drain), or, if the template's match takes the "
            "suffix apart, give withShards."
        )


def _note_begun(rekey: Rekey, plan: RunPlan, now: float) -> None:
    """Tell the side table which run is the backfill; never one that was begun before another."""
    told: Any = rekey.side.told(BACKFILL)
    if told is None or (told["run"] != plan.id and told["started"] <= plan.started):
        rekey.side.tell(
            BACKFILL, {"run": plan.id, "started": plan.started, "began": now, "ended": None}
        )


def _finite(rate: float | None) -> float | None:
    return None if rate is None or math.isinf(rate) else rate
