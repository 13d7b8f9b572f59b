"""The shard-metadata table: looked up, cached for as long as the protocol allows, and changed.

Each sharded table has a metadata table of its own, with its own partition key attribute: so logical
keys of two tables do not collide, and permissions, restores and deletion go by table.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from keyhop.errors import CannotStart
from keyhop.keyspace import KeyAttribute, TypedValue
from keyhop.sharding import counts
from keyhop.sharding.calls import Calls, code_of
from keyhop.sharding.names import DEFAULT_SEPARATOR, Names
from keyhop.sharding.protocol import Placement, known_for
from keyhop.sharding.shards import LEAST_SETTLE_SECONDS, Shards, from_item, to_item

CACHED_KEYS = 10_000
TOTAL_KEY = "!keyhop-total"
"""The key of the item that counts the shards of all keys, beyond the first of each."""
TRAFFIC_SECONDS = 60.0
"""How often a writer reports what it has written to a key."""
HOURS_KEPT = 48

_REFUSED = "ConditionalCheckFailedException"


@dataclass(frozen=True, slots=True)
class Known:
    """Metadata as it was asked for. version: its last_updated, as the table writes it.

    since: the moment at which an answer first showed it. expires: until when it may be acted upon;
    both of the clock's `monotonic`. registered: False for a key that has no metadata yet.
    """

    shards: Shards
    version: str
    since: float
    expires: float
    registered: bool = True


class Lost(Exception):
    """Somebody else has changed the metadata first; current: what it is now."""

    def __init__(self, current: Known) -> None:
        super().__init__("the shard metadata has been changed by somebody else")
        self.current = current


@dataclass(slots=True)
class _Traffic:
    units: float = 0.0
    reported: float = 0.0


@dataclass(slots=True)
class Metadata:
    """The shard metadata of one table's keys; for any number of threads.

    partition: the attribute and type of the main table's partition key. placement: what all users
    of a key must agree upon; None: whoever only reads need not know.
    """

    calls: Calls
    table: str
    partition: KeyAttribute
    settle: float
    placement: Placement | None = None
    separator: str = DEFAULT_SEPARATOR
    cached_keys: int = CACHED_KEYS
    _known: "OrderedDict[Any, Known]" = field(default_factory=OrderedDict)
    _asking: dict[Any, Lock] = field(default_factory=dict)
    _traffic: dict[Any, _Traffic] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, logical: TypedValue, *, register: bool = False, fresh: bool = False) -> Known:
        """What is known of a logical key, not older than the protocol allows.

        register: give a new key one shard. fresh: ask again, whatever is known. Raises CannotStart
        if writers of the key have agreed upon another placement.
        """
        name = _name(logical)
        known = self._known.get(name)
        if known is not None and not fresh and self.calls.clock.monotonic() < known.expires:
            return known
        with self._lock:
            asking = self._asking.setdefault(name, Lock())
        with asking:  # many threads may need it at the same moment: one of them asks
            known = self._known.get(name)
            if known is None or fresh or self.calls.clock.monotonic() >= known.expires:
                known = self._ask(logical, register)
        return known

    def known_for(self, known: Known) -> float:
        """For how many seconds it has surely been so (protocol.py)."""
        clock = self.calls.clock
        own = clock.monotonic() - known.since
        return known_for(own, clock.time(), known.shards.last_updated)

    def change(self, logical: TypedValue, known: Known, after: Shards) -> Known:
        """Write `after` if nothing has changed since `known`; raises Lost with what won."""
        before = known.shards
        values = to_item(after)
        sets = ", ".join(f"#{name} = :{name}" for name in values)
        sent: list[float] = []

        def attempt() -> None:
            sent.append(self.calls.clock.monotonic())
            self.calls.once(
                "update_item",
                TableName=self.table,
                Key=self.key(logical),
                UpdateExpression=f"SET {sets}",
                ConditionExpression="#last_updated = :seen AND #number_of_shards = :number",
                ExpressionAttributeNames={f"#{name}": name for name in values},
                ExpressionAttributeValues={
                    **{f":{name}": value for name, value in values.items()},
                    ":seen": {"N": known.version},
                    ":number": {"N": str(before.number)},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )

        try:
            self.calls.patiently(attempt)
        except ClientError as error:
            if code_of(error) != _REFUSED:
                raise
            current = self._adopt(logical, error.response.get("Item"), sent[-1])
            if len(sent) > 1 and current.shards == after:  # our own, whose answer was lost
                return current
            self.calls.counts.add(counts.RACES_LOST)
            raise Lost(current) from error
        if after.number > before.number:
            self.calls.counts.add(counts.SHARDS_ADDED, after.number - before.number)
        if after.readable < before.readable:
            self.calls.counts.add(counts.SHARDS_REMOVED, before.readable - after.readable)
        return self._remember(logical, after, str(after.last_updated), sent[0])

    def reserve(self, shards: int, most: int) -> bool:
        """Count `shards` more among those of all keys, if they stay within `most`."""
        names = {"#a": "shards_added"}
        try:
            self.calls.read(
                "update_item",
                TableName=self.table,
                Key={self.partition.name: self._total_key()},
                UpdateExpression="ADD #a :n",
                ConditionExpression="attribute_not_exists(#a) OR #a <= :room",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={
                    ":n": {"N": str(shards)},
                    ":room": {"N": str(most - shards)},
                },
            )
        except ClientError as error:
            if code_of(error) != _REFUSED:
                raise
            return False
        return True

    def give_back(self, shards: int) -> None:
        """Take back what was reserved, and not used."""
        self.calls.read(
            "update_item",
            TableName=self.table,
            Key={self.partition.name: self._total_key()},
            UpdateExpression="ADD #a :n",
            ExpressionAttributeNames={"#a": "shards_added"},
            ExpressionAttributeValues={":n": {"N": str(-shards)}},
        )

    def recount(self, shards: int) -> None:
        """Set the count of all keys' shards beyond their first."""
        self.calls.read(
            "update_item",
            TableName=self.table,
            Key={self.partition.name: self._total_key()},
            UpdateExpression="SET #a = :n",
            ExpressionAttributeNames={"#a": "shards_added"},
            ExpressionAttributeValues={":n": {"N": str(shards)}},
        )

    def wrote(self, logical: TypedValue, units: float) -> None:
        """Remember what was written to a key of several shards, and report it from time to time.

        Shrinking goes by it.
        """
        now = self.calls.clock.monotonic()
        name = _name(logical)
        with self._lock:
            traffic = self._traffic.get(name)
            if traffic is None:
                if len(self._traffic) >= self.cached_keys:
                    self._traffic.pop(next(iter(self._traffic)))
                traffic = self._traffic[name] = _Traffic(reported=now)
            traffic.units += units
            if now - traffic.reported < TRAFFIC_SECONDS:
                return
            units, traffic.units, traffic.reported = traffic.units, 0.0, now
        self._report(logical, units)

    def flush(self) -> None:
        """Report all that was written and not yet reported."""
        with self._lock:
            waiting, self._traffic = self._traffic, {}
        for (type_, content), traffic in waiting.items():
            known = self._known.get((type_, content))
            if traffic.units and known is not None and known.shards.number > 1:
                self._report({type_: content}, traffic.units)

    def prune(self, logical: TypedValue, hours: Mapping[int, float]) -> None:
        """Forget reports that are older than two days."""
        old = sorted(hours)[:-HOURS_KEPT]
        if old:
            self.calls.read(
                "update_item",
                TableName=self.table,
                Key=self.key(logical),
                UpdateExpression="REMOVE " + ", ".join(f"traffic.#h{n}" for n in range(len(old))),
                ExpressionAttributeNames={f"#h{n}": str(hour) for n, hour in enumerate(old)},
            )

    def all(self) -> Iterator[tuple[TypedValue, Shards, dict[int, float]]]:
        """All logical keys, their metadata, and write units by epoch hour; a Scan."""
        more: dict[str, Any] = {"TableName": self.table, "ConsistentRead": True}
        while True:
            page = self.calls.read("scan", **more)
            for item in page["Items"]:
                if item[self.partition.name] != self._total_key():
                    yield item[self.partition.name], from_item(item), traffic_of(item)
            if "LastEvaluatedKey" not in page:
                return
            more["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def key(self, logical: TypedValue) -> dict[str, TypedValue]:
        """The metadata item's key."""
        return {self.partition.name: logical}

    def _ask(self, logical: TypedValue, register: bool) -> Known:
        Names(self.partition.type, self.separator).physical(logical, 1)  # or it is no key
        if logical == self._total_key():
            raise CannotStart(f"{TOTAL_KEY} is not possible as a logical key: Keyhop uses it.")
        sent = self.calls.clock.monotonic()
        answer = self.calls.read_metadata(TableName=self.table, Key=self.key(logical))
        if "Item" in answer:
            return self._adopt(logical, answer["Item"], sent)
        if _name(logical) in self._known:
            raise self._gone()
        if register:
            return self._register(logical)
        lone = Shards.registered(0.0, LEAST_SETTLE_SECONDS, None)
        now = self.calls.clock.monotonic()
        return Known(lone, "0", now, sent + LEAST_SETTLE_SECONDS / 2, registered=False)

    def _register(self, logical: TypedValue) -> Known:
        clock = self.calls.clock
        placement = None if self.placement is None else self._agreed()
        shards = Shards.registered(clock.time(), self.settle, placement)
        sent = clock.monotonic()
        try:
            self.calls.read(
                "put_item",
                TableName=self.table,
                Item={**self.key(logical), **to_item(shards)},
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": self.partition.name},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if code_of(error) != _REFUSED:
                raise
            return self._adopt(logical, error.response.get("Item"), sent)
        return self._remember(logical, shards, str(shards.last_updated), sent)

    def _adopt(
        self, logical: TypedValue, item: Mapping[str, TypedValue] | None, sent: float
    ) -> Known:
        """What the table says: an answer, or what a lost race tells (ALL_OLD)."""
        if not item:  # deleted, or an endpoint that does not tell
            answer = self.calls.read_metadata(TableName=self.table, Key=self.key(logical))
            if "Item" not in answer:
                raise self._gone()
            item = answer["Item"]
        shards = from_item(item)
        agreed = self._agreed()
        if None not in (agreed, shards.placement) and agreed != shards.placement:
            raise CannotStart(
                f"The key's shards are chosen as {shards.placement!r}, not {agreed!r}: all users "
                "of a table must have the same placement, hash, append_only and separator."
            )
        return self._remember(logical, shards, item["last_updated"]["N"], sent)

    def _remember(self, logical: TypedValue, shards: Shards, version: str, sent: float) -> Known:
        name = _name(logical)
        now = self.calls.clock.monotonic()
        with self._lock:
            before = self._known.get(name)
            since, expires = now, sent + shards.settle / 2
            if before is not None and before.version == version:
                since, expires = before.since, max(expires, before.expires)
            elif before is not None and before.shards.last_updated > shards.last_updated:
                return before  # this answer was overtaken by a later one
            known = Known(shards, version, since, expires)
            self._known[name] = known
            self._known.move_to_end(name)
            if len(self._known) > self.cached_keys:
                forgotten, _ = self._known.popitem(last=False)
                self._asking.pop(forgotten, None)
        return known

    def _gone(self) -> CannotStart:
        return CannotStart(
            f"The shard metadata of a key is gone from {self.table}: without it the key's items "
            "cannot be found; restore it (point-in-time recovery)."
        )

    def _agreed(self) -> str | None:
        return None if self.placement is None else f"{self.placement.name} {self.separator}"

    def _report(self, logical: TypedValue, units: float) -> None:
        hour = str(int(self.calls.clock.time() // 3600))
        told = {":u": {"N": f"{units:.0f}"}}
        try:
            self.calls.read(
                "update_item",
                TableName=self.table,
                Key=self.key(logical),
                UpdateExpression="ADD traffic.#h :u",
                ConditionExpression="attribute_exists(traffic)",
                ExpressionAttributeNames={"#h": hour},
                ExpressionAttributeValues=told,
            )
        except ClientError as error:
            if code_of(error) not in (_REFUSED, "ValidationException"):
                raise
            try:
                self.calls.read(
                    "update_item",
                    TableName=self.table,
                    Key=self.key(logical),
                    UpdateExpression="SET traffic = :t",
                    ConditionExpression="attribute_exists(#n) AND attribute_not_exists(traffic)",
                    ExpressionAttributeNames={"#n": "number_of_shards"},
                    ExpressionAttributeValues={":t": {"M": {hour: told[":u"]}}},
                )
            except ClientError as another:
                if code_of(another) != _REFUSED:
                    raise

    def _total_key(self) -> dict[str, str | bytes]:
        content = TOTAL_KEY if self.partition.type == "S" else TOTAL_KEY.encode()
        return {self.partition.type: content}


def traffic_of(item: Mapping[str, TypedValue]) -> dict[int, float]:
    """Write units by epoch hour, as writers have reported them."""
    reported = item.get("traffic", {}).get("M", {})
    return {int(hour): float(units["N"]) for hour, units in reported.items()}


def _name(logical: TypedValue) -> Any:
    ((type_, content),) = logical.items()
    return type_, content
