"""A table whose busy partition keys are spread over shards, which are added when needed.

    table = ShardedTable("Audit", metadata="Audit-shards", placement="random", append_only=True)
    table.put_item(Item={"path": "/f.txt", "at": "2026-11-21T09:00:00Z", "who": "ana"})
    newest = list(table.query(key="/f.txt", descending=True, limit=50))

Its methods for items have the parameters, results and errors of boto3's
`resource("dynamodb").Table` (docs/reference/sharding-boto3.md). In the table itself only the
partition key's value differs: `"/f.txt_3"` for `"/f.txt"` (schema.py).
"""

import os
import random
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, Self, Unpack, cast, overload

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.checks import number, shown
from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import Connection, NamedTable, name_table
from keyhop.dynamodb.refusals import explained
from keyhop.dynamodb.requester import send
from keyhop.dynamodb.schema import keyspace_of
from keyhop.dynamodb.usage import Usage
from keyhop.errors import CannotStart
from keyhop.sharding.io.batch import BatchResult, BatchWriter
from keyhop.sharding.io.boto3_query import table_query
from keyhop.sharding.io.boto3_words import (
    ELSEWHERE,
    CapacityTold,
    Conditional,
    Got,
    Meta,
    Queried,
    Range,
    Reading,
    TableBatch,
    Told,
    Updated,
    batch_get,
    check_limit,
    check_values,
    check_words,
    exact_key,
    get_item,
    with_metadata,
    write_item,
)
from keyhop.sharding.io.items import (
    key_of,
    logical_item,
    typed,
    typed_item,
)
from keyhop.sharding.io.merge import Merge
from keyhop.sharding.io.reader import Query, Reader, after_token, ends_of, sort_value, token_of
from keyhop.sharding.io.writer import DELETE, Act, Writer
from keyhop.sharding.key.placement import Hash, Placement
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.schema import (
    DEFAULT_SEPARATOR,
    Index,
    ItemKey,
    Names,
    Schema,
    check_indexes,
    indexes_by_name,
    schema_of,
)
from keyhop.sharding.key.shards import LEAST_SETTLE_SECONDS, SETTLE_SECONDS
from keyhop.sharding.store.capacity import Capacity, Provisioned
from keyhop.sharding.store.metadata import PLAIN_KEYS, Metadata
from keyhop.sharding.store.requests import Call, Requests
from keyhop.sharding.store.throttle_tracker import ThrottleTracker

CONNECTIONS = 64
READING_THREADS = 32


@dataclass(frozen=True, slots=True)
class Page:
    """Items of a query, in order. token: for the next page; None at the end."""

    items: list[dict[str, Any]]
    token: str | None


class ItemBatch(Protocol):
    """A batch writer of either kind of table."""

    def put_item(self, Item: dict[str, Any]) -> object: ...

    def delete_item(self, Key: dict[str, Any]) -> object: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


class ItemTable(Protocol):
    """A table of either kind: the methods that boto3's Table and ShardedTable share, to annotate
    functions that take either. The parameters and results are those of boto3's Table
    (docs/reference/sharding-boto3.md).
    """

    @property
    def name(self) -> str: ...

    @property
    def meta(self) -> Any: ...

    def put_item(
        self,
        *,
        Item: Mapping[str, Any],
        ConditionExpression: Any = ...,
        ExpressionAttributeNames: Mapping[str, str] = ...,
        ExpressionAttributeValues: Mapping[str, Any] = ...,
        ReturnValues: Any = ...,
        ReturnValuesOnConditionCheckFailure: Any = ...,
        ReturnConsumedCapacity: Any = ...,
    ) -> Mapping[str, Any]: ...

    def update_item(
        self,
        *,
        Key: Mapping[str, Any],
        UpdateExpression: str = ...,
        ConditionExpression: Any = ...,
        ExpressionAttributeNames: Mapping[str, str] = ...,
        ExpressionAttributeValues: Mapping[str, Any] = ...,
        ReturnValues: Any = ...,
        ReturnValuesOnConditionCheckFailure: Any = ...,
        ReturnConsumedCapacity: Any = ...,
    ) -> Mapping[str, Any]: ...

    def delete_item(
        self,
        *,
        Key: Mapping[str, Any],
        ConditionExpression: Any = ...,
        ExpressionAttributeNames: Mapping[str, str] = ...,
        ExpressionAttributeValues: Mapping[str, Any] = ...,
        ReturnValues: Any = ...,
        ReturnValuesOnConditionCheckFailure: Any = ...,
        ReturnConsumedCapacity: Any = ...,
    ) -> Mapping[str, Any]: ...

    def get_item(
        self,
        *,
        Key: Mapping[str, Any],
        ConsistentRead: bool = ...,
        ProjectionExpression: str = ...,
        ExpressionAttributeNames: Mapping[str, str] = ...,
        ReturnConsumedCapacity: Any = ...,
    ) -> Mapping[str, Any]: ...

    def query(
        self,
        *,
        KeyConditionExpression: Any = ...,
        FilterExpression: Any = ...,
        ProjectionExpression: str = ...,
        ExpressionAttributeNames: Mapping[str, str] = ...,
        ExpressionAttributeValues: Mapping[str, Any] = ...,
        IndexName: str = ...,
        ConsistentRead: bool = ...,
        Limit: int = ...,
        ScanIndexForward: bool = ...,
        ExclusiveStartKey: Mapping[str, Any] = ...,
        Select: Any = ...,
        ReturnConsumedCapacity: Any = ...,
    ) -> Mapping[str, Any]: ...

    def batch_writer(self, overwrite_by_pkeys: list[str] = ...) -> ItemBatch: ...


class ShardedTable:
    """A sharded table, with the calls of boto3's Table for items; and `query` by a logical key.

    Threads may share an object, and a fork of the process may go on with it. As a context manager
    it is closed at the end of the block. All users of a table must give the same separator,
    placement, hash and append_only. The table's description is read by the first call.

        with keyhop.ShardedTable("Audit", metadata="Audit-shards") as table:
            table.put_item(Item={"path": "/f.txt", "at": "2026-11-21", "who": "ana"})
            newest = list(table.query(key="/f.txt", descending=True, limit=50))

    Args:
        table: The name or the ARN of a table, or boto3's Table, whose client then sends all
            requests. The table has a sort key, and its partition key is a string or binary. It is
            empty, or has only items that ShardedTable has written.
        metadata: The name of its shard-metadata table, which has the same partition key and no sort
            key. A deployment creates it, and names it in an output of the stack.
        placement: "calculated" derives an item's shard from a hash of its keys, so that few reads
            find it; "random" uses any shard, and finding an item needs a read of all of them.
        hash: "jump", or "modulo", the published method.
        append_only: No item is ever written twice with the same key. Then a put needs no read, and
            with "random" its shard is random; of a key that is written twice, a query returns one.
        separator: The text between a logical key and the number of its shard: 1 to 16 printable
            ASCII characters, with no digits and no spaces.
        accept: ["plain-keys"], to use keys although the table has items under them without a shard
            number. No call finds these items; by default, a call for such a key raises CannotStart.
        policy: When shards are added, and how many: a `Policy` of keyhop.sharding.key.policy.
        settle_seconds: The duration of each step of a change, for keys that are registered here;
            requests must take effect within half of it.
        read_indexes: Indexes with the table's key schema and all attributes; eventually consistent
            queries are spread over them and the table.
        provisioned: Bounds for raising the write capacity of a provisioned table: a `Provisioned`
            of keyhop.sharding.store.capacity, such as Provisioned(least=5, most=1000).
        patience: Seconds for which a throttled write, read, or page of a query is retried before
            its error is raised; the time-out of the last request may come on top.
        session: A boto3 session, whose credentials, region and classes of errors are used; by
            default those of the environment and of boto3's default session.
        endpoint_url: The address of DynamoDB, such as that of DynamoDB Local. By default it is that
            of the environment (AWS_ENDPOINT_URL).
        client: The client that sends all requests: boto3's `client("dynamodb")`, whose retries
            should be off, because they hide throttling. Then `table` is a name, and session and
            endpoint_url are left out.
        cloudwatch: With provisioned: boto3's `client("cloudwatch")`, whose metrics say how much
            capacity the table consumes.
        clock, chance: For tests: the time, and the random numbers.

    Raises:
        CannotStart: An argument is wrong. A table that cannot be sharded is refused by the first
            call.
    """

    def __init__(
        self,
        table: Any,
        *,
        metadata: str,
        placement: Literal["random", "calculated"] = "calculated",
        hash: Hash = "jump",
        append_only: bool = False,
        separator: str = DEFAULT_SEPARATOR,
        accept: Collection[str] = (),
        policy: Policy | None = None,
        settle_seconds: float = SETTLE_SECONDS,
        read_indexes: Sequence[str] = (),
        provisioned: Provisioned | None = None,
        patience: float = 30.0,
        session: Any = None,
        endpoint_url: str | None = None,
        client: Any = None,
        cloudwatch: Any = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        if placement not in ("random", "calculated"):
            raise CannotStart(f"placement is {placement!r}; it must be 'random' or 'calculated'.")
        if hash not in ("jump", "modulo"):
            raise CannotStart(f"hash is {hash!r}; it must be 'jump' or 'modulo'.")
        if isinstance(accept, str):
            raise CannotStart(f"accept must be a list of texts: give [{accept!r}].")
        if unknown := {*accept} - {PLAIN_KEYS}:
            raise CannotStart(f"accept has {min(unknown)!r}; it may have {PLAIN_KEYS!r} only.")
        if not number(LEAST_SETTLE_SECONDS)(settle_seconds):
            raise CannotStart(
                f"settle_seconds is {shown(settle_seconds)}; it must be a number of at least "
                f"{LEAST_SETTLE_SECONDS:g}."
            )
        if policy is not None and not isinstance(policy, Policy):
            raise CannotStart(
                f"policy must be a Policy of keyhop.sharding.key.policy, but is of {type(policy)}."
            )
        Names("S", separator)  # raises for an invalid separator
        if client is not None:
            if not isinstance(table, str) or (session, endpoint_url) != (None, None):
                raise CannotStart("client can be given only with the name of a table.")
            table = NamedTable(Connection(client), table)
        self._connect = partial(name_table, table, session, endpoint_url, CONNECTIONS)
        connection, self.name = self._connect()
        self.table_name = self.name
        self.endpoint = connection.endpoint
        self.placement = Placement(placement == "calculated", hash, append_only)
        self.policy = policy or Policy()
        self.requests = Requests(
            connection.client,
            clock or SystemClock(),
            patience,
            chance=chance or random.SystemRandom(),  # a fork draws other numbers
        )
        self.meta = Meta.of(self.requests.client)
        self._metadata = metadata
        self._separator = separator
        self._settle = settle_seconds
        self._accepts_plain = PLAIN_KEYS in accept
        self._indexes = tuple(read_indexes)
        self._provisioned = provisioned
        self._cloudwatch = cloudwatch
        self._process = os.getpid()
        self._making = threading.Lock()
        self._opened: tuple[Writer, Reader] | None = None
        self._known_indexes: Mapping[str, Index] = {}

    def put_item(self, *, Item: Mapping[str, Any], **more: Unpack[Conditional]) -> dict[str, Any]:
        """Put an item, as boto3's `put_item`; with ReturnValues="ALL_OLD" it stays in its shard."""
        item = typed_item(Item)
        return self._write(key_of(self.schema, item), Act("Put", item), more)

    def update_item(self, *, Key: Mapping[str, Any], **more: Unpack[Updated]) -> dict[str, Any]:
        """Update an item, as boto3's `Table.update_item`."""
        key = self._key(Key, "UpdateItem")
        return self._write(key, Act("Update", expression=more.get("UpdateExpression", "")), more)

    def delete_item(self, *, Key: Mapping[str, Any], **more: Unpack[Conditional]) -> dict[str, Any]:
        """Delete an item, as boto3's `Table.delete_item`."""
        return self._write(self._key(Key, "DeleteItem"), DELETE, more)

    def get_item(self, *, Key: Mapping[str, Any], **more: Unpack[Got]) -> dict[str, Any]:
        """Get an item, as boto3's `Table.get_item`: {"Item": ...}; no "Item" if none exists. This
        costs a read of each shard where the item may be (placement.py).
        """
        call = self._call(more, Got, "GetItem")
        key = self._key(Key, "GetItem")
        with self.requests.noting(call):
            return with_metadata(call, get_item(self.reader, key, more))

    @overload
    def query(
        self, key: Any, *, limit: int | None = None, **how: Unpack[Reading]
    ) -> Iterator[dict[str, Any]]: ...
    @overload
    def query(self, **words: Unpack[Queried]) -> dict[str, Any]: ...
    def query(self, key: Any = None, *, limit: int | None = None, **words: Any) -> Any:
        """Return the items of a logical key from all shards, in the order of their sort key.

        With boto3's parameters the result is a page, as from `Table.query`
        (docs/reference/sharding-boto3.md). With `key` it is a lazy iterator over all items, which
        reads a page when it is needed. Shards are read at different times: the result is not a
        snapshot.

        Args:
            key: The logical key, a str or bytes.
            limit: The maximum number of items.
            words: With a key: `between`, the first and the last sort key; `descending`;
                `consistent`; and `page_token`, of `query_page`. Otherwise boto3's parameters.
        """
        if key is not None:
            check_words(words, Reading)
            return self._items(self._query(key, limit, **words))
        if "KeyConditionExpression" not in words:
            raise TypeError("query needs a KeyConditionExpression or a key")
        call = self._call(words, Queried, "Query")
        name = words.get("IndexName")
        index = None if name is None else self._index(name)
        with self.requests.noting(call):
            return with_metadata(call, table_query(self.reader, cast(Queried, words), index))

    def _items(self, query: Query) -> Iterator[dict[str, Any]]:
        for item in islice(Merge(self.reader, query).items(), query.limit):
            yield logical_item(self.schema, item, query.logical)

    def query_page(self, key: Any, *, limit: int = 100, **how: Unpack[Reading]) -> Page:
        """Return up to `limit` items of a query, and a token for the rest, which holds the last
        sort key and remains valid when the shard count changes.
        """
        query = self._query(key, limit, **how)
        merge = Merge(self.reader, replace(query, limit=limit + 1))
        merged = [*islice(merge.items(), limit + 1)]
        items = [logical_item(self.schema, item, query.logical) for item in merged[:limit]]
        if len(merged) <= limit:
            return Page(items, None)
        return Page(items, token_of(query, merged[limit - 1][self.schema.sort.name]))

    def page_token(self, key: Any, last: Any, **how: Unpack[Range]) -> str:
        """Return the token that continues a query after the sort key `last`."""
        return token_of(self._query(key, None, **how), sort_value(self.schema, last))

    def batch_write(self, items: Iterable[Mapping[str, Any]]) -> BatchResult:
        """Put many items, and return those that could not be written, with their errors; of two
        items with the same key, the later one is written.

        Items that need no read are sent by BatchWriteItem, 25 at a time. The items that it does not
        process are written one by one, because only single writes get the reason for throttling.
        """
        return self._write_batch(items, ())

    def batch_writer(self, overwrite_by_pkeys: Sequence[str] | None = None) -> TableBatch:
        """Return a batch writer, as boto3's `Table.batch_writer`, for puts and deletes. Of two
        writes of the same key the later one is kept, also without overwrite_by_pkeys.
        """
        keys = [self.schema.partition.name, self.schema.sort.name]
        if overwrite_by_pkeys and sorted(overwrite_by_pkeys) != sorted(keys):
            raise CannotStart(f"overwrite_by_pkeys must be {keys}, the table's own key.")
        return TableBatch(self._write_batch)

    def batch_get_item(
        self, *, RequestItems: Mapping[str, Any], ReturnConsumedCapacity: CapacityTold = "NONE"
    ) -> dict[str, Any]:
        """Get up to 100 items of this table, as `batch_get_item` of boto3's resource."""
        told: Told = {"ReturnConsumedCapacity": ReturnConsumedCapacity}
        call = self._call(told, Told, "BatchGetItem")
        with self.requests.noting(call):
            answer = with_metadata(call, batch_get(self.reader, RequestItems))
        if "ConsumedCapacity" in answer:
            answer["ConsumedCapacity"] = [answer["ConsumedCapacity"]]
        return answer

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(type(self), name):  # a property has raised AttributeError
                object.__getattribute__(self, name)
            only = f"ShardedTable has no {name}: it has boto3's words for items only."
            raise AttributeError(ELSEWHERE.get(name, only))

    def pause(self) -> None:
        """Report traffic if it is worth a request; call it when the process may be stopped."""
        opened = self._opened
        if opened is not None:
            opened[0].metadata.traffic.pause()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Report the remaining traffic, and stop the reading threads.

        Shards that a key needs are added without it. It loses at most what the last minutes tell
        about the traffic, by which fewer shards are proposed. A later call opens the table again.
        """
        self._begin_anew_in_a_fork()
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
        return self.requests.usage

    @property
    def schema(self) -> Schema:
        """The table's keys; raises CannotStart for a table that cannot be sharded."""
        return self.metadata.schema

    @property
    def metadata(self) -> Metadata:
        return self.writer.metadata

    @property
    def writer(self) -> Writer:
        return self._open()[0]

    @property
    def reader(self) -> Reader:
        return self._open()[1]

    def _open(self) -> tuple[Writer, Reader]:
        """Return the writer and the reader, which need the table's description, created once."""
        self._begin_anew_in_a_fork()
        opened = self._opened
        if opened is None:
            with self._making:
                opened = self._opened = self._opened or self._make()
        return opened

    def _begin_anew_in_a_fork(self) -> None:
        """Open the table again if the process is a fork, which needs separate threads, locks and
        connections. A client that the caller has passed is used unchanged.
        """
        if self._process == os.getpid():
            return
        self._process, self._making = os.getpid(), threading.Lock()
        client = self._connect().connection.client
        self.requests = replace(self.requests, client=client, usage=Usage())
        self.meta = Meta.of(client)
        self._opened = None

    def _describe(self) -> Mapping[str, Any]:
        request = {"TableName": self.name}
        try:
            answer = self.requests.patiently(
                lambda: send(self.requests.client, "describe_table", request)
            )
        except (ClientError, BotoCoreError) as error:
            raise explained(error, self.endpoint, self.name) from error
        description: Mapping[str, Any] = answer["Table"]
        self._known_indexes = indexes_by_name(description)
        return description

    def _index(self, name: str) -> Index:
        """Return an index of the table, even if it is new. Raise the error of boto3's client."""
        self._open()
        if name not in self._known_indexes:
            self._describe()
        if name not in self._known_indexes:
            message = f"The table does not have the specified index: {name}"
            raise self.requests.refusal("ValidationException", message, "Query")
        return self._known_indexes[name]

    def _make(self) -> tuple[Writer, Reader]:
        requests, description = self.requests, self._describe()
        schema = schema_of(keyspace_of(description), self.name, self._separator)
        check_indexes(description, self._indexes)
        metadata = Metadata(
            requests,
            self._metadata,
            schema,
            self.placement,
            self._settle,
            self.policy.most_in_all,
            self.policy.first_count,
            self._accepts_plain,
        )
        capacity = Capacity(requests, self.name, self._provisioned, self._cloudwatch)
        writer = Writer(metadata, ThrottleTracker(metadata, capacity, self.policy))
        threads = ThreadPoolExecutor(READING_THREADS, "keyhop-query")
        return writer, Reader(metadata, threads, self._indexes)

    def _key(self, key: Mapping[str, Any], operation: str) -> ItemKey:
        return exact_key(self.requests, self.schema, key, operation)

    def _call(self, words: Mapping[str, Any], supported: type, operation: str) -> Call:
        """Check the parameters of a call, and return what records its requests."""
        check_words(words, supported)
        check_values(self.requests, words, operation)
        return Call(self._metadata, words.get("ReturnConsumedCapacity") or "NONE")

    def _write_batch(
        self, items: Iterable[Mapping[str, Any]], deletes: Collection[int]
    ) -> BatchResult:
        writer = BatchWriter(
            self.writer,
            lambda item: self.put_item(Item=item),
            lambda key: self.delete_item(Key=key),
        )
        return writer.write(items, deletes)

    def _write(self, key: ItemKey, act: Act, words: Conditional) -> dict[str, Any]:
        supported = Updated if act.kind == "Update" else Conditional
        call = self._call(words, supported, f"{act.kind}Item")
        with self.requests.noting(call):
            return with_metadata(call, write_item(self.writer, key, act, words))

    def _query(
        self,
        key: Any,
        limit: int | None,
        between: tuple[Any, Any] | None = None,
        descending: bool = False,
        consistent: bool = False,
        page_token: str | None = None,
    ) -> Query:
        check_limit("limit", limit)
        ends = ends_of(self.schema, between)
        query = Query(typed(key), ends, descending, consistent, None, limit)
        if page_token is not None:
            query = replace(query, after=after_token(query, page_token))
        return query
