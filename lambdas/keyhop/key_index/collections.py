"""Single item collections: the only place that writes to a user's table, and only sentinels.

Every read is strongly consistent. A write is conditional: a sentinel is put only where no item is,
and deleted only if it carries the marker. All calls are retried while that can help, and counted.
"""

from collections.abc import Iterable, Mapping
from threading import Event, Lock
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.capacity import SENTINEL_WRITE_UNITS
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import CONDITION_FAILED, Requester, error_code, units_of
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import GaveUp
from keyhop.key_index.protocol import Seen
from keyhop.key_index.sentinel import MARKER, Sentinel
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, FIRST_SECONDS
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import pause

LONGEST_BACKOFF_SECONDS = 5.0
LOOK_ITEMS = 2
MOST_KEYS_AT_ONCE = 100
"""Of one BatchGetItem (AWS documentation)."""

REFUSED_WRITE_UNITS = 1.0
"""A conditional write that fails costs as much as the item that stands in its way (AWS
documentation); the answer does not tell."""


class Collections:
    """The item collections of one table; for any number of threads at once.

    usage: counts also `put`, `deleted`, and `occupied`: places that a user's item holds.
    writes: limits write units a second. patience: seconds of nothing but failures, until GaveUp.
    ends_at: a moment of the connection's clock after which no call is begun (GaveUp). over: set
    when the slice that the calls belong to is over; then no call is begun (Stopped).
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        sentinel: Sentinel,
        *,
        writes: Budget | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        ends_at: float | None = None,
        stop: Event | None = None,
    ) -> None:
        self.sentinel = sentinel
        self.usage = Usage()
        self.stop = stop or Event()
        self.over: Event | None = None
        self._ends_at = ends_at
        self._table = table
        self._writes = writes or Budget()
        self._clock = connection.clock
        self._lock = Lock()
        self._requester = Requester(
            connection.client,
            table,
            usage=self.usage,
            endpoint=connection.endpoint,
            patience=patience,
            longest_wait=LONGEST_BACKOFF_SECONDS,
            pause=self.pause,
            on_throttle=self._on_throttle,
            clock=self._clock,
        )
        self._names = {
            "#p": sentinel.partition.name,
            "#s": sentinel.sort.name,
            "#m": MARKER,
        }

    def read(self, partition: Key) -> bool:
        """Whether the collection has its sentinel."""
        item = self._get(partition)
        return item is not None and self.sentinel.is_one(item)

    def is_occupied(self, partition: Key) -> bool:
        """Whether an item that is no sentinel has the sentinel's key."""
        item = self._get(partition)
        return item is not None and not self.sentinel.is_one(item)

    def read_many(self, partitions: Iterable[Key]) -> list[Key]:
        """Those of distinct partition keys whose collection has its sentinel."""
        wanted = list(partitions)
        found: list[Key] = []
        for at in range(0, len(wanted), MOST_KEYS_AT_ONCE):
            keys = [self.sentinel.key_of(key) for key in wanted[at : at + MOST_KEYS_AT_ONCE]]
            found += self._read_batch(keys)
        return found

    def look(self, partition: Key) -> Seen:
        """The collection's first two items."""
        answer = self._read(
            "query",
            KeyConditionExpression="#p = :p",
            ExpressionAttributeValues={":p": partition[self.sentinel.partition.name]},
            Limit=LOOK_ITEMS,
            Select="SPECIFIC_ATTRIBUTES",  # as IAM demands it
        )
        return Seen.of([self.sentinel.is_one(item) for item in answer["Items"]])

    def put(self, partition: Key) -> bool:
        """Put the sentinel if nothing has its key; False if a user's item has it."""
        refused = self._write(
            "put_item",
            Item=self.sentinel.item_of(partition),
            ConditionExpression="attribute_not_exists(#p)",
            ExpressionAttributeNames={"#p": self._names["#p"]},
        )
        if refused is None:
            self.usage.count(put=1)
            return True
        item = refused.response.get("Item")
        if item is None or self.sentinel.is_one(item):
            return True
        self.usage.count(occupied=1)
        return False

    def delete(self, partition: Key) -> None:
        """Delete the sentinel if it carries the marker."""
        refused = self._write(
            "delete_item",
            Key=self.sentinel.key_of(partition),
            ConditionExpression="attribute_type(#m, :n)",
            ExpressionAttributeNames={"#m": MARKER},
            ExpressionAttributeValues={":n": {"S": "N"}},
        )
        if refused is None:
            self.usage.count(deleted=1)

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold the writes under `max_rate` write units a second."""
        with self._lock:
            self._writes.limit_rate(self._clock(), max_rate)

    def pause(self, seconds: float) -> None:
        """Wait; raises Stopped as soon as the run is to stop, or the slice is over; GaveUp."""
        if self._ends_at is not None and self._clock() + seconds >= self._ends_at:
            raise GaveUp("There was no time left.")
        pause(self.stop, self.over, seconds)

    def _get(self, partition: Key) -> Key | None:
        answer = self._read("get_item", Key=self.sentinel.key_of(partition))
        item: Key | None = answer.get("Item")
        return item

    def _projection(self) -> dict[str, Any]:
        return {
            "ConsistentRead": True,
            "ProjectionExpression": ", ".join(self._names),
            "ExpressionAttributeNames": self._names,
        }

    def _read(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self.pause(0)
        # A strongly consistent read costs one unit at least.
        return self._requester.call(
            operation,
            1.0,
            TableName=self._table,
            ReturnConsumedCapacity="TOTAL",
            **self._projection(),
            **parameters,
        )

    def _read_batch(self, keys: list[Key]) -> list[Key]:
        found: list[Key] = []
        waiting: dict[str, Any] = {self._table: {"Keys": keys, **self._projection()}}
        pauses = 0
        began = self._clock()
        while waiting:
            self.pause(0)
            answer = self._requester.call(
                "batch_get_item", RequestItems=waiting, ReturnConsumedCapacity="TOTAL"
            )
            left = answer.get("UnprocessedKeys") or {}
            # DynamoDB Local charges nothing for an item that is not there; the service does.
            least = _count_keys(waiting) - _count_keys(left)
            self.usage.count(read_units=max(0.0, least - units_of(answer)))
            for items in answer["Responses"].values():
                found += [
                    {self.sentinel.partition.name: item[self.sentinel.partition.name]}
                    for item in items
                    if self.sentinel.is_one(item)
                ]
            waiting = left
            if waiting:  # the service's other way to throttle
                self.usage.count(retries=1)
                self.pause(min(LONGEST_BACKOFF_SECONDS, FIRST_SECONDS * 2**pauses))
                pauses += 1
                if self._clock() - began > self._requester.patience.seconds:
                    raise GaveUp(f"Table {self._table!r} has no room for reads.")
        return found

    def _write(self, operation: str, **parameters: Any) -> ClientError | None:
        """None if it was written; else the error that tells what stands there instead."""
        with self._lock:
            delay = self._writes.reserve(self._clock(), SENTINEL_WRITE_UNITS)
        units = 0.0
        try:
            self.pause(delay)
            answer = self._requester.call(
                operation,
                TableName=self._table,
                ReturnConsumedCapacity="TOTAL",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **parameters,
            )
            units = units_of(answer)
            self.usage.count(writes=1)
            return None
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            units = REFUSED_WRITE_UNITS
            self.usage.count(requests=1, writes=1, write_units=units)
            return error
        finally:
            with self._lock:
                self._writes.settle(self._clock(), SENTINEL_WRITE_UNITS, units)

    def _on_throttle(self) -> None:
        with self._lock:
            self._writes.throttled(self._clock())


def usage_json(usage: Usage) -> dict[str, Any]:
    """What calls on collections have come to, as plain JSON; it holds no keys."""
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


def _count_keys(requested: Mapping[str, Any]) -> int:
    return sum(len(table["Keys"]) for table in requested.values())
