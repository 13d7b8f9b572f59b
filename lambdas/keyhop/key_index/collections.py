"""Single item collections: the only place that writes to a user's table, and only sentinels.

Every read is strongly consistent. A write is conditional: a sentinel is put only where no item is,
and deleted only if it carries the marker, with its value. All calls are retried while that can
help, and counted.
"""

from collections.abc import Iterable
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import MOST_KEYS_AT_ONCE, ItemCalls, Written
from keyhop.dynamodb.units import SENTINEL_WRITE_UNITS
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.key_index.protocol import Place, Seen
from keyhop.key_index.registry import Fence
from keyhop.key_index.sentinel import MARK, MARKER, Sentinel
from keyhop.retries import DEFAULT_PATIENCE_SECONDS

LOOK_ITEMS = 2
LARGE_ITEM_BYTES = 8192
"""Of the table's mean item: a look at two such items costs four read units or more, and one that
asks for a single item first, one unit more than it saves at worst."""


class Collections(ItemCalls):
    """The item collections of one table, for any number of threads.

    The other arguments are those of ItemCalls.

    Args:
        usage: Also counts `writes`, `put`, `deleted`, and `occupied`: places that hold an item of a
            user.
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
        self._names = {
            "#p": sentinel.partition.name,
            "#s": sentinel.sort.name,
            "#m": MARKER,
        }

    def read(self, partition: Key) -> Place:
        """Return what the place of the collection's sentinel holds."""
        place = self._place(self._get(partition))
        self.usage.count(occupied=place is Place.OCCUPIED)
        return place

    def read_many(self, partitions: Iterable[Key]) -> list[Key]:
        """Return those of distinct partition keys whose collection has its sentinel."""
        remaining_keys = list(partitions)
        sentinels: list[Key] = []
        for at in range(0, len(remaining_keys), MOST_KEYS_AT_ONCE):
            keys = [
                self.sentinel.key_of(key) for key in remaining_keys[at : at + MOST_KEYS_AT_ONCE]
            ]
            items = self._read_batch(keys, self._projection())
            name = self.sentinel.partition.name
            sentinels += [{name: item[name]} for item in items if self.sentinel.is_one(item)]
        return sentinels

    def look(self, partition: Key) -> Seen:
        """Read the first two items of a collection.

        Where items are large, this reads the first item only if that is an item of a user. Then it
        is unknown whether the sentinel comes after it.
        """
        if self._items_are_large and self._first(partition, 1) == [False]:
            return Seen(items=True, sentinel=None)
        return Seen.of(self._first(partition, LOOK_ITEMS))

    def put(self, partition: Key) -> bool:
        """Put the sentinel if nothing has its key; False if a user's item has it."""
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

    def _place(self, item: Key | None) -> Place:
        if item is None:
            return Place.FREE
        return Place.SENTINEL if self.sentinel.is_one(item) else Place.OCCUPIED

    def _get(self, partition: Key) -> Key | None:
        answer = self._read("get_item", **self._projection(), Key=self.sentinel.key_of(partition))
        item: Key | None = answer.get("Item")
        return item

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
    """Return the usage as plain JSON. It contains no keys."""
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
