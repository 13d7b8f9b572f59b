"""The shard-metadata table: looked up, cached for as long as the protocol allows, and changed.

Each sharded table has a metadata table of its own, with its own partition key attribute: so logical
keys of two tables do not collide, and permissions, restores and deletion go by table.
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
from keyhop.sharding.store.table_item import LOOK_SECONDS, TOTAL_KEY, TableItem, total_key
from keyhop.sharding.store.traffic import Traffic

CACHED_KEYS = 10_000

CLOCK_SECONDS = 1e-6
"""Clocks do not tell shorter waits; what is left of sums of seconds may be one."""


@dataclass(frozen=True, slots=True)
class KeyMetadata:
    """Metadata of one key, as it was read. version: its last_updated, as the table writes it.

    requested: when. since: when an answer first showed it. expires: until when it may be acted
    upon; all of the clock's `monotonic`. registered: False for a key without metadata.
    """

    shards: Shards
    version: str
    requested: float
    since: float
    expires: float
    registered: bool = True

    @property
    def effective_until(self) -> float:
        """By when what was sent before `expires` has taken effect, if the promises hold."""
        return self.expires + self.shards.settle / 2


class MetadataChanged(Exception):
    """Somebody else has changed the metadata first; current: what it is now."""

    def __init__(self, current: KeyMetadata) -> None:
        super().__init__("the shard metadata has been changed by somebody else")
        self.current = current


@dataclass(slots=True)
class Metadata:
    """The shard metadata of one table's keys; for any number of threads.

    table: the metadata table; schema: the main table. placement: what all users of the table must
    agree upon, with the separator; item: where they do. settle: of keys that are registered here,
    in seconds. most_in_all: shards that all keys may have beyond their first. first_count: shards
    of a new key, by its content; who reads a key that nobody has registered looks for it each time.
    """

    requests: Requests
    table: str
    schema: Schema
    placement: Placement
    settle: float
    most_in_all: int | None
    first_count: Callable[[str | bytes], int] = lambda key: 1
    traffic: Traffic = field(init=False)
    item: TableItem = field(init=False)
    _known: "OrderedDict[Any, KeyMetadata]" = field(default_factory=OrderedDict)
    _reading: tuple[Lock, ...] = field(default_factory=lambda: tuple(Lock() for _ in range(64)))
    _lock: Lock = field(default_factory=Lock)
    _looked: "OrderedDict[Any, float]" = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        requests, schema = self.requests, self.schema
        self.traffic = Traffic(requests, self.table, schema.partition.name)
        self.item = TableItem(requests, self.table, schema, self.agreed, self._item)

    @property
    def agreed(self) -> str:
        """The placement and the separator, as the metadata of each key has them."""
        return self.placement.text(self.schema.names.separator)

    def of(
        self, logical: TypedValue, *, register: bool = False, fresh: bool = False
    ) -> KeyMetadata:
        """What is known of a logical key, not older than the protocol allows.

        register: give a new key one shard. fresh: read it again, whatever is known.
        Raises CannotStart if others have agreed upon another placement, MetadataLost if the key
        has items where what there is of metadata does not tell of them.
        """
        name = canonical(logical)
        known = self._known.get(name)
        if known is not None and not fresh and self.requests.clock.monotonic() < known.expires:
            return known
        # Many threads may need it at the same moment: one of them reads it.
        with self._reading[hash(name) % len(self._reading)]:
            known = self._known.get(name)
            if known is None or fresh or self.requests.clock.monotonic() >= known.expires:
                known = self._read(logical, register)
        return known

    def known_for(self, known: KeyMetadata) -> float:
        """For how many seconds it has been seen to be so, by this process's own clock."""
        return self.requests.clock.monotonic() - known.since

    def seen_elsewhere(
        self, logical: TypedValue, known: KeyMetadata, seconds: float
    ) -> KeyMetadata:
        """As `known`, which another process has seen to be so `seconds` ago, at least."""
        since = min(known.since, self.requests.clock.monotonic() - seconds)
        with self._lock:
            known = self._known[canonical(logical)] = replace(known, since=since)
        return known

    def unsettled(self, known: KeyMetadata) -> float:
        """Seconds until it has been so for long enough to be changed; 0: it has."""
        left = protocol.lasts(known.shards, self.placement) - self.known_for(known)
        return left if left > CLOCK_SECONDS else 0.0

    def change(
        self, logical: TypedValue, known: KeyMetadata, after: Shards, *, patiently: bool = True
    ) -> KeyMetadata:
        """Write `after`, or raise MetadataChanged with what won."""
        before = known.shards
        operation, request = "update_item", self._change(logical, known, after)
        added = after.readable - before.readable
        if added > 0 and self.most_in_all is not None:
            total = self.item.count_within(added, self.most_in_all)
            operation = "transact_write_items"
            request = {
                "TransactItems": [{"Update": request}, {"Update": total}],
                "ClientRequestToken": uuid.uuid4().hex,
            }
        sent: list[float] = []

        def attempt() -> None:
            sent.append(self.requests.clock.monotonic())
            self.requests.once(operation, **request)

        try:
            self.requests.patiently(attempt) if patiently else attempt()
        except ClientError as error:
            lost = error.response
            if cancellations(error)[:1] == [CHECK_FAILED]:
                lost = lost["CancellationReasons"][0]
            elif error_code(error) != CONDITION_FAILED:
                raise
            current = self._adopt(logical, lost.get("Item"), sent[-1])
            if len(sent) == 1 or current.shards != after:
                if after.number > before.number:
                    self.requests.usage.count(races_lost=1)
                raise MetadataChanged(current) from error
            # Else it is our own, whose answer was lost.
        self.requests.usage.count(
            shards_added=max(0, after.number - before.number), shards_removed=max(0, -added)
        )
        if added and operation == "update_item":
            self.item.count(added)
        return self._remember(logical, after, str(after.last_updated), sent[-1])

    def grow(
        self,
        logical: TypedValue,
        known: KeyMetadata,
        number: int,
        *,
        patiently: bool = True,
        urgently: bool = False,
    ) -> KeyMetadata | None:
        """Give a key `number` shards; None if all keys would have too many beyond their first.

        Raises MetadataChanged.
        """
        if self.most_in_all is not None and number - known.shards.readable > self.most_in_all:
            return None
        after = known.shards.grown(number, self.requests.clock.time(), urgently=urgently)
        try:
            return self.change(logical, known, after, patiently=patiently)
        except ClientError as error:
            if cancellations(error) != ["None", CHECK_FAILED]:
                raise
            return None

    def _change(self, logical: TypedValue, known: KeyMetadata, after: Shards) -> dict[str, Any]:
        values = to_item(after)
        return {
            "TableName": self.table,
            "Key": self._key(logical),
            "UpdateExpression": f"SET {', '.join(f'#{name} = :{name}' for name in values)}",
            "ExpressionAttributeNames": {f"#{name}": name for name in values},
            "ExpressionAttributeValues": {
                **{f":{name}": value for name, value in values.items()},
                ":seen": {"N": known.version},
                ":number": {"N": str(known.shards.number)},
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

    def found(self, logical: TypedValue) -> KeyMetadata | None:
        """What the table has of a key, read anew; None if it is not registered."""
        self.schema.names.physical(logical, 1)  # or it is no key
        if logical == total_key(self.schema.partition.type):
            raise CannotStart(f"{TOTAL_KEY} is not possible as a logical key: Keyhop uses it.")
        sent = self.requests.clock.monotonic()
        try:
            item = self._item(logical)
        except ClientError as error:
            self._check_table(error)
            raise
        return None if item is None else self._adopt(logical, item, sent)

    def create(self, logical: TypedValue, shards: Shards) -> KeyMetadata:
        """Register a key; what it has if somebody else was first. The table is agreed upon."""
        sent = self.requests.clock.monotonic()
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
            return self._adopt(logical, error.response.get("Item"), sent)
        return self._remember(logical, shards, str(shards.last_updated), sent)

    def as_new(self, number: int) -> Shards:
        """A key of so many shards, as it is registered here."""
        now, of_table = self.requests.clock.time(), self.schema.table
        return Shards.registered(now, self.settle, self.agreed, number, table=of_table)

    def _read(self, logical: TypedValue, register: bool) -> KeyMetadata:
        sent = self.requests.clock.monotonic()
        found = self.found(logical)
        if found is not None:
            return found
        if register:
            self.item.agree()
        else:
            self.item.check()
        if self._is_lost(logical, register):
            # Or it was registered since, by somebody who has put items there already.
            return self._adopt(logical, None, self.requests.clock.monotonic())
        if register:
            ((_, content),) = logical.items()
            return self.create(logical, self.as_new(self.first_count(content)))
        lone = Shards.registered(0.0, LEAST_SETTLE_SECONDS, None)
        now = self.requests.clock.monotonic()
        return KeyMetadata(lone, "0", sent, now, sent + LEAST_SETTLE_SECONDS / 2, registered=False)

    def _is_lost(self, logical: TypedValue, register: bool) -> bool:
        """Whether a key without metadata has items where it would not be read anew, or not by its
        places. A reader who has seen that there are none believes it for LOOK_SECONDS.
        """
        name, now = canonical(logical), self.requests.clock.monotonic()
        known = self._known.get(name)
        if known is None and not register and now < self._looked.get(name, now):
            return False
        ((_, content),) = logical.items()
        first = 2 if self.first_count(content) == 1 else 1
        last = 2 if known is None else max(2, known.shards.readable)
        if self.holds(logical, range(first if register else 2, last + 1)):
            return True
        with self._lock:
            self._known.pop(name, None)
            self._looked[name] = now + LOOK_SECONDS
            if len(self._looked) > CACHED_KEYS:
                self._looked.popitem(last=False)
        return False

    def holds(self, logical: TypedValue, shards: range) -> bool:
        """Whether any of a key's shards has an item."""
        return any(
            self.requests.call(
                "query",
                TableName=self.schema.table,
                Select="COUNT",
                Limit=1,
                ConsistentRead=True,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": self.schema.partition.name},
                ExpressionAttributeValues={":p": self.schema.names.physical(logical, shard)},
            )["Count"]
            for shard in shards
        )

    def _adopt(
        self, logical: TypedValue, item: Mapping[str, TypedValue] | None, sent: float
    ) -> KeyMetadata:
        """What the table says: an answer, or what a lost race tells (ALL_OLD)."""
        item = item or self._item(logical)  # deleted, or an endpoint that does not tell
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
            # Answers overtake each other: what is read from now on is as new as all that is known.
            sent = self.requests.clock.monotonic()
            item = self._item(logical)
            if item is None:
                raise self._lost()
            shards = from_item(item)
        if before is not None and shards.has_forgotten(before.shards):
            left_out = range(shards.readable + 1, before.shards.readable + 1)
            if self.holds(logical, left_out):
                raise self._lost()
        return self._remember(logical, shards, item["last_updated"]["N"], sent)

    def _remember(
        self, logical: TypedValue, shards: Shards, version: str, sent: float
    ) -> KeyMetadata:
        name = canonical(logical)
        now = self.requests.clock.monotonic()
        with self._lock:
            before = self._known.get(name)
            since, expires = now, sent + shards.settle / 2
            if before is not None and before.version == version:
                since, expires = before.since, max(expires, before.expires)
            elif before is not None and before.requested > sent:
                return before  # this answer was overtaken by a later one
            known = KeyMetadata(shards, version, sent, since, expires)
            self._known[name] = known
            self._known.move_to_end(name)
            if len(self._known) > CACHED_KEYS:
                self._known.popitem(last=False)
        return known

    def _check_table(self, error: ClientError) -> None:
        """Raises CannotStart if the metadata table is not there, or is another."""
        key = f"{self.schema.partition.name} ({self.schema.partition.type})"
        if error_code(error) == "ResourceNotFoundException":
            raise CannotStart(
                f"There is no shard-metadata table {self.table!r}: make it, with the partition key "
                f"{key} and no sort key."
            ) from error
        if error_code(error) == "ValidationException":
            raise CannotStart(
                f"{self.table!r} is no shard-metadata table of this table: its key must be {key} "
                "alone."
            ) from error

    def _lost(self) -> MetadataLost:
        return MetadataLost(
            f"The shard metadata of a key is gone from {self.table}, and so its items would be "
            f"found in part only: keyhop shards recover {self.schema.table} --metadata "
            f"{self.table} --key KEY makes it anew from the table's keys."
        )
