"""A table of the corpus in a local database, and what is seen of it in the fakes of AWS."""

from collections.abc import Iterable, Mapping
from typing import Any

from testing.databases import load
from testing.report_corpus.case import Case, Item, Schema, item_json
from testing.report_corpus.virtual import virtual_table
from testing.simulation.service import Service


def typed_name(declared: str) -> tuple[str, str]:
    """ "age:N" as ("age", "N")."""
    name, _, type_ = declared.partition(":")
    return name, type_ or "S"


def table_request(table: str, schema: Schema) -> dict[str, Any]:
    """As CreateTable takes it."""
    types = dict(
        typed_name(one)
        for one in (
            schema.partition,
            schema.sort,
            *(name for index in schema.indexes for name in (index.partition, index.sort)),
        )
        if one is not None
    )
    plain = {name.partition(":")[0]: types[name.partition(":")[0]] for name in types}
    request: dict[str, Any] = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _keys(schema.partition, schema.sort),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in plain.items()
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
    """All of a case's items, each key once: of equal keys the last counts, as in a table."""
    if case.items is None:
        return []
    names = [
        typed_name(one)[0] for one in (case.schema.partition, case.schema.sort) if one is not None
    ]
    rows = case.items(case.chance(), now)
    return list({tuple(row[name] for name in names): row for row in rows}.values())


def create(client: Any, table: str, case: Case, items: Iterable[Item]) -> None:
    """The table, filled, in a local database."""
    client.create_table(**table_request(table, case.schema))
    while client.describe_table(TableName=table)["Table"]["TableStatus"] != "ACTIVE":
        pass
    load(client, map(item_json, items), table)


def create_virtual(service: Service, table: str, case: Case, now: float) -> None:
    """The table in a stand-in."""
    request: Mapping[str, Any] = table_request(table, case.schema)
    service.tables[table] = virtual_table(request, case.virtual, now)
