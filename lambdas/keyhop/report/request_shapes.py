"""What a request to DynamoDB is like, without its values: names of attributes, counts, units. Pure.

This module is imported into users' applications (sampler.py): it needs nothing but Python.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from keyhop.report.expression import names_in

MOST_NAMES = 20
"""Of attributes, of one shape."""

_ONE_ITEM = ("GetItem", "UpdateItem", "DeleteItem", "PutItem")
_STATEMENT = re.compile(
    r"\b(?:FROM|INTO|UPDATE)\s+\"?([\w.-]+)\"?(?:\s*\.\s*\"?([\w-]+)\"?)?", re.IGNORECASE
)

_parsed = lru_cache(256)(names_in)


class Shape(NamedTuple):
    """Requests are counted by it. conditions, filters: names of attributes, sorted."""

    table: str
    operation: str
    index_name: str = ""
    conditions: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


class Asked(NamedTuple):
    """One request, as far as it is about one table. alone: of a transaction's item."""

    shape: Shape
    consistent: bool
    alone: bool


class Answered(NamedTuple):
    """Of a response. metered: whether it told the units."""

    returned: int
    scanned: int
    units: float
    metered: bool
    unprocessed: int


def table_name(given: str) -> str:
    """The service takes an ARN where it takes a name."""
    return given.rpartition(":table/")[2].partition("/")[0] if given.startswith("arn:") else given


def asked(operation: str, params: Mapping[str, Any]) -> list[Asked]:
    """For each table of a request; none for what is not about items. Values are typed."""
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
        found = _STATEMENT.search(params["Statement"])
        shape = Shape(found[1] if found else "", operation, (found[2] or "") if found else "")
        return [Asked(shape, bool(params.get("ConsistentRead")), False)]
    return []


def answered(shape: Shape, response: Mapping[str, Any]) -> Answered:
    """What a response says of one of its request's shapes."""
    count = response.get("Count")
    if count is None:
        items = response.get("Responses", ())
        mine = items.get(shape.table, ()) if isinstance(items, Mapping) else items
        count = len(mine) or len(response.get("Items", ())) or int("Item" in response)
    units, metered = 0.0, False
    capacity = response.get("ConsumedCapacity")
    for one in [capacity] if isinstance(capacity, Mapping) else capacity or ():
        if table_name(one.get("TableName", shape.table)) == shape.table:
            units, metered = units + one.get("CapacityUnits", 0.0), True
    rest = (response.get("UnprocessedItems") or {}).get(shape.table, ())
    keys = (response.get("UnprocessedKeys") or {}).get(shape.table, {}).get("Keys", ())
    scanned = response.get("ScannedCount", count)
    return Answered(count, scanned, units, metered, len(rest) + len(keys))


def written(operation: str, params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Table, and the key or the item, of all that is written."""
    if "TableName" in params:
        return [_one(params["TableName"], params)]
    if operation == "BatchWriteItem":
        return [
            _one(table, next(iter(request.values())))
            for table, requests in params["RequestItems"].items()
            for request in requests
        ]
    parts = [one for item in params["TransactItems"] for one in item.items()]
    return [_one(part["TableName"], part) for kind, part in parts if kind != "ConditionCheck"]


def _one(table: str, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return table_name(table), params["Key"] if "Key" in params else params["Item"]


def key_of(names: Iterable[str], item: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Values of a key, equal ones as equals; None if the item has not all of them."""
    values = []
    for name in names:
        if name not in item:
            return None
        ((type_, content),) = item[name].items()
        if type_ != "S":
            content = Decimal(content) if type_ == "N" else bytes(content)
        values.append(content)
    return tuple(values)


def _names(given: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(sorted(given)[:MOST_NAMES]) if given else ()


def _resolved(params: Mapping[str, Any], parameter: str) -> tuple[str, ...]:
    """Names of an expression; one that is #name is looked up."""
    expression = params.get(parameter)
    if not isinstance(expression, str):
        return ()
    known = params.get("ExpressionAttributeNames") or {}
    return _names({known.get(name, name) for name in _parsed(expression)})
