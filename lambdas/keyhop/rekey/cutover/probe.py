"""Whether the table that serves now could be written once the other one serves: tried."""

from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.item_calls import ItemCalls
from keyhop.errors import KeyhopError

PROBE = "probe"
"""Of the event by which Replicate is asked to try a table: {"probe": the table's name}; it answers
{"why_not": text}, empty if it can be written.
"""


class Probe(ItemCalls):
    """Writes of one table that must be refused: they prove the right and the path."""

    def why_not(self, key: Mapping[str, Any]) -> str:
        """Why it cannot be written; empty if it can. key: a primary key that nobody has."""
        name = next(iter(key))
        never: dict[str, Any] = {
            "ConditionExpression": "attribute_exists(#p) AND attribute_not_exists(#p)",
            "ExpressionAttributeNames": {"#p": name},
        }
        try:
            put = self._write("put_item", 1.0, 1.0, TableName=self._table, Item=dict(key), **never)
            gone = self._write(
                "delete_item", 1.0, 1.0, TableName=self._table, Key=dict(key), **never
            )
        except KeyhopError as error:
            return str(error)
        if put.refused is None or gone.refused is None:
            return "a write was made that must be refused"
        return ""
