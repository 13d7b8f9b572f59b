"""Requests of a sharded table on their way: held up, refused, or answered late."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.single import Place

Hook = Callable[[str, dict[str, Any], Callable[[], Any]], Any]
"""Of the operation, its parameters and what sends it: the answer."""


def hook(table: ShardedTable, act: Hook) -> None:
    """From now on, each request goes through `act`, which may let it pass."""
    client = table.requests.client

    class Hooked:
        def call(self, operation: str, **parameters: Any) -> Any:
            if operation == "describe_table":
                return client.call(operation, **parameters)
            return act(operation, parameters, lambda: client.call(operation, **parameters))

    table.requests.client = Hooked()


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "PutItem")


def physical(place: Place, operation: str, parameters: dict[str, Any]) -> int | None:
    """The shard that a write of an item of the table goes to."""
    writes = ("put_item", "update_item", "delete_item")
    if parameters.get("TableName") != place.name or operation not in writes:
        return None
    key = (parameters.get("Item") or parameters["Key"])["path"]
    parsed = place.names.parsed(key)
    return None if parsed is None else parsed[1]
