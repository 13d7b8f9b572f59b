"""A query: its pages, shard by shard, and its tokens; and single items, wherever they are."""

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

_RANGE = {
    (): "",
    (":kh_low",): " AND #kh_s >= :kh_low",
    (":kh_high",): " AND #kh_s <= :kh_high",
    (":kh_low", ":kh_high"): " AND #kh_s BETWEEN :kh_low AND :kh_high",
}


@dataclass(frozen=True, slots=True)
class Query:
    """What to read of one key. after: go on behind this sort key. limit: items in all.

    excludes: the end that is read last is not included. index: to be read instead of the table,
    with its own sort key, if it is another. more: further parameters of each request, with the
    names and values of its expressions.
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
"""A sort key's place in the result: what compares less comes first."""


@dataclass(frozen=True, slots=True)
class Backwards:
    """Texts and binaries in descending order."""

    content: bytes

    def __lt__(self, other: "Backwards") -> bool:
        return other.content < self.content


@dataclass(slots=True)
class ShardCursor:
    """How far one shard has been read. items: read and not yet returned, with their ranks.

    after: up to where it has been read, None: not at all; reached: its rank. done: to its end.
    scanned: items that were read, those that a filter has left out among them.
    """

    number: int
    after: TypedValue | None
    reached: Rank | None = None
    items: "deque[tuple[Rank, dict[str, Any]]]" = field(default_factory=deque)
    done: bool = False
    scanned: int = 0

    def is_behind(self, other: "ShardCursor") -> bool:
        """Whether it was read less far; one that was not read at all is behind all others."""
        if self.done or other.reached is None:
            return False
        return self.reached is None or bool(self.reached < other.reached)


class MetadataExpired(Exception):
    """The metadata may not be acted upon any more. cause: what the page failed of, if it did."""

    def __init__(self, cause: Exception | None = None) -> None:
        self.cause = cause


class Reader:
    """Pages of one table; for any number of threads.

    indexes: of the same schema, over which eventually consistent queries are spread in turn.
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
        """An item, wherever it is; typed, with its physical key."""
        place = place_of(key.logical, key.sort, self.placement.hash)

        def attempt() -> dict[str, Any] | None:
            known = self.metadata.of(key.logical)
            where = protocol.candidates(known.shards, self.placement, place)
            enough = 1
            if consistent and len(where) > 1:
                enough = protocol.looks_that_suffice(known.shards, self.placement)
            for _ in range(enough):
                copies = find_copies(
                    self.requests, self.schema, key, where, consistent, **projection
                )
                if copies:  # of several, that at the target of a move was read later
                    order = protocol.order_of_reading(known.shards, self.placement)
                    return copies[protocol.newest_first(order, copies)[0]]
                if consistent and self.requests.clock.monotonic() >= known.expires:
                    raise Overtaken  # it may be where this metadata does not know of
            return None

        try:
            return self.requests.patiently(attempt)
        except Overtaken:
            raise too_slow("an item") from None

    def find_all(
        self, keys: Sequence[ItemKey], consistent: bool, projection: Mapping[str, Any]
    ) -> list[dict[str, Any] | None]:
        """As `find`, for many items, by one look; those that may be moving are found by another."""
        knowns = [self.metadata.of(key.logical) for key in keys]
        wanted = []
        for key, known in zip(keys, knowns, strict=True):
            place = place_of(key.logical, key.sort, self.placement.hash)
            wanted.append((key, protocol.candidates(known.shards, self.placement, place)))
        how = {"ConsistentRead": consistent, **projection}
        found = find_all(self.requests, self.schema, wanted, how)
        in_time = all(self.requests.clock.monotonic() < known.expires for known in knowns)
        items: list[dict[str, Any] | None] = []
        for (key, where), known, copies in zip(wanted, knowns, found, strict=True):
            if copies:
                order = protocol.order_of_reading(known.shards, self.placement)
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
        known: KeyMetadata,
        most: int | None,
        bound: TypedValue | None = None,
    ) -> None:
        """Read one page more of a shard. most: items. bound: read no further than this sort key.

        Raises MetadataExpired rather than to send a request when the metadata has expired.
        """
        sort = self.schema.sort.name
        request = self.request(query, cursor.number, cursor.after, bound)
        answer = self.page(request, known, most)
        cursor.scanned += answer["ScannedCount"]
        cursor.items.extend(
            (rank_of(item[sort], query.descending), item) for item in answer["Items"]
        )
        last = answer.get("LastEvaluatedKey")
        if last is None and bound is None:
            cursor.done = True
            return
        cursor.after = bound if last is None else last[sort]
        assert cursor.after is not None
        cursor.reached = rank_of(cursor.after, query.descending)

    def page(self, request: dict[str, Any], known: KeyMetadata, most: int | None) -> dict[str, Any]:
        """The answer to a Query by this metadata. Raises as `read`."""
        if most is not None:
            request["Limit"] = most
        cause: Exception | None = None

        def attempt() -> dict[str, Any]:
            nonlocal cause
            if self.requests.clock.monotonic() >= known.expires:
                raise MetadataExpired(cause)
            try:
                return self.requests.once("query", **request)
            except (ClientError, BotoCoreError) as error:
                cause = error
                raise

        answer = self.requests.patiently(attempt)
        if self.requests.clock.monotonic() > known.effective_until:
            raise MetadataExpired  # nobody knows when it was read
        return answer

    def request(
        self,
        query: Query,
        shard: int,
        after: TypedValue | None = None,
        bound: TypedValue | None = None,
    ) -> dict[str, Any]:
        """The Query for a page of a shard. bound: read no further than this sort key."""
        sort = query.sort or self.schema.sort.name
        physical = self.schema.names.physical(query.logical, shard)
        (low, high), excludes = query.between, query.excludes
        if bound is not None:
            low, high = (bound, high) if query.descending else (low, bound)
            excludes = False
        ends = {":kh_low": low, ":kh_high": high}
        given = {name: end for name, end in ends.items() if end is not None}
        within = _RANGE[*given].replace("= ", " ") if excludes else _RANGE[*given]
        more = dict(query.more)
        names = {"#kh_p": self.schema.partition.name, **({"#kh_s": sort} if given else {})}
        request: dict[str, Any] = {
            "TableName": self.schema.table,
            "KeyConditionExpression": "#kh_p = :kh_p" + within,
            "ExpressionAttributeNames": names | more.pop("ExpressionAttributeNames", {}),
            "ExpressionAttributeValues": {":kh_p": physical, **given}
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
    """For a connection on which metadata always expires first."""
    return GaveUp(
        f"The shard metadata expires before {what} can be read: the connection is too slow for its "
        "settle_seconds."
    )


def rank_of(value: TypedValue, descending: bool) -> Rank:
    """The place of a sort key: numbers by value, texts and binaries by their bytes.

    Raises TypeError for a value of another type.
    """
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        return number.copy_negate() if descending else number
    if not isinstance(content, str | bytes | bytearray):
        raise TypeError(f"{type(content).__name__} is no sort key")
    whole = content.encode() if isinstance(content, str) else bytes(content)
    return Backwards(whole) if descending else whole


def ends_of(schema: Schema, between: Any) -> tuple[TypedValue | None, TypedValue | None]:
    """Where a query begins and ends; None: at the end of all."""
    if between is None:
        return None, None
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise CannotStart("between must be (least, greatest) sort key, with None for an open end.")
    low, high = (None if end is None else sort_value(schema, end) for end in between)
    if low and high and rank_of(high, False) < rank_of(low, False):
        raise CannotStart("between must have the lesser sort key first, also for descending.")
    return low, high


def sort_value(schema: Schema, value: Any) -> TypedValue:
    """A sort key that a query is to begin or end at."""
    end = typed(value)
    if schema.sort.type not in end:
        raise CannotStart(
            f"between has a value that is not of the type {schema.sort.type} of the sort key "
            f"{schema.sort.name}."
        )
    return end


def token_of(query: Query, last: TypedValue) -> str:
    """A page token: go on behind `last`. It holds the sort key; whoever has it can read that."""
    token = {"after": to_json({"s": last})["s"], "of": _digest(query)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def after_token(query: Query, token: str) -> TypedValue:
    """Where a page token says to go on; raises CannotStart for one of another query."""
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
