"""Adding and deleting the index where DynamoDB says: not now."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.client import Connection
from keyhop.errors import CannotStart
from keyhop.key_index.index import step_towards_built, step_towards_removed, table_with_index
from keyhop.key_index.provisioned import Scaling, settle
from keyhop.key_index.sentinel import INDEX, MARKER

STREAM = "arn:aws:dynamodb:us-east-1:111122223333:table/Orders/stream/x"
ONE_AT_A_TIME = "Subscriber limit exceeded: Only 1 online index can be created or deleted "
ONE_AT_A_TIME += "simultaneously per table"
ON_DEMAND = {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}
LITTLE = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
MUCH = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 500}
TOO_OFTEN = "Subscriber limit exceeded: Provisioned throughput decreases are limited within a day"


class Client:
    """DynamoDB, with one table. refusal: code and text of what it answers to UpdateTable."""

    def __init__(
        self,
        *indexes: dict[str, Any],
        refusal: tuple[str, str] | None = None,
        billing: dict[str, Any] = ON_DEMAND,
    ) -> None:
        self.indexes, self.refusal, self.billing = indexes, refusal, billing
        self.updates: list[dict[str, Any]] = []

    def describe_table(self, **given: Any) -> Any:
        return {
            "Table": {
                "TableName": "Orders",
                "TableArn": STREAM.partition("/stream")[0],
                "TableStatus": "ACTIVE",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                **self.billing,
                "GlobalSecondaryIndexes": list(self.indexes),
                "LatestStreamArn": STREAM,
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
            }
        }

    def update_table(self, **given: Any) -> Any:
        self.updates.append(given)
        if self.refusal is not None:
            code, text = self.refusal
            raise ClientError({"Error": {"Code": code, "Message": text}}, "UpdateTable")
        return {}


def index(name: str, status: str) -> dict[str, Any]:
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}]
    schema += [{"AttributeName": MARKER, "KeyType": "RANGE"}]
    return {"IndexName": name, "IndexStatus": status, "KeySchema": schema}


def built(client: Client) -> str | None:
    """What a build does or waits for next."""
    return step_towards_built(Connection(client), "Orders", with_stream=True)[1]  # type: ignore[arg-type]


def removed(client: Client) -> str | None:
    """What a removal does or waits for next."""
    return step_towards_removed(Connection(client), "Orders", with_stream=False)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("status", ["CREATING", "DELETING"])
def test_while_another_index_is_made_or_deleted_nothing_is_asked(status: str) -> None:
    client = Client(index("by-day", status))
    assert built(client) == f"waiting for the index by-day, which is {status}"
    client.indexes = (index("by-day", status), index(INDEX, "ACTIVE"))
    assert removed(client) == f"waiting for the index by-day, which is {status}"
    assert client.updates == []


@pytest.mark.parametrize("code", ["LimitExceededException", "ResourceInUseException"])
def test_somebody_who_was_quicker_is_waited_for(code: str) -> None:
    client = Client(refusal=(code, ONE_AT_A_TIME))
    assert built(client) == "adding the index"
    client.indexes = (index(INDEX, "ACTIVE"),)
    assert removed(client) == "deleting the index"
    assert len(client.updates) == 2


def test_another_refusal_is_told() -> None:
    with pytest.raises(CannotStart, match="too many attributes"):
        built(Client(refusal=("ValidationException", "too many attributes")))


@pytest.mark.parametrize(
    ("code", "waits"), [("LimitExceededException", False), ("ResourceInUseException", True)]
)
def test_capacity_that_may_not_be_lowered_again_today_is_no_reason_to_wait(
    code: str, waits: bool
) -> None:
    kept = {**index(INDEX, "ACTIVE"), "ProvisionedThroughput": MUCH}
    client = Client(kept, refusal=(code, TOO_OFTEN), billing={"ProvisionedThroughput": MUCH})
    connection = Connection(client)  # type: ignore[arg-type]
    table = table_with_index(connection, "Orders")
    _, awaited, refused = settle(connection, table, LITTLE, Scaling())
    assert bool(awaited) is waits
    assert waits or TOO_OFTEN in (refused or "")
