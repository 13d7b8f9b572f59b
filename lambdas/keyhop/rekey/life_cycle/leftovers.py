"""Remove the markers of a killed drain from a table, when a re-key ends."""

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import ItemCalls
from keyhop.dynamodb.values import Key, from_json
from keyhop.errors import TableNotFound
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE
from keyhop.rekey.side.table import SideTable


def remove_markers(connection: Connection, side: SideTable) -> None:
    """Remove all recorded markers and their records, but keep other items with such a key."""
    for marker, details in side.markers().items():
        _Items(connection, details["table"]).remove(from_json(details["key"]), marker)
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
