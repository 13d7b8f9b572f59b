"""A walk over all item collections of a table, to build its key index, audit it or remove it.

    build    a skip-scan: where a collection does not begin with its sentinel, put one
    audit    a skip-scan: count what is wrong, and put it right if asked to
    remove   walks the index instead: delete each sentinel; without an index, a skip-scan

An audit's pages hold at least two items: so of each collection they show both whether a sentinel is
there and whether anything else is, unless the page ended after the collection's first item; then
the next page begins with that collection once more. What looks wrong is settled by strongly
consistent reads before it counts.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Event, Lock
from typing import Any, Literal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key, to_json
from keyhop.key_index.collections import Collections
from keyhop.key_index.protocol import GRACE_SECONDS, Call
from keyhop.key_index.reconcile import reconcile
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page

Kind = Literal["build", "audit", "remove"]

MOST_GRACES = 50
"""Pages that are waited for, by one process: if more are wrong, no keeper is at work."""

LONGEST_GRACE_SECONDS = 60.0
"""Half of the longest slice: a page that waits must be settled in one."""

EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Walk:
    """What to do. repair: of an audit. max_write_rate: write units a second of all workers."""

    kind: Kind
    repair: bool = True
    grace_seconds: float = GRACE_SECONDS
    max_write_rate: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "kind": self.kind,
            "repair": self.repair,
            "grace_seconds": self.grace_seconds,
            "max_write_rate": self.max_write_rate,
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Walk":
        """The inverse of `to_json`."""
        return cls(**state)


class Walker:
    """The visitor of a walk (enumerate/slices.py).

    It counts in the reader's tally, under `index`: collections, missing and surplus sentinels,
    occupied (a user's item has the sentinel's key), late (the keeper was only slow), put, deleted,
    strong_reads, write_units. examples: a few keys of each kind of drift.
    """

    def __init__(self, walk: Walk, reader: PageReader, collections: Collections) -> None:
        self.least_limit = 2 if walk.kind == "audit" else 1
        self.max_write_rate = walk.max_write_rate
        self.examples: dict[str, list[Any]] = {}
        self._walk = walk
        self._reader = reader
        self._collections = collections
        self._graces = 0
        self._lock = Lock()

    def trim(self, page: Page, space: KeySpace) -> Page:
        """Of an audit: without a collection of which only the first item was seen."""
        return without_a_first_item(page, space) if self._walk.kind == "audit" else page

    def visit(self, page: Page, over: Event) -> Page:
        """Settle the collections of a page; returns it with the keys that hold items.

        What it has found counts once all of the page is settled; what it has done, always.
        """
        self._collections.over = over
        found: Counter[str] = Counter()
        try:
            visited = self._visited(page, found)
            self._book(found)
            return visited
        finally:
            self._book({})

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold the writes under `max_rate` write units a second."""
        self._collections.limit_writes(max_rate)

    def _visited(self, page: Page, found: Counter[str]) -> Page:
        marks = page.marks or (True,) * len(page.keys)
        seen = [_Seen(*told) for told in zip(page.keys, page.runs, marks, strict=True)]
        found["collections"] += len(seen)
        if self._walk.kind == "remove":
            self._remove(seen)
        elif self._walk.kind == "build":
            self._build(seen, found)
        else:
            self._audit(seen, found)
        kept = [one for one in seen if not one.is_empty]
        found["collections"] -= len(seen) - len(kept)
        return replace(page, keys=[one.key for one in kept], runs=[one.run for one in kept])

    def _remove(self, seen: list["_Seen"]) -> None:
        """From rows of the index; or, where that is gone already, from the table itself."""
        for one in seen:
            if one.mark or self._collections.read(one.key):
                self._collections.delete(one.key)

    def _build(self, seen: list["_Seen"], found: Counter[str]) -> None:
        """Put a sentinel where none was seen, and look again."""
        for one in seen:
            if not one.mark:
                done = reconcile(self._collections, one.key, Call.PUT, items=True, looks_again=True)
                if done.occupied:
                    self._count("occupied", one.key, found)

    def _audit(self, seen: list["_Seen"], found: Counter[str]) -> None:
        """Settle what looks wrong; all of a page wait together for a keeper that is behind."""
        wrong = {
            number: kind
            for number, one in enumerate(seen)
            if not (one.mark and one.run > 1)
            and (kind := self._wrong(one.key, Call.READ if one.run > 1 else Call.LOOK))
        }
        if wrong and self._may_wait():
            self._collections.pause(self._walk.grace_seconds)
            again = {number: self._wrong(seen[number].key, Call.LOOK) for number in wrong}
            found["late"] += sum(kind is None for kind in again.values())
            wrong = {number: kind for number, kind in again.items() if kind is not None}
        for number, kind in wrong.items():
            one = seen[number]
            if kind == "missing" and self._collections.is_occupied(one.key):
                self._count("occupied", one.key, found)
                continue
            self._count(kind, one.key, found)
            one.is_empty = kind == "surplus"
            if self._walk.repair:
                reconcile(self._collections, one.key, Call.LOOK, looks_again=True)

    def _wrong(self, key: Key, first: Call) -> str | None:
        """What strong reads say: "missing", "surplus", or None if the sentinel is as it should."""
        if first is Call.READ and self._collections.read(key):
            return None
        seen = self._collections.look(key)
        if seen.items and seen.sentinel is None:
            return None if self._collections.read(key) else "missing"
        if seen.items == bool(seen.sentinel):
            return None
        return "missing" if seen.items else "surplus"

    def _may_wait(self) -> bool:
        with self._lock:
            self._graces += 1
            return self._walk.grace_seconds > 0 and self._graces <= MOST_GRACES

    def _count(self, kind: str, key: Key, found: Counter[str]) -> None:
        found[kind] += 1
        with self._lock:
            named = self.examples.setdefault(kind, [])
            if len(named) < EXAMPLES and to_json(key) not in named:
                named.append(to_json(key))

    def _book(self, found: Mapping[str, float]) -> None:
        spent = self._collections.take()
        counts = {
            **found,
            "put": spent.put,
            "deleted": spent.deleted,
            "strong_reads": spent.reads,
            "write_units": spent.write_units,
        }
        self._reader.book(spent.read_units, {name: n for name, n in counts.items() if n})


@dataclass(slots=True)
class _Seen:
    """A collection of a page. is_empty: it turned out to hold no item of a user."""

    key: Key
    run: int
    mark: bool
    is_empty: bool = False


def without_a_first_item(page: Page, space: KeySpace) -> Page:
    """The page without its last key, if only one item of it was seen and more may follow.

    The next page then begins with that collection. A page of one item alone is left as it is: what
    it shows is settled by strong reads.
    """
    if page.next is None or len(page.keys) < 2 or page.runs[-1] > 1:
        return page
    return replace(
        page,
        keys=page.keys[:-1],
        runs=page.runs[:-1],
        marks=page.marks[:-1],
        next=space.hop_from(page.keys[-2]),
    )
