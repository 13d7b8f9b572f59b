"""Adds to counters that are spread over shards (key/counting.py); with a token, each once."""

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations, is_conflict
from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.throttling import TRANSACTION_THROTTLED
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.io.items import Clause, find_copies
from keyhop.sharding.io.writer import DELETE, Act, Part, Write, Writer
from keyhop.sharding.key.counting import (
    COUNT,
    counter_key,
    is_stranded,
    marker_key,
    shards_to_add,
)
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.requests import Overtaken, is_ambiguous

EXPIRES = "keyhop_expires"
"""An attribute of a marker, in epoch seconds, as DynamoDB's time to live requires."""

_ADD = Act("Update", expression="ADD #kh_c :kh_n")
_NAMES = {"#kh_c": COUNT}
_HOT = {"reason": "TableWriteKeyRangeThroughputExceeded"}


@dataclass(frozen=True, slots=True)
class Added:
    """The result of an add, which is not counted if its token was counted before. Without a token
    it may have been counted `at_most` times, if answers were lost.
    """

    counted: bool = True
    at_most: int = 1


@dataclass(slots=True)
class _Add(Write):
    """An add. marker: of its token. unanswered: failed attempts that may have been counted."""

    marker: Mapping[str, TypedValue] = field(default_factory=dict)
    amount: int = 0
    unanswered: int = 0
    is_repeated: bool = False


def folded(item: Mapping[str, TypedValue], source: int, target: int) -> tuple[Part, Part]:
    """Return a transaction that moves a counter's part, as it was read, to another shard."""
    clause = Clause("", _NAMES, {":kh_n": item[COUNT]})
    unchanged = Clause("#kh_c = :kh_n", _NAMES, {":kh_n": item[COUNT]})
    return (target, _ADD, clause), (source, DELETE, unchanged)


class Adder(Writer):
    """Adds to counters; for any number of threads."""

    def add(self, logical: TypedValue, amount: int, token: str | None, lifetime: float) -> Added:
        """Add, and retry while this can help; a token's lifetime is in seconds. Raises the errors
        of Writer.write, with a note if the add may have been counted.
        """
        values = {":kh_n": {"N": str(amount)}}
        key = counter_key(self.schema, logical)
        add = _Add(key, _ADD, Clause("", _NAMES, values), None, amount=amount)
        if token is not None:
            expires = math.ceil(self.requests.clock.time() + lifetime)
            add.marker = {
                **marker_key(self.schema, logical, token),
                "keyhop_added": values[":kh_n"],
                "keyhop_call": {"S": uuid.uuid4().hex},
                EXPIRES: {"N": str(expires)},
            }
        try:
            self.requests.patiently(lambda: self._attempt(add))
        except Overtaken:
            raise GaveUp(
                "The shard metadata expires before an add can be sent: the connection is too slow "
                "for its settle_seconds."
            ) from None
        except (ClientError, BotoCoreError) as error:
            if add.unanswered:
                often = "once: repeat it with its token" if add.marker else f"{add.unanswered}x"
                error.add_note(f"The add may have been counted up to {often}.")
            raise
        if add.marker:
            return Added(not add.is_repeated)
        return Added(at_most=1 + add.unanswered)

    def _send(self, write: Write, record: KeyMetadata) -> dict[str, Any]:
        assert isinstance(write, _Add)
        self._check_fresh(record)
        shard = self.requests.chance.choice(shards_to_add(record.shards))
        write.physical = self.schema.physical(write.key, shard)
        try:
            if write.marker:
                return self._add_once(write, shard, record)
            return self._single(write, shard)
        except (ClientError, BotoCoreError) as error:
            write.unanswered += is_ambiguous(error)
            if is_conflict(error):
                # Transactions that conflict fail without throttling, but the shard is just as busy.
                refusal = self.requests.refusal(
                    "ThrottlingException", "conflict", "UpdateItem", throttlingReasons=[_HOT]
                )
                first = write.attempts == 1
                logical = write.key.logical
                self.throttle_tracker.throttled(logical, record, write.physical, refusal, first)
            raise

    def _add_once(self, write: _Add, shard: int, record: KeyMetadata) -> dict[str, Any]:
        """Send the add and its marker in one transaction, which costs twice the units."""
        table = {
            "TableName": self.schema.table,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        put = {
            "Item": {**write.marker, "keyhop_shard": {"N": str(shard)}},
            "ConditionExpression": "attribute_not_exists(#kh_p)",
            "ExpressionAttributeNames": {"#kh_p": self.schema.partition.name},
        }
        update = self._request(write.act, write.physical, write.clause)
        try:
            answer = self.requests.once(
                "transact_write_items",
                TransactItems=[{"Put": table | put}, {"Update": table | update}],
                ClientRequestToken=uuid.uuid4().hex,
            )
        except ClientError as error:
            codes = cancellations(error)
            if codes[:1] == [CHECK_FAILED]:
                marker = error.response["CancellationReasons"][0].get("Item", {})
                self._was_counted(write, marker, record)
                return {}
            if (
                codes
                and codes[0] in TRANSACTION_THROTTLED
                and codes[1] not in TRANSACTION_THROTTLED
            ):
                write.physical = {}  # more shards do not help the markers
            raise
        return {"ConsumedCapacity": {"CapacityUnits": units_of(answer) / 2}}

    def _was_counted(
        self, write: _Add, marker: Mapping[str, TypedValue], record: KeyMetadata
    ) -> None:
        added = marker.get("keyhop_added", {}).get("N")
        if added is not None and int(Decimal(added)) != write.amount:
            raise CannotStart(
                f"The token was used before, to add {added} and not {write.amount}: each add "
                "needs a new token."
            )
        write.is_repeated = marker.get("keyhop_call") != write.marker["keyhop_call"]
        if "keyhop_shard" in marker:
            self._reunite(write.key, int(marker["keyhop_shard"]["N"]), record)

    def stands(
        self,
        key: ItemKey,
        physical: dict[str, TypedValue],
        record: KeyMetadata,
        is_update: bool = False,
    ) -> bool:
        """Return True, because an add counts; first move one that readers would not see."""
        if self.requests.clock.monotonic() <= record.effective_until or not physical:
            return True
        parsed = self.schema.names.parsed(physical[self.schema.partition.name])
        assert parsed is not None
        shard = parsed[1]

        def attempt() -> None:
            self._reunite(key, shard, self.metadata.of(key.logical, fresh=True))

        try:
            self.requests.patiently(attempt)
        except (ClientError, BotoCoreError, Overtaken) as error:
            raise GaveUp(
                "The response to an add came so late that its shard may have been drained "
                "before. Check whether the add was counted."
            ) from error
        return True

    def _reunite(self, key: ItemKey, shard: int, record: KeyMetadata) -> None:
        """Move a part that was added to a drained shard too late to be moved with the others."""
        if not is_stranded(record.shards, shard):
            return
        copies = find_copies(self.requests, self.schema, key, [shard])
        if shard not in copies:
            return
        self._check_fresh(record)
        target = self.requests.chance.choice(shards_to_add(record.shards))
        try:
            self.together(key, folded(copies[shard], shard, target))
        except ClientError as error:
            if CHECK_FAILED in cancellations(error):
                raise Overtaken from error  # another process has moved it, or added to it
            raise
