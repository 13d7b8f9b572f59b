"""The tables of these examples: each with that of its shards' metadata."""

from typing import Any


def create_tables(client: Any, name: str, partition: str, sort: str, index: str = "") -> None:
    """`name`, and `name`-shards. index: an attribute; by-`index` is sorted by it, a number.

    client: boto3's, of DynamoDB.
    """
    types = {partition: "S", sort: "S", **({index: "N"} if index else {})}
    more: dict[str, Any] = {}
    if index:
        more["GlobalSecondaryIndexes"] = [
            {
                "IndexName": f"by-{index}",
                "KeySchema": _keys(partition, index),
                "Projection": {"ProjectionType": "ALL"},
            }
        ]
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=_attributes(types),
        KeySchema=_keys(partition, sort),
        **more,
    )
    client.create_table(
        TableName=f"{name}-shards",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=_attributes({partition: "S"}),
        KeySchema=_keys(partition),
    )
    for table in (name, f"{name}-shards"):
        client.get_waiter("table_exists").wait(TableName=table)


def forget_tokens(client: Any, name: str) -> None:
    """Let DynamoDB delete the records of expired tokens."""
    client.update_time_to_live(
        TableName=name,
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "keyhop_expires"},
    )


def _attributes(types: dict[str, str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()]


def _keys(*attributes: str) -> list[dict[str, str]]:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": attribute, "KeyType": kind}
        for attribute, kind in zip(attributes, kinds, strict=False)
    ]
