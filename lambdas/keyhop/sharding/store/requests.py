"""Requests about single items, counted, and repeated while that can help."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import is_transient
from keyhop.dynamodb.requester import READS, WRITES, error_code, send, units_of
from keyhop.dynamodb.throttling import NO_REASON, is_throttling, reason_names
from keyhop.dynamodb.usage import Usage
from keyhop.retries import repeat
from keyhop.sharding.store.clock import Clock, SystemClock

T = TypeVar("T")

FIRST_BACKOFF_SECONDS = 0.05
LONGEST_BACKOFF_SECONDS = 1.0
MOST_KEYS_AT_ONCE = 100
"""Of one BatchGetItem (AWS documentation)."""
THROTTLED = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})
"""Codes of a cancelled transaction."""

_CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
_CANCELLED = "TransactionCanceledException"


class Overtaken(Exception):
    """What was looked at has changed meanwhile: look again. Nothing was written."""


@dataclass(slots=True)
class Requests:
    """The client's requests. patience: seconds for which one is repeated at most.

    client: Keyhop's, or boto3's `client("dynamodb")`, which should not retry by itself
    (total_max_attempts=1), or it hides throttles. usage: requests of all kinds, those of the
    metadata among them. Its counters are metadata_reads, looks (for an item in the shards where it
    may be, before a write), moves (of items from one shard to another), hot_throttles (of a hot
    key range of the table), shards_added, shards_removed, races_lost, at_maximum (a hot key had the
    most shards allowed), and probes.
    """

    client: Any
    clock: Clock = field(default_factory=SystemClock)
    patience: float = 30.0
    usage: Usage = field(default_factory=Usage)
    chance: random.Random = field(default_factory=random.Random)

    def once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request, by boto3's name for it; counted. Raises what boto3's client raises."""
        if operation in WRITES or operation in READS:
            parameters["ReturnConsumedCapacity"] = "TOTAL"
        self.usage.count(requests=1)
        try:
            answer = send(self.client, operation, parameters)
        except ClientError as error:
            if is_throttled(error):
                self.usage.count_throttle(reason_names(error.response))
            raise
        kind = "write_units" if operation in WRITES else "read_units"
        self.usage.count(**{kind: units_of(answer)})
        return answer

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """A request that may be repeated, and is while it is throttled or fails for the moment."""
        return self.patiently(lambda: self.once(operation, **parameters))

    def update(
        self,
        table: str,
        key: Mapping[str, Any],
        update: str,
        names: Mapping[str, str],
        values: Mapping[str, Any] | None = None,
        condition: str = "",
        **more: Any,
    ) -> None:
        """One UpdateItem, by expressions; as `once`."""
        if values:
            more["ExpressionAttributeValues"] = values
        if condition:
            more["ConditionExpression"] = condition
        self.once(
            "update_item",
            TableName=table,
            Key=key,
            UpdateExpression=update,
            ExpressionAttributeNames=names,
            **more,
        )

    def read_metadata(self, **parameters: Any) -> dict[str, Any]:
        """GetItem of shard metadata, strongly consistent."""
        self.usage.count(metadata_reads=1)
        return self.call("get_item", ConsistentRead=True, **parameters)

    def read_items(
        self, table: str, keys: list[dict[str, Any]], consistent: bool, **projection: Any
    ) -> list[dict[str, Any]]:
        """Those of distinct keys that are there; in no order."""
        if len(keys) == 1:
            answer = self.call(
                "get_item", TableName=table, Key=keys[0], ConsistentRead=consistent, **projection
            )
            return [answer["Item"]] if "Item" in answer else []
        items: list[dict[str, Any]] = []
        for at in range(0, len(keys), MOST_KEYS_AT_ONCE):
            items += self._read_batch(
                table, keys[at : at + MOST_KEYS_AT_ONCE], consistent, projection
            )
        return items

    def _read_batch(
        self,
        table: str,
        keys: list[dict[str, Any]],
        consistent: bool,
        projection: Mapping[str, Any],
    ) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        left = keys

        def attempt() -> None:
            nonlocal left
            wanted = {table: {"Keys": left, "ConsistentRead": consistent, **projection}}
            answer = self.once("batch_get_item", RequestItems=wanted)
            items.extend(next(iter(answer["Responses"].values()), []))
            left = [key for more in answer["UnprocessedKeys"].values() for key in more["Keys"]]
            if left:  # they were throttled, though the service does not call it so
                self.usage.count_throttle((NO_REASON,))
                code = "ProvisionedThroughputExceededException"
                raise ClientError(
                    {"Error": {"Code": code, "Message": "Keys were left over"}}, "BatchGetItem"
                )

        self.patiently(attempt)
        return items

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Do it again while it is throttled, fails for the moment, or was overtaken."""
        deadline = self.clock.monotonic() + self.patience
        return repeat(
            attempt,
            may_succeed_later,
            first=FIRST_BACKOFF_SECONDS,
            longest=LONGEST_BACKOFF_SECONDS,
            failed=lambda _: self.usage.count(retries=1),
            is_enough=lambda *_: self.clock.monotonic() >= deadline,
            sleep=self.clock.sleep,
        )


def may_succeed_later(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment."""
    if isinstance(error, Overtaken) or error_code(error) in _CONFLICTS:
        return True
    return is_throttled(error) or is_transient(error)


def is_throttled(error: BaseException) -> bool:
    """Whether a request was throttled; then it has certainly written nothing."""
    if not isinstance(error, ClientError):
        return False
    if error_code(error) == _CANCELLED:
        return any(code in THROTTLED for code in cancellations(error))
    return is_throttling(error.response)


def is_ambiguous(error: BaseException) -> bool:
    """Whether a request may have written all the same: no answer, or none that tells."""
    if isinstance(error, ClientError):
        return not is_throttled(error) and is_transient(error)
    return isinstance(error, BotoCoreError)


def cancellations(error: ClientError) -> list[str]:
    """Of a cancelled transaction: a code for each of its items, "None" for those not at fault."""
    if error_code(error) != _CANCELLED:
        return []
    return [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
