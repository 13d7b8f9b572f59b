"""Key schemas and an example template, for the tests of all parts of a re-key."""

from typing import Any

from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import KeyType


def keys(partition: str = "PK", sort: str | None = "SK", types: str = "SS") -> KeySpace:
    key_types: dict[str, KeyType] = {"S": "S", "N": "N", "B": "B"}
    sort_key = None if sort is None else KeyAttribute(sort, key_types[types[1]])
    return KeySpace((KeyAttribute(partition, key_types[types[0]]),), sort_key)


ORDERS: dict[str, Any] = {
    "items": [
        {
            "name": "order",
            "match": {"PK": "USER#{userId}", "SK": "ORDER#{createdAt}#{orderId}"},
            "set": {
                "PK": "TENANT#{tenantId}#{orderId|shard:16|pad:2}",
                "SK": "ORDER#{createdAt|date:%Y-%m}#{orderId}",
                "Type": "order",
            },
            "keep": {"PK": "oldPK", "SK": "oldSK"},
        },
        {"otherwise": "refuse"},
    ]
}

ORDER = {
    "PK": {"S": "USER#u1"},
    "SK": {"S": "ORDER#2026-11-22T10:00:00Z#o17"},
    "tenantId": {"S": "t1"},
    "lines": {"L": [{"M": {"sku": {"S": "tea"}, "n": {"N": "2"}}}]},
    "tags": {"SS": ["a", "b"]},
}

NO_KEYS = [{"N": "5"}, {"S": ""}, {"S": "x" * 2049}, {"NULL": True}, {"M": {"a": {"S": "x"}}}]
"""Attribute values that a partition key of type S cannot have."""
