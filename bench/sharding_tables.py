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
                {"AttributeName": one, "KeyType": kind}
                for one, kind in zip(attributes, ("HASH", "RANGE"), strict=False)
            ],
            AttributeDefinitions=[
                {"AttributeName": one, "AttributeType": "S"} for one in attributes
            ],
            BillingMode="PAY_PER_REQUEST",
        )


def register(client: Any, shards: Shards, key: str = KEY) -> None:
    """Metadata of a key, as it is after its shards were added."""
    client.put_item(TableName=METADATA, Item={"path": {"S": key}, **to_item(shards)})


class Counting:
    """Keyhop's client; the requests of all users of this object are counted.

    operations: requests; of the metadata under its name. looked_up: keys of reads of single items.
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
        """As Keyhop's client has it."""
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
        """Of all kinds."""
        return sum(self.operations.values()) - self.operations["describe_table"]
