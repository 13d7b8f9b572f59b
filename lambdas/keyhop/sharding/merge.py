"""The shards of one query, merged lazily in the order of the sort key, by the protocol."""

import heapq
import math
from collections.abc import Iterator
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import GaveUp
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
        self._stuck_since = reader.calls.clock.monotonic()
        self._hungry: list[Part] = []
        self._begin(question.after)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        while True:
            item = self._first()
            if item is not None:
                self._given = item[self._sort]
                self._wanted -= 1
                return item
            if not self._heads and not self._hungry:
                raise StopIteration
            self._read_on()

    def _first(self) -> dict[str, Any] | None:
        """The next item, if every shard has been read that far; taken out, with its copies."""
        if not self._heads:
            return None
        rank = self._heads[0][0]
        if any(part.reached is None or part.reached < rank for part in self._hungry):
            return None
        first: dict[str, Any] | None = None
        while self._heads and self._heads[0][0] == rank:
            part = self._parts[heapq.heappop(self._heads)[2]]
            _, item = part.held.popleft()
            first = first or item  # of copies the one that is believed comes first
            self._show(part)
        return first

    def _show(self, part: Part) -> None:
        """Put the part's next item among the heads, or the part among those to be read."""
        if part.held:
            heapq.heappush(self._heads, (part.held[0][0], self._trust[part.number], part.number))
        elif not part.done:
            self._hungry.append(part)

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
            self._begin(self._given)
        self._known = known

    def _read_all(self) -> None:
        parts, read, most = self._hungry, self._reader.read, self._share()
        try:
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
        finally:
            self._show_all(parts)

    def _read_in_order(self) -> None:
        bound: Part | None = None  # of those before, the one that was read least far
        hungry = self._hungry
        try:
            for number in sorted(self._parts, reverse=self._order is Order.DESCENDING):
                part = self._parts[number]
                if part.is_hungry and (bound is None or _is_behind(part, bound)):
                    to = None if bound is None else bound.after
                    # What is bounded needs no share: it would only end before the bound.
                    most = self._share() if to is None else self._all_wanted()
                    self._reader.read(self._question, part, self._known, most, to)
                if not part.done and (bound is None or _is_behind(part, bound)):
                    bound = part
        finally:
            self._show_all(hungry)

    def _show_all(self, parts: list[Part]) -> None:
        self._hungry = []
        for part in parts:
            self._show(part)

    def _all_wanted(self) -> int | None:
        return None if self._wanted == math.inf else int(self._wanted)

    def _share(self) -> int | None:
        """Items to read of each shard at once, when so many are wanted of all."""
        if self._wanted == math.inf or len(self._parts) == 1:
            return self._all_wanted()
        return math.ceil(self._wanted / len(self._parts) * _SHARE_MARGIN) + 1

    def _begin(self, after: TypedValue | None) -> None:
        """Read all shards from a position on; what was held is forgotten."""
        numbers = range(1, self._known.shards.readable + 1)
        reached = None if after is None else rank_of(after, self._question.descending)
        self._parts = {number: Part(number, after, reached) for number in numbers}
        believed = protocol.newest_first(self._order, numbers)
        self._trust = {number: place for place, number in enumerate(believed)}
        self._heads: list[tuple[Rank, int, int]] = []
        self._hungry = list(self._parts.values())

    def _order_of(self, known: Known) -> Order:
        if not self._question.consistent:
            return Order.ANY
        return protocol.order_of_reading(known.shards, self._reader.placement)


def _is_behind(part: Part, other: Part) -> bool:
    """Whether it was read less far; a part that was not read at all is behind all others."""
    if part.done:
        return False
    if part.reached is None or other.reached is None:
        return part.reached is None and other.reached is not None
    return bool(part.reached < other.reached)
