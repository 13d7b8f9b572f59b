"""A table whose keys are divided by time: each month, day or hour of a key has a separate key.

    log = CalendarTable(ShardedTable("Log", metadata="Log-shards"), bucket="day")
    log.put_item(Item={"sensor": "7", "at": "2026-11-21T09:00:00Z", "celsius": 21})
    newest = log.query("7", between=("2026-11-01", "2026-11-22"), descending=True, limit=50)

In the sharded table the item's key is "7#2026-11-21", and this key gets shards like any other
(docs/how-to/sharding-patterns.md).
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import Any, Unpack

from botocore.exceptions import ClientError

from keyhop.checks import number, shown
from keyhop.dynamodb.values import to_json
from keyhop.errors import CannotStart, KeyhopError
from keyhop.sharding.io.batch import BatchResult
from keyhop.sharding.io.boto3_words import Conditional, Got
from keyhop.sharding.io.items import typed
from keyhop.sharding.key.buckets import (
    LENGTHS,
    SEPARATOR,
    Bucket,
    Calendar,
    Unit,
    beginning_of,
    hint,
    latest_of,
    moment_of,
)
from keyhop.sharding.manage import look_at_shard
from keyhop.sharding.store.calendar import NOTICE_SECONDS, CalendarStore
from keyhop.sharding.store.traffic import traffic_of
from keyhop.sharding.table import Page, ShardedTable

AHEAD_SECONDS = 24 * 3600.0
MOST_AHEAD_SECONDS = 1e11
"""Thousands of years; with more, the latest time would be after the last year of Python."""
BUCKETS_OF_A_PAGE = 100
"""A page ends after this number of buckets, even if it has fewer items than its limit."""


@dataclass(frozen=True, slots=True)
class _Range:
    """A query of one key: the items with times between two times, both included."""

    key: Any
    between: tuple[Any, Any]
    descending: bool
    consistent: bool

    @property
    def digest(self) -> str:
        ends = [to_json({"v": typed(value)}) for value in (self.key, *self.between)]
        content = json.dumps([*ends, self.descending])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


class CalendarTable:
    """Items of a sharded table, by key and time; for any number of threads. It never scans.

    Args:
        table: The sharded table.
        bucket: The period of a table without a calendar in its metadata: "month", "day" or "hour".
        time: The attribute with an item's time, in UTC, as ISO-8601 text or as a number; the sort
            key by default. It belongs to an item's key: putting an item with a time in another
            bucket creates another item.
        time_unit: The unit of times that are numbers: "s" or "ms" since 1970.
        ahead: How many seconds an item's time may be in the future.

    Raises:
        CannotStart: An argument is wrong.
    """

    def __init__(
        self,
        table: ShardedTable,
        *,
        bucket: Bucket,
        time: str | None = None,
        time_unit: Unit = "s",
        ahead: float = AHEAD_SECONDS,
    ) -> None:
        if bucket not in LENGTHS:
            raise CannotStart(f"bucket is {bucket!r}; it must be 'month', 'day' or 'hour'.")
        if time_unit not in ("s", "ms"):
            raise CannotStart(f"time_unit is {time_unit!r}; it must be 's' or 'ms'.")
        if not number(0, MOST_AHEAD_SECONDS)(ahead):
            raise CannotStart(
                f"ahead is {shown(ahead)}; it must be a number from 0 to {MOST_AHEAD_SECONDS:g}."
            )
        self.table = table
        self._first = bucket
        self._time = time
        self._unit = time_unit
        self._ahead = ahead
        self._opened: CalendarStore | None = None

    def put_item(self, *, Item: Mapping[str, Any], **more: Unpack[Conditional]) -> dict[str, Any]:
        """Put an item as ShardedTable.put_item; the item must have its time."""
        return self._written("put_item", Item, Item=self._placed(Item), **more)

    def get_item(self, *, Key: Mapping[str, Any], **more: Unpack[Got]) -> dict[str, Any]:
        """Get an item as ShardedTable.get_item; the Key must include the time."""
        answer = self.table.get_item(Key=self._placed(Key, is_key=True), **more)
        return self._shown(answer, self._key_of(Key))

    def delete_item(self, *, Key: Mapping[str, Any], **more: Unpack[Conditional]) -> dict[str, Any]:
        """Delete an item as ShardedTable.delete_item; the Key is as for get_item."""
        placed = self._placed(Key, is_key=True)
        return self._written("delete_item", Key, Key=placed, **more)

    def batch_write(self, items: Iterable[Mapping[str, Any]]) -> BatchResult:
        """Put many items as ShardedTable.batch_write."""
        originals, placed, places = [*items], [], []
        failed: list[tuple[int, Mapping[str, Any], Exception]] = []
        for place, item in enumerate(originals):
            try:
                placed.append(self._placed(item))
                places.append(place)
            except (KeyhopError, TypeError, ValueError, ArithmeticError) as error:
                failed.append((place, item, error))
        result = self.table.batch_write(placed)
        failed += [(places[n], originals[places[n]], error) for n, _, error in result.failed]
        result.failed = sorted(failed, key=lambda failure: failure[0])
        return result

    def query(
        self,
        key: Any,
        *,
        between: tuple[Any, Any],
        descending: bool = False,
        limit: int | None = None,
        consistent: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield the items of a key between two times, both included, bucket by bucket; lazily.

        Args:
            key: The key without its bucket, a str or bytes.
            between: The earliest and the latest time, in the form that times have in items.
            descending: Return the latest bucket first, and its items in descending order of their
                sort keys. Otherwise buckets and items ascend.
            limit: The maximum number of items.
            consistent: Read strongly consistently, at twice the price.
        """
        query = self._range(key, between, descending, consistent, limit)
        items = (item for bucket in self._buckets(query) for item in self._of(query, bucket, limit))
        return islice(items, limit)

    def query_page(
        self,
        key: Any,
        *,
        between: tuple[Any, Any],
        descending: bool = False,
        limit: int = 100,
        consistent: bool = False,
        page_token: str | None = None,
    ) -> Page:
        """Return up to `limit` items of a query from up to 100 buckets, and a token for the rest,
        which holds the last sort key in readable form. A page may be empty although more follow.
        """
        query = self._range(key, between, descending, consistent, limit)
        first, inner = (None, None) if page_token is None else self._place_of(query, page_token)
        items: list[dict[str, Any]] = []
        for count, bucket in enumerate(self._buckets(query, first)):
            if count == BUCKETS_OF_A_PAGE or len(items) == limit:
                return Page(items, self._token(query, bucket, None))
            for item in self._of(query, bucket, limit - len(items) + 1, inner):
                if len(items) == limit:
                    last = items[-1][self.table.schema.sort.name]
                    name, ends = self._named(key, bucket), self._ends(query)
                    token = self.table.page_token(name, last, between=ends, descending=descending)
                    return Page(items, self._token(query, bucket, token))
                items.append(item)
            inner = None
        return Page(items, None)

    def calendar(self) -> Calendar:
        """Return the periods of buckets, and the day from which each applies."""
        return self._store.get()

    def change_bucket(self, bucket: Bucket, since: date) -> Calendar:
        """Change the period of buckets from a day on, without moving items. Raise CannotStart if
        the day is too early; the message names the first possible day.
        """
        if bucket not in LENGTHS:
            raise CannotStart(f"bucket is {bucket!r}; it must be 'month', 'day' or 'hour'.")
        return self._store.change(bucket, since)

    def hint(self, key: Any, at: Any) -> str | None:
        """Return a reason for another period, judged by a key's bucket at a time; choose a complete
        one. This reads the first page of each shard, and the traffic that writers have reported.
        """
        moment, table = moment_of(at, self._unit), self.table
        calendar = self._store.get()
        logical = typed(self._named(key, calendar.bucket_of(moment)))
        shards = table.metadata.of(logical).shards
        pages = [look_at_shard(table, logical, n) for n in range(1, shards.readable + 1)]
        stored = table.requests.call(
            "get_item", TableName=table.metadata.table, Key={table.schema.partition.name: logical}
        )
        minutes = traffic_of(stored.get("Item", {})) or {}
        busiest = max(minutes.values()) / 60 if minutes else None
        size = sum(size for _, size, _ in pages)
        return hint(calendar.at(moment), size, busiest, shards.number)

    @property
    def _store(self) -> CalendarStore:
        """This process's calendar store; a fork of the process opens another."""
        opened, metadata = self._opened, self.table.metadata
        if opened is None or opened.metadata is not metadata:
            if self.table.schema.sort.type == "B" and self._time is None:
                raise CannotStart(
                    "A binary sort key cannot hold a time: name an attribute that holds the time."
                )
            name = self._time_name
            unit, ahead = self._unit, self._ahead
            agreed = f"{name} {unit} {ahead:g}"
            opened = self._opened = CalendarStore(metadata, self._first, agreed, ahead)
        return opened

    @property
    def _time_name(self) -> str:
        return self._time or self.table.schema.sort.name

    @property
    def _is_sorted(self) -> bool:
        return self._time_name == self.table.schema.sort.name

    def _key_of(self, item: Mapping[str, Any]) -> Any:
        return item[self.table.schema.partition.name]

    def _placed(self, item: Mapping[str, Any], is_key: bool = False) -> dict[str, Any]:
        """Return an item or a Key with the partition key that it has in the sharded table."""
        partition, name = self.table.schema.partition.name, self._time_name
        store = self._store
        for needed in (partition, name):
            if needed not in item:
                raise CannotStart(f"The item, or the key, has no {needed}, which gives its place.")
        calendar = store.get(register=not is_key)
        moment = moment_of(item[name], self._unit)
        exact = moment_of(item[name], self._unit, calendar.at(moment))
        if not is_key and exact > store.latest():
            raise CannotStart(
                f"{item[name]!r} is more than {self._ahead:g} s in the future. `ahead` sets "
                "this limit, because buckets can change on later days."
            )
        bucketed = self._named(item[partition], calendar.bucket_of(exact))
        if not is_key:
            self._begin(item[partition], bucketed, calendar.before(exact))
        placed = {**item, partition: bucketed}
        if is_key and not self._is_sorted:
            del placed[name]
        return placed

    def _begin(self, key: Any, name: Any, before: str | None) -> None:
        """Give a new bucket as many shards as the previous one, because it will be as busy."""
        metadata, logical = self.table.metadata, typed(name)
        if before is None or metadata.of(logical).registered:
            return
        number = metadata.of(typed(self._named(key, before))).shards.number
        number = max(metadata.first_count(name), min(number, self.table.policy.most))
        replace(metadata, first_count=lambda _: number).of(logical, register=True)

    def _named(self, key: Any, bucket: str) -> Any:
        suffix = SEPARATOR + bucket
        if isinstance(key, str):
            return key + suffix
        if isinstance(key, bytes | bytearray):
            return bytes(key) + suffix.encode()
        raise CannotStart("A key of a calendar must be a text or bytes, as its table's key is.")

    def _written(self, call: str, item: Mapping[str, Any], **words: Any) -> dict[str, Any]:
        key = self._key_of(item)
        try:
            return self._shown(getattr(self.table, call)(**words), key)
        except ClientError as error:
            if "Item" in error.response:
                error.response["Item"][self.table.schema.partition.name] = typed(key)
            raise

    def _shown(self, answer: dict[str, Any], key: Any) -> dict[str, Any]:
        partition = self.table.schema.partition.name
        for name in ("Item", "Attributes"):
            if partition in answer.get(name, ()):
                answer[name][partition] = key
        return answer

    def _range(
        self, key: Any, between: Any, descending: bool, consistent: bool, limit: int | None
    ) -> _Range:
        if not isinstance(between, tuple | list) or len(between) != 2 or None in between:
            raise CannotStart(
                "between must be (earliest, latest) time: a calendar has no first and last bucket."
            )
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise CannotStart(f"limit is {limit}; it must be a whole number of at least 1.")
        if isinstance(between[0], str) is not isinstance(between[1], str):
            raise CannotStart("The two times must both be texts, or both numbers.")
        if between[1] < between[0]:
            raise CannotStart("between must have the earlier time first, also for descending.")
        return _Range(key, (between[0], between[1]), descending, consistent)

    def _buckets(self, query: _Range, first: str | None = None) -> Iterator[str]:
        """Return the buckets that may hold a query's times, starting at `first`."""
        store = self._store
        low = moment_of(query.between[0], self._unit)
        high = min(latest_of(query.between[1], self._unit), store.latest(NOTICE_SECONDS))
        if first is not None:
            start = beginning_of(first)
            low, high = (low, start) if query.descending else (start, high)
        return store.get().between(low, high, query.descending)

    def _ends(self, query: _Range) -> tuple[Any, Any] | None:
        return query.between if self._is_sorted else None

    def _of(
        self, query: _Range, bucket: str, limit: int | None, page_token: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the items of one bucket."""
        partition, name = self.table.schema.partition.name, self._time_name
        low, high = query.between
        items = self.table.query(
            self._named(query.key, bucket),
            limit=limit if self._is_sorted else None,
            between=self._ends(query),
            descending=query.descending,
            consistent=query.consistent,
            page_token=page_token,
        )
        for item in items:
            if self._is_sorted or low <= item[name] <= high:
                item[partition] = query.key
                yield item

    def _token(self, query: _Range, bucket: str, inner: str | None) -> str:
        token = {"bucket": bucket, "inner": inner, "of": query.digest}
        return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()

    def _place_of(self, query: _Range, token: str) -> tuple[str, str | None]:
        try:
            content = json.loads(base64.urlsafe_b64decode(token.encode()))
            bucket, inner, same = content["bucket"], content["inner"], content["of"] == query.digest
            is_ours = self._store.get().bucket_of(beginning_of(bucket)) == bucket
        except (ValueError, KeyError, TypeError, AttributeError):
            is_ours, same = False, True
        if not is_ours:
            raise CannotStart("The page token is damaged: begin the query again without it.")
        if not same:
            raise CannotStart(
                "The page token belongs to another query: key, between and descending must be the "
                "same."
            )
        return bucket, inner
