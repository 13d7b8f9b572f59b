"""The keeper: reconciles the item collections that a batch of stream records names.

`Collections` carries out the protocol (protocol.py) for single item collections; walks use it too.
It is the only place that writes to a user's table, and it writes only sentinels. Every read is
strongly consistent. A write is conditional: a sentinel is put only where no item is, and deleted
only if it carries the marker, with its value. All calls are retried while that can help, and
counted.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import ItemCalls, Written
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE, SENTINEL_WRITE_UNITS
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, canonical, from_json
from keyhop.errors import GaveUp, Stopped
from keyhop.key_index.protocol import (
    Call,
    Place,
    after_look,
    after_put,
    after_read,
    first_call,
    shown_by,
)
from keyhop.key_index.registry import Fence
from keyhop.key_index.sentinel import MARK, MARKER, Sentinel
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.streams.event_source import BatchResult, OnFailure, Record

logger = logging.getLogger(__name__)

MOST_ROUNDS = 50
"""The maximum rounds of one reconciliation: more are needed if others write all the time."""

THREADS = 8
LOOK_ITEMS = 2
LARGE_ITEM_BYTES = 8192
"""The mean size of items from which a look reads a single item first. Two such items cost four read
units or more, and a second read costs at most one unit more than the first one saves."""


@dataclass(slots=True)
class Change:
    """The records of one partition key, which may all be inserts of users' items."""

    partition: Key
    only_inserts: bool = True
    sequence_numbers: list[str] = field(default_factory=list)


def keep(
    records: Sequence[Record],
    collections: "Collections",
    on_failure: OnFailure = lambda error: None,
    *,
    withdraw: Callable[[], None],
) -> BatchResult:
    """Reconcile each partition key of a batch once. The failure of one does not stop the others.

    A record only identifies a partition key to look at. For each collection in which an item of a
    user occupies the place of the sentinel, `withdraw` withdraws the trust in the index. If that
    fails, the records of the collection come again.
    """
    failed: list[str] = []
    changes: dict[Any, Change] = {}
    for record in records:
        try:
            _add(changes, record, collections.sentinel)
        except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
            on_failure(error)
            failed.append(str(record.get("dynamodb", {}).get("SequenceNumber", "")))

    def attempt(change: Change) -> list[str]:
        first = first_call(change.only_inserts)
        try:
            collections.reconcile(change.partition, first, withdraw=withdraw)
        except Stopped:
            raise
        except Exception as error:
            on_failure(error)
            return change.sequence_numbers
        return []

    with ThreadPoolExecutor(THREADS) as pool:
        remaining = _without_kept(list(changes.values()), collections)
        failed += chain(*pool.map(attempt, remaining))
    return BatchResult(len(records), len(changes), tuple(failed))


def _add(changes: dict[Any, Change], record: Record, sentinel: Sentinel) -> None:
    event, name = record["eventName"], sentinel.partition.name
    keys = from_json(record["dynamodb"]["Keys"])
    is_own = sentinel.is_at_place(keys)
    if event == "MODIFY" and not is_own:
        return
    change = changes.setdefault(canonical(keys[name]), Change({name: keys[name]}))
    change.only_inserts = change.only_inserts and event == "INSERT" and not is_own
    change.sequence_numbers.append(record["dynamodb"]["SequenceNumber"])


def _without_kept(changes: list[Change], collections: "Collections") -> list[Change]:
    """Return the changes without the inserts whose collection has its sentinel.

    This is the READ of the protocol, for many collections in one request. The other inserts
    continue with a look, as after a READ.
    """
    name = collections.sentinel.partition.name
    inserts = [change.partition for change in changes if change.only_inserts]
    if len(inserts) < 2:
        return changes
    try:
        right = {canonical(key[name]) for key in collections.read_many(inserts)}
    except Stopped:
        raise
    except Exception as error:  # one key that cannot be read must not hold up the others
        logger.warning("inserts are read one by one: %s", type(error).__name__)
        return changes
    remaining = []
    for change in changes:
        if change.only_inserts and canonical(change.partition[name]) in right:
            continue
        change.only_inserts = False
        remaining.append(change)
    return remaining


class Collections(ItemCalls):
    """The item collections of one table, for any number of threads.

    The usage also counts `writes`, `put`, `deleted`, and `occupied`: places that hold an item of a
    user.

    Args:
        item_bytes: The mean size of the items of the table, if it is known.
        fence: Lets writes pass, or raises IndexBusy; None for the keeper, which needs no lease.
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        sentinel: Sentinel,
        *,
        item_bytes: float | None = None,
        writes: Budget | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        ends_at: float | None = None,
        stop: Event | None = None,
        fence: Fence | None = None,
    ) -> None:
        super().__init__(
            connection,
            table,
            writes=writes,
            patience=patience,
            ends_at=ends_at,
            stop=stop,
            check=(lambda: None) if fence is None else fence.check,
        )
        self.sentinel = sentinel
        self.is_fenced = fence is not None
        self._items_are_large = (item_bytes or 0.0) >= LARGE_ITEM_BYTES
        self._names = {"#p": sentinel.partition.name, "#s": sentinel.sort.name, "#m": MARKER}

    def reconcile(
        self,
        partition: Key,
        first: Call,
        *,
        items: bool = False,
        looks_again: bool = False,
        wrote: Callable[[], None] = lambda: None,
        withdraw: Callable[[], None] = lambda: None,
    ) -> Call | None:
        """Make the calls of the protocol for a collection until it is done.

        Args:
            items: Whether the collection is known to hold items of users.
            looks_again: Whether to look once more after each write, because no keeper will process
                a record of it.
            wrote: Is called once, after the first write.
            withdraw: Is called if an item of a user occupies the place of the sentinel.

        Returns:
            WITHDRAW if an item of a user occupies the place of the sentinel. Otherwise the first
            write, or None if nothing was wrong.

        Raises:
            GaveUp: Others write to the collection all the time.
        """
        call: Call | None = first
        acted: Call | None = None
        for _ in range(MOST_ROUNDS):
            if call is None:
                return acted
            if call is Call.READ:
                call = after_read(self.read(partition), items)
            elif call is Call.LOOK:
                items, sentinel = self.look(partition)
                call = after_look(items, sentinel)
            elif call is Call.WITHDRAW:
                withdraw()
                return call
            elif call is Call.PUT and not self.put(partition):
                call = after_put(Place.OCCUPIED)
            else:
                if call is Call.DELETE:
                    self.delete(partition)
                if acted is None:
                    wrote()
                acted = acted or call
                call = Call.LOOK if looks_again else None
        raise GaveUp("An item collection was written to continuously while it was read.")

    def wrong(self, partition: Key, first: Call = Call.LOOK) -> str | None:
        """Return "missing", "surplus" or "occupied", or None if nothing is wrong with a collection.

        All reads are strongly consistent. Begin with READ if the collection is known to hold items.
        """
        if first is Call.LOOK:
            items, sentinel = self.look(partition)
            if not items:
                return "surplus" if sentinel else None
            if sentinel:
                return None
        place = self.read(partition)
        if place is Place.FREE and first is Call.READ:
            return self.wrong(partition)  # its items may be gone by now
        return {Place.FREE: "missing", Place.OCCUPIED: "occupied", Place.SENTINEL: None}[place]

    def read(self, partition: Key) -> Place:
        """Return the content of the sentinel's place."""
        answer = self._read("get_item", **self._projection(), Key=self.sentinel.key_of(partition))
        item = answer.get("Item")
        if item is None:
            return Place.FREE
        if self.sentinel.is_one(item):
            return Place.SENTINEL
        self.usage.count(occupied=1)
        return Place.OCCUPIED

    def read_many(self, partitions: Iterable[Key]) -> list[Key]:
        """Return those of distinct partition keys whose collection has its sentinel."""
        name = self.sentinel.partition.name
        keys = [self.sentinel.key_of(partition) for partition in partitions]
        sentinels: list[Key] = []
        for at in range(0, len(keys), MOST_KEYS_AT_ONCE):
            items = self._read_batch(keys[at : at + MOST_KEYS_AT_ONCE], self._projection())
            sentinels += [{name: item[name]} for item in items if self.sentinel.is_one(item)]
        return sentinels

    def look(self, partition: Key) -> tuple[bool, bool | None]:
        """Read the first two items of a collection (`shown_by`).

        Where items are large, this reads the first item only if that is an item of a user. Then it
        is unknown whether the sentinel comes after it.
        """
        if self._items_are_large and self._first(partition, 1) == [False]:
            return True, None
        return shown_by(self._first(partition, LOOK_ITEMS))

    def put(self, partition: Key) -> bool:
        """Put the sentinel if nothing has its key; return False if a user's item has it."""
        written = self._put_or_delete(
            "put_item",
            Item=self.sentinel.item_of(partition),
            ConditionExpression="attribute_not_exists(#p)",
            ExpressionAttributeNames={"#p": self._names["#p"]},
        )
        if written.refused is None:
            self.usage.count(put=1)
            return True
        item = written.old
        if item is None or self.sentinel.is_one(item):
            return True
        self.usage.count(occupied=1)
        return False

    def delete(self, partition: Key) -> None:
        """Delete the sentinel if it carries the marker."""
        written = self._put_or_delete(
            "delete_item",
            Key=self.sentinel.key_of(partition),
            ConditionExpression="#m = :mark",
            ExpressionAttributeNames={"#m": MARKER},
            ExpressionAttributeValues={":mark": MARK},
        )
        if written.refused is None:
            self.usage.count(deleted=1)

    def _first(self, partition: Key, items: int) -> list[bool]:
        """Return, for each of the first items of a collection, whether it is the sentinel."""
        answer = self._read(
            "query",
            **self._projection(),
            KeyConditionExpression="#p = :p",
            ExpressionAttributeValues={":p": partition[self.sentinel.partition.name]},
            Limit=items,
            Select="SPECIFIC_ATTRIBUTES",  # as IAM demands it
        )
        return [self.sentinel.is_one(item) for item in answer["Items"]]

    def _projection(self) -> dict[str, Any]:
        return {
            "ProjectionExpression": ", ".join(self._names),
            "ExpressionAttributeNames": self._names,
        }

    def _put_or_delete(self, operation: str, **parameters: Any) -> Written:
        written = self._write(
            operation,
            SENTINEL_WRITE_UNITS,
            TableName=self._table,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **parameters,
        )
        self.usage.count(writes=1)
        return written


def usage_json(usage: Usage) -> dict[str, Any]:
    """Return the usage as plain JSON."""
    counters = usage.counters
    return {
        "reads": usage.requests - counters["writes"],
        "read_units": round(usage.read_units, 3),
        "writes": counters["writes"],
        "write_units": round(usage.write_units, 3),
        "put": counters["put"],
        "deleted": counters["deleted"],
        "occupied": counters["occupied"],
        "retries": usage.retries,
        "throttles": dict(sorted(usage.throttles.items())),
    }
