"""The task `key_index`: a walk over all collections, to build the index, audit it or remove it.

    build    a skip-scan: where a collection does not begin with its sentinel, put one
    audit    a skip-scan: count what is wrong, and put it right if asked to
    remove   walks the index instead: delete each sentinel; without an index, a skip-scan
    check    a skip-scan before there is an index: what of the users' items stands in its way?

An audit's pages hold at least two items: so of each collection they show both whether a sentinel is
there and whether anything else is, unless the page ended after the collection's first item; then
the next page begins with that collection once more. What looks wrong is settled by strongly
consistent reads before it counts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from threading import Event, Lock
from typing import Any, Literal, get_args

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Source, Table
from keyhop.dynamodb.values import Key, to_json
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task, TaskOptions, TaskPlan
from keyhop.key_index.collections import Collections
from keyhop.key_index.keeper import reconcile
from keyhop.key_index.keeper import wrong as wrong_in
from keyhop.key_index.protocol import GRACE_SECONDS, Call, Place
from keyhop.key_index.registry import Fence
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page

Kind = Literal["build", "audit", "remove", "check"]

KINDS: tuple[str, ...] = get_args(Kind)

MOST_GRACES = 50
"""Pages that are waited for, by one process: if more are wrong, no keeper is at work."""

LONGEST_GRACE_SECONDS = 60.0
"""Half of the longest slice: a page that waits must be settled in one."""

MOST_NAMED = 1000
"""Keys of each kind of drift that are noted: so many are looked at again after an audit."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What to do. repair: of an audit. max_write_rate: write units a second of all workers."""

    kind: Kind
    repair: bool = True
    grace_seconds: float = GRACE_SECONDS
    max_write_rate: float | None = None


class WalkTask(Task):
    """Settles each collection that a page shows. options: the walk, and the sentinels' sort key.

    It counts in the reader's usage: collections, missing and surplus sentinels, occupied (a user's
    item has the sentinel's key), late (the keeper was only slow), put, deleted, strong_reads, and
    write units.
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
        """sentinel_of: for a new run; the sentinels of a run that was begun are in its options.
        fence_of: from what is read, and the holder of the lease, to what lets writes pass.
        """
        super().__init__()
        self.walk = Walk(**options["walk"])
        self.max_write_rate = self.walk.max_write_rate
        if "sentinel" in options:
            self.sentinel = Sentinel.from_json(options["sentinel"])
        self._sentinel_of = sentinel_of
        self._fence_of = fence_of
        self._connection = connection
        self._options = options
        self._graces = 0
        self._lock = Lock()

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan: a removal walks over the index, as long as there is one."""
        if self._sentinel_of is not None:
            self.sentinel = self._sentinel_of(table)
        options = {**self._options, "sentinel": self.sentinel.to_json()}
        if self.walk.kind == "remove" and table.index(INDEX) is not None:
            source = self.view(table.source(INDEX))
            return TaskPlan(source, "index", "to remove it", options)
        source = self.view(table.source())
        return TaskPlan(source, "skip", f"to {self.walk.kind} the key index", options)

    def view(self, source: Source) -> Source:
        """Task.view: of the table, what tells a sentinel; of the index, sentinels only."""
        if source.index is not None:
            return replace(source, only=self.sentinel.item_of({}))
        attributes = (self.sentinel.sort.name, MARKER)
        return replace(source, attributes=attributes, pairs=self.walk.kind == "audit")

    def settings(self) -> Mapping[str, Any]:
        return {"no-repair": not self.walk.repair}

    def start(self, reader: PageReader) -> None:
        self._reader = reader
        lease = self._options.get("lease", "")
        self._collections = Collections(
            self._connection,
            reader.source.name,
            self.sentinel,
            writes=Budget(_finite(self.walk.max_write_rate)),
            item_bytes=reader.source.mean_item_bytes,
            patience=reader.patience,
            stop=reader.stop,
            fence=None if self._fence_of is None else self._fence_of(reader.source, lease),
        )

    def visit(self, page: Page, over: Event) -> Page:
        """Task.visit; returns the page with the keys that hold items.

        A visit that ends before all of the page is settled is repeated. What it has found counts
        then, as it will be found again; but what is put right is not, so that counts at once.
        """
        self._collections.over = over
        found: Counter[str] = Counter()
        put_right: Counter[str] = Counter()
        try:
            visited = self._visited(page, found, put_right)
            self._reader.usage.count(**found)
            return visited
        finally:
            self._reader.usage.count(**put_right)
            self._book()

    def limit_writes(self, max_rate: float) -> None:
        self._collections.limit_writes(max_rate)

    def _visited(self, page: Page, found: Counter[str], put_right: Counter[str]) -> Page:
        seen = [
            _Collection(key, run, mark)
            for key, run, mark in zip(page.keys, page.runs, self._marks(page), strict=True)
        ]
        if self.walk.kind == "remove":
            # Rows that are deleted will not be found again; collections of the table will.
            self._remove(seen, put_right if self._reader.source.index else found)
            return page
        if self.walk.kind == "build":
            self._build(seen, found)
        elif self.walk.kind == "check":
            self._check(page, found)
        else:
            self._audit(seen, found, put_right)
        kept = [one for one in seen if not one.is_empty]
        found["collections"] += len(kept)
        return replace(page, keys=[one.key for one in kept], runs=[one.run for one in kept])

    def _remove(self, seen: list["_Collection"], counted: Counter[str]) -> None:
        """From rows of the index; or, where that is gone already, from the table itself."""
        for one in seen:
            if one.mark or self._collections.read(one.key) is Place.SENTINEL:
                self._collections.delete(one.key)
                self._book()
            counted["collections"] += 1

    def _check(self, page: Page, found: Counter[str]) -> None:
        """Count collections whose sentinel's place is occupied, and those that show an item with
        the marker elsewhere. The place is read where the page ends before it.
        """
        for number, (key, items) in enumerate(zip(page.keys, self._runs(page), strict=True)):
            there = [item for item in items if self.sentinel.is_at_place(item)]
            occupied = any(not self.sentinel.is_one(item) for item in there)
            is_cut_off = page.next is not None and number == len(page.keys) - 1
            if is_cut_off and all(self.sentinel.is_after(item) for item in items):
                occupied = self._collections.read(key) is Place.OCCUPIED
            if occupied:
                self._count("occupied", key, found)
            if any(MARKER in item and item not in there for item in items):
                self._count("marked", key, found)

    def _build(self, seen: list["_Collection"], found: Counter[str]) -> None:
        """Put a sentinel where none was seen, and look again."""
        for one in seen:
            if not one.mark:
                done = reconcile(self._collections, one.key, Call.PUT, items=True, looks_again=True)
                self._book()
                if done.occupied:
                    self._count("occupied", one.key, found)

    def _audit(
        self, seen: list["_Collection"], found: Counter[str], put_right: Counter[str]
    ) -> None:
        """Settle what looks wrong; all of a page wait together for a keeper that is behind."""
        wrong = {
            number: kind
            for number, one in enumerate(seen)
            if not (one.mark and one.run > 1)
            and (kind := wrong_in(self._collections, one.key, _first_call(one)))
        }
        if wrong and self._may_wait():
            self._collections.pause(self.walk.grace_seconds)
            again = {number: wrong_in(self._collections, seen[number].key) for number in wrong}
            found["late"] += sum(kind is None for kind in again.values())
            wrong = {number: kind for number, kind in again.items() if kind is not None}
        for number, kind in wrong.items():
            one = seen[number]
            if kind == "occupied":
                self._count(kind, one.key, found)
                continue
            one.is_empty = kind == "surplus"
            if self.walk.repair:
                self._repair(kind, one.key, found, put_right)
            else:
                self._count(kind, one.key, found)

    def _repair(self, kind: str, key: Key, found: Counter[str], put_right: Counter[str]) -> None:
        done = reconcile(
            self._collections,
            key,
            Call.LOOK,
            looks_again=True,
            wrote=lambda: self._count(kind, key, put_right),
        )
        if done.acted is None or done.occupied:
            self._count(kind, key, found)

    def _may_wait(self) -> bool:
        with self._lock:
            self._graces += 1
            return self.walk.grace_seconds > 0 and self._graces <= MOST_GRACES

    def _count(self, kind: str, key: Key, found: Counter[str]) -> None:
        found[kind] += 1
        with self._lock:
            named = self.examples.setdefault(kind, [])
            if len(named) < MOST_NAMED and to_json(key) not in named:
                named.append(to_json(key))

    def _marks(self, page: Page) -> tuple[bool, ...]:
        """Of each key, whether its sentinel is in the page; in the index there is nothing else."""
        if not page.items:
            return (True,) * len(page.keys)
        return tuple(any(map(self.sentinel.is_one, items)) for items in self._runs(page))

    def _runs(self, page: Page) -> Iterator[Sequence[Key]]:
        """Of each key, its items in the page."""
        for run, end in zip(page.runs, accumulate(page.runs), strict=True):
            yield page.items[end - run : end]

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


def _first_call(one: "_Collection") -> Call:
    """A page that shows more than one item of a collection tells that it holds some of users."""
    return Call.READ if one.run > 1 else Call.LOOK


@dataclass(slots=True)
class _Collection:
    """A collection of a page. is_empty: it turned out to hold no item of a user."""

    key: Key
    run: int
    mark: bool
    is_empty: bool = False
