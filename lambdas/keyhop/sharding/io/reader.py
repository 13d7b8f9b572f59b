"""Queries by shard and page, their page tokens, and reads of single items from all shards."""

import base64
import hashlib
import json
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue, from_json, to_json
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.io.items import find_all, find_copies, typed
from keyhop.sharding.key import protocol
from keyhop.sharding.key.placement import place_of
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.store.metadata import KeyMetadata, Metadata
from keyhop.sharding.store.requests import Overtaken

_LIMITS = {
    (): "",
    (":kh_low",): " AND #kh_s >= :kh_low",
    (":kh_high",): " AND #kh_s <= :kh_high",
    (":kh_low", ":kh_high"): " AND #kh_s BETWEEN :kh_low AND :kh_high",
}


@dataclass(frozen=True, slots=True)
class Query:
    """A query of one key, or of an index with its sort key, which starts after a sort key.

    `limit` is the total number of items, and `excludes` excludes the end that is read last. Each
    request has further parameters, with the names and values of its expressions.
    """

    logical: TypedValue
    between: tuple[TypedValue | None, TypedValue | None] = (None, None)
    descending: bool = False
    consistent: bool = False
    after: TypedValue | None = None
    limit: int | None = None
    excludes: bool = False
    index: str | None = None
    sort: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


Rank = Any
"""The position of a sort key in the result; lower ranks come first."""


@dataclass(frozen=True, slots=True)
class Backwards:
    """A text or binary that sorts in descending order."""

    content: bytes

    def __lt__(self, value: "Backwards") -> bool:
        return value.content < self.content


@dataclass(slots=True)
class ShardCursor:
    """The progress in one shard, with items that were read and not yet returned, and their ranks.

    `after` is the last sort key that was read, with the rank `reached`; None at the start. The
    number of scanned items includes those that a filter has excluded.
    """

    number: int
    after: TypedValue | None
    reached: Rank | None = None
    items: "deque[tuple[Rank, dict[str, Any]]]" = field(default_factory=deque)
    is_done: bool = False
    scanned: int = 0

    def is_behind(self, cursor: "ShardCursor") -> bool:
        """Return whether this shard was read less far; an unread one is behind every other."""
        if self.is_done or cursor.reached is None:
            return False
        return self.reached is None or bool(self.reached < cursor.reached)


class MetadataExpired(Exception):
    """The metadata must no longer be used. cause: the last error of the page, if any."""

    def __init__(self, cause: Exception | None = None) -> None:
        self.cause = cause


class Reader:
    """Reads from one table, for any number of threads. Eventually consistent queries rotate among
    it and `indexes` of the same schema.
    """

    def __init__(self, metadata: Metadata, executor: Executor, indexes: Sequence[str]) -> None:
        self.metadata = metadata
        self.executor = executor
        self.requests = metadata.requests
        self.schema = metadata.schema
        self.placement = metadata.placement
        self._places = cycle((None, *indexes))

    def find(
        self, key: ItemKey, consistent: bool, projection: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return an item from any of its shards, typed, with its physical key."""
        place = place_of(key.logical, key.sort, self.placement.hash)

        def attempt() -> dict[str, Any] | None:
            record = self.metadata.of(key.logical)
            where = protocol.candidates(record.shards, self.placement, place)
            enough = 1
            if consistent and len(where) > 1:
                enough = protocol.looks_that_suffice(record.shards, self.placement)
            for _ in range(enough):
                copies = find_copies(
                    self.requests, self.schema, key, where, consistent, **projection
                )
                if copies:  # of several copies, the one at a move's target was read later
                    order = protocol.order_of_reading(record.shards, self.placement)
                    return copies[protocol.newest_first(order, copies)[0]]
                if consistent and self.requests.clock.monotonic() >= record.expires:
                    raise Overtaken  # it may be in a shard that this metadata does not have
            return None

        try:
            return self.requests.patiently(attempt)
        except Overtaken:
            raise too_slow("an item") from None

    def find_all(
        self, keys: Sequence[ItemKey], consistent: bool, projection: Mapping[str, Any]
    ) -> list[dict[str, Any] | None]:
        """Find many items as `find` does, with one read; items that may be moving need another."""
        records = [self.metadata.of(key.logical) for key in keys]
        places = []
        for key, record in zip(keys, records, strict=True):
            place = place_of(key.logical, key.sort, self.placement.hash)
            places.append((key, protocol.candidates(record.shards, self.placement, place)))
        how = {"ConsistentRead": consistent, **projection}
        copies_by_item = find_all(self.requests, self.schema, places, how)
        in_time = all(self.requests.clock.monotonic() < record.expires for record in records)
        items: list[dict[str, Any] | None] = []
        for (key, where), record, copies in zip(places, records, copies_by_item, strict=True):
            if copies:
                order = protocol.order_of_reading(record.shards, self.placement)
                items.append(copies[protocol.newest_first(order, copies)[0]])
            elif consistent and (len(where) > 1 or not in_time):
                items.append(self.find(key, consistent, projection))
            else:
                items.append(None)
        return items

    def read(
        self,
        query: Query,
        cursor: ShardCursor,
        record: KeyMetadata,
        limit: int | None,
        bound: TypedValue | None = None,
    ) -> None:
        """Read one more page of a shard, of at most `limit` items up to the sort key `bound`.
        Raises MetadataExpired if the metadata expires before a request is sent.
        """
        sort = self.schema.sort.name
        request = self.request(query, cursor.number, cursor.after, bound)
        answer = self.page(request, record, limit)
        cursor.scanned += answer["ScannedCount"]
        cursor.items.extend(
            (rank_of(item[sort], query.descending), item) for item in answer["Items"]
        )
        last = answer.get("LastEvaluatedKey")
        if last is None and bound is None:
            cursor.is_done = True
            return
        cursor.after = bound if last is None else last[sort]
        assert cursor.after is not None
        cursor.reached = rank_of(cursor.after, query.descending)

    def page(
        self, request: dict[str, Any], record: KeyMetadata, limit: int | None
    ) -> dict[str, Any]:
        """Send a Query while this metadata is valid, and return the answer. Raise as `read`."""
        if limit is not None:
            request["Limit"] = limit
        cause: Exception | None = None

        def attempt() -> dict[str, Any]:
            nonlocal cause
            if self.requests.clock.monotonic() >= record.expires:
                raise MetadataExpired(cause)
            try:
                return self.requests.once("query", **request)
            except (ClientError, BotoCoreError) as error:
                cause = error
                raise

        answer = self.requests.patiently(attempt)
        if self.requests.clock.monotonic() > record.effective_until:
            raise MetadataExpired  # it may have been read too late
        return answer

    def request(
        self,
        query: Query,
        shard: int,
        after: TypedValue | None = None,
        bound: TypedValue | None = None,
    ) -> dict[str, Any]:
        """Return the Query for a page of a shard. bound: the last sort key to read."""
        sort = query.sort or self.schema.sort.name
        physical = self.schema.names.physical(query.logical, shard)
        (low, high), excludes = query.between, query.excludes
        if bound is not None:
            low, high = (bound, high) if query.descending else (low, bound)
            excludes = False
        ends = {":kh_low": low, ":kh_high": high}
        limits = {name: end for name, end in ends.items() if end is not None}
        within = _LIMITS[*limits].replace("= ", " ") if excludes else _LIMITS[*limits]
        more = dict(query.more)
        names = {"#kh_p": self.schema.partition.name, **({"#kh_s": sort} if limits else {})}
        request: dict[str, Any] = {
            "TableName": self.schema.table,
            "KeyConditionExpression": "#kh_p = :kh_p" + within,
            "ExpressionAttributeNames": names | more.pop("ExpressionAttributeNames", {}),
            "ExpressionAttributeValues": {":kh_p": physical, **limits}
            | more.pop("ExpressionAttributeValues", {}),
            "ScanIndexForward": not query.descending,
            "ConsistentRead": query.consistent,
            **more,
        }
        if after is not None:
            request["ExclusiveStartKey"] = {self.schema.partition.name: physical, sort: after}
        index = query.index
        if index is None and not query.consistent:
            index = next(self._places)
        if index is not None:
            request["IndexName"] = index
        return request


def too_slow(what: str) -> GaveUp:
    """Return the error for a connection on which metadata always expires before use."""
    return GaveUp(
        f"The shard metadata expires before {what} can be read: the connection is too slow for its "
        "settle_seconds."
    )


def rank_of(value: TypedValue, descending: bool) -> Rank:
    """Return a sort key's rank: numbers by value, texts and binaries by bytes; else a TypeError."""
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        return number.copy_negate() if descending else number
    if not isinstance(content, str | bytes | bytearray):
        raise TypeError(f"{type(content).__name__} is not a sort key")
    content_bytes = content.encode() if isinstance(content, str) else bytes(content)
    return Backwards(content_bytes) if descending else content_bytes


def ends_of(schema: Schema, between: Any) -> tuple[TypedValue | None, TypedValue | None]:
    """Return the first and last sort key of a query; None: no limit."""
    if between is None:
        return None, None
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise CannotStart("between must be (least, greatest) sort key, with None for an open end.")
    low, high = (None if end is None else sort_value(schema, end) for end in between)
    if low and high and rank_of(high, False) < rank_of(low, False):
        raise CannotStart("between must have the lesser sort key first, also for descending.")
    return low, high


def sort_value(schema: Schema, value: Any) -> TypedValue:
    """Return a sort key as a typed value. Raise CannotStart for another type."""
    end = typed(value)
    if schema.sort.type not in end:
        raise CannotStart(
            f"between has a value that is not of the type {schema.sort.type} of the sort key "
            f"{schema.sort.name}."
        )
    return end


def token_of(query: Query, last: TypedValue) -> str:
    """Return a page token that continues after `last`. The token holds the sort key, readable."""
    token = {"after": to_json({"s": last})["s"], "of": _digest(query)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def after_token(query: Query, token: str) -> TypedValue:
    """Return the sort key of a page token. Raise CannotStart for a token of another query."""
    try:
        content = json.loads(base64.urlsafe_b64decode(token.encode()))
        after = from_json({"s": content["after"]})["s"]
        rank_of(after, False)
        same = content["of"] == _digest(query)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        raise CannotStart("The page token is damaged: begin the query again without it.") from None
    if not same:
        raise CannotStart(
            "The page token belongs to another query: key, between and descending must be the same."
        )
    return after


def _digest(query: Query) -> str:
    low, high = (None if end is None else to_json({"s": end}) for end in query.between)
    identity = [to_json({"p": query.logical}), low, high, query.descending]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
