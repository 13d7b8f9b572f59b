"""The task `rekey_backfill`: put every item of the source into the destination where nothing is.

What stands there already was brought by the stream, which is newer, or by this backfill before it
was killed. If it is of another owner, the item is noted as a claim before its page counts: the
worker of the stream settles those.

An item may move to another place, or be deleted, between the moment when the backfill reads it and
the moment when it puts it. The stream's worker may have cleared the old place by then, and nothing
would clear it again. So after the puts of a page the backfill looks at their source items once
more, and claims each place that its item has left. A backfill that is killed between a put and its
look leaves that place to verify (docs/rekey-protocol.md).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.item_calls import write_units
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import Stopped, is_over
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.units import BLOCK_BYTES
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Item, Key, from_json, has_values, to_json
from keyhop.errors import CannotStart, GaveUp
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.pages import Pages, TablePages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, TaskOptions, TaskPlan, noted_examples
from keyhop.rekey.compare.look import item_at
from keyhop.rekey.compare.looks import Reads
from keyhop.rekey.destination import Destination, NotTaken
from keyhop.rekey.digest import key_digest
from keyhop.rekey.opening import OursOf, Rekey, TransformOf
from keyhop.rekey.pace import BACKFILL, UNMAPPABLE, Pace
from keyhop.rekey.request import NO_STREAM, SHARDS
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.task import RekeyTask
from keyhop.rekey.transform import Transform, Unmappable
from keyhop.rekey.valve import Valve
from keyhop.rekey.worker.images import is_marker
from keyhop.rekey.worker.protocol import WAIT_SECONDS
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page

ITEMS_AT_ONCE = 250
"""Of a page: of items of 1 KB its last, half-used block is less than a hundredth of it, and not
many items are in memory, or have to be put again if the worker is killed."""

MOST_TRIES = 5
"""Of an item whose place was taken, and free again before it could be seen by what."""

COPIED, THERE, CLAIMED = "copied", "there", "claimed"
LEFT_OUT, OURS, UNMAPPED = "left_out", "ours", "unmappable"
"""What becomes of an item (Commit.counts): ours are sentinels of a key index, and markers."""

MOST_EXAMPLES = 100
"""Of items without a form under the other key, of each worker: so many are listed in the side
table, and named, by digests of their keys, in the manifest."""


class BackfillTask(RekeyTask):
    """Copies all items of the source to the destination.

    Its options are those of RekeyTask, and:
        max_write_rate: Write units a second.
        accept: The words of BackfillInput.accept.
    """

    outputs: Mapping[str, str] = {"counts": "outcomes", "write_units": "writeUnits"}

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
        """Task.plan. Raises CannotStart unless the re-key is one to be backfilled now."""
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
                "Nothing replicates yet, so the backfill would miss what is written meanwhile: "
                "begin with keyhop rekey start, which turns that on first (or accept "
                f"{NO_STREAM}, and let a verify repair what it finds)."
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
        self._indexes = len(rekey.destination.global_indexes)
        rows = source.item_count or None
        return TaskPlan(source, "scan", "to copy every item", options, rows=rows)

    def view(self, source: Source) -> Source:
        """Task.view: whole items."""
        return replace(source, whole=True)

    def units_per_key(self, source: Source) -> tuple[float, float]:
        """Task.units_per_key: the put of an item, which is taken to enter each index of the
        destination, and the second look at it, by a strongly consistent Scan.
        """
        item_bytes = math.ceil(source.mean_item_bytes or 1.0)
        return write_units(item_bytes) * (1 + self._indexes), item_bytes / BLOCK_BYTES

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        self._rekey = rekey = self._opened_for(reader, plan.options)
        _note_begun(rekey, plan, self._now())
        self._valve = Valve(rekey.side, plan.id, self._change_pace, reader.stop, now=self._now)
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
        return TablePages.of(plan, reader, self.visit, ledger, most_items=ITEMS_AT_ONCE)

    def visit(self, page: Page, over: Event) -> Page:
        """Task.visit: copy the items of a page one by one; the next slice begins with the first
        item that was not dealt with when this one was over.
        """
        self._destination.over = self._valve.over = over
        counts, done = self._copier.copy(page, lambda: is_over(self._stop, over))
        if done < len(page.items):
            if not done:
                raise Stopped
            page = replace(page, next=self._rekey.transform.source.of(page.items[done - 1]))
        return replace(page, keys=(), runs=(), items=(), counts=counts)

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


@dataclass(slots=True)
class _Puts:
    """The puts of one page that may have taken effect.

    Attributes:
        places: Each place, with the owner of the item that was put there.
        is_unsure: Whether an answer was lost, so that a put may take effect later than the others.
    """

    places: list[tuple[Key, Key]] = field(default_factory=list)
    is_unsure: bool = False


class Copier:
    """Copies pages of source items; for any number of threads at once.

    Args:
        transform: Maps source items to their destination items.
        destination: Puts items.
        source: Looks at source items once more; a look must not be refused when a slice is over.
        side: Notes claims; it must not refuse them when a slice is over.
        ours: The attributes that tell sentinels of a key index.
        note: Is told the key of an item without a form under the other key, and the reason.
        spent: Is told what the looks have used.
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
        """Put the items of a page where nothing is, and look once more at those that were put.

        Args:
            page: Whole items of the source, as they were read.
            is_over: Whether to begin no further item.

        Returns:
            What became of the items, by name, and how many of them were dealt with.

        Raises:
            Stopped: The looks would have had to wait, and the run is to stop.
        """
        counts: Counter[str] = Counter()
        puts = _Puts()
        done = 0
        for item in page.items:
            if is_over():
                break
            try:
                counts[self._copied(item, puts)] += 1
            except Stopped:
                break
            done += 1
        self._look_again(puts, page)
        return counts, done

    def _copied(self, item: Item, puts: _Puts) -> str:
        """Copy an item, and return what became of it."""
        transform = self._transform
        if is_marker(item, transform.source):
            return OURS
        if self._ours is not None and has_values(item, self._ours):
            return OURS
        try:
            there = transform.forward(item)
            if there is None:
                return LEFT_OUT
            return self._put(transform.source.of(item), there, puts)
        except (Unmappable, NotTaken) as error:
            self._note(transform.source.of(item), str(error))
            return UNMAPPED

    def _put(self, owner: Key, item: Item, puts: _Puts) -> str:
        transform = self._transform
        place = transform.destination.of(item)
        for _ in range(MOST_TRIES):
            written = self._destination.put_if_absent(item, transform.destination.partition)
            if written.refused is None or written.unsure:
                puts.places.append((place, owner))
                puts.is_unsure = puts.is_unsure or written.unsure
            if written.refused is None:
                return COPIED
            old = written.old or self._destination.read(place)
            if old is None:
                continue
            other = transform.owner_of(old)
            if other is not None and key_text(other) == key_text(owner):
                return THERE
            self._side.claim("forward", place, owner)
            return CLAIMED
        raise GaveUp("A place in the destination was taken and left again all the time.")

    def _look_again(self, puts: _Puts, page: Page) -> None:
        """Claim each place that the item that was put there has left, or may have left."""
        if puts.is_unsure:
            self._source.pause(WAIT_SECONDS)
        try:
            sources = self._source.items((owner for _, owner in puts.places), page)
        finally:
            self._spent(self._source.usage.take())
        for place, owner in puts.places:
            source = sources.get(key_text(owner))
            if source is None or item_at(self._transform, place, source) is None:
                self._side.claim("forward", place, owner, is_due=True)


def check_unsharded(source: Table, is_sharded: Callable[[Table], bool]) -> None:
    """Raises CannotStart for a table whose keys are spread over shards."""
    if is_sharded(source):
        raise CannotStart(
            f"Table {source.bare_name!r} is sharded: its items lie under physical keys, which "
            "end with a shard's number, and would be re-keyed by those. Bring each key back "
            "to one shard first (keyhop shards drain), or, if the template's match takes the "
            f"suffix apart, accept {SHARDS}."
        )


def _note_begun(rekey: Rekey, plan: RunPlan, now: float) -> None:
    """Tell the side table which run is the backfill; never one that was begun before another."""
    told: Any = rekey.side.told(BACKFILL)
    if told is None or (told["run"] != plan.id and told["started"] <= plan.started):
        rekey.side.tell(
            BACKFILL, {"run": plan.id, "started": plan.started, "began": now, "ended": None}
        )


def _book(reader: PageReader, used: Usage) -> None:
    """Count what the looks have used, and hold the pages back for it if there is a read rate."""
    reader.usage.add(used)
    reader.book(used.read_units)


def _finite(rate: float | None) -> float | None:
    return None if rate is None or math.isinf(rate) else rate
