"""The items of a metadata table that are not logical keys: the table's own item, and claims.

The table's item has what all users must have in common (`placement`, `of_table`), the `version` of
the metadata's layout, and the number of all keys' shards beyond the first of each
(`shards_added`); calendar.py stores the calendar there. No logical key may have its name. Each
attribute is updated separately.

A claim of a new item during a growth (key/protocol.py, Claims) is an item whose key has the growth
and a hash of the item's key. So claims are spread over the metadata table, and those of an earlier
growth are never used again.
"""

import hashlib
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.values import KeyType, TypedValue, distinct_bytes
from keyhop.errors import CannotStart
from keyhop.sharding.key.protocol import Claim
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.store.requests import Overtaken, Requests

TOTAL_KEY = "!keyhop-total"
"""The item's key, in the same form as logical keys."""
VERSION = 1
"""The version of the metadata's layout, which the table's item holds; without one it is 1."""
KEYS_ASKED = 100
"""The maximum number of keys to check before a table with keys gets its `placement`."""
LOOK_SECONDS = 60.0
"""The time for which a reader caches that something does not exist yet."""
_UNCOUNTED = "attribute_not_exists(#a)"

logger = logging.getLogger(__name__)


def total_key(type_: KeyType) -> dict[str, str | bytes]:
    """Return the typed value of TOTAL_KEY."""
    return {type_: TOTAL_KEY if type_ == "S" else TOTAL_KEY.encode()}


@dataclass(slots=True)
class TableItem:
    """A table's item in the metadata table, with our placement (`agreed`); for any number of
    threads. `read` is strongly consistent.
    """

    requests: Requests
    table: str
    schema: Schema
    agreed: str
    read: Callable[[TypedValue], Mapping[str, TypedValue] | None]
    _is_agreed: bool = False
    _missed_until: float = 0.0

    @property
    def key(self) -> dict[str, TypedValue]:
        return {self.schema.partition.name: total_key(self.schema.partition.type)}

    def placement(self) -> str | None:
        """Read the stored placement; None if there is none."""
        item = self.read(total_key(self.schema.partition.type)) or {}
        return item.get("placement", {}).get("S")

    def check(self) -> None:
        """Raise CannotStart if the table has another placement."""
        now = self.requests.clock.monotonic()
        if not self._is_agreed and (self._missed_until == 0.0 or now >= self._missed_until):
            self._is_agreed = self._agrees(self.read(total_key(self.schema.partition.type)) or {})
            self._missed_until = now + LOOK_SECONDS

    def agree(self) -> None:
        """Raise CannotStart if the table has another placement; store ours if it has none."""
        if self._is_agreed:
            return
        item = self.read(total_key(self.schema.partition.type)) or {}
        if not self._agrees(item):
            placements = self._of_keys()
            if placements and self.agreed not in placements:
                self.compare(placements[0])
            self._agrees(self._proposed())
        self._is_agreed = True

    def compare(self, placement: str) -> None:
        """Raise CannotStart if a placement differs from ours."""
        if placement != self.agreed:
            raise CannotStart(
                f"The items of {self.schema.table} are placed as {placement!r}, not as "
                f"{self.agreed!r}: all users of a table must have the same placement, hash, "
                "append_only and separator."
            )

    def check_table(self, of_table: str | None) -> None:
        """Raise CannotStart if the metadata is that of another table."""
        if of_table not in (None, self.schema.table):
            raise CannotStart(
                f"{self.table} holds the shard metadata of the table {of_table}, not of "
                f"{self.schema.table}: each sharded table needs its own."
            )

    def counted(self) -> int | None:
        """Read the stored number of all keys' shards beyond their first."""
        item = self.read(total_key(self.schema.partition.type)) or {}
        return int(item["shards_added"]["N"]) if "shards_added" in item else None

    def recount(self, counted: int | None, shards: int) -> None:
        """Correct the stored number, if it is still `counted`, as it was before counting."""
        condition, values = _UNCOUNTED, {}
        if counted is not None:
            condition, values = "#a = :seen", {"seen": counted}
        count = self._counting("SET #a = :n", condition, n=shards, **values)
        try:
            self.requests.call("update_item", **count)
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise

    def count_within(self, added: int, maximum: int) -> dict[str, Any]:
        """Return the update that counts added shards, on condition that the maximum allows them."""
        condition = f"{_UNCOUNTED} OR #a <= :room"
        return self._counting("ADD #a :n", condition, n=added, room=maximum - added)

    def count(self, added: int) -> None:
        """Count added shards if there is a count, for clients that have a `most_in_all`."""
        count = self._counting("ADD #a :n", "attribute_exists(#a)", n=added)
        try:
            self.requests.once("update_item", **count)
        except (ClientError, BotoCoreError) as error:
            if error_code(error) != CONDITION_FAILED:
                logger.warning("%+d shards were not counted: %s", added, type(error).__name__)

    def _agrees(self, item: Mapping[str, TypedValue]) -> bool:
        """Return whether an item has our placement. Raise as `compare` and `check_table`, and
        CannotStart for another version of the layout.
        """
        version = item.get("version", {}).get("N", VERSION)
        if str(version) != str(VERSION):
            raise CannotStart(
                f"The shard metadata in {self.table} has version {version} of its layout, and this "
                f"Keyhop reads version {VERSION}: use the version of Keyhop that wrote it."
            )
        if "placement" not in item:
            return False
        self.check_table(item.get("of_table", {}).get("S"))
        self.compare(str(item["placement"].get("S")))
        return True

    def _of_keys(self) -> list[str]:
        """Return the placements of some of the table's keys."""
        page = self.requests.call(
            "scan",
            TableName=self.table,
            Limit=KEYS_ASKED,
            ConsistentRead=True,
            Select="SPECIFIC_ATTRIBUTES",
            ProjectionExpression="#placement",
            ExpressionAttributeNames={"#placement": "placement"},
        )
        values = (item.get("placement", {}).get("S") for item in page["Items"])
        return sorted({placement for placement in values if isinstance(placement, str)})

    def _proposed(self) -> Mapping[str, TypedValue]:
        """Store our placement unless there is one, and return the item."""
        item = {
            "placement": {"S": self.agreed},
            "of_table": {"S": self.schema.table},
            "version": {"N": str(VERSION)},
        }
        try:
            self.requests.call(
                "update_item",
                TableName=self.table,
                Key=self.key,
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in item),
                ConditionExpression="attribute_not_exists(#placement)",
                ExpressionAttributeNames={f"#{name}": name for name in item},
                ExpressionAttributeValues={f":{name}": value for name, value in item.items()},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            key = total_key(self.schema.partition.type)
            return error.response.get("Item") or self.read(key) or {}
        return item

    def _counting(self, update: str, condition: str, **values: int) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "Key": self.key,
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#a": "shards_added"},
            "ExpressionAttributeValues": {f":{n}": {"N": str(v)} for n, v in values.items()},
        }


CLAIM_KEY = "!keyhop-claim "
"""The start of a claim's key; no logical key may start with it."""
KEPT_SECONDS = 7 * 86_400.0
"""The time until DynamoDB's time to live may delete a claim. No call takes so long."""

_NAMES = {"#shard": "claimed_shard", "#by": "claimed_by"}


def is_claim(key: TypedValue) -> bool:
    """Return whether a key of the metadata table is a claim's."""
    (content,) = key.values()
    text = CLAIM_KEY if isinstance(content, str) else CLAIM_KEY.encode()
    return bool(content[: len(text)] == text)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims in one metadata table; for any number of threads."""

    requests: Requests
    table: str
    partition: KeyAttribute

    def write(self, key: ItemKey, growth: int, previous: Claim | None, claim: Claim) -> Claim:
        """Write an item's claim instead of the previous one, and return it; or return the
        present claim if it is another. Raise Overtaken if there is none.
        """
        item_key = {self.partition.name: self._key(key, growth)}
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#shard)",
            "ExpressionAttributeNames": {"#shard": _NAMES["#shard"]},
        }
        if previous is not None:
            condition = {
                "ConditionExpression": "#shard = :shard AND #by = :by",
                "ExpressionAttributeNames": _NAMES,
                "ExpressionAttributeValues": {
                    ":shard": {"N": str(previous.shard)},
                    ":by": {"S": previous.owner},
                },
            }
        expires = math.ceil(self.requests.clock.time() + KEPT_SECONDS)
        item = {
            **item_key,
            "claimed_shard": {"N": str(claim.shard)},
            "claimed_by": {"S": claim.owner},
            "keyhop_expires": {"N": str(expires)},
        }
        try:
            self.requests.once(
                "put_item",
                TableName=self.table,
                Item=item,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **condition,
            )
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            present = error.response.get("Item") or self._read(item_key)
            if present is None:
                raise Overtaken from error
            return Claim(int(present["claimed_shard"]["N"]), present["claimed_by"]["S"])
        return claim

    def _read(self, key: Mapping[str, TypedValue]) -> Mapping[str, Any] | None:
        answer = self.requests.once("get_item", TableName=self.table, Key=key, ConsistentRead=True)
        item: Mapping[str, Any] | None = answer.get("Item")
        return item

    def _key(self, key: ItemKey, growth: int) -> dict[str, str | bytes]:
        parts = distinct_bytes(key.logical) + distinct_bytes(key.sort)
        text = f"{CLAIM_KEY}{growth} {hashlib.sha256(parts).hexdigest()}"
        return {self.partition.type: text if self.partition.type == "S" else text.encode()}
