"""Creates the table of the box office, and the table of the shards' metadata."""

from typing import Any


def create_tables(client: Any, name: str) -> None:
    """Create `name`, and `name`-shards, which only ShardedTable needs, by a client of DynamoDB."""
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": "S"}
            for attribute in ("event", "entry", "customer", "status")
        ],
        KeySchema=_keys("event", "entry"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": _keys(*attributes),
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, attributes in (
                ("by-customer", ("customer", "entry")),
                ("by-status", ("event", "status")),
            )
        ],
    )
    client.create_table(
        TableName=f"{name}-shards",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "event", "AttributeType": "S"}],
        KeySchema=_keys("event"),
    )
    for table in (name, f"{name}-shards"):
        client.get_waiter("table_exists").wait(TableName=table)


def _keys(*attributes: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": attribute, "KeyType": kind}
        for attribute, kind in zip(attributes, kinds, strict=False)
    ]
