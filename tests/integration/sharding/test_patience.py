"""How long a call of a user takes at most, if everything is throttled."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.sharding.table import ShardedTable

from testing.databases import Database
from tests.integration.sharding.single import Place

KEY = {"path": "/f", "at": "a"}


class Throttled:
    """A client that refuses all writes of items, and all looks from a moment on."""

    def __init__(self, place: Place, client: Any, looks_until: float) -> None:
        self.place, self.client, self.until = place, client, looks_until

    def call(self, operation: str, **parameters: Any) -> Any:
        is_of_items = parameters.get("TableName", self.place.name) == self.place.name
        is_read = operation in ("batch_get_item", "get_item", "describe_table")
        if is_of_items and (not is_read or self.place.clock.now >= self.until):
            code = "ProvisionedThroughputExceededException"
            raise ClientError({"Error": {"Code": code, "Message": "slow down"}}, operation)
        return self.client.call(operation, **parameters)


ACTS: list[Callable[[ShardedTable], Any]] = [
    lambda table: table.put_item(Item=KEY),
    lambda table: table.update_item(Key=KEY),
    lambda table: table.get_item(Key=KEY, ConsistentRead=True),
    lambda table: table.batch_write([KEY]).failed[0][2],
]


@pytest.mark.parametrize("act", ACTS, ids=("put", "update", "get", "batch"))
@pytest.mark.parametrize("looks_until", [0.0, 15.0, 29.0])
def test_patience_is_that_of_the_whole_call(
    dynamodb: Database, table_name: str, act: Callable[[ShardedTable], Any], looks_until: float
) -> None:
    """A look within a write has what is left of it, and a backoff ends a moment later."""
    place = Place(dynamodb, table_name)
    table = place.table(placement="random", patience=30.0)
    place.register("/f", 3)
    assert table.schema
    table.requests.client = Throttled(place, table.requests.client, looks_until)
    began = place.clock.now
    try:
        error = act(table)
    except ClientError as raised:
        error = raised
    if isinstance(error, ClientError):
        assert place.clock.now - began <= 30.0 + 2.0
    else:
        assert act is ACTS[2]
        assert place.clock.now - began <= 30.0
