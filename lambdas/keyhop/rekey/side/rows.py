"""Rows of the side table: strong reads, conditional writes, names that fit a sort key.

A row's content is JSON text in the attribute `body`, so that numbers and names are as they were;
what a condition goes by stands beside it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.item_calls import ItemCalls, Written, write_units
from keyhop.dynamodb.values import Key, canonical, to_json

MOST_SORT_KEY_BYTES = 1024
"""Of a sort key (AWS documentation); a longer name of a row is its SHA-256."""

_KEY_TEXT = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

ABSENT = "attribute_not_exists(pk)"
PRESENT = "attribute_exists(pk)"


@dataclass(frozen=True, slots=True)
class Refused:
    """What stands where a row was to be written. unsure: it may be this very write's."""

    row: dict[str, Any]
    unsure: bool


class Rows(ItemCalls):
    """The rows of one side table, by partition and name. now: seconds since 1970."""

    def __init__(
        self, connection: Connection, name: str, *, now: Callable[[], float], **more: Any
    ) -> None:
        super().__init__(connection, name, slows=False, **more)
        self._now = now

    def _row(self, partition: str, name: str) -> Any:
        return self._read("get_item", Key=row_key(partition, name)).get("Item")

    def _rows(self, partition: str, most: int | None = None, after: str = "") -> Iterator[Any]:
        """By their names; after: those behind this one."""
        start: dict[str, Any] = {}
        if after:
            start = {"ExclusiveStartKey": row_key(partition, after)}
        left = most
        while left is None or left > 0:
            limit = {} if left is None else {"Limit": left}
            page = self._read(
                "query",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": partition}},
                **limit,
                **start,
            )
            yield from page["Items"]
            left = None if left is None else left - len(page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _put(
        self,
        partition: str,
        name: str,
        row: Mapping[str, Any],
        condition: str = "",
        values: Mapping[str, Any] | None = None,
    ) -> Refused | None:
        """None if it was written."""
        written = self._written(partition, name, row, condition, values)
        if written.refused is None:
            return None
        return Refused(dict(written.old or {}), written.unsure)

    def _written(
        self,
        partition: str,
        name: str,
        row: Mapping[str, Any],
        condition: str,
        values: Mapping[str, Any] | None,
    ) -> Written:
        item = {**row_key(partition, name), **row}
        size = sum(len(str(value)) for value in row.values())
        return self._write(
            "put_item",
            write_units(size),
            TableName=self._table,
            Item=item,
            **conditional(condition, values),
        )

    def _delete(
        self, partition: str, name: str, only: tuple[str, Mapping[str, Any]] | None = None
    ) -> bool:
        """Whether it is gone; if `only` does not hold of what stands there, it is not."""
        written = self._write(
            "delete_item",
            1.0,
            TableName=self._table,
            Key=row_key(partition, name),
            **conditional(*(only or ("", None))),
        )
        return written.refused is None or not written.old


def key_text(key: Key) -> str:
    """A key as JSON text, the same for equal keys."""
    plain = to_json({name: dict([canonical(value)]) for name, value in key.items()})
    return _KEY_TEXT(plain)


def row_name(text: str) -> str:
    """A sort key for any text."""
    whole = text.encode()
    return text if len(whole) <= MOST_SORT_KEY_BYTES else hashlib.sha256(whole).hexdigest()


def row_key(partition: str, name: str) -> dict[str, Any]:
    """The primary key of a row."""
    return {"pk": {"S": partition}, "sk": {"S": name}}


def conditional(condition: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a write on a condition has; nothing for no condition."""
    if not condition:
        return {}
    given: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    return {
        "ConditionExpression": condition,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **given,
    }


def text_of(told: Any) -> str:
    """What `body_of` reads again."""
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def body_of(row: Mapping[str, Any]) -> Any:
    """A row's content."""
    return json.loads(row["body"]["S"])
