"""The shard-metadata table: read, cached within the limits of the protocol, and changed.

Each sharded table has a separate metadata table with the same partition key attribute. So logical
keys of two tables do not collide, and permissions, restores and deletion are separate.
"""

import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.refusals import CHECK_FAILED, CONDITION_FAILED, cancellations, error_code
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.errors import CannotStart, MetadataLost
from keyhop.sharding.key import protocol
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.schema import Schema
from keyhop.sharding.key.shards import LEAST_SETTLE_SECONDS, Shards, from_item, to_item
from keyhop.sharding.store.requests import Requests
from keyhop.sharding.store.table_item import (
    CLAIM_KEY,
    LOOK_SECONDS,
    TOTAL_KEY,
    Claims,
    TableItem,
    is_claim,
    total_key,
)
from keyhop.sharding.store.traffic import Traffic

CACHED_KEYS = 10_000

PLAIN_KEYS = "plain-keys"
"""What ShardedTable's `accept` may have: use the table although it has items without a shard."""

CLOCK_SECONDS = 1e-6
"""Clocks do not measure shorter waits; rounding of sums of seconds may lead to one."""


@dataclass(frozen=True, slots=True)
class KeyMetadata:
    """The metadata of one key, as it was read, with its last_updated as the table has it.

    By the clock's `monotonic`, it was requested, an answer first had it (`since`), or its shard
    count (`counted_since`), and it expires, so that it must no longer be used. A key without
    metadata is not registered.
    """

    shards: Shards
    version: str
    requested: float
    since: float
    counted_since: float
    expires: float
    registered: bool = True

    @property
    def effective_until(self) -> float:
        """The time by which requests from before `expires` have taken effect, by the protocol."""
        return self.expires + self.shards.settle / 2


class MetadataChanged(Exception):
    """Another process has changed the metadata first. current: the present metadata."""

    def __init__(self, current: KeyMetadata) -> None:
        super().__init__("the shard metadata has been changed by somebody else")
        self.current = current


@dataclass(slots=True)
class Metadata:
    """The shard metadata of one table's keys; for any number of threads.

    All users of the table must have the placement in common. `settle` is for keys that are
    registered here, in seconds. `most_in_all` is the maximum of all keys' shards beyond their
    first. With `accepts_plain`, a key is registered although the table has items under the key
    itself, without a shard. A key without metadata is not cached for reads.
    """

    requests: Requests
    table: str
    schema: Schema
    placement: Placement
    settle: float
    most_in_all: int | None
    first_count: Callable[[str | bytes], int] = lambda key: 1
    accepts_plain: bool = False
    traffic: Traffic = field(init=False)
    item: TableItem = field(init=False)
    claims: Claims = field(init=False)
    _known: "OrderedDict[Any, KeyMetadata]" = field(default_factory=OrderedDict)
    _reading: tuple[Lock, ...] = field(default_factory=lambda: tuple(Lock() for _ in range(64)))
    _lock: Lock = field(default_factory=Lock)
    _looked: "OrderedDict[Any, float]" = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        requests, schema = self.requests, self.schema
        self.traffic = Traffic(requests, self.table, schema.partition.name)
        self.claims = Claims(requests, self.table, schema.partition)
        self.item = TableItem(requests, self.table, schema, self.agreed, self._item)

    @property
    def agreed(self) -> str:
        """The placement and the separator, as the metadata of each key has them."""
        return self.placement.text(self.schema.names.separator)

    def of(
        self, logical: TypedValue, *, register: bool = False, fresh: bool = False
    ) -> KeyMetadata:
        """Return the metadata of a logical key, no older than the protocol allows, or read again if
        `fresh`.

        Raises:
            CannotStart: The table has another placement, or items under the key itself.
            MetadataLost: The key has items in shards that the metadata does not have.
        """
        name = canonical(logical)
        record = self._known.get(name)
        if record is not None and not fresh and self.requests.clock.monotonic() < record.expires:
            return record
        # If many threads need it at the same time, one of them reads it.
        with self._reading[hash(name) % len(self._reading)]:
            record = self._known.get(name)
            if record is None or fresh or self.requests.clock.monotonic() >= record.expires:
                record = self._read(logical, register)
        return record

    def known_for(self, record: KeyMetadata) -> float:
        """Return the seconds since this process first saw this metadata."""
        return self.requests.clock.monotonic() - record.since

    def seen_elsewhere(
        self, logical: TypedValue, record: KeyMetadata, seconds: float
    ) -> KeyMetadata:
        """Return the metadata, which another process has seen at least `seconds` ago."""
        since = min(record.since, self.requests.clock.monotonic() - seconds)
        with self._lock:
            record = self._known[canonical(logical)] = replace(record, since=since)
        return record

    def unsettled(self, record: KeyMetadata) -> float:
        """Return the seconds until the metadata may be changed; 0 if it may be changed now."""
        wait = protocol.lasts(record.shards, self.placement) - self.known_for(record)
        return wait if wait > CLOCK_SECONDS else 0.0

    def usable(self, record: KeyMetadata) -> Shards:
        """Return the metadata as a writer uses it, which depends on how long it is unchanged."""
        shards = record.shards
        return shards if self.unsettled(record) > 0 else protocol.after_settling(shards)

    def change(
        self, logical: TypedValue, record: KeyMetadata, after: Shards, *, patiently: bool = True
    ) -> KeyMetadata:
        """Write `after`. Raise MetadataChanged, with the present metadata, after a lost race."""
        before = record.shards
        operation, request = "update_item", self._change(logical, record, after)
        added = after.readable - before.readable
        if added > 0 and self.most_in_all is not None:
            total = self.item.count_within(added, self.most_in_all)
            operation = "transact_write_items"
            request = {
                "TransactItems": [{"Update": request}, {"Update": total}],
                "ClientRequestToken": uuid.uuid4().hex,
            }
        requested: list[float] = []

        def attempt() -> None:
            requested.append(self.requests.clock.monotonic())
            self.requests.once(operation, **request)

        try:
            self.requests.patiently(attempt) if patiently else attempt()
        except ClientError as error:
            lost = error.response
            if cancellations(error)[:1] == [CHECK_FAILED]:
                lost = lost["CancellationReasons"][0]
            elif error_code(error) != CONDITION_FAILED:
                raise
            current = self._adopt(logical, lost.get("Item"), requested[-1])
            if len(requested) == 1 or current.shards != after:
                if after.number > before.number:
                    self.requests.usage.count(races_lost=1)
                raise MetadataChanged(current) from error
            # Otherwise it was this call, whose first answer was lost.
        self.requests.usage.count(
            shards_added=max(0, after.number - before.number), shards_removed=max(0, -added)
        )
        if added and operation == "update_item":
            self.item.count(added)
        return self._remember(logical, after, str(after.last_updated), requested[-1])

    def grow(
        self,
        logical: TypedValue,
        record: KeyMetadata,
        number: int,
        *,
        patiently: bool = True,
    ) -> KeyMetadata | None:
        """Give a key `number` shards, or raise MetadataChanged; None beyond most_in_all."""
        if self.most_in_all is not None and number - record.shards.readable > self.most_in_all:
            return None
        after = record.shards.grown(number, self.requests.clock.time())
        try:
            return self.change(logical, record, after, patiently=patiently)
        except ClientError as error:
            if cancellations(error) != ["None", CHECK_FAILED]:
                raise
            return None

    def _change(self, logical: TypedValue, record: KeyMetadata, after: Shards) -> dict[str, Any]:
        values = to_item(after)
        return {
            "TableName": self.table,
            "Key": self._key(logical),
            "UpdateExpression": f"SET {', '.join(f'#{name} = :{name}' for name in values)}",
            "ExpressionAttributeNames": {f"#{name}": name for name in values},
            "ExpressionAttributeValues": {
                **{f":{name}": value for name, value in values.items()},
                ":seen": {"N": record.version},
                ":number": {"N": str(record.shards.number)},
            },
            "ConditionExpression": "#last_updated = :seen AND #number_of_shards = :number",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _key(self, logical: TypedValue) -> dict[str, TypedValue]:
        return {self.schema.partition.name: logical}

    def _item(self, logical: TypedValue) -> Mapping[str, TypedValue] | None:
        self.requests.usage.count(metadata_reads=1)
        answer = self.requests.call(
            "get_item", TableName=self.table, Key=self._key(logical), ConsistentRead=True
        )
        return answer.get("Item")

    def find(self, logical: TypedValue) -> KeyMetadata | None:
        """Read the metadata of a key; None if it is not registered."""
        self.schema.names.physical(logical, 1)  # raises for an invalid key
        if logical == total_key(self.schema.partition.type):
            raise CannotStart(f"{TOTAL_KEY} is not possible as a logical key: Keyhop uses it.")
        if is_claim(logical):
            raise CannotStart(f"No logical key can start with {CLAIM_KEY!r}: Keyhop uses it.")
        requested = self.requests.clock.monotonic()
        try:
            item = self._item(logical)
        except ClientError as error:
            self._check_table(error)
            raise
        return None if item is None else self._adopt(logical, item, requested)

    def create(self, logical: TypedValue, shards: Shards) -> KeyMetadata:
        """Register a key, and return its metadata, or that of another process that was first."""
        requested = self.requests.clock.monotonic()
        try:
            self.requests.call(
                "put_item",
                TableName=self.table,
                Item={**self._key(logical), **to_item(shards)},
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": self.schema.partition.name},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            return self._adopt(logical, error.response.get("Item"), requested)
        return self._remember(logical, shards, str(shards.last_updated), requested)

    def as_new(self, number: int) -> Shards:
        """Return the metadata of a new key with a number of shards."""
        now, of_table = self.requests.clock.time(), self.schema.table
        return Shards.registered(now, self.settle, self.agreed, number, table=of_table)

    def _read(self, logical: TypedValue, register: bool) -> KeyMetadata:
        requested = self.requests.clock.monotonic()
        record = self.find(logical)
        if record is not None:
            return record
        if register:
            self.item.agree()
        else:
            self.item.check()
        if self._is_lost(logical, register):
            # Or another process has registered it since then, and put items there.
            return self._adopt(logical, None, self.requests.clock.monotonic())
        if register:
            ((_, content),) = logical.items()
            return self.create(logical, self.as_new(self.first_count(content)))
        lone = Shards.registered(0.0, LEAST_SETTLE_SECONDS, None)
        now = self.requests.clock.monotonic()
        expires = requested + LEAST_SETTLE_SECONDS / 2
        return KeyMetadata(lone, "0", requested, now, now, expires, registered=False)

    def _is_lost(self, logical: TypedValue, register: bool) -> bool:
        """Return whether a key without metadata has items that its new metadata would not find. A
        reader caches for LOOK_SECONDS that it has none.
        """
        name, now = canonical(logical), self.requests.clock.monotonic()
        record = self._known.get(name)
        if record is None and not register and now < self._looked.get(name, now):
            return False
        ((_, content),) = logical.items()
        first = 2 if self.first_count(content) == 1 else 1
        last = 2 if record is None else max(2, record.shards.readable)
        if self.holds(logical, range(first if register else 2, last + 1)):
            return True
        if not self.accepts_plain:
            self._refuse_plain_items(logical)
        with self._lock:
            self._known.pop(name, None)
            self._looked[name] = now + LOOK_SECONDS
            if len(self._looked) > CACHED_KEYS:
                self._looked.popitem(last=False)
        return False

    def _refuse_plain_items(self, logical: TypedValue) -> None:
        """Raise CannotStart if the table has items under the key itself, as boto3 writes them."""
        if not self._has_items(logical):
            return
        shard = self.schema.names.parsed(logical)
        if shard is not None and self._item(shard[0]) is not None:
            return  # They are in a shard of another key: "a_1" is the first shard of "a".
        raise CannotStart(
            f"{self.schema.table} has items under a key without a shard number, which Keyhop would "
            f"not find. Write them again with accept=[{PLAIN_KEYS!r}], and delete the old ones "
            "(docs/how-to/sharding.md, A table that already has items)."
        )

    def holds(self, logical: TypedValue, shards: range) -> bool:
        """Return whether any of a key's shards has an item."""
        return any(self._has_items(self.schema.names.physical(logical, shard)) for shard in shards)

    def _has_items(self, physical: TypedValue) -> bool:
        answer = self.requests.call(
            "query",
            TableName=self.schema.table,
            Select="COUNT",
            Limit=1,
            ConsistentRead=True,
            KeyConditionExpression="#p = :p",
            ExpressionAttributeNames={"#p": self.schema.partition.name},
            ExpressionAttributeValues={":p": physical},
        )
        return bool(answer["Count"])

    def _adopt(
        self, logical: TypedValue, item: Mapping[str, TypedValue] | None, requested: float
    ) -> KeyMetadata:
        """Use the table's metadata item, from an answer or from a refusal (ALL_OLD)."""
        item = item or self._item(logical)  # deleted, or the endpoint does not return it
        if item is None:
            raise self._lost()
        shards = from_item(item)
        self.item.check_table(shards.table)
        if shards.placement is None:
            self.item.check()
        else:
            self.item.compare(shards.placement)
        before = self._known.get(canonical(logical))
        if before is not None and shards.has_forgotten(before.shards):
            # Answers may arrive out of order: a new read is as recent as all cached metadata.
            requested = self.requests.clock.monotonic()
            item = self._item(logical)
            if item is None:
                raise self._lost()
            shards = from_item(item)
        if before is not None and shards.has_forgotten(before.shards):
            left_out = range(shards.readable + 1, before.shards.readable + 1)
            if self.holds(logical, left_out):
                raise self._lost()
        return self._remember(logical, shards, item["last_updated"]["N"], requested)

    def _remember(
        self, logical: TypedValue, shards: Shards, version: str, requested: float
    ) -> KeyMetadata:
        name = canonical(logical)
        now = self.requests.clock.monotonic()
        with self._lock:
            before = self._known.get(name)
            since, expires = now, requested + shards.settle / 2
            counted_since = now
            if before is not None and before.shards.counted_at == shards.counted_at:
                counted_since = before.counted_since
            if before is not None and before.version == version:
                since, expires = before.since, max(expires, before.expires)
            elif before is not None and before.requested > requested:
                return before  # a later answer arrived before this one
            elif before is not None and protocol.only_ends_growth(before.shards, shards):
                since = before.since
            record = KeyMetadata(shards, version, requested, since, counted_since, expires)
            self._known[name] = record
            self._known.move_to_end(name)
            if len(self._known) > CACHED_KEYS:
                self._known.popitem(last=False)
        return record

    def _check_table(self, error: ClientError) -> None:
        """Raise CannotStart if the metadata table does not exist, or is another."""
        key = f"{self.schema.partition.name} ({self.schema.partition.type})"
        if error_code(error) == "ResourceNotFoundException":
            raise CannotStart(
                f"The shard-metadata table {self.table!r} does not exist: create it with the "
                f"partition key {key} and without a sort key."
            ) from error
        if error_code(error) == "ValidationException":
            raise CannotStart(
                f"{self.table!r} is not a shard-metadata table of this table: its key must be "
                f"{key} alone."
            ) from error

    def _lost(self) -> MetadataLost:
        return MetadataLost(
            f"The shard metadata of a key is gone from {self.table}, and so items of "
            f"{self.schema.table} would be found in part only: recover the shards, "
            "which rebuilds it from the table's keys. But if the application wrote keys that end "
            f"in {self.schema.names.separator}2 without Keyhop, do not recover them, because their "
            "items would then be overwritten: use another separator and a new metadata table."
        )
