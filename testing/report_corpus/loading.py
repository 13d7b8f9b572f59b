"""Creation of a table of the corpus in a local database or in the stand-in."""

from collections.abc import Iterable, Mapping
from typing import Any

from testing.databases import load
from testing.report_corpus.case import Case, Item, Schema, item_json
from testing.report_corpus.virtual import virtual_table
from testing.simulation.service import Service


def typed_name(declared: str) -> tuple[str, str]:
    """Return the name and the type of "name" or "name:N"; the type is "S" by default."""
    name, _, type_ = declared.partition(":")
    return name, type_ or "S"


def key_names(schema: Schema) -> list[str]:
    """Return the names of the attributes of a table's primary key."""
    return [typed_name(each)[0] for each in (schema.partition, schema.sort) if each]


def table_request(table: str, schema: Schema) -> dict[str, Any]:
    """Return the parameters of CreateTable."""
    types = dict(
        typed_name(each)
        for each in (
            schema.partition,
            schema.sort,
            *(name for index in schema.indexes for name in (index.partition, index.sort)),
        )
        if each is not None
    )
    request: dict[str, Any] = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys(schema.partition, schema.sort),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
    }
    for index in schema.indexes:
        kind = "LocalSecondaryIndexes" if index.local else "GlobalSecondaryIndexes"
        projection: dict[str, Any] = {"ProjectionType": index.projection}
        if index.include:
            projection["NonKeyAttributes"] = list(index.include)
        request.setdefault(kind, []).append(
            {
                "IndexName": index.name,
                "KeySchema": _keys(index.partition, index.sort),
                "Projection": projection,
            }
        )
    return request


def _keys(partition: str, sort: str | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": typed_name(partition)[0], "KeyType": "HASH"}]
    if sort is not None:
        keys.append({"AttributeName": typed_name(sort)[0], "KeyType": "RANGE"})
    return keys


def items_of(case: Case, now: float) -> list[Item]:
    """Return the items of a case; as in a table, the last item with a key replaces the others."""
    if case.items is None:
        return []
    names = key_names(case.schema)
    rows = case.items(case.chance(), now)
    return list({tuple(row[name] for name in names): row for row in rows}.values())


def create(client: Any, table: str, case: Case, items: Iterable[Item]) -> None:
    """Create a table in a local database, and load its items."""
    client.create_table(**table_request(table, case.schema))
    while client.describe_table(TableName=table)["Table"]["TableStatus"] != "ACTIVE":
        pass
    load(client, map(item_json, items), table)


def create_virtual(service: Service, table: str, case: Case, now: float) -> None:
    """Create a table in a stand-in."""
    request: Mapping[str, Any] = table_request(table, case.schema)
    service.tables[table] = virtual_table(request, case.virtual, now)
