"""An index whose partition key has the shard's suffix, merged in the order of its sort key.

Many items of an index may have the same sort key, and DynamoDB does not define their order. So they
are sorted here, by the table's sort key: all items with an equal sort key are read before one is
returned, and again by a page that starts among them. A query for the first items in any order of
equal ones (`any_equal`) need not read all of these.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.dynamodb.values import TypedValue
from keyhop.sharding.io.merge import SHARE_MARGIN
from keyhop.sharding.io.reader import MetadataExpired, Query, Reader, rank_of, too_slow
from keyhop.sharding.store.metadata import KeyMetadata

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
