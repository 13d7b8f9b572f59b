"""A table whose hot partition keys are spread over shards that are added as they are needed.

    table = ShardedTable("Audit", metadata="Audit-shards", placement="random", append_only=True)
    table.put_item(Item={"path": "/f.txt", "at": "2026-11-21T09:00:00Z", "who": "ana"})
    newest = list(table.query(key="/f.txt", descending=True, limit=50))

Its words, shapes and errors are those of boto3's `resource("dynamodb").Table`. In the table itself
only the partition key's value differs: `"/f.txt_3"` for `"/f.txt"` (names.py).
"""

import random
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Endpoint, dynamodb_client, explained
from keyhop.dynamodb.schema import table_keyspace
from keyhop.dynamodb.usage import Usage
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.io.batch import BatchResult, BatchWriter
from keyhop.sharding.io.items import (
    Clause,
    Schema,
    clause_of,
    key_of,
    logical_item,
    typed,
    typed_item,
)
from keyhop.sharding.io.merge import Merge
from keyhop.sharding.io.query import Query, after_token, token_of
from keyhop.sharding.io.reader import Reader
from keyhop.sharding.io.validation import (
    check_condition,
    check_indexes,
    described,
    ends_of,
    has_attribute,
    projected,
    schema_of,
    sort_value,
)
from keyhop.sharding.io.writer import Act, Delete, Put, Update, Writer
from keyhop.sharding.key.names import DEFAULT_SEPARATOR, Names
from keyhop.sharding.key.placement import Hash, Placement
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.shards import LEAST_SETTLE_SECONDS, SETTLE_SECONDS
from keyhop.sharding.store.capacity import Capacity, Provisioned
from keyhop.sharding.store.clock import Clock, SystemClock
from keyhop.sharding.store.metadata import Metadata
from keyhop.sharding.store.requests import Overtaken, Requests
from keyhop.sharding.store.throttle_tracker import ThrottleTracker

CONNECTIONS = 64
READING_THREADS = 32


@dataclass(frozen=True, slots=True)
class Page:
    """Items of a query, in order. token: for the next page; None at the end."""

    items: list[dict[str, Any]]
    token: str | None


class ShardedTable:
    """A sharded table; for any number of threads. Nothing is requested before the first call.

    metadata: the name of its shard-metadata table. placement: "calculated": an item's shard comes
    from a hash of its keys, and it is found with few reads; "random": any shard, and to find an
    item costs a read of all of them. hash: "jump", or "modulo", the published way. append_only: no
    item is ever written twice under the same key. Then nothing is looked up before a put, and with
    "random" its shard is drawn by lot; if the promise is broken, a query returns one of the copies.
    All users of a table must have the same separator, placement, hash and append_only.

    policy: when shards are added. settle_seconds: how long each step of a change lasts, for keys
    that are registered here; requests must take effect within half of it (protocol.py).
    read_indexes: indexes with the table's own key schema and all attributes; eventually consistent
    queries are spread over them and the table. provisioned: bounds for raising the writes of a
    provisioned table.
    patience: seconds for which a throttled request is repeated, before its error is raised.
    client: Keyhop's, or boto3's `client("dynamodb")` without retries; cloudwatch: boto3's client.
    """

    def __init__(
        self,
        table: str,
        *,
        metadata: str,
        placement: Literal["random", "calculated"] = "calculated",
        hash: Hash = "jump",
        append_only: bool = False,
        separator: str = DEFAULT_SEPARATOR,
        policy: Policy | None = None,
        settle_seconds: float = SETTLE_SECONDS,
        read_indexes: Sequence[str] = (),
        provisioned: Provisioned | None = None,
        patience: float = 30.0,
        endpoint: Endpoint | None = None,
        client: Any = None,
        cloudwatch: Any = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        if placement not in ("random", "calculated"):
            raise CannotStart(f"placement is {placement!r}; it must be 'random' or 'calculated'.")
        if hash not in ("jump", "modulo"):
            raise CannotStart(f"hash is {hash!r}; it must be 'jump' or 'modulo'.")
        if settle_seconds < LEAST_SETTLE_SECONDS:
            raise CannotStart(
                f"settle_seconds is {settle_seconds:g}; it must be at least "
                f"{LEAST_SETTLE_SECONDS:g}."
            )
        Names("S", separator)  # a wrong one is refused at once
        self.name = table
        self.placement = Placement(placement == "calculated", hash, append_only)
        self.policy = policy or Policy()
        self._metadata_name = metadata
        self._separator = separator
        self._settle = settle_seconds
        self._indexes = tuple(read_indexes)
        self._provisioned = provisioned
        self._endpoint = endpoint or Endpoint()
        self._cloudwatch = cloudwatch
        self._client = client
        self._patience = patience
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()
        self._making = threading.RLock()
        self._requests: Requests | None = None
        self._opened: tuple[Writer, Reader] | None = None

    def put_item(
        self,
        *,
        Item: Mapping[str, Any],
        ConditionExpression: Any = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Any] | None = None,
        ReturnValues: str | None = None,
    ) -> dict[str, Any]:
        """Put an item, as boto3's `Table.put_item`.

        With ReturnValues="ALL_OLD", a put that moves the item returns the one that it has replaced.
        """
        item = typed_item(Item)
        clause = clause_of(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        return self._write(item, Put(item), clause, ReturnValues)

    def update_item(
        self,
        *,
        Key: Mapping[str, Any],
        UpdateExpression: str = "",
        ConditionExpression: Any = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Any] | None = None,
        ReturnValues: str | None = None,
    ) -> dict[str, Any]:
        """As boto3's `Table.update_item`."""
        clause = clause_of(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        return self._write(typed_item(Key), Update(UpdateExpression), clause, ReturnValues)

    def delete_item(
        self,
        *,
        Key: Mapping[str, Any],
        ConditionExpression: Any = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Any] | None = None,
        ReturnValues: str | None = None,
    ) -> dict[str, Any]:
        """As boto3's `Table.delete_item`."""
        clause = clause_of(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        return self._write(typed_item(Key), Delete(), clause, ReturnValues)

    def get_item(
        self,
        *,
        Key: Mapping[str, Any],
        ConsistentRead: bool = False,
        ProjectionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Get an item, as boto3's `Table.get_item`: {"Item": ...}, or {} if there is none.

        It costs a read of each shard where the item may be (placement.py).
        """
        key = key_of(self.schema, typed_item(Key))
        name = self.schema.partition.name
        projection = projected(name, ProjectionExpression, ExpressionAttributeNames)
        stored = self.reader.find(key, ConsistentRead, projection)
        if stored is None:
            return {}
        item = logical_item(self.schema, stored, key.logical)
        if not has_attribute(name, ProjectionExpression, ExpressionAttributeNames):
            item.pop(name, None)
        return {"Item": item}

    def query(
        self,
        key: Any,
        *,
        between: tuple[Any, Any] | None = None,
        descending: bool = False,
        limit: int | None = None,
        consistent: bool = False,
        page_token: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The items of a logical key, in the order of their sort key, from all shards.

        between: (least, greatest) sort key, both included, None for an open end. consistent:
        strongly; then no write is missed that was finished before the read began, and no item is
        seen twice or not at all because it is being moved. It is lazy: what is not consumed is not
        read, but for pages. Shards are read at different moments: it is no snapshot.
        """
        query = self._query_of(key, between, descending, limit, consistent, page_token)
        for item in self._merged(query):
            yield logical_item(self.schema, item, query.logical)

    def query_page(
        self,
        key: Any,
        *,
        between: tuple[Any, Any] | None = None,
        descending: bool = False,
        limit: int = 100,
        consistent: bool = False,
        page_token: str | None = None,
    ) -> Page:
        """Up to `limit` items of a query, and a token for the rest of it.

        The token outlives changes of the shard count, and holds the last sort key.
        """
        query = self._query_of(key, between, descending, limit, consistent, page_token)
        merged = list(self._merged(replace(query, limit=limit + 1)))
        items = [logical_item(self.schema, item, query.logical) for item in merged[:limit]]
        if len(merged) <= limit:
            return Page(items, None)
        return Page(items, token_of(query, merged[limit - 1][self.schema.sort.name]))

    def page_token(
        self,
        key: Any,
        last: Any,
        *,
        between: tuple[Any, Any] | None = None,
        descending: bool = False,
    ) -> str:
        """The token that goes on with a query behind the sort key `last`."""
        query = self._query_of(key, between, descending, None, False, None)
        return token_of(query, sort_value(self.schema, last))

    def batch_write(self, items: Iterable[Mapping[str, Any]]) -> BatchResult:
        """Put many items; of two with the same key the later one counts.

        Those that need no look go by BatchWriteItem, 25 at a time; what it leaves over is written
        one by one, as only a single write gets the reason of its throttling. Nothing is dropped:
        what could not be written is in the result, with its error.
        """
        return BatchWriter(self.writer, lambda item: self.put_item(Item=item)).write(items)

    def close(self) -> None:
        """Report the traffic that was not reported yet, and end the reading threads."""
        with self._making:
            opened, self._opened = self._opened, None
        if opened is not None:
            writer, reader = opened
            try:
                writer.metadata.traffic.flush()
            finally:
                reader.executor.shutdown()

    @property
    def usage(self) -> Usage:
        """What all requests have come to; the names of the counters are those of `Requests`."""
        return self.requests.usage

    @property
    def requests(self) -> Requests:
        """The client's requests, counted."""
        with self._making:
            if self._requests is None:
                client = self._client or dynamodb_client(self._endpoint, CONNECTIONS)
                self._requests = Requests(client, self._clock, self._patience, chance=self._chance)
            return self._requests

    @property
    def schema(self) -> Schema:
        """Its keys; raises CannotStart for a table that cannot be sharded."""
        return self.writer.schema

    @property
    def metadata(self) -> Metadata:
        """Its shard metadata."""
        return self.writer.metadata

    @property
    def reader(self) -> Reader:
        """Reads single items, and pages of shards."""
        return self._open()[1]

    @property
    def writer(self) -> Writer:
        """Writes single items."""
        return self._open()[0]

    def _open(self) -> tuple[Writer, Reader]:
        """What needs the table's description; made at the first call, once."""
        opened = self._opened
        if opened is None:
            with self._making:
                opened = self._opened = self._opened or self._make()
        return opened

    def _make(self) -> tuple[Writer, Reader]:
        requests = self.requests
        description = described(requests, self._endpoint, self.name)
        schema = schema_of(table_keyspace(description), self.name, self._separator)
        check_indexes(description, self._indexes)
        metadata = Metadata(
            requests,
            self._metadata_name,
            schema.partition,
            self._settle,
            self.placement,
            self._separator,
            whose=self.name,
        )
        capacity = Capacity(requests, self.name, self._provisioned, self._cloudwatch)
        throttle_tracker = ThrottleTracker(requests, metadata, self.name, capacity, self.policy)
        writer = Writer(requests, metadata, throttle_tracker, self.name, schema, self.placement)
        threads = ThreadPoolExecutor(READING_THREADS, "keyhop-query")
        reader = Reader(
            requests, metadata, self.name, schema, self.placement, threads, self._indexes
        )
        return writer, reader

    def _write(
        self, attributes: Mapping[str, Any], act: Act, clause: Clause, returns: str | None
    ) -> dict[str, Any]:
        key = key_of(self.schema, attributes)
        if isinstance(act, Put) and clause.condition and self.placement.append_only:
            raise CannotStart(
                "With append_only a put has no condition: nobody looks where the item may be."
            )
        check_condition(self.schema, clause)
        if returns == "NONE":
            returns = None
        try:
            answer = self.writer.write(key, act, clause, returns)
        except Overtaken:
            raise GaveUp(
                f"The item was changed by others, or its shards were, whenever it was to be "
                f"written, for {self._patience:g} seconds."
            ) from None
        shown = {name: value for name, value in answer.items() if name == "ResponseMetadata"}
        if answer.get("Attributes"):
            shown["Attributes"] = logical_item(self.schema, answer["Attributes"], key.logical)
        return shown

    def _merged(self, query: Query) -> Iterator[dict[str, Any]]:
        return islice(Merge(self.reader, query), query.limit)

    def _query_of(
        self,
        key: Any,
        between: tuple[Any, Any] | None,
        descending: bool,
        limit: int | None,
        consistent: bool,
        token: str | None,
    ) -> Query:
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise CannotStart(f"limit is {limit}; it must be a whole number of at least 1.")
        low, high = ends_of(self.schema, between)
        query = Query(typed(key), (low, high), descending, consistent, None, limit)
        if token is not None:
            query = replace(query, after=after_token(query, token))
        return query


def explained_to_user(error: ClientError | BotoCoreError, table: ShardedTable) -> Exception:
    """One clear sentence for what boto3 raised."""
    return explained(error, table._endpoint, table.name)
