"""Single item collections: the only place that writes to a user's table, and only sentinels.

Every read is strongly consistent. A write is conditional: a sentinel is put only where no item is,
and deleted only if it carries the marker. All calls are retried while that can help, and counted.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from keyhop.dynamodb.capacity import SENTINEL_WRITE_UNITS
from keyhop.dynamodb.client import DynamoDB, Endpoint, explained, is_transient
from keyhop.dynamodb.throttling import is_throttling, reason_names
from keyhop.dynamodb.values import Key, to_json
from keyhop.errors import GaveUp
from keyhop.key_index.protocol import Seen
from keyhop.key_index.sentinel import MARKER, Sentinel
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import FIRST_BACKOFF_SECONDS, LONGEST_WAIT_SECONDS, Patience, Stopped

LONGEST_BACKOFF_SECONDS = 5.0
LOOK_ITEMS = 2
MOST_KEYS_AT_ONCE = 100
"""Of one BatchGetItem (AWS documentation)."""

REFUSED_WRITE_UNITS = 1.0
"""A conditional write that fails costs as much as the item that stands in its way (AWS
documentation); the answer does not tell."""


@dataclass(slots=True)
class Spent:
    """What calls on collections have come to. occupied: places that a user's item holds."""

    reads: int = 0
    read_units: float = 0.0
    writes: int = 0
    write_units: float = 0.0
    put: int = 0
    deleted: int = 0
    occupied: int = 0
    retries: int = 0
    throttles: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; it holds no keys."""
        return {
            "reads": self.reads,
            "read_units": round(self.read_units, 3),
            "writes": self.writes,
            "write_units": round(self.write_units, 3),
            "put": self.put,
            "deleted": self.deleted,
            "occupied": self.occupied,
            "retries": self.retries,
            "throttles": dict(sorted(self.throttles.items())),
        }


class Collections:
    """The item collections of one table; for any number of threads at once.

    writes: limits write units a second. patience: seconds of nothing but failures, until GaveUp.
    ends_at: a moment of `clock` after which no call is begun (GaveUp). over: set by a walk when the
    slice that it is in is over; then no call is begun (Stopped).
    """

    def __init__(
        self,
        client: DynamoDB,
        table: str,
        sentinel: Sentinel,
        *,
        writes: Budget | None = None,
        endpoint: Endpoint | None = None,
        patience: float = 300.0,
        ends_at: float | None = None,
        stop: Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sentinel = sentinel
        self.spent = Spent()
        self.stop = stop or Event()
        self.over: Event | None = None
        self._ends_at = ends_at
        self._client = client
        self._table = table
        self._writes = writes or Budget()
        self._endpoint = endpoint or Endpoint()
        self._patience = Patience(patience)
        self._clock = clock
        self._lock = Lock()
        self._names = {
            "#p": sentinel.partition.name,
            "#s": sentinel.sort.name,
            "#m": MARKER,
        }

    def read(self, partition: Key) -> bool:
        """Whether the collection has its sentinel."""
        answer = self._read(
            "get_item",
            TableName=self._table,
            Key=self.sentinel.key_of(partition),
            **self._projection(),
        )
        return "Item" in answer and self.sentinel.is_one(answer["Item"])

    def read_many(self, partitions: Iterable[Key]) -> list[Key]:
        """Those of distinct partition keys whose collection has its sentinel."""
        asked = list(partitions)
        found: list[Key] = []
        for at in range(0, len(asked), MOST_KEYS_AT_ONCE):
            keys = [self.sentinel.key_of(key) for key in asked[at : at + MOST_KEYS_AT_ONCE]]
            found += self._read_batch(keys)
        return found

    def look(self, partition: Key) -> Seen:
        """The collection's first two items."""
        answer = self._read(
            "query",
            TableName=self._table,
            KeyConditionExpression="#p = :p",
            ExpressionAttributeValues={":p": partition[self.sentinel.partition.name]},
            Limit=LOOK_ITEMS,
            Select="SPECIFIC_ATTRIBUTES",  # as IAM demands it
            **self._projection(),
        )
        return Seen.of([self.sentinel.is_one(item) for item in answer["Items"]])

    def put(self, partition: Key) -> bool:
        """Put the sentinel if nothing has its key; False if a user's item has it."""
        try:
            self._write(
                "put_item",
                Item=self.sentinel.item_of(partition),
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": self._names["#p"]},
            )
        except _Refused as refused:
            if refused.item is None or self.sentinel.is_one(refused.item):
                return True
            with self._lock:
                self.spent.occupied += 1
            return False
        with self._lock:
            self.spent.put += 1
        return True

    def delete(self, partition: Key) -> None:
        """Delete the sentinel if it carries the marker."""
        try:
            answer = self._write(
                "delete_item",
                Key=self.sentinel.key_of(partition),
                ConditionExpression="attribute_type(#m, :n)",
                ExpressionAttributeNames={"#m": MARKER},
                ExpressionAttributeValues={":n": {"S": "N"}},
                ReturnValues="ALL_OLD",
            )
        except _Refused:
            return
        with self._lock:
            self.spent.deleted += "Attributes" in answer

    def is_occupied(self, partition: Key) -> bool:
        """Whether an item that is no sentinel has the sentinel's key."""
        key = self.sentinel.key_of(partition)
        answer = self._read("get_item", TableName=self._table, Key=key, **self._projection())
        return "Item" in answer and not self.sentinel.is_one(answer["Item"])

    def take(self) -> Spent:
        """What the calls came to since the last `take`."""
        with self._lock:
            spent, self.spent = self.spent, Spent()
        return spent

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold the writes under `max_rate` write units a second."""
        with self._lock:
            self._writes.limit_rate(self._clock(), max_rate)

    def pause(self, seconds: float) -> None:
        """Wait; raises Stopped as soon as the run is to stop, or the slice is over."""
        until = self._clock() + seconds
        while True:
            self._check_time()
            left = until - self._clock()
            if left <= 0:
                return
            self.stop.wait(min(left, LONGEST_WAIT_SECONDS))

    def _check_time(self) -> None:
        if self.stop.is_set() or (self.over is not None and self.over.is_set()):
            raise Stopped
        if self._ends_at is not None and self._clock() >= self._ends_at:
            raise GaveUp("There was no time left.")

    def _projection(self) -> dict[str, Any]:
        return {
            "ConsistentRead": True,
            "ProjectionExpression": ", ".join(self._names),
            "ExpressionAttributeNames": self._names,
            "ReturnConsumedCapacity": "TOTAL",
        }

    def _read_batch(self, keys: list[Key]) -> list[Key]:
        found: list[Key] = []
        projection = self._projection()
        capacity = projection.pop("ReturnConsumedCapacity")
        waiting: dict[str, Any] = {self._table: {"Keys": keys, **projection}}
        pauses = 0
        began = self._clock()
        while waiting:
            asked = _count_keys(waiting)
            answer = self._retried(
                "batch_get_item",
                {"RequestItems": waiting, "ReturnConsumedCapacity": capacity},
            )
            # DynamoDB Local charges nothing for an item that is not there; the service does.
            self._book_read(answer, asked - _count_keys(answer.get("UnprocessedKeys") or {}))
            for items in answer["Responses"].values():
                found += [
                    {self.sentinel.partition.name: item[self.sentinel.partition.name]}
                    for item in items
                    if self.sentinel.is_one(item)
                ]
            waiting = answer.get("UnprocessedKeys") or {}
            if waiting:  # the service's other way to throttle
                with self._lock:
                    self.spent.retries += 1
                self.pause(min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2**pauses))
                pauses += 1
                if self._clock() - began > self._patience.seconds:
                    raise GaveUp(f"Table {self._table!r} has no room for reads.")
        return found

    def _read(self, operation: str, **parameters: Any) -> dict[str, Any]:
        answer = self._retried(operation, parameters)
        self._book_read(answer, 1)
        return answer

    def _book_read(self, answer: Mapping[str, Any], items: int) -> None:
        """A strongly consistent read costs one unit at least for each item that is asked for."""
        told = answer.get("ConsumedCapacity") or {}
        charged = sum(
            one.get("CapacityUnits", 0.0) for one in (told if isinstance(told, list) else [told])
        )
        with self._lock:
            self.spent.reads += 1
            self.spent.read_units += max(float(items), charged)

    def _write(self, operation: str, **parameters: Any) -> dict[str, Any]:
        with self._lock:
            delay = self._writes.reserve(self._clock(), SENTINEL_WRITE_UNITS)
        units = 0.0
        try:
            self.pause(delay)
            answer = self._retried(
                operation,
                {
                    "TableName": self._table,
                    "ReturnConsumedCapacity": "TOTAL",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    **parameters,
                },
            )
            units = (answer.get("ConsumedCapacity") or {}).get("CapacityUnits", 0.0)
            return answer
        except _Refused:
            units = REFUSED_WRITE_UNITS
            raise
        finally:
            with self._lock:
                self._writes.settle(self._clock(), SENTINEL_WRITE_UNITS, units)
                self.spent.writes += 1
                self.spent.write_units += units

    def _retried(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._check_time()
        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            wait=wait_random_exponential(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS),
            before_sleep=self._book_failure,
            sleep=self.pause,
            reraise=True,
        )
        try:
            answer: dict[str, Any] = retrying(self._client.call, operation, **parameters)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
                self._patience.succeeded()
                raise _Refused(error.response.get("Item")) from error
            raise explained(error, self._endpoint, self._table) from error
        except BotoCoreError as error:
            raise explained(error, self._endpoint, self._table) from error
        self._patience.succeeded()
        return answer

    def _book_failure(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        with self._lock:
            self.spent.retries += 1
            if isinstance(error, ClientError) and is_throttling(error.response):
                for reason in reason_names(error.response):
                    self.spent.throttles[reason] = self.spent.throttles.get(reason, 0) + 1
                self._writes.throttled(self._clock())
            exhausted = self._patience.failed(self._clock())
        if exhausted and isinstance(error, (BotoCoreError, ClientError)):
            why = explained(error, self._endpoint, self._table)
            raise GaveUp(
                f"Nothing has succeeded for {self._patience.seconds:g} seconds. Last: {why}"
            ) from error


def _count_keys(requested: Mapping[str, Any]) -> int:
    return sum(len(table["Keys"]) for table in requested.values())


class _Refused(Exception):
    """A condition was not met. item: what stands there instead."""

    def __init__(self, item: Key | None) -> None:
        super().__init__()
        self.item = item


def name_of(partition: Key) -> str:
    """A partition key as text that tells it from all others."""
    (value,) = to_json(partition).values()
    ((type_, content),) = value.items()
    return f"{type_}{content}"
