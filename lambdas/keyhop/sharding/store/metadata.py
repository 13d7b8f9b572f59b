"""The shard-metadata table: looked up, cached for as long as the protocol allows, and changed.

Each sharded table has a metadata table of its own, with its own partition key attribute: so logical
keys of two tables do not collide, and permissions, restores and deletion go by table.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.requester import CONDITION_FAILED, error_code
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.sharding.key.names import DEFAULT_SEPARATOR, Names
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.protocol import known_for
from keyhop.sharding.key.shards import LEAST_SETTLE_SECONDS, Shards, from_item, to_item
from keyhop.sharding.store.requests import Requests
from keyhop.sharding.store.traffic import Traffic, traffic_of

CACHED_KEYS = 10_000
TOTAL_KEY = "!keyhop-total"
"""The key of the item that counts the shards of all keys, beyond the first of each."""
logger = logging.getLogger(__name__)


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

    partition: the attribute and type of the main table's partition key. placement: what all users
    of a key must agree upon; None: whoever only reads need not know. whose: the main table.
    """

    requests: Requests
    table: str
    partition: KeyAttribute
    settle: float
    placement: Placement | None = None
    separator: str = DEFAULT_SEPARATOR
    cached_keys: int = CACHED_KEYS
    whose: str | None = None
    _known: "OrderedDict[Any, KeyMetadata]" = field(default_factory=OrderedDict)
    traffic: Traffic = field(init=False)
    _reading: tuple[Lock, ...] = field(default_factory=lambda: tuple(Lock() for _ in range(64)))
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.traffic = Traffic(self.requests, self.table, self.partition.name, self.cached_keys)

    def of(
        self, logical: TypedValue, *, register: bool = False, fresh: bool = False
    ) -> KeyMetadata:
        """What is known of a logical key, not older than the protocol allows.

        register: give a new key one shard. fresh: read it again, whatever is known.
        Raises CannotStart if writers of the key have agreed upon another placement.
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
        """For how many seconds it has surely been so (protocol.py)."""
        clock = self.requests.clock
        own = clock.monotonic() - known.since
        return known_for(own, clock.time(), known.shards.last_updated)

    def change(
        self, logical: TypedValue, known: KeyMetadata, after: Shards, *, patiently: bool = True
    ) -> KeyMetadata:
        """Write `after`, or raise MetadataChanged with what won."""
        before = known.shards
        values = to_item(after)
        sets = ", ".join(f"#{name} = :{name}" for name in values)
        sent: list[float] = []

        def attempt() -> None:
            sent.append(self.requests.clock.monotonic())
            self.requests.update(
                self.table,
                self.key(logical),
                f"SET {sets}",
                {f"#{name}": name for name in values},
                {
                    **{f":{name}": value for name, value in values.items()},
                    ":seen": {"N": known.version},
                    ":number": {"N": str(before.number)},
                },
                "#last_updated = :seen AND #number_of_shards = :number",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )

        try:
            self.requests.patiently(attempt) if patiently else attempt()
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            current = self._adopt(logical, error.response.get("Item"), sent[-1])
            if len(sent) > 1 and current.shards == after:  # our own, whose answer was lost
                return current
            if after.number > before.number:
                self.requests.usage.count(races_lost=1)
            raise MetadataChanged(current) from error
        if after.number > before.number:
            self.requests.usage.count(shards_added=after.number - before.number)
        if after.readable < before.readable:
            self.requests.usage.count(shards_removed=before.readable - after.readable)
        return self._remember(logical, after, str(after.last_updated), sent[-1])

    def grow(
        self,
        logical: TypedValue,
        known: KeyMetadata,
        number: int,
        most_in_all: int | None,
        *,
        patiently: bool = True,
    ) -> KeyMetadata | None:
        """Give a key `number` shards; None if all keys would have too many beyond their first.

        Raises MetadataChanged.
        """
        added = number - known.shards.number
        if most_in_all is not None and not self._reserve(added, most_in_all):
            return None
        try:
            after = known.shards.grown(number, self.requests.clock.time())
            return self.change(logical, known, after, patiently=patiently)
        except MetadataChanged:
            if most_in_all is not None:
                self._update_total("ADD #a :n", -added)
            raise

    def _reserve(self, shards: int, most: int) -> bool:
        """Count `shards` more among those of all keys, if they stay within `most`."""
        try:
            self._update_total("ADD #a :n", shards, room=most - shards)
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            return False
        return True

    def recount(self, shards: int) -> None:
        """Set the count of all keys' shards beyond their first."""
        self.requests.patiently(lambda: self._update_total("SET #a = :n", shards))

    def all(self) -> Iterator[tuple[TypedValue, Shards, dict[int, float]]]:
        """All logical keys, their metadata, and write units by epoch hour; a Scan."""
        more: dict[str, Any] = {"TableName": self.table, "ConsistentRead": True}
        while True:
            page = self.requests.call("scan", **more)
            for item in page["Items"]:
                if item[self.partition.name] == self._total_key():
                    continue
                try:
                    shards = from_item(item)
                except BrokenPromise as error:  # one key's must not hide those of all others
                    logger.warning("left out: %s", error)
                    continue
                yield item[self.partition.name], shards, traffic_of(item)
            if "LastEvaluatedKey" not in page:
                return
            more["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def key(self, logical: TypedValue) -> dict[str, TypedValue]:
        """The metadata item's key."""
        return {self.partition.name: logical}

    def _update_total(self, update: str, shards: int, room: int | None = None) -> None:
        values, condition = {":n": {"N": str(shards)}}, ""
        if room is not None:
            values[":room"] = {"N": str(room)}
            condition = "attribute_not_exists(#a) OR #a <= :room"
        key = self.key(self._total_key())
        self.requests.update(self.table, key, update, {"#a": "shards_added"}, values, condition)

    def _read(self, logical: TypedValue, register: bool) -> KeyMetadata:
        Names(self.partition.type, self.separator).physical(logical, 1)  # or it is no key
        if logical == self._total_key():
            raise CannotStart(f"{TOTAL_KEY} is not possible as a logical key: Keyhop uses it.")
        sent = self.requests.clock.monotonic()
        try:
            answer = self.requests.read_metadata(TableName=self.table, Key=self.key(logical))
        except ClientError as error:
            raise (self._wrong_table(error) or error) from error
        if "Item" in answer:
            return self._adopt(logical, answer["Item"], sent)
        if canonical(logical) in self._known:
            raise self._gone()
        if register:
            return self._register(logical)
        lone = Shards.registered(0.0, LEAST_SETTLE_SECONDS, None)
        now = self.requests.clock.monotonic()
        return KeyMetadata(lone, "0", sent, now, sent + LEAST_SETTLE_SECONDS / 2, registered=False)

    def _register(self, logical: TypedValue) -> KeyMetadata:
        clock = self.requests.clock
        shards = Shards.registered(clock.time(), self.settle, self._agreed, table=self.whose)
        sent = clock.monotonic()
        try:
            self.requests.call(
                "put_item",
                TableName=self.table,
                Item={**self.key(logical), **to_item(shards)},
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": self.partition.name},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            return self._adopt(logical, error.response.get("Item"), sent)
        return self._remember(logical, shards, str(shards.last_updated), sent)

    def _adopt(
        self, logical: TypedValue, item: Mapping[str, TypedValue] | None, sent: float
    ) -> KeyMetadata:
        """What the table says: an answer, or what a lost race tells (ALL_OLD)."""
        if not item:  # deleted, or an endpoint that does not tell
            answer = self.requests.read_metadata(TableName=self.table, Key=self.key(logical))
            if "Item" not in answer:
                raise self._gone()
            item = answer["Item"]
        shards = from_item(item)
        if None not in (self.whose, shards.table) and self.whose != shards.table:
            raise CannotStart(
                f"{self.table} holds the shard metadata of the table {shards.table}, not of "
                f"{self.whose}: each sharded table needs its own."
            )
        agreed = self._agreed
        if None not in (agreed, shards.placement) and agreed != shards.placement:
            raise CannotStart(
                f"The key's shards are chosen as {shards.placement!r}, not {agreed!r}: all users "
                "of a table must have the same placement, hash, append_only and separator."
            )
        self.traffic.saw(logical, item)
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
            if len(self._known) > self.cached_keys:
                self._known.popitem(last=False)
        return known

    def _wrong_table(self, error: ClientError) -> CannotStart | None:
        """One clear sentence, if the metadata table is not there, or is another."""
        key = f"{self.partition.name} ({self.partition.type})"
        if error_code(error) == "ResourceNotFoundException":
            return CannotStart(
                f"There is no shard-metadata table {self.table!r}: make it, with the partition key "
                f"{key} and no sort key."
            )
        if error_code(error) == "ValidationException":
            return CannotStart(
                f"{self.table!r} is no shard-metadata table of this table: its key must be {key} "
                "alone."
            )
        return None

    def _gone(self) -> CannotStart:
        return CannotStart(
            f"The shard metadata of a key is gone from {self.table}: without it the key's items "
            "cannot be found; restore it (point-in-time recovery)."
        )

    @property
    def _agreed(self) -> str | None:
        return None if self.placement is None else self.placement.text(self.separator)

    def _total_key(self) -> dict[str, str | bytes]:
        content = TOTAL_KEY if self.partition.type == "S" else TOTAL_KEY.encode()
        return {self.partition.type: content}
