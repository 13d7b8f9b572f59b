"""A table in a local database, its items, its sentinels and its stream."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keyhop.dynamodb.tables import Table
from keyhop.key_index.keeper import Collections
from keyhop.key_index.sentinel import Sentinel

from testing.databases import Database
from testing.key_index_tables import Stream, collections_of, drift, scanned, table_of


class OnTable:
    """A test object for the table `table` in `database`."""

    database: Database
    table: str

    def looked_up(self) -> Table:
        return table_of(self.database, self.table)

    @property
    def sentinel(self) -> Sentinel:
        return Sentinel.of(self.looked_up().space)

    def described(self) -> dict[str, Any]:
        return dict(self.database.client.describe_table(TableName=self.table)["Table"])

    def items(self) -> list[dict[str, Any]]:
        return list(scanned(self.database, self.table))

    def in_order(self) -> list[str]:
        """Return all items, sorted, for comparisons."""
        return sorted(map(repr, self.items()))

    def drift(self) -> tuple[set[Any], set[Any]]:
        return drift(self.database, self.table, self.sentinel)

    def stream(self) -> Stream:
        return Stream(self.database, self.table)

    def keeper(self) -> Collections:
        return collections_of(self.database, self.table)

    def put(self, *items: Mapping[str, Any]) -> None:
        for item in items:
            self.database.client.put_item(TableName=self.table, Item=item)

    def delete(self, *keys: Mapping[str, Any]) -> None:
        for key in keys:
            self.database.client.delete_item(TableName=self.table, Key=key)

    def delete_sentinels(self, *collections: str) -> None:
        sentinel = self.sentinel
        self.delete(*(sentinel.key_of({"pk": {"S": name}}) for name in collections))

    def put_sentinels(self, *collections: str) -> None:
        sentinel = self.sentinel
        self.put(*(sentinel.item_of({"pk": {"S": name}}) for name in collections))

    def update(self, **changes: Any) -> None:
        self.database.client.update_table(TableName=self.table, **changes)

    def create(self, *keys: Any, **more: Any) -> None:
        self.database.create(self.table, *keys, **more)

    def fill(self, items: Iterable[Mapping[str, Any]]) -> None:
        self.database.fill(self.table, items)

    def collections(self, sizes: Sequence[int], filling: int = 0) -> set[str]:
        return self.database.collections(self.table, sizes, filling)
