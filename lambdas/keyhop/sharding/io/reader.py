"""Reads single items wherever they are, and pages of shards for a query that merges them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import count as counter
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.schema import MARKER
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import GaveUp
from keyhop.sharding.io.items import ItemKey, Schema, find_copies
from keyhop.sharding.io.query import MetadataExpired, Query, ShardCursor, rank_of
from keyhop.sharding.key import protocol
from keyhop.sharding.key.placement import Placement, place_of
from keyhop.sharding.store.metadata import KeyMetadata, Metadata
from keyhop.sharding.store.requests import Overtaken, Requests

_RANGE = {
    (): "",
    (":low",): " AND #s >= :low",
    (":high",): " AND #s <= :high",
    (":low", ":high"): " AND #s BETWEEN :low AND :high",
}


@dataclass(slots=True)
class Reader:
    """Pages of one table; for any number of threads.

    indexes: of the same schema, over which eventually consistent queries are spread in turn.
    """

    requests: Requests
    metadata: Metadata
    table: str
    schema: Schema
    placement: Placement
    executor: Executor
    indexes: Sequence[str] = ()
    _turn: "counter[int]" = field(default_factory=counter)

    def find(
        self, key: ItemKey, consistent: bool, projection: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """An item, wherever it is; typed, with its physical key."""
        place = place_of(key.logical, key.sort, self.placement.hash)
        looks = 0

        def attempt() -> dict[str, Any] | None:
            nonlocal looks
            known = self.metadata.of(key.logical)
            where = protocol.candidates(known.shards, self.placement, place)
            copies = find_copies(
                self.requests, self.table, self.schema, key, where, consistent, **projection
            )
            if copies:  # of several, that at the target of a move was read later
                order = protocol.order_of_reading(known.shards, self.placement)
                return copies[protocol.newest_first(order, copies)[0]]
            if not consistent:
                return None
            if self.requests.clock.monotonic() >= known.expires:
                raise Overtaken  # it may be where this metadata does not know of
            looks += 1
            if len(where) > 1 and looks < 2:
                raise Overtaken  # it may have been moved between the reads
            return None

        try:
            return self.requests.patiently(attempt)
        except Overtaken:
            raise too_slow("an item") from None

    def read(
        self,
        query: Query,
        cursor: ShardCursor,
        known: KeyMetadata,
        most: int | None,
        bound: TypedValue | None = None,
    ) -> None:
        """Read one page more of a shard. most: items. bound: read no further than this sort key.

        Raises MetadataExpired rather than to send a request when the metadata has expired.
        """
        request = self.request(query, cursor, bound)
        if most is not None:
            request["Limit"] = most
        failed: list[Exception | None] = [None]

        def attempt() -> dict[str, Any]:
            if self.requests.clock.monotonic() >= known.expires:
                raise MetadataExpired(failed[0])
            try:
                return self.requests.once("query", **request)
            except (ClientError, BotoCoreError) as error:
                failed[0] = error
                raise

        answer = self.requests.patiently(attempt)
        if self.requests.clock.monotonic() > known.effective_until:
            raise MetadataExpired(None)  # nobody knows when it was read
        sort = self.schema.sort.name
        cursor.items.extend(
            (rank_of(item[sort], query.descending), item)
            for item in answer["Items"]
            if not is_sentinel(item)
        )
        last = answer.get("LastEvaluatedKey")
        if last is None and bound is None:
            cursor.done = True
            return
        cursor.after = bound if last is None else last[sort]
        assert cursor.after is not None
        cursor.reached = rank_of(cursor.after, query.descending)

    def request(
        self, query: Query, cursor: ShardCursor, bound: TypedValue | None = None
    ) -> dict[str, Any]:
        """The Query for a shard's next page. bound: read no further than this sort key."""
        physical = self.schema.names.physical(query.logical, cursor.number)
        low, high = query.between
        if bound is not None:
            low, high = (bound, high) if query.descending else (low, bound)
        ends = {":low": low, ":high": high}
        given = {name: end for name, end in ends.items() if end is not None}
        names = {"#p": self.schema.partition.name}
        condition = "#p = :p" + _RANGE[*given]
        if given:
            names["#s"] = self.schema.sort.name
        request: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {":p": physical, **given},
            "ScanIndexForward": not query.descending,
            "ConsistentRead": query.consistent,
        }
        if cursor.after is not None:
            request["ExclusiveStartKey"] = {
                self.schema.partition.name: physical,
                self.schema.sort.name: cursor.after,
            }
        if self.indexes and not query.consistent:
            index = (None, *self.indexes)[next(self._turn) % (len(self.indexes) + 1)]
            if index is not None:
                request["IndexName"] = index
        return request


def too_slow(what: str) -> GaveUp:
    """For a connection on which metadata always expires first."""
    return GaveUp(
        f"The shard metadata expires before {what} can be read: the connection is too slow for its "
        "settle_seconds."
    )


def is_sentinel(item: Mapping[str, TypedValue]) -> bool:
    """Whether it is a key index's: nothing but its key and the marker, a number."""
    return len(item) == 3 and "N" in item.get(MARKER, {})
