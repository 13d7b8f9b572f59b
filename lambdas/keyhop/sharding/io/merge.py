"""The shards of one query, merged in the order of a sort key: of the table, or of an index.

`Merge` reads the table by the protocol, lazily. Its sort key is different for each item of a key.

`IndexMerge` reads an index whose partition key has the shard's suffix. Many items of an index may
have the same sort key, and DynamoDB does not define their order. So they are sorted here, by the
table's sort key: all items with an equal sort key are read before one is returned, and again by a
page that starts among them. A query for the first items in any order of equal ones (`any_equal`)
need not read all of these.
"""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.sharding.io.reader import (
    MetadataExpired,
    Query,
    Rank,
    Reader,
    ShardCursor,
    rank_of,
    too_slow,
)
from keyhop.sharding.key import protocol
from keyhop.sharding.key.protocol import Order
from keyhop.sharding.store.metadata import KeyMetadata

SHARE_MARGIN = 1.3
"""The factor by which more than its share is read from each shard, as shards are uneven."""


class Merge:
    """The items of a query, one by one; for one thread.

    An item is returned once every shard has been read up to it. If the protocol demands an order, a
    shard is not read beyond those before it. Otherwise shards are read in parallel.
    """

    def __init__(self, reader: Reader, query: Query) -> None:
        self._reader = reader
        self._query = query
        self._wanted = query.limit
        self._call = reader.requests.call_noted
        self._stuck_since = reader.requests.clock.monotonic()
        self._begin(reader.metadata.of(query.logical), query.after)

    def _begin(self, record: KeyMetadata, after: TypedValue | None) -> None:
        """Read all shards from a position on, and discard earlier pages."""
        self._known = record
        self._returned = after
        self._order = Order.ANY
        if self._query.consistent:
            self._order = protocol.order_of_reading(record.shards, self._reader.placement)
        numbers = range(1, record.shards.readable + 1)
        self._start = None if after is None else rank_of(after, self._query.descending)
        self._cursors = {number: ShardCursor(number, after, self._start) for number in numbers}
        by_trust = protocol.newest_first(self._order, numbers)
        self._trust = {number: place for place, number in enumerate(by_trust)}
        self._heads: list[tuple[Rank, int, int]] = []
        self._unread = list(self._cursors.values())

    def items(self) -> Iterator[dict[str, Any]]:
        while self._heads or self._unread:
            yield from self._ready()
            if self._unread:
                self._read_on()

    def page(self, limit: int | None, is_filtered: bool) -> tuple[list[Any], TypedValue | None]:
        """Return items, and the sort key up to which the shards were read; None at the end. Without
        a limit, or with a filter, one page of each shard is read.
        """
        if limit is None or is_filtered:
            while any(cursor.reached in (None, self._start) for cursor in self._unread):
                self._read_on()
            items = list(islice(self._ready(), limit))
        else:
            items = list(islice(self.items(), limit))
        if len(items) == limit and (self._heads or self._unread):
            return items, self._returned
        last: ShardCursor | None = None
        for cursor in self._unread:
            last = cursor if last is None or cursor.is_behind(last) else last
        return items, None if last is None else last.after

    @property
    def scanned(self) -> int:
        """The number of items read, including those that a filter has excluded."""
        return sum(cursor.scanned for cursor in self._cursors.values())

    def _ready(self) -> Iterator[dict[str, Any]]:
        """Yield the items up to which every shard has been read."""
        while (item := self._first()) is not None:
            self._returned = item[self._reader.schema.sort.name]
            if self._wanted is not None:
                self._wanted -= 1
            yield item

    def _first(self) -> dict[str, Any] | None:
        """Remove and return the next item if every shard has been read up to it."""
        if not self._heads:
            return None
        rank = self._heads[0][0]
        if any(cursor.reached is None or cursor.reached < rank for cursor in self._unread):
            return None
        first: dict[str, Any] | None = None
        while self._heads and self._heads[0][0] == rank:
            cursor = self._cursors[heapq.heappop(self._heads)[2]]
            _, item = cursor.items.popleft()
            first = first or item  # the most reliable copy comes first
            self._show(cursor)
        return first

    def _show(self, cursor: ShardCursor) -> None:
        """Add the cursor's next item to the heads, or the cursor to the unread ones."""
        if cursor.items:
            rank, trust = cursor.items[0][0], self._trust[cursor.number]
            heapq.heappush(self._heads, (rank, trust, cursor.number))
        elif not cursor.is_done:
            self._unread.append(cursor)

    def _read_on(self) -> None:
        """Read at least one more page, or start again with newer metadata."""
        clock = self._reader.requests.clock
        if clock.monotonic() >= self._known.expires:
            record = self._reader.metadata.of(self._query.logical)
            if record.version != self._known.version:
                self._begin(record, self._returned)
            self._known = record
        try:
            if self._order is Order.ANY:
                self._read_all()
            else:
                self._read_in_order()
            self._stuck_since = clock.monotonic()
        except MetadataExpired as stale:
            if clock.monotonic() - self._stuck_since > self._reader.requests.patience:
                raise stale.cause or too_slow("a page") from stale

    def _read_all(self) -> None:
        cursors, limit = self._unread, self._share()
        try:
            if len(cursors) == 1:
                self._reader.read(self._query, cursors[0], self._known, limit)
                return
            pages = [
                self._reader.executor.submit(self._read_noted, cursor, limit) for cursor in cursors
            ]
            for page in pages:
                page.exception()  # wait for all, because they change the cursors
            for page in pages:
                page.result()
        finally:
            self._show_all(cursors)

    def _read_noted(self, cursor: ShardCursor, limit: int | None) -> None:
        """Read in another thread, to which the call must be passed."""
        with self._reader.requests.noting(self._call):
            self._reader.read(self._query, cursor, self._known, limit)

    def _read_in_order(self) -> None:
        bound: ShardCursor | None = None  # of the shards before, the one with the least progress
        unread = self._unread
        try:
            for number in sorted(self._cursors, reverse=self._order is Order.DESCENDING):
                cursor = self._cursors[number]
                is_used_up = not cursor.items and not cursor.is_done
                if is_used_up and (bound is None or cursor.is_behind(bound)):
                    to = None if bound is None else bound.after
                    # A bounded read needs no share, which would only end it before the bound.
                    limit = self._share() if to is None else self._wanted
                    self._reader.read(self._query, cursor, self._known, limit, to)
                if not cursor.is_done and (bound is None or cursor.is_behind(bound)):
                    bound = cursor
        finally:
            self._show_all(unread)

    def _show_all(self, cursors: list[ShardCursor]) -> None:
        self._unread = []
        for cursor in cursors:
            self._show(cursor)

    def _share(self) -> int | None:
        """Return the number of items to read from each shard for the remaining limit."""
        if self._wanted is None or len(self._cursors) == 1:
            return self._wanted
        return math.ceil(self._wanted / len(self._cursors) * SHARE_MARGIN) + 1


Place = tuple[Any, ...]
"""The ranks of an item's two sort keys; with the index's only, before all items that have it.

Instead of the table's sort key it may have the whole key, if the partition key has no suffix.
"""
Position = tuple[TypedValue, TypedValue | None]
"""A start position: after an item, by both sort keys, or at an index's sort key."""


@dataclass(slots=True)
class _Shard:
    """The progress in one shard. start: the next page's start key; None at the start or the end."""

    number: int
    rows: dict[Place, dict[str, Any]] = field(default_factory=dict)
    start: Mapping[str, TypedValue] | None = None
    reached: Place | None = None
    scanned: int = 0
    is_done: bool = False


class IndexMerge:
    """One page of a query of an index, without the end of the range that is excluded. Items with an
    equal sort key differ by the `identity` attributes, and `any_equal` returns any of these items.
    """

    def __init__(
        self,
        reader: Reader,
        query: Query,
        after: Position | None = None,
        excluded: TypedValue | None = None,
        *,
        identity: Sequence[str] = (),
        any_equal: bool = False,
    ) -> None:
        self._reader = reader
        self._descending = query.descending
        assert query.sort is not None
        self._sort = query.sort
        self._names = (query.sort, *(identity or (reader.schema.sort.name,)))
        self._any_equal = any_equal
        self._call = reader.requests.call_noted
        self._excluded = None if excluded is None else self._rank(excluded)
        self._after: Place = ()
        if after is not None:
            low, high = query.between
            between = (low, after[0]) if query.descending else (after[0], high)
            query = replace(query, between=between)
            self._after = tuple(self._rank(value) for value in after if value is not None)
        self._query = query
        self.scanned = 0

    def page(
        self, limit: int | None, is_filtered: bool
    ) -> tuple[list[dict[str, Any]], Position | None]:
        """Return items, and the next page's position or None. See Merge.page."""
        requests = self._reader.requests
        began = requests.clock.monotonic()
        while True:
            record = self._reader.metadata.of(self._query.logical)
            try:
                return self._page(record, limit, is_filtered)
            except MetadataExpired as stale:
                if requests.clock.monotonic() - began > requests.patience:
                    raise stale.cause or too_slow("a page") from stale

    def _page(
        self, record: KeyMetadata, limit: int | None, is_filtered: bool
    ) -> tuple[list[dict[str, Any]], Position | None]:
        shards = [_Shard(number) for number in range(1, record.shards.readable + 1)]
        share = limit and math.ceil(limit / len(shards) * SHARE_MARGIN) + 1
        while True:
            unread = [shard for shard in shards if not shard.is_done]
            behind = min(unread, key=lambda shard: shard.reached or (), default=None)
            complete = self._complete(shards, behind)
            if behind is None or self._is_enough(complete, behind, limit, is_filtered):
                break
            self._read(
                [shard for shard in unread if shard.reached == behind.reached], record, share
            )
        self.scanned = sum(shard.scanned for shard in shards)
        items = [complete[place] for place in sorted(complete)[:limit]]
        if len(items) == limit and (behind is not None or len(complete) > len(items)):
            return items, (items[-1][self._sort], items[-1][self._reader.schema.sort.name])
        if behind is None:
            return items, None
        assert behind.start is not None
        return items, (behind.start[self._sort], None)

    def _complete(self, shards: list[_Shard], behind: _Shard | None) -> dict[Place, dict[str, Any]]:
        """Return the items that precede all unread ones, each once."""
        upto = None if behind is None else behind.reached or ()

        def is_complete(place: Place) -> bool:
            if upto and self._any_equal:
                return not upto < place[:1]
            return upto is None or place < upto

        rows = (row for shard in shards for row in shard.rows.items())
        return {place: item for place, item in rows if is_complete(place)}

    def _is_enough(
        self, complete: Mapping[Place, Any], behind: _Shard, limit: int | None, is_filtered: bool
    ) -> bool:
        if behind.reached is None:
            return False
        if limit is None or is_filtered:
            return behind.reached > self._after[:1]
        return len(complete) >= limit

    def _read(self, shards: list[_Shard], record: KeyMetadata, limit: int | None) -> None:
        pages = [
            self._reader.executor.submit(self._read_one, shard, record, limit) for shard in shards
        ]
        for page in pages:
            page.exception()  # wait for all before raising an error
        for page in pages:
            page.result()

    def _read_one(self, shard: _Shard, record: KeyMetadata, limit: int | None) -> None:
        reader = self._reader
        request = reader.request(self._query, shard.number)
        if shard.start is not None:
            request["ExclusiveStartKey"] = shard.start
        with reader.requests.noting(self._call):
            answer = reader.page(request, record, limit)
        shard.scanned += answer["ScannedCount"]
        for item in answer["Items"]:
            place = tuple([self._rank(item[name]) for name in self._names])
            if place > self._after and place[0] != self._excluded:
                shard.rows[place] = item
        shard.start = answer.get("LastEvaluatedKey")
        shard.is_done = shard.start is None
        if shard.start is not None:
            shard.reached = (self._rank(shard.start[self._sort]),)

    def _rank(self, value: TypedValue) -> Any:
        return rank_of(value, self._descending)
