"""Test whether the current serving table can be written once the other one serves."""

from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.requester import ItemCalls
from keyhop.errors import KeyhopError

PROBE = "probe"
"""The key of the event that asks Replicate to test a table: {"probe": the table's name}. It answers
{"why_not": text}, which is empty if the table can be written.
"""


class Probe(ItemCalls):
    """Writes of one table that must be refused. They prove the permission and the connection."""

    def why_not(self, key: Mapping[str, Any]) -> str:
        """Return why the table cannot be written; empty if it can. No item has the `key`."""
        name = next(iter(key))
        never: dict[str, Any] = {
            "ConditionExpression": "attribute_exists(#p) AND attribute_not_exists(#p)",
            "ExpressionAttributeNames": {"#p": name},
        }
        try:
            put = self._write("put_item", 1.0, 1.0, TableName=self._table, Item=dict(key), **never)
            delete = self._write(
                "delete_item", 1.0, 1.0, TableName=self._table, Key=dict(key), **never
            )
        except KeyhopError as error:
            return str(error)
        if put.refused is None or delete.refused is None:
            return "a write was made that must be refused"
        return ""
