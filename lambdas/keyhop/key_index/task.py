"""The task `key_index`: a walk over all collections, to build, verify or remove the index.

    build    a skip-scan: put a sentinel where a collection does not begin with one
    verify   a skip-scan: count the drift, and correct it if asked to
    remove   walks the index instead: delete each sentinel; without an index, a skip-scan
    check    a skip-scan before there is an index: find items of users that would be in the way

The pages of a verification hold at least two items. So they show for each collection whether it has
a sentinel and whether it has other items, unless the page ended after the first item of the
collection; then the next page begins with that collection again. What looks wrong is checked by
strongly consistent reads before it counts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, compress
from threading import Event, Lock
from typing import Literal, get_args

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.values import Key, to_json
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task, TaskOptions, TaskPlan
from keyhop.key_index.keeper import Collections
from keyhop.key_index.protocol import Call, Place
from keyhop.key_index.registry import Fence
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page

Kind = Literal["build", "verify", "remove", "check"]

KINDS: tuple[str, ...] = get_args(Kind)

MOST_GRACES = 50
"""The maximum pages for which one process waits. If more are wrong, no keeper is running."""

LONGEST_GRACE_SECONDS = 60.0
"""Half of the longest slice: a page that waits must be settled in one."""

MOST_NAMED = 1000
"""The maximum number of keys of each kind of drift to keep, for a second look after the walk."""


WALK = ("kind", "repair", "grace_seconds", "max_write_rate")
"""The options of a walk: its kind, whether a verification corrects the drift that it finds, for how
long it waits for the keeper, and its limit."""


class WalkTask(Task):
    """Settles each collection that a page shows. Its options are the walk (WALK) and its sentinels.

    It counts in the reader's usage: collections, missing and surplus sentinels, occupied (a user's
    item has the sentinel's key), late (the keeper was only slow), put, deleted, strong_reads, and
    write units.

    Args:
        sentinel_of: Returns the sentinel of a table, for a new run. The options of a run that has
            begun contain its sentinel.
        fence_of: Returns what lets writes pass, from the table and the holder of the lease.
    """

    visits = True
    outputs: Mapping[str, str] = {"index_walk": "keyIndex"}

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        sentinel_of: Callable[[Table], Sentinel] | None = None,
        fence_of: Callable[[Source, str], Fence] | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.repair, self.grace_seconds, self.max_write_rate = (
            options["walk"][name] for name in WALK
        )
        if "sentinel" in options:
            self.sentinel = Sentinel.from_json(options["sentinel"])
        self._sentinel_of = sentinel_of
        self._fence_of = fence_of
        self._connection = connection
        self._options = options
        self._graces = 0
        self._lock = Lock()

    def plan(self, table: Table, request: Request) -> TaskPlan:
        if self._sentinel_of is not None:
            self.sentinel = self._sentinel_of(table)
        options = {**self._options, "sentinel": self.sentinel.to_json()}
        if self.kind == "remove" and table.index(INDEX) is not None:
            source = self.view(table.source(INDEX))
            return TaskPlan(source, "index", "to remove it", options)
        source = self.view(table.source())
        return TaskPlan(source, "skip", f"to {self.kind} the key index", options)

    def view(self, source: Source) -> Source:
        """Task.view: read what identifies sentinels, or only the sentinels of an index."""
        if source.index is not None:
            return replace(source, only=self.sentinel.item_of({}))
        attributes = (self.sentinel.sort.name, MARKER)
        return replace(source, attributes=attributes, pairs=self.kind == "verify")

    def start(self, reader: PageReader) -> None:
        self._reader = reader
        lease = self._options.get("lease", "")
        self._collections = Collections(
            self._connection,
            reader.source.name,
            self.sentinel,
            writes=Budget(_finite(self.max_write_rate)),
            item_bytes=reader.source.mean_item_bytes,
            patience=reader.patience,
            stop=reader.stop,
            fence=None if self._fence_of is None else self._fence_of(reader.source, lease),
        )

    def visit(self, page: Page, over: Event) -> Page:
        """Task.visit: return the page with the keys that hold items.

        A visit that ends before the whole page is settled is repeated. Its findings count only
        then, because they will be found again. Corrections count at once, because they will not.
        """
        self._collections.over = over
        counts: Counter[str] = Counter()
        put_right: Counter[str] = Counter()
        try:
            visited = self._visited(page, counts, put_right)
            self._reader.usage.count(**counts)
            return visited
        finally:
            self._reader.usage.count(**put_right)
            self._book()

    def limit_writes(self, max_rate: float) -> None:
        self._collections.limit_writes(max_rate)

    def _visited(self, page: Page, counts: Counter[str], put_right: Counter[str]) -> Page:
        if self.kind == "remove":
            # Rows that are deleted will not be found again; collections of the table will.
            self._remove(page, put_right if self._reader.source.index else counts)
            return page
        empty: set[int] = set()
        if self.kind == "build":
            self._build(page, counts)
        elif self.kind == "check":
            self._check(page, counts)
        else:
            empty = self._verify(page, counts, put_right)
        holds_items = [number not in empty for number in range(len(page.keys))]
        counts["collections"] += sum(holds_items)
        return replace(
            page,
            keys=list(compress(page.keys, holds_items)),
            runs=list(compress(page.runs, holds_items)),
        )

    def _remove(self, page: Page, counted: Counter[str]) -> None:
        """Delete the sentinels of the rows of an index, or of a table without an index."""
        for key, has_sentinel in zip(page.keys, self._marks(page), strict=True):
            if has_sentinel or self._collections.read(key) is Place.SENTINEL:
                self._collections.delete(key)
            self._pay()
            counted["collections"] += 1

    def _check(self, page: Page, counts: Counter[str]) -> None:
        """Count collections whose sentinel's place is occupied, and those that show an item with
        the marker elsewhere. The place is read where the page ends before it.
        """
        for number, (key, items) in enumerate(zip(page.keys, self._runs(page), strict=True)):
            occupying = [item for item in items if self.sentinel.is_at_place(item)]
            occupied = any(not self.sentinel.is_one(item) for item in occupying)
            is_cut_off = page.next is not None and number == len(page.keys) - 1
            if is_cut_off and all(self.sentinel.is_after(item) for item in items):
                occupied = self._collections.read(key) is Place.OCCUPIED
            if occupied:
                self._count("occupied", key, counts)
            if any(MARKER in item and item not in occupying for item in items):
                self._count("marked", key, counts)

    def _build(self, page: Page, counts: Counter[str]) -> None:
        """Put a sentinel where none was seen, and look again."""
        for key, has_sentinel in zip(page.keys, self._marks(page), strict=True):
            if not has_sentinel:
                call = self._collections.reconcile(key, Call.PUT, items=True, looks_again=True)
                self._pay()
                if call is Call.WITHDRAW:
                    self._count("occupied", key, counts)

    def _verify(self, page: Page, counts: Counter[str], put_right: Counter[str]) -> set[int]:
        """Settle what looks wrong; return the numbers of the collections without items of users.

        All of a page wait together for a keeper that is behind.
        """
        wrong: dict[int, str] = {}
        for number, has_sentinel in enumerate(self._marks(page)):
            has_items = page.runs[number] > 1  # a run of one may be the sentinel alone
            if not (has_sentinel and has_items):
                first = Call.READ if has_items else Call.LOOK
                if kind := self._looked_at(page.keys[number], first):
                    wrong[number] = kind
        if wrong and self._may_wait():
            self._collections.pause(self.grace_seconds)
            second_looks = {number: self._looked_at(page.keys[number]) for number in wrong}
            counts["late"] += sum(kind is None for kind in second_looks.values())
            wrong = {number: kind for number, kind in second_looks.items() if kind is not None}
        for number, kind in wrong.items():
            if self.repair and kind != "occupied":
                self._repair(kind, page.keys[number], counts, put_right)
            else:
                self._count(kind, page.keys[number], counts)
        return {number for number, kind in wrong.items() if kind == "surplus"}

    def _looked_at(self, key: Key, first: Call = Call.LOOK) -> str | None:
        """Return what is wrong with a collection, by strongly consistent reads."""
        kind = self._collections.wrong(key, first)
        self._pay()
        return kind

    def _repair(self, kind: str, key: Key, counts: Counter[str], put_right: Counter[str]) -> None:
        call = self._collections.reconcile(
            key, Call.LOOK, looks_again=True, wrote=lambda: self._count(kind, key, put_right)
        )
        self._pay()
        if call in (None, Call.WITHDRAW):
            self._count(kind, key, counts)

    def _may_wait(self) -> bool:
        with self._lock:
            self._graces += 1
            return self.grace_seconds > 0 and self._graces <= MOST_GRACES

    def _count(self, kind: str, key: Key, counts: Counter[str]) -> None:
        counts[kind] += 1
        self.note_example(kind, to_json(key), MOST_NAMED)

    def _marks(self, page: Page) -> tuple[bool, ...]:
        """Return, for each key, whether its sentinel is in the page. The index has only these."""
        if not page.items:
            return (True,) * len(page.keys)
        return tuple(any(map(self.sentinel.is_one, items)) for items in self._runs(page))

    def _runs(self, page: Page) -> Iterator[Sequence[Key]]:
        """Yield, for each key, its items in the page."""
        for run, end in zip(page.runs, accumulate(page.runs), strict=True):
            yield page.items[end - run : end]

    def _pay(self) -> None:
        """Book the requests about a collection, and wait until the rate has paid for the reads."""
        self._book()
        self._reader.wait_until_paid(self._collections.over)

    def _book(self) -> None:
        used = self._collections.usage.take()
        counters = used.counters
        self._reader.usage.count(
            put=counters["put"],
            deleted=counters["deleted"],
            strong_reads=used.requests - counters["writes"],
            read_units=used.read_units,
            write_units=used.write_units,
        )
        self._reader.book(used.read_units)


def _finite(rate: float | None) -> float | None:
    return None if rate is None or math.isinf(rate) else rate
