"""A DynamoDB with settings that Keyhop does not know."""

from collections.abc import Mapping
from typing import Any

TABLE_SETTING = "Telepathy"
TTL_SETTING = "TimeToLiveDescription.Grace"
VECTOR_INDEX: Mapping[str, Any] = {
    "IndexName": "by-meaning",
    "VectorAttribute": {"AttributeName": "embedding"},
    "Projection": {"ProjectionType": "KEYS_ONLY"},
    "Dimensions": 3,
    "DistanceFunction": "COSINE",
    "IndexStatus": "ACTIVE",
}


class Learned:
    """A client of DynamoDB Local whose responses about one table have additional settings."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def __getattr__(self, operation: str) -> Any:
        return lambda **parameters: self.call(operation, **parameters)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if hasattr(self._client, "call"):
            response: dict[str, Any] = self._client.call(operation, **parameters)
        else:
            response = getattr(self._client, operation)(**parameters)
        if parameters.get("TableName") == self._table:
            if operation == "describe_table":
                added = {TABLE_SETTING: {"Enabled": True}, "VectorIndexes": [VECTOR_INDEX]}
                return {**response, "Table": {**response["Table"], **added}}
            if operation == "describe_time_to_live":
                description = {**response["TimeToLiveDescription"], "Grace": 7}
                return {**response, "TimeToLiveDescription": description}
        return response
