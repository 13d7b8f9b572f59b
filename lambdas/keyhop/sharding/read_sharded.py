"""The first items of an index whose partition key is spread over shards: the top k of a key.

    best = ReadSharded(ShardedTable("Scores", metadata="Scores-shards"), index="by-score")
    best.top("level-7", 10)

Or for any table whose application writes "level-7_1" to "level-7_8" into the index's key:

    best = ReadSharded("Players", index="by-score", shards=8)

The result is exact, because each of the first k items is among the first k of its shard. Shards are
read page by page in the index's order, always the shard whose reading has progressed least, until
this one has passed the k-th item found so far. All unread items come after that.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import explained
from keyhop.dynamodb.schema import keyspace_of
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import logical_item, typed, untyped
from keyhop.sharding.io.merge import IndexMerge
from keyhop.sharding.io.reader import Query, Reader
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.schema import DEFAULT_SEPARATOR, Index, Names, Schema, indexes_by_name
from keyhop.sharding.key.shards import MOST_SHARDS, SETTLE_SECONDS, Shards
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.requests import Requests
from keyhop.sharding.table import CONNECTIONS, READING_THREADS, ShardedTable


class ReadSharded:
    """Reads one index, eventually consistent; for any number of threads.

    It is an index of a ShardedTable with its partition key; or of any table, by name, with suffixes
    from 1 to `shards`. Then the separator, endpoint and client are as for ShardedTable, and a fork
    of the process needs another instance.
    """

    def __init__(
        self,
        table: ShardedTable | str,
        *,
        index: str,
        shards: int | None = None,
        separator: str = DEFAULT_SEPARATOR,
        endpoint: Endpoint | None = None,
        client: Any = None,
    ) -> None:
        if isinstance(table, str) is (shards is None):
            raise CannotStart(
                "shards must be given for the name of a table, and not for a ShardedTable, whose "
                "metadata has the number."
            )
        if shards is not None and not 1 <= shards <= MOST_SHARDS:
            raise CannotStart(f"shards is {shards}; it must be 1 to {MOST_SHARDS}.")
        self._table = table if isinstance(table, ShardedTable) else None
        self._name = table if isinstance(table, str) else table.name
        self._index = index
        self._shards = shards or 0
        self._separator = separator
        self._endpoint = endpoint or Endpoint()
        self._client = client
        self._making = Lock()
        self._opened: _Source | None = None

    def top(self, key: Any, k: int, *, least: bool = False) -> list[dict[str, Any]]:
        """Return the k items of a key with the greatest (or least) sort keys of the index, in
        order; any of those with the last sort key, as DynamoDB does not define their order.
        """
        if not isinstance(k, int) or k < 1:
            raise CannotStart(f"k is {k}; it must be a whole number of at least 1.")
        source = self._source()
        logical = typed(key)
        query = Query(
            logical,
            descending=not least,
            limit=k,
            index=self._index,
            sort=source.sort,
        )
        merge = IndexMerge(source.reader, query, identity=source.identity, any_equal=True)
        items, _ = merge.page(k, is_filtered=False)
        return [source.item_of(item, logical) for item in items]

    @property
    def usage(self) -> Usage:
        """The usage of this reader, or of its ShardedTable."""
        return self._source().reader.requests.usage

    def close(self) -> None:
        """Stop the reading threads, unless they belong to a ShardedTable."""
        opened, self._opened = self._opened, None
        if opened is not None and self._table is None:
            opened.reader.executor.shutdown()

    def _source(self) -> "_Source":
        if self._table is not None:
            return self._of_sharded(self._table)
        with self._making:
            if self._opened is None:
                self._opened = self._of_plain()
            return self._opened

    def _of_sharded(self, table: ShardedTable) -> "_Source":
        found_index, schema = table._index(self._index), table.schema
        if not found_index.carries_shard(schema):
            raise CannotStart(
                f"The partition key of the index {self._index!r} is not that of the table: the "
                "items of a key are together there, so query it with boto3."
            )
        return _Source(table.reader, found_index.sort[0].name, (schema.sort.name,), schema)

    def _of_plain(self) -> "_Source":
        requests = Requests(self._client or dynamodb_client(self._endpoint, CONNECTIONS))
        try:
            description = requests.call("describe_table", TableName=self._name)["Table"]
        except (ClientError, BotoCoreError) as error:
            raise explained(error, self._endpoint, self._name) from error
        found_index: Index | None = indexes_by_name(description).get(self._index)
        if found_index is None or len(found_index.partition) != 1 or len(found_index.sort) != 1:
            raise CannotStart(
                f"{self._name} has no index {self._index!r} with one partition key and one sort "
                "key."
            )
        space = keyspace_of(description)
        names = Names(found_index.partition[0].type, self._separator)
        schema = Schema(self._name, found_index.partition[0], found_index.sort[0], names)
        identity = tuple(space.types)
        threads = ThreadPoolExecutor(READING_THREADS, "keyhop-top")
        metadata = cast(Any, _FixedShards(requests, schema, self._shards))
        return _Source(Reader(metadata, threads, ()), found_index.sort[0].name, identity, None)


@dataclass(frozen=True, slots=True)
class _Source:
    """The data source. identity: attributes that identify an item. schema: of a sharded table."""

    reader: Reader
    sort: str
    identity: tuple[str, ...]
    schema: Schema | None

    def item_of(self, item: Mapping[str, TypedValue], logical: TypedValue) -> dict[str, Any]:
        if self.schema is not None:
            return logical_item(self.schema, item, logical)
        return {name: untyped(value) for name, value in item.items()}


@dataclass(frozen=True, slots=True)
class _FixedShards:
    """Replaces the metadata: each key always has the same shards."""

    requests: Requests
    schema: Schema
    shards: int

    @property
    def placement(self) -> Placement:
        return Placement(calculated=False)

    def of(self, logical: TypedValue) -> KeyMetadata:
        shards = Shards.registered(0.0, SETTLE_SECONDS, None, self.shards)
        return KeyMetadata(shards, "", 0.0, 0.0, 0.0, float("inf"))
