"""The shards of one query, merged lazily in the order of the sort key, by the protocol."""

import math
from collections.abc import Iterator
from typing import Any

from keyhop.errors import GaveUp
from keyhop.keyspace import TypedValue
from keyhop.sharding import protocol
from keyhop.sharding.metadata import Known
from keyhop.sharding.parts import Part, Question, Rank, Stale, rank_of
from keyhop.sharding.protocol import Order
from keyhop.sharding.reader import Reader

_SHARE_MARGIN = 1.3
"""How much more than its share of a limit is read of each shard: shards are not quite even."""


class Merge:
    """The items of a query, one by one. Not for several threads at once.

    An item is given away once every shard has been read up to it. Where the protocol demands an
    order, a shard is read no further than those before it; otherwise all are read at once.
    """

    def __init__(self, reader: Reader, question: Question) -> None:
        self._reader = reader
        self._question = question
        self._sort = reader.schema.sort.name
        self._given = question.after
        self._wanted = math.inf if question.limit is None else question.limit
        self._known: Known = reader.metadata.of(question.logical)
        self._order = self._order_of(self._known)
        self._parts = self._parts_from(question.after)
        self._stuck_since = reader.calls.clock.monotonic()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while True:
            item = self._first()
            if item is not None:
                self._given = item[self._sort]
                self._wanted -= 1
                return item
            if all(part.done for part in self._parts.values()):
                raise StopIteration
            self._read_on()

    def _first(self) -> dict[str, Any] | None:
        """The next item, if every shard has been read that far; taken out, with its copies."""
        heads = [
            (self._rank(self._parts[number].held[0][self._sort]), number)
            for number in protocol.newest_first(self._order, self._parts)
            if self._parts[number].held
        ]
        if not heads:
            return None
        rank, first = min(heads, key=lambda head: head[0])  # of equal ones the first: believed
        if any(not self._has_reached(part, rank) for part in self._parts.values()):
            return None
        item = self._parts[first].held[0]
        for part in self._parts.values():
            while part.held and self._rank(part.held[0][self._sort]) <= rank:
                part.held.popleft()
        return item

    def _has_reached(self, part: Part, rank: Rank) -> bool:
        if part.done or part.held:
            return True
        return part.after is not None and rank <= self._rank(part.after)

    def _read_on(self) -> None:
        """Read at least one page more, or begin anew with newer metadata."""
        clock = self._reader.calls.clock
        if clock.monotonic() >= self._known.expires:
            self._renew()
        try:
            if self._order is Order.ANY:
                self._read_all()
            else:
                self._read_in_order()
            self._stuck_since = clock.monotonic()
        except Stale as stale:
            if clock.monotonic() - self._stuck_since > self._reader.calls.patience:
                raise stale.cause or GaveUp(
                    "The shard metadata expires before a page can be read: the connection is too "
                    "slow for its settle_seconds."
                ) from stale

    def _renew(self) -> None:
        """Ask for the metadata again; if it has changed, forget what was not given away yet."""
        known = self._reader.metadata.of(self._question.logical)
        if known.version != self._known.version:
            self._known = known
            self._order = self._order_of(known)
            self._parts = self._parts_from(self._given)
        self._known = known

    def _read_all(self) -> None:
        parts = [part for part in self._parts.values() if not part.held and not part.done]
        read, most = self._reader.read, self._share()
        if len(parts) == 1:
            read(self._question, parts[0], self._known, most)
            return
        pages = [
            self._reader.executor.submit(read, self._question, part, self._known, most)
            for part in parts
        ]
        for page in pages:
            page.exception()  # all have ended before an error is raised: they change the parts
        for page in pages:
            page.result()

    def _read_in_order(self) -> None:
        bound: TypedValue | None = None
        for number in sorted(self._parts, reverse=self._order is Order.DESCENDING):
            part = self._parts[number]
            if not part.held and not part.done and not self._is_at(part, bound):
                self._reader.read(self._question, part, self._known, self._share(), bound)
            if part.done:
                continue
            if bound is None or self._is_before(part.after, bound):
                bound = part.after

    def _is_at(self, part: Part, bound: TypedValue | None) -> bool:
        return (
            bound is not None and part.after is not None and not self._is_before(part.after, bound)
        )

    def _is_before(self, one: TypedValue | None, other: TypedValue) -> bool:
        return one is not None and self._rank(one) < self._rank(other)

    def _share(self) -> int | None:
        """Items to read of each shard at once, when so many are wanted of all."""
        if self._wanted == math.inf:
            return None
        if len(self._parts) == 1:
            return int(self._wanted)
        return math.ceil(self._wanted / len(self._parts) * _SHARE_MARGIN) + 1

    def _parts_from(self, after: TypedValue | None) -> dict[int, Part]:
        numbers = range(1, self._known.shards.readable + 1)
        return {number: Part(number, after) for number in numbers}

    def _order_of(self, known: Known) -> Order:
        if not self._question.consistent:
            return Order.ANY
        return protocol.order_of_reading(known.shards, self._reader.placement)

    def _rank(self, value: TypedValue) -> Rank:
        return rank_of(value, self._question.descending)
