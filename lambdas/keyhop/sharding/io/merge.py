"""The shards of one query, merged lazily in the order of the sort key, by the protocol."""

import heapq
import math
from collections.abc import Iterator
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
"""How much more than its share of a limit is read of each shard: shards are not quite even."""


class Merge:
    """The items of a query, one by one. Not for several threads at once.

    An item is returned once every shard has been read up to it. Where the protocol demands an
    order, a shard is read no further than those before it; otherwise all are read at once.
    """

    def __init__(self, reader: Reader, query: Query) -> None:
        self._reader = reader
        self._query = query
        self._wanted = query.limit
        self._call = reader.requests.call_noted
        self._stuck_since = reader.requests.clock.monotonic()
        self._begin(reader.metadata.of(query.logical), query.after)

    def _begin(self, known: KeyMetadata, after: TypedValue | None) -> None:
        """Read all shards from a position on; what was read is forgotten."""
        self._known = known
        self._returned = after
        self._order = Order.ANY
        if self._query.consistent:
            self._order = protocol.order_of_reading(known.shards, self._reader.placement)
        numbers = range(1, known.shards.readable + 1)
        self._start = None if after is None else rank_of(after, self._query.descending)
        self._cursors = {number: ShardCursor(number, after, self._start) for number in numbers}
        believed = protocol.newest_first(self._order, numbers)
        self._trust = {number: place for place, number in enumerate(believed)}
        self._heads: list[tuple[Rank, int, int]] = []
        self._unread = list(self._cursors.values())

    def items(self) -> Iterator[dict[str, Any]]:
        while self._heads or self._unread:
            yield from self._ready()
            if self._unread:
                self._read_on()

    def page(self, limit: int | None, is_filtered: bool) -> tuple[list[Any], TypedValue | None]:
        """Items, up to a limit, and the sort key up to which all has been read; None: to the end.

        Without a limit, or with a filter, it is one page of each shard that is read.
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
        """Items that were read, those that a filter has left out among them."""
        return sum(cursor.scanned for cursor in self._cursors.values())

    def _ready(self) -> Iterator[dict[str, Any]]:
        """The items up to which every shard has been read."""
        while (item := self._first()) is not None:
            self._returned = item[self._reader.schema.sort.name]
            if self._wanted is not None:
                self._wanted -= 1
            yield item

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
            rank, trust = cursor.items[0][0], self._trust[cursor.number]
            heapq.heappush(self._heads, (rank, trust, cursor.number))
        elif not cursor.done:
            self._unread.append(cursor)

    def _read_on(self) -> None:
        """Read at least one page more, or begin anew with newer metadata."""
        clock = self._reader.requests.clock
        if clock.monotonic() >= self._known.expires:
            known = self._reader.metadata.of(self._query.logical)
            if known.version != self._known.version:
                self._begin(known, self._returned)
            self._known = known
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
        cursors, most = self._unread, self._share()
        try:
            if len(cursors) == 1:
                self._reader.read(self._query, cursors[0], self._known, most)
                return
            pages = [
                self._reader.executor.submit(self._read_noted, cursor, most) for cursor in cursors
            ]
            for page in pages:
                page.exception()  # all end before an error is raised: they change the cursors
            for page in pages:
                page.result()
        finally:
            self._show_all(cursors)

    def _read_noted(self, cursor: ShardCursor, most: int | None) -> None:
        """In another thread, which knows nothing of the call."""
        with self._reader.requests.noting(self._call):
            self._reader.read(self._query, cursor, self._known, most)

    def _read_in_order(self) -> None:
        bound: ShardCursor | None = None  # of those before, the one that was read least far
        unread = self._unread
        try:
            for number in sorted(self._cursors, reverse=self._order is Order.DESCENDING):
                cursor = self._cursors[number]
                is_used_up = not cursor.items and not cursor.done
                if is_used_up and (bound is None or cursor.is_behind(bound)):
                    to = None if bound is None else bound.after
                    # What is bounded needs no share: it would only end before the bound.
                    most = self._share() if to is None else self._wanted
                    self._reader.read(self._query, cursor, self._known, most, to)
                if not cursor.done and (bound is None or cursor.is_behind(bound)):
                    bound = cursor
        finally:
            self._show_all(unread)

    def _show_all(self, cursors: list[ShardCursor]) -> None:
        self._unread = []
        for cursor in cursors:
            self._show(cursor)

    def _share(self) -> int | None:
        """Items to read of each shard at once, when so many are wanted of all."""
        if self._wanted is None or len(self._cursors) == 1:
            return self._wanted
        return math.ceil(self._wanted / len(self._cursors) * SHARE_MARGIN) + 1
