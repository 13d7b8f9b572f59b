"""The shards of one query, merged lazily in the order of the sort key, by the protocol."""

import heapq
import math
from collections.abc import Iterator
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.sharding.io.query import MetadataExpired, Query, Rank, ShardCursor, rank_of
from keyhop.sharding.io.reader import Reader, too_slow
from keyhop.sharding.key import protocol
from keyhop.sharding.key.protocol import Order
from keyhop.sharding.store.metadata import KeyMetadata

_SHARE_MARGIN = 1.3
"""How much more than its share of a limit is read of each shard: shards are not quite even."""


class Merge:
    """The items of a query, one by one. Not for several threads at once.

    An item is returned once every shard has been read up to it. Where the protocol demands an
    order, a shard is read no further than those before it; otherwise all are read at once.
    """

    def __init__(self, reader: Reader, query: Query) -> None:
        self._reader = reader
        self._query = query
        self._sort = reader.schema.sort.name
        self._returned = query.after
        self._wanted = math.inf if query.limit is None else query.limit
        self._known: KeyMetadata = reader.metadata.of(query.logical)
        self._order = self._order_of(self._known)
        self._stuck_since = reader.requests.clock.monotonic()
        self._unread: list[ShardCursor] = []
        self._begin(query.after)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while True:
            item = self._first()
            if item is not None:
                self._returned = item[self._sort]
                self._wanted -= 1
                return item
            if not self._heads and not self._unread:
                raise StopIteration
            self._read_on()

    def _first(self) -> dict[str, Any] | None:
        """The next item, if every shard has been read that far; taken out, with its copies."""
        if not self._heads:
            return None
        rank = self._heads[0][0]
        if any(cursor.reached is None or cursor.reached < rank for cursor in self._unread):
            return None
        first: dict[str, Any] | None = None
        while self._heads and self._heads[0][0] == rank:
            cursor = self._cursors[heapq.heappop(self._heads)[2]]
            _, item = cursor.items.popleft()
            first = first or item  # of copies the one that is believed comes first
            self._show(cursor)
        return first

    def _show(self, cursor: ShardCursor) -> None:
        """Put the cursor's next item among the heads, or the cursor among those to be read."""
        if cursor.items:
            heapq.heappush(
                self._heads, (cursor.items[0][0], self._trust[cursor.number], cursor.number)
            )
        elif not cursor.done:
            self._unread.append(cursor)

    def _read_on(self) -> None:
        """Read at least one page more, or begin anew with newer metadata."""
        clock = self._reader.requests.clock
        if clock.monotonic() >= self._known.expires:
            self._renew()
        try:
            if self._order is Order.ANY:
                self._read_all()
            else:
                self._read_in_order()
            self._stuck_since = clock.monotonic()
        except MetadataExpired as stale:
            if clock.monotonic() - self._stuck_since > self._reader.requests.patience:
                raise stale.cause or too_slow("a page") from stale

    def _renew(self) -> None:
        """Look the metadata up again; if it has changed, forget what was not returned yet."""
        known = self._reader.metadata.of(self._query.logical)
        if known.version != self._known.version:
            self._known = known
            self._order = self._order_of(known)
            self._begin(self._returned)
        self._known = known

    def _read_all(self) -> None:
        cursors, read, most = self._unread, self._reader.read, self._share()
        try:
            if len(cursors) == 1:
                read(self._query, cursors[0], self._known, most)
                return
            pages = [
                self._reader.executor.submit(read, self._query, cursor, self._known, most)
                for cursor in cursors
            ]
            for page in pages:
                page.exception()  # all end before an error is raised: they change the cursors
            for page in pages:
                page.result()
        finally:
            self._show_all(cursors)

    def _read_in_order(self) -> None:
        bound: ShardCursor | None = None  # of those before, the one that was read least far
        unread = self._unread
        try:
            for number in sorted(self._cursors, reverse=self._order is Order.DESCENDING):
                cursor = self._cursors[number]
                if cursor.needs_page and (bound is None or cursor.is_behind(bound)):
                    to = None if bound is None else bound.after
                    # What is bounded needs no share: it would only end before the bound.
                    most = self._share() if to is None else self._all_wanted()
                    self._reader.read(self._query, cursor, self._known, most, to)
                if not cursor.done and (bound is None or cursor.is_behind(bound)):
                    bound = cursor
        finally:
            self._show_all(unread)

    def _show_all(self, cursors: list[ShardCursor]) -> None:
        self._unread = []
        for cursor in cursors:
            self._show(cursor)

    def _all_wanted(self) -> int | None:
        return None if self._wanted == math.inf else int(self._wanted)

    def _share(self) -> int | None:
        """Items to read of each shard at once, when so many are wanted of all."""
        if self._wanted == math.inf or len(self._cursors) == 1:
            return self._all_wanted()
        return math.ceil(self._wanted / len(self._cursors) * _SHARE_MARGIN) + 1

    def _begin(self, after: TypedValue | None) -> None:
        """Read all shards from a position on; what was read is forgotten."""
        numbers = range(1, self._known.shards.readable + 1)
        reached = None if after is None else rank_of(after, self._query.descending)
        self._cursors = {number: ShardCursor(number, after, reached) for number in numbers}
        believed = protocol.newest_first(self._order, numbers)
        self._trust = {number: place for place, number in enumerate(believed)}
        self._heads: list[tuple[Rank, int, int]] = []
        self._unread = list(self._cursors.values())

    def _order_of(self, known: KeyMetadata) -> Order:
        if not self._query.consistent:
            return Order.ANY
        return protocol.order_of_reading(known.shards, self._reader.placement)
