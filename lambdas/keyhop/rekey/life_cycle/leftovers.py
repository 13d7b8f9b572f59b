"""Markers that a killed drain has left in a table: removed when a re-key ends."""

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.item_calls import ItemCalls
from keyhop.dynamodb.values import Key, from_json
from keyhop.errors import TableNotFound
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE
from keyhop.rekey.side.table import SideTable


def remove_markers(connection: Connection, side: SideTable) -> None:
    """All that are noted, with their notes; an item of somebody's with such a key stays."""
    for marker, told in side.markers().items():
        _Items(connection, told["table"]).remove(from_json(told["key"]), marker)
        side.drop_marker(marker)


class _Items(ItemCalls):
    def remove(self, key: Key, marker: str) -> None:
        try:
            self._write(
                "delete_item",
                1.0,
                TableName=self._table,
                Key=key,
                ConditionExpression="#m = :marker",
                ExpressionAttributeNames={"#m": MARKER_ATTRIBUTE},
                ExpressionAttributeValues={":marker": {"S": marker}},
            )
        except TableNotFound:
            return
