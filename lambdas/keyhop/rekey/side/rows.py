"""Rows of the side table: strong reads, conditional writes, and names that fit a sort key.

A row's content is JSON text in the attribute `body`, so that numbers and names are preserved. The
values that conditions use are separate attributes.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import ItemCalls, Written
from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES, write_units
from keyhop.dynamodb.values import Key, canonical, to_json

_KEY_TEXT = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

ABSENT = "attribute_not_exists(pk)"
PRESENT = "attribute_exists(pk)"


@dataclass(frozen=True, slots=True)
class Refused:
    """The existing row that prevented a write; `unsure`: this write itself may have written it."""

    row: dict[str, Any]
    unsure: bool


class Rows(ItemCalls):
    """The rows of one side table, by partition and name; `now` returns the seconds since 1970."""

    def __init__(
        self, connection: Connection, name: str, *, now: Callable[[], float], **more: Any
    ) -> None:
        super().__init__(connection, name, slows=False, **more)
        self._now = now

    def _row(self, partition: str, name: str) -> Any:
        return self._read("get_item", Key=row_key(partition, name)).get("Item")

    def _rows(self, partition: str, most: int | None = None, after: str = "") -> Iterator[Any]:
        """Yield the first `most` rows of a partition by name, after the name `after`."""
        start: dict[str, Any] = {}
        if after:
            start = {"ExclusiveStartKey": row_key(partition, after)}
        remaining = most
        while remaining is None or remaining > 0:
            limit = {} if remaining is None else {"Limit": remaining}
            page = self._read(
                "query",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": partition}},
                **limit,
                **start,
            )
            yield from page["Items"]
            remaining = None if remaining is None else remaining - len(page["Items"])
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
        """Write a row if the condition holds; return None if it was written."""
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
        """Delete a row if the condition `only` holds, and return whether it is absent."""
        written = self._write(
            "delete_item",
            1.0,
            TableName=self._table,
            Key=row_key(partition, name),
            **conditional(*(only or ("", None))),
        )
        return written.refused is None or not written.old


def key_text(key: Key) -> str:
    """Return a key as JSON text, which is the same for equal keys."""
    plain = to_json({name: dict([canonical(value)]) for name, value in key.items()})
    return _KEY_TEXT(plain)


def row_name(text: str) -> str:
    """Return a sort key for any text."""
    encoded = text.encode()
    # A longer name of a row is replaced by its SHA-256.
    return text if len(encoded) <= MOST_SORT_KEY_BYTES else hashlib.sha256(encoded).hexdigest()


def row_key(partition: str, name: str) -> dict[str, Any]:
    """Return the primary key of a row."""
    return {"pk": {"S": partition}, "sk": {"S": name}}


def conditional(condition: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of a write with a condition; none for an empty condition."""
    if not condition:
        return {}
    attributes: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    return {
        "ConditionExpression": condition,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **attributes,
    }


def text_of(content: Any) -> str:
    """Return content as JSON text, which `body_of` reads."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def body_of(row: Mapping[str, Any]) -> Any:
    """Return a row's content."""
    return json.loads(row["body"]["S"])
