"""The item of a sharded table in its metadata table: what holds for all of its keys.

It has what all users have agreed upon (`placement`, `of_table`), and the count of the shards of
all keys beyond the first of each (`shards_added`); a calendar's is in calendar.py. No logical key
can be called as it is. It is only ever updated, each attribute by itself: versions that know of the
count alone leave the rest as it is.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.key.schema import Schema
from keyhop.sharding.store.requests import Requests

TOTAL_KEY = "!keyhop-total"
"""The item's key, as logical keys have theirs."""
KEYS_ASKED = 100
"""Items of keys that are looked at before a table that has some is agreed upon."""
LOOK_SECONDS = 60.0
"""For so long a reader believes that something is not there yet."""
_UNCOUNTED = "attribute_not_exists(#a)"

logger = logging.getLogger(__name__)


def total_key(type_: KeyType) -> dict[str, str | bytes]:
    """The typed value of TOTAL_KEY."""
    return {type_: TOTAL_KEY if type_ == "S" else TOTAL_KEY.encode()}


@dataclass(slots=True)
class TableItem:
    """For any number of threads. table: the metadata table. agreed: this user's own placement.

    read: gets an item of it, strongly consistent.
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
        """What is agreed upon, read anew; None if nothing is."""
        item = self.read(total_key(self.schema.partition.type)) or {}
        return item.get("placement", {}).get("S")

    def check(self) -> None:
        """Raises CannotStart if users of the table have agreed upon another placement."""
        now = self.requests.clock.monotonic()
        if not self._is_agreed and (self._missed_until == 0.0 or now >= self._missed_until):
            self._is_agreed = self._agrees(self.read(total_key(self.schema.partition.type)) or {})
            self._missed_until = now + LOOK_SECONDS

    def agree(self) -> None:
        """The same; if nobody has agreed upon anything yet, on what this user has."""
        if self._is_agreed:
            return
        found = self.read(total_key(self.schema.partition.type)) or {}
        if not self._agrees(found):
            others = self._of_keys()
            if others and self.agreed not in others:
                self.compare(others[0])
            self._agrees(self._proposed())
        self._is_agreed = True

    def compare(self, placement: str) -> None:
        """Raises CannotStart if this is not what this user has."""
        if placement != self.agreed:
            raise CannotStart(
                f"The items of {self.schema.table} are placed as {placement!r}, not as "
                f"{self.agreed!r}: all users of a table must have the same placement, hash, "
                "append_only and separator."
            )

    def check_table(self, of_table: str | None) -> None:
        """Raises CannotStart if the metadata is that of another table."""
        if of_table not in (None, self.schema.table):
            raise CannotStart(
                f"{self.table} holds the shard metadata of the table {of_table}, not of "
                f"{self.schema.table}: each sharded table needs its own."
            )

    def counted(self) -> int | None:
        """How many shards all keys have beyond their first, as growths and drains have counted."""
        item = self.read(total_key(self.schema.partition.type)) or {}
        return int(item["shards_added"]["N"]) if "shards_added" in item else None

    def recount(self, seen: int | None, shards: int) -> None:
        """Set that count to what it is, if it is still as it was seen before that was found out."""
        condition, values = (_UNCOUNTED, {}) if seen is None else ("#a = :seen", {"seen": seen})
        count = self._counting("SET #a = :n", condition, n=shards, **values)
        try:
            self.requests.call("update_item", **count)
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise

    def count_within(self, added: int, most: int) -> dict[str, Any]:
        """The update that counts shards which are added, if there is room for them."""
        condition = f"{_UNCOUNTED} OR #a <= :room"
        return self._counting("ADD #a :n", condition, n=added, room=most - added)

    def count(self, added: int) -> None:
        """Those without most_in_all count for the others; if nobody has it, there is no count."""
        count = self._counting("ADD #a :n", "attribute_exists(#a)", n=added)
        try:
            self.requests.once("update_item", **count)
        except (ClientError, BotoCoreError) as error:
            if error_code(error) != CONDITION_FAILED:
                logger.warning("%+d shards were not counted: %s", added, type(error).__name__)

    def _agrees(self, item: Mapping[str, TypedValue]) -> bool:
        """Whether an item says what is agreed upon. Raises as `compare` and `check_table`."""
        if "placement" not in item:
            return False
        self.check_table(item.get("of_table", {}).get("S"))
        self.compare(str(item["placement"].get("S")))
        return True

    def _of_keys(self) -> list[str]:
        """The placements that some of the table's keys have."""
        page = self.requests.call(
            "scan",
            TableName=self.table,
            Limit=KEYS_ASKED,
            ConsistentRead=True,
            Select="SPECIFIC_ATTRIBUTES",
            ProjectionExpression="#placement",
            ExpressionAttributeNames={"#placement": "placement"},
        )
        given = (item.get("placement", {}).get("S") for item in page["Items"])
        return sorted({placement for placement in given if isinstance(placement, str)})

    def _proposed(self) -> Mapping[str, TypedValue]:
        """What the item says once nobody can agree upon anything else."""
        item = {"placement": {"S": self.agreed}, "of_table": {"S": self.schema.table}}
        try:
            self.requests.call(
                "update_item",
                TableName=self.table,
                Key=self.key,
                UpdateExpression="SET #placement = :placement, #of_table = :of_table",
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
