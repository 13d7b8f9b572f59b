"""A re-key for tests: two tables in a local database, their side table, and simple transforms."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Item
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.rekey.task import TransformOf, side_table
from keyhop.rekey.template.rules import Reversed
from keyhop.rekey.transform import KeyNames, Transform
from keyhop.template import Unmappable

from testing.databases import Database

KEYS = KeyNames("pk", "sk")


class TwoWays(Transform):
    """A transform whose reverse direction finds the place of a source item by `forward`."""

    @property
    def reverse(self) -> Transform:
        return Reversed(self, (), self.place_of)


class ByTenant(TwoWays):
    """A transform of {pk, sk, tenant} to {tenant, pk#sk}; it leaves out the tenant named `skip`."""

    kind = "bijective"
    owner_attributes = ()
    source = destination = KEYS

    def forward(self, item: Item) -> Item | None:
        if "tenant" not in item:
            raise Unmappable("attribute 'tenant' is missing")
        if item["tenant"]["S"] == "skip":
            return None
        rest = {name: item[name] for name in item if name != "tenant"}
        sort = f"{item['pk']['S']}#{item['sk']['S']}"
        return {**rest, "pk": {"S": item["tenant"]["S"]}, "sk": {"S": sort}}

    def back(self, item: Item) -> Item | None:
        partition, separator, sort = item["sk"]["S"].partition("#")
        if not separator:
            return None
        return {**item, "pk": {"S": partition}, "sk": {"S": sort}, "tenant": item["pk"]}


class ByOrder(TwoWays):
    """A transform of {pk, sk} to {sk, "-", user}: two users with the same `sk` contend."""

    kind = "recoverable"
    owner_attributes = ("user",)
    source = destination = KEYS

    def forward(self, item: Item) -> Item | None:
        return {**item, "pk": item["sk"], "sk": {"S": "-"}, "user": item["pk"]}

    def back(self, item: Item) -> Item | None:
        if "user" not in item:
            return None
        rest = {name: item[name] for name in item if name != "user"}
        return {**rest, "pk": item["user"], "sk": item["pk"]}


TRANSFORMS: dict[str, type[Transform]] = {"tenant": ByTenant, "order": ByOrder}


def transform_of(pair: Pair, source: Table, destination: Table) -> Transform:
    """Return the transform that the template of these tests names."""
    return TRANSFORMS[pair.template["by"]]()


_: TransformOf = transform_of


@dataclass(frozen=True, slots=True)
class RekeyTables:
    """A re-key that was created; its control item may say that it replicates."""

    database: Database
    pair: Pair
    side: SideTable

    def put(self, items: Iterable[Item]) -> None:
        self.database.fill(self.pair.source, items)

    def copied(self) -> dict[tuple[str, str], Any]:
        """Return the items of the destination by key."""
        return _by_key(self.database, self.pair.destination)

    def originals(self) -> dict[tuple[str, str], Any]:
        return _by_key(self.database, self.pair.source)


def create(
    database: Database,
    connection: Connection,
    name: str,
    by: str = "tenant",
    replicating: bool = True,
) -> RekeyTables:
    """Create two empty tables and their side table."""
    pair = Pair(name, f"{name}-new", {"by": by})
    for table in (pair.source, pair.destination):
        database.create(table)
    database.client.create_table(**table_request(pair.side))
    side = side_table(connection, pair.destination)
    assert side.put_plan(pair)
    assert side.swap(None, Control(replicating=replicating))
    return RekeyTables(database, pair, side)


def order(number: int, tenants: int = 7, size: int = 0) -> dict[str, Any]:
    """Return an item with attributes of various types; its keys depend on the number."""
    return {
        "pk": {"S": f"user{number // 3}"},
        "sk": {"S": f"order{number}"},
        "tenant": {"S": f"t{number % tenants}"},
        "total": {"N": f"{number}.50"},
        "tags": {"SS": [f"a{number}", "b"]},
        **({"text": {"S": "x" * size}} if size else {}),
    }


def _by_key(database: Database, table: str) -> dict[tuple[str, str], Any]:
    pages = database.client.get_paginator("scan").paginate(TableName=table)
    items = [item for page in pages for item in page["Items"]]
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}
