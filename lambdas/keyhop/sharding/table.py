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
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.asking import (
    asks_for,
    check_condition,
    check_indexes,
    described,
    ends_of,
    find,
    projected,
    schema_of,
    sort_value,
)
from keyhop.sharding.batch import BatchResult, write_batch
from keyhop.sharding.calls import Again, Calls
from keyhop.sharding.clock import Clock, SystemClock
from keyhop.sharding.counts import Counts
from keyhop.sharding.heat import Thermometer
from keyhop.sharding.items import (
    Clause,
    ItemKey,
    Schema,
    clause_of,
    key_of,
    logical_item,
    typed,
    typed_item,
)
from keyhop.sharding.merge import Merge
from keyhop.sharding.metadata import Metadata
from keyhop.sharding.names import DEFAULT_SEPARATOR, Names
from keyhop.sharding.parts import Question, after_token, token_of
from keyhop.sharding.placement import Hash
from keyhop.sharding.policy import Policy
from keyhop.sharding.protocol import Placement
from keyhop.sharding.provisioned import Capacity, Provisioned
from keyhop.sharding.reader import Reader
from keyhop.sharding.shards import LEAST_SETTLE_SECONDS, SETTLE_SECONDS
from keyhop.sharding.writer import Act, Delete, Put, Update, Writer

CONNECTIONS = 64
READING_THREADS = 32


@dataclass(frozen=True, slots=True)
class Page:
    """Items of a query, in order. token: for the next page; None at the end."""

    items: list[dict[str, Any]]
    token: str | None


@dataclass(frozen=True, slots=True)
class _Rooms:
    """What a table is made of, once it has been described."""

    schema: Schema
    metadata: Metadata
    writer: Writer
    reader: Reader
    threads: ThreadPoolExecutor


class ShardedTable:
    """A sharded table; for any number of threads. Nothing is asked before the first call.

    metadata: the name of its shard-metadata table. placement: "calculated": an item's shard comes
    from a hash of its keys, and it is found with few reads; "random": any shard, and to find an
    item costs a read of all of them. hash: "jump", or "modulo", the published way. append_only: no
    item is ever written twice under the same key. Then nothing is looked up before a put, and with
    "random" its shard is drawn by lot; if the promise is broken, a query tells one of the copies.
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
        Names("S", separator)  # a wrong one should be told at once
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
        self._calls: Calls | None = None
        self._made: _Rooms | None = None

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

        With ReturnValues="ALL_OLD", a put that moves the item tells what it had found.
        """
        item = typed_item(Item)
        key = key_of(self.schema, item)
        clause = clause_of(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        if clause.condition and self.placement.append_only:
            raise CannotStart(
                "With append_only a put has no condition: nobody looks where the item may be."
            )
        return self._write(key, Put(item), clause, ReturnValues)

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
        key = key_of(self.schema, typed_item(Key))
        clause = clause_of(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        return self._write(key, Update(UpdateExpression), clause, ReturnValues)

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
        key = key_of(self.schema, typed_item(Key))
        clause = clause_of(ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues)
        return self._write(key, Delete(), clause, ReturnValues)

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
        place = self.writer.place_of(key)
        item = find(self._rooms.reader, place, key, ConsistentRead, projection)
        if item is None:
            return {}
        told = logical_item(self.schema, item, key.logical)
        if not asks_for(name, ProjectionExpression, ExpressionAttributeNames):
            told.pop(name, None)
        return {"Item": told}

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
        question = self._question(key, between, descending, limit, consistent, page_token)
        for item in self._merged(question):
            yield logical_item(self.schema, item, question.logical)

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
        question = self._question(key, between, descending, limit, consistent, page_token)
        found = list(self._merged(replace(question, limit=limit + 1)))
        items = [logical_item(self.schema, item, question.logical) for item in found[:limit]]
        if len(found) <= limit:
            return Page(items, None)
        return Page(items, token_of(question, found[limit - 1][self.schema.sort.name]))

    def page_token(
        self,
        key: Any,
        last: Any,
        *,
        between: tuple[Any, Any] | None = None,
        descending: bool = False,
    ) -> str:
        """The token that goes on with a query behind the sort key `last`."""
        question = self._question(key, between, descending, None, False, None)
        return token_of(question, sort_value(self.schema, last))

    def batch_write(self, items: Iterable[Mapping[str, Any]]) -> BatchResult:
        """Put many items; of two with the same key the later one counts.

        Those that need no look go by BatchWriteItem, 25 at a time; what it leaves over is written
        one by one, as only a single write is told why it was throttled. Nothing is dropped: what
        could not be written is in the result, with its error.
        """
        return write_batch(self, items)

    def close(self) -> None:
        """Report the traffic that was not reported yet, and end the reading threads."""
        with self._making:
            made, self._made = self._made, None
        if made is not None:
            try:
                made.metadata.traffic.flush()
            finally:
                made.threads.shutdown()

    @property
    def counts(self) -> Counts:
        """What all calls have come to."""
        return self.calls.counts

    @property
    def calls(self) -> Calls:
        """The client's calls, counted."""
        with self._making:
            if self._calls is None:
                client = self._client or dynamodb_client(self._endpoint, CONNECTIONS)
                self._calls = Calls(client, self._clock, self._patience, chance=self._chance)
            return self._calls

    @property
    def schema(self) -> Schema:
        """Its keys; raises CannotStart for a table that cannot be sharded."""
        return self._rooms.schema

    @property
    def metadata(self) -> Metadata:
        """Its shard metadata."""
        return self._rooms.metadata

    @property
    def writer(self) -> Writer:
        """Writes single items."""
        return self._rooms.writer

    @property
    def _rooms(self) -> "_Rooms":
        """What needs the table's description; made at the first call, once."""
        found = self._made
        if found is None:
            with self._making:
                found = self._made = self._made or self._make()
        return found

    def _make(self) -> "_Rooms":
        calls = self.calls
        description = described(calls, self._endpoint, self.name)
        schema = schema_of(table_keyspace(description), self.name, self._separator)
        check_indexes(description, self._indexes)
        metadata = Metadata(
            calls,
            self._metadata_name,
            schema.partition,
            self._settle,
            self.placement,
            self._separator,
            whose=self.name,
        )
        capacity = Capacity(calls, self.name, self._provisioned, self._cloudwatch)
        thermometer = Thermometer(calls, metadata, self.name, capacity, self.policy)
        writer = Writer(calls, metadata, thermometer, self.name, schema, self.placement)
        threads = ThreadPoolExecutor(READING_THREADS, "keyhop-query")
        reader = Reader(calls, metadata, self.name, schema, self.placement, threads, self._indexes)
        return _Rooms(schema, metadata, writer, reader, threads)

    def _write(self, key: ItemKey, act: Act, clause: Clause, returns: str | None) -> dict[str, Any]:
        check_condition(self.schema, clause)
        if returns == "NONE":
            returns = None
        try:
            answer, before = self.writer.write(key, act, clause, returns)
        except Again:
            raise GaveUp(
                f"The item was changed by others, or its shards were, whenever it was to be "
                f"written, for {self._patience:g} seconds."
            ) from None
        attributes = before if before is not None and returns else answer.get("Attributes")
        told = {name: value for name, value in answer.items() if name == "ResponseMetadata"}
        if attributes:
            told["Attributes"] = logical_item(self.schema, attributes, key.logical)
        return told

    def _merged(self, question: Question) -> Iterator[dict[str, Any]]:
        return islice(Merge(self._rooms.reader, question), question.limit)

    def _question(
        self,
        key: Any,
        between: tuple[Any, Any] | None,
        descending: bool,
        limit: int | None,
        consistent: bool,
        token: str | None,
    ) -> Question:
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise CannotStart(f"limit is {limit}; it must be a whole number of at least 1.")
        low, high = ends_of(self.schema, between)
        question = Question(typed(key), (low, high), descending, consistent, None, limit)
        if token is not None:
            question = replace(question, after=after_token(question, token))
        return question


def explained_to_user(error: ClientError | BotoCoreError, table: ShardedTable) -> Exception:
    """One clear sentence for what boto3 raised."""
    return explained(error, table._endpoint, table.name)
