"""The form of a request to DynamoDB without values: attribute names, counts, units. Pure.

This module is imported into users' applications (sampler.py), so it needs only Python.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from keyhop.report.expression import names_in

MOST_NAMES = 20
"""The maximum number of attribute names of one shape."""

_ONE_ITEM = ("GetItem", "UpdateItem", "DeleteItem", "PutItem")
_STATEMENT = re.compile(
    r"\b(?:FROM|INTO|UPDATE)\s+\"?([\w.-]+)\"?(?:\s*\.\s*\"?([\w-]+)\"?)?", re.IGNORECASE
)

_parsed = lru_cache(256)(names_in)


class Shape(NamedTuple):
    """The form by which requests are counted.

    Attributes:
        conditions: The names of the attributes of the key condition, sorted.
        filters: The names of the attributes of the filter, sorted.
    """

    table: str
    operation: str
    index_name: str = ""
    conditions: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


class Asked(NamedTuple):
    """The part of one request that is about one table.

    Attributes:
        shape: The form of the request.
        consistent: Whether it is a consistent read.
        alone: Whether it is a transaction of one item.
    """

    shape: Shape
    consistent: bool
    alone: bool


class Answered(NamedTuple):
    """The figures of a response.

    Attributes:
        returned: The number of items returned.
        scanned: The number of items read.
        units: The capacity units.
        metered: Whether the response contained the units.
        unprocessed: The number of requests that were not processed.
    """

    returned: int
    scanned: int
    units: float
    metered: bool
    unprocessed: int


def table_name(name_or_arn: str) -> str:
    """Return the name of a table, also from an ARN, which the service accepts too."""
    return (
        name_or_arn.rpartition(":table/")[2].partition("/")[0]
        if name_or_arn.startswith("arn:")
        else name_or_arn
    )


def asked(operation: str, params: Mapping[str, Any]) -> list[Asked]:
    """Return an entry for each table of a request.

    The result is empty for a request that is not about items. Values are typed.
    """
    if operation in ("Query", "Scan") or operation in _ONE_ITEM:
        shape = Shape(
            table_name(params["TableName"]),
            operation,
            params.get("IndexName", ""),
            _names(params.get("Key") or params.get("KeyConditions"))
            or _resolved(params, "KeyConditionExpression"),
            _names(params.get("QueryFilter") or params.get("ScanFilter"))
            or _resolved(params, "FilterExpression"),
        )
        return [Asked(shape, bool(params.get("ConsistentRead")), False)]
    if operation == "BatchGetItem":
        return [
            Asked(
                Shape(table_name(table), operation, "", _names(next(iter(keys["Keys"]), None))),
                bool(keys.get("ConsistentRead")),
                False,
            )
            for table, keys in params["RequestItems"].items()
        ]
    if operation == "BatchWriteItem":
        tables = map(table_name, params["RequestItems"])
        return [Asked(Shape(table, operation), False, False) for table in tables]
    if operation in ("TransactWriteItems", "TransactGetItems"):
        parts = [next(iter(item.values())) for item in params["TransactItems"]]
        named = dict.fromkeys(table_name(part["TableName"]) for part in parts)
        return [Asked(Shape(table, operation), False, len(parts) == 1) for table in named]
    if operation == "ExecuteStatement":
        match = _STATEMENT.search(params["Statement"])
        shape = Shape(match[1] if match else "", operation, (match[2] or "") if match else "")
        return [Asked(shape, bool(params.get("ConsistentRead")), False)]
    return []


def answered(shape: Shape, response: Mapping[str, Any]) -> Answered:
    """Return the figures of a response for one shape of its request."""
    count = response.get("Count")
    if count is None:
        items = response.get("Responses", ())
        of_table = items.get(shape.table, ()) if isinstance(items, Mapping) else items
        count = len(of_table) or len(response.get("Items", ())) or int("Item" in response)
    units, metered = 0.0, False
    capacity = response.get("ConsumedCapacity")
    for consumed in [capacity] if isinstance(capacity, Mapping) else capacity or ():
        if table_name(consumed.get("TableName", shape.table)) == shape.table:
            units, metered = units + consumed.get("CapacityUnits", 0.0), True
    rest = (response.get("UnprocessedItems") or {}).get(shape.table, ())
    keys = (response.get("UnprocessedKeys") or {}).get(shape.table, {}).get("Keys", ())
    scanned = response.get("ScannedCount", count)
    return Answered(count, scanned, units, metered, len(rest) + len(keys))


def written(operation: str, params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each write of a request as the table, and the key or the item."""
    if "TableName" in params:
        return [_target(params["TableName"], params)]
    if operation == "BatchWriteItem":
        return [
            _target(table, next(iter(request.values())))
            for table, requests in params["RequestItems"].items()
            for request in requests
        ]
    parts = [part for item in params["TransactItems"] for part in item.items()]
    return [_target(part["TableName"], part) for kind, part in parts if kind != "ConditionCheck"]


def _target(table: str, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return table_name(table), params["Key"] if "Key" in params else params["Item"]


def key_of(names: Iterable[str], item: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the values of a key; None if the item lacks one.

    Equal numbers are returned as equal values.
    """
    values = []
    for name in names:
        if name not in item:
            return None
        ((type_, content),) = item[name].items()
        if type_ != "S":
            content = Decimal(content) if type_ == "N" else bytes(content)
        values.append(content)
    return tuple(values)


def _names(names: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(sorted(names)[:MOST_NAMES]) if names else ()


def _resolved(params: Mapping[str, Any], parameter: str) -> tuple[str, ...]:
    """Return the names in an expression, where #name is replaced."""
    expression = params.get(parameter)
    if not isinstance(expression, str):
        return ()
    aliases = params.get("ExpressionAttributeNames") or {}
    return _names({aliases.get(name, name) for name in _parsed(expression)})
