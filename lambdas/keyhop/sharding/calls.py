"""Requests about single items, counted, and repeated while that can help."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from tenacity import Retrying, retry_if_exception, wait_random_exponential

from keyhop.dynamodb.client import is_transient
from keyhop.dynamodb.throttling import NO_REASON, is_throttling, reason_names
from keyhop.sharding.clock import Clock, SystemClock
from keyhop.sharding.counts import METADATA_READS, REQUESTS, RETRIES, Counts

T = TypeVar("T")

FIRST_BACKOFF_SECONDS = 0.025
LONGEST_BACKOFF_SECONDS = 1.0
MOST_KEYS_AT_ONCE = 100
"""Of one BatchGetItem (AWS documentation)."""

_CANCELLED = "TransactionCanceledException"
_CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
THROTTLED = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})
"""Codes of a cancelled transaction."""
_WRITES = frozenset(
    {"put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items"}
)
_READS = frozenset({"get_item", "query", "batch_get_item"})


class Again(Exception):
    """What was looked at has changed meanwhile: look again. Nothing was written."""


@dataclass(slots=True)
class Calls:
    """The client's calls. patience: seconds for which a call is repeated at most.

    client: Keyhop's, or boto3's `client("dynamodb")`, which should not retry by itself
    (total_max_attempts=1), or it hides throttles.
    """

    client: Any
    clock: Clock = field(default_factory=SystemClock)
    patience: float = 30.0
    counts: Counts = field(default_factory=Counts)
    chance: random.Random = field(default_factory=random.Random)

    def once(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """One request, by boto3's name for it; counted. Raises what boto3's client raises."""
        if operation in _WRITES or operation in _READS:
            parameters["ReturnConsumedCapacity"] = "TOTAL"
        self.counts.add(REQUESTS)
        call = getattr(self.client, "call", None)
        try:
            if call is not None:
                answer: dict[str, Any] = call(operation, **parameters)
            else:
                answer = getattr(self.client, operation)(**parameters)
        except ClientError as error:
            if is_throttled(error):
                self.counts.throttled(reason_names(error.response))
            raise
        self._note_units(operation, answer)
        return answer

    def read(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """A request that may be repeated, and is while it is throttled or fails for the moment."""
        return self.patiently(lambda: self.once(operation, **parameters))

    def read_metadata(self, **parameters: Any) -> dict[str, Any]:
        """GetItem of shard metadata, strongly consistent."""
        self.counts.add(METADATA_READS)
        return self.read("get_item", ConsistentRead=True, **parameters)

    def read_items(
        self, table: str, keys: list[dict[str, Any]], consistent: bool, **projection: Any
    ) -> list[dict[str, Any]]:
        """Those of distinct keys that are there; in no order."""
        if len(keys) == 1:
            answer = self.read(
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
            asked = {table: {"Keys": left, "ConsistentRead": consistent, **projection}}
            answer = self.once("batch_get_item", RequestItems=asked)
            items.extend(next(iter(answer["Responses"].values()), []))
            left = [key for more in answer["UnprocessedKeys"].values() for key in more["Keys"]]
            if left:
                self.counts.throttled((NO_REASON,))
                raise _unprocessed("BatchGetItem")

        self.patiently(attempt)
        return items

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Do it again while it is throttled, fails for the moment, or was overtaken."""
        deadline = self.clock.monotonic() + self.patience
        retrying = Retrying(
            sleep=self._pause,
            stop=lambda _: self.clock.monotonic() >= deadline,
            wait=wait_random_exponential(
                multiplier=2 * FIRST_BACKOFF_SECONDS, max=LONGEST_BACKOFF_SECONDS
            ),
            retry=retry_if_exception(may_succeed_later),
            reraise=True,
        )
        return retrying(attempt)

    def _pause(self, seconds: float) -> None:
        self.counts.add(RETRIES)
        self.clock.sleep(seconds)

    def _note_units(self, operation: str, answer: Mapping[str, Any]) -> None:
        told = answer.get("ConsumedCapacity")
        if not told:
            return
        units = sum(
            float(one.get("CapacityUnits", 0))
            for one in (told if isinstance(told, list) else [told])
        )
        if operation in _WRITES:
            self.counts.spent(writes=units)
        else:
            self.counts.spent(reads=units)


def _unprocessed(operation: str) -> ClientError:
    """Keys that were left over were throttled, though the service does not call it so."""
    told = {"Code": "ProvisionedThroughputExceededException", "Message": "Keys were left over"}
    return ClientError({"Error": told}, operation)


def code_of(error: ClientError) -> str:
    """The service's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def may_succeed_later(error: BaseException) -> bool:
    """Whether the same call may succeed in a moment."""
    if isinstance(error, Again):
        return True
    if isinstance(error, ClientError):
        return code_of(error) in _CONFLICTS or is_throttled(error) or is_transient(error)
    return is_transient(error)


def is_throttled(error: BaseException) -> bool:
    """Whether a request was throttled; then it has certainly written nothing."""
    if not isinstance(error, ClientError):
        return False
    if code_of(error) == _CANCELLED:
        return any(code in THROTTLED for code in cancellations(error))
    return is_throttling(error.response)


def is_ambiguous(error: BaseException) -> bool:
    """Whether a request may have written all the same: no answer, or none that tells."""
    if isinstance(error, ClientError):
        return not is_throttled(error) and is_transient(error)
    return isinstance(error, BotoCoreError)


def cancellations(error: ClientError) -> list[str]:
    """Of a cancelled transaction: a code for each of its items, "None" for those not at fault."""
    if code_of(error) != _CANCELLED:
        return []
    return [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
