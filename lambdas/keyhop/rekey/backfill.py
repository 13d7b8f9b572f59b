"""The task `rekey_backfill`: every item of the source, put into the destination where nothing is.

What stands there already was brought by the stream, which is newer, or by this backfill before it
was killed. If it is of another owner, the item is noted as a claim before its page counts: the
worker of the stream settles those. The backfill keeps no positions of its own and looks at nothing
again: what a race leaves wrong, verify finds (docs/rekey-protocol.md).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.items import Item
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.dynamodb.values import Key, from_json, has_values, to_json
from keyhop.errors import CannotStart, GaveUp
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.pages import Pages, TablePages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Options, Summary, Task, TaskPlan, noted_examples
from keyhop.rekey.destination import Destination, NotTaken
from keyhop.rekey.digest import key_digest
from keyhop.rekey.opening import (
    OursOf,
    Rekey,
    TransformOf,
    opened,
    opened_for,
    plan_of,
    side_table,
)
from keyhop.rekey.pace import BACKFILL, UNMAPPABLE, Pace
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.transform import Unmappable
from keyhop.rekey.valve import Valve
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

COPIED, THERE, CLAIMED = "copied", "there", "claimed"
LEFT_OUT, OURS, UNMAPPED = "left_out", "ours", "unmappable"
"""What becomes of an item (Commit.counts): ours are sentinels of a key index, and markers."""

MOST_EXAMPLES = 100
"""Of items without a form under the other key, of each worker: so many are listed in the side
table, and named, by digests of their keys, in the manifest."""


class BackfillTask(Task):
    """options: `rekey`, the destination's name; `max_write_rate`; `without_stream`, to copy though
    nothing replicates; `with_shards`, if the template deals with the suffixes of a sharded table.

    transform_of: loads the plan's template. ours_of: from a table to what tells sentinels of a key
    index. is_sharded: whether a table is, as far as the deployment knows. now: seconds since 1970.
    """

    visits = True
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
        super().__init__()
        self.max_write_rate = options.get("max_write_rate")
        self._connection = connection
        self._options = options
        self._transform_of = transform_of
        self._ours_of = ours_of
        self._is_sharded = is_sharded
        self._now = now
        self._indexes = 0
        self._share = 1.0
        self._pace = Pace()

    @property
    def _name(self) -> str:
        return str(self._options["rekey"])

    def reads(self, asked: Table) -> Table:
        """Task.reads: the source, of the re-key into the table that was asked for."""
        return source_of(self._connection, asked)

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan. Raises CannotStart unless the re-key is one to be backfilled now."""
        rekey = opened(self._connection, self._name, self._transform_of)
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
        """Task.units_per_key, of an item: it is taken to enter each index of the destination."""
        return write_units(math.ceil(source.mean_item_bytes or 1.0)) * (1 + self._indexes), 0.0

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        rekey = opened_for(self._connection, self._name, self._transform_of, reader)
        rekey.check_same(plan.options)
        self._rekey = rekey
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
        return TablePages.of(plan, reader, self.visit, ledger, most_items=ITEMS_AT_ONCE)

    def visit(self, page: Page, over: Event) -> Page:
        """Task.visit: settles its items one by one; what is not settled when the slice is over, the
        next one begins with.
        """
        self._destination.over = self._valve.over = over
        counts: Counter[str] = Counter()
        settled: Item | None = None
        for item in page.items:
            try:
                if is_over(self._stop, over):
                    raise Stopped
                counts[self._settled(item)] += 1
            except Stopped:
                if settled is None:
                    raise
                page = replace(page, next=self._rekey.transform.source.of(settled))
                break
            settled = item
        return replace(page, keys=(), runs=(), items=(), counts=counts)

    def limit_writes(self, max_rate: float) -> None:
        if self.max_write_rate:
            self._share = max_rate / self.max_write_rate
        self._limit()

    def finish(self, ended: Ended) -> Summary:
        """Task.finish; tells the side table that nothing is written any more."""
        side = side_table(self._connection, self._name, stop=ended.stop)
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

    def _settled(self, item: Item) -> str:
        """What becomes of it."""
        transform = self._rekey.transform
        if self._ours is not None and has_values(item, self._ours):
            return OURS
        if is_marker(item, transform.source):
            return OURS
        try:
            there = transform.forward(item)
            if there is None:
                return LEFT_OUT
            return self._put(transform.source.of(item), there)
        except (Unmappable, NotTaken) as error:
            self._note(transform.source.of(item), str(error))
            return UNMAPPED

    def _put(self, owner: Key, item: Item) -> str:
        transform = self._rekey.transform
        for _ in range(MOST_TRIES):
            written = self._destination.put_if_absent(item, transform.destination.partition)
            if written.refused is None:
                return COPIED
            old = written.old or self._destination.read(transform.destination.of(item))
            if old is None:
                continue
            other = transform.owner_of(old)
            if other is not None and key_text(other) == key_text(owner):
                return THERE
            self._rekey.side.claim("forward", transform.destination.of(item), owner)
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


def check_unsharded(source: Table, is_sharded: Callable[[Table], bool]) -> None:
    """Raises CannotStart for a table whose keys are spread over shards."""
    if is_sharded(source):
        raise CannotStart(
            f"Table {source.bare_name!r} is sharded: its items lie under physical keys, which "
            "end with a shard's number, and would be re-keyed by those. Bring each key back "
            "to one shard first (keyhop shards drain), or, if the template's match takes the "
            "suffix apart, give withShards."
        )


def source_of(connection: Connection, destination: Table) -> Table:
    """The source of the re-key into a table; raises CannotStart and its kin."""
    side = side_table(connection, destination.name)
    return look_up(connection, plan_of(side, destination.name).source)


def _note_begun(rekey: Rekey, plan: RunPlan, now: float) -> None:
    """Tell the side table which run is the backfill; never one that was begun before another."""
    told: Any = rekey.side.told(BACKFILL)
    if told is None or (told["run"] != plan.id and told["started"] <= plan.started):
        rekey.side.tell(
            BACKFILL, {"run": plan.id, "started": plan.started, "began": now, "ended": None}
        )


def _finite(rate: float | None) -> float | None:
    return None if rate is None or math.isinf(rate) else rate
