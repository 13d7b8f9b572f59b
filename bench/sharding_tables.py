"""Tables for the benchmark of write sharding, and a client that counts."""

from collections import Counter
from typing import Any

from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.transport import Client
from keyhop.sharding.key.shards import Shards, to_item

TABLE = "Audit"
METADATA = f"{TABLE}-shards"
KEY = "/srv/share/budget.xlsx"


def create(client: Any) -> None:
    """Both tables, empty, whatever was there before."""
    for name, attributes in ((TABLE, ("path", "accessed")), (METADATA, ("path",))):
        if name in client.list_tables()["TableNames"]:
            client.delete_table(TableName=name)
        client.create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": attribute, "KeyType": kind}
                for attribute, kind in zip(attributes, ("HASH", "RANGE"), strict=False)
            ],
            AttributeDefinitions=[
                {"AttributeName": attribute, "AttributeType": "S"} for attribute in attributes
            ],
            BillingMode="PAY_PER_REQUEST",
        )


def register(client: Any, shards: Shards, key: str = KEY) -> None:
    """Write the metadata that a key has after shards were added."""
    client.put_item(TableName=METADATA, Item={"path": {"S": key}, **to_item(shards)})


class Counting:
    """Keyhop's client, which counts the requests of all users of this object.

    Attributes:
        operations: the requests by operation; those to the metadata have a prefix
        looked_up: the number of keys in reads of single items
    """

    def __init__(self, url: str) -> None:
        self._client: Client = dynamodb_client(Endpoint(url=url), 64)
        self.operations: Counter[str] = Counter()
        self.looked_up = 0
        self.read_units = 0.0
        self.write_units = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Send a request as Keyhop's client does, and count it."""
        answer = self._client.call(operation, **parameters)
        is_metadata = parameters.get("TableName") == METADATA
        self.operations[f"metadata {operation}" if is_metadata else operation] += 1
        units = units_of(answer)
        if operation == "get_item":
            self.read_units += max(1.0 if parameters.get("ConsistentRead") else 0.5, units)
        elif operation == "batch_get_item":
            for batch in parameters["RequestItems"].values():
                each = 1.0 if batch.get("ConsistentRead") else 0.5
                self.looked_up += len(batch["Keys"])
                self.read_units += each * len(batch["Keys"])  # items under 4 KB, or none
        elif operation == "query":
            self.read_units += max(1.0 if parameters.get("ConsistentRead") else 0.5, units)
        else:
            self.write_units += units
        return answer

    @property
    def requests(self) -> int:
        """Return the number of requests, without DescribeTable."""
        return sum(self.operations.values()) - self.operations["describe_table"]
