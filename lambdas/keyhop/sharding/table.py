"""A table whose hot partition keys are spread over shards that are added as they are needed.

    table = ShardedTable("Audit", metadata="keyhop-shards", placement="random", append_only=True)
    table.put_item(Item={"path": "/f.txt", "at": "2026-11-21T09:00:00Z", "who": "ana"})
    for item in table.query(key="/f.txt", descending=True, limit=50):
        ...

Its words and shapes are those of boto3's `resource("dynamodb").Table`, and so are its errors. Only
the partition key's value differs in the table itself: `"/f.txt_3"` for `"/f.txt"` (names.py).
"""

import random
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.client import Endpoint, aws_client, dynamodb_client, explained
from keyhop.enumerate.table import describe
from keyhop.errors import CannotStart, GaveUp
from keyhop.keyspace import KeySpace, TypedValue
from keyhop.sharding import protocol
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
    physical_key,
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
    """Items of a query, in order. token: for the next page; None at the end of the result."""

    items: list[dict[str, Any]]
    token: str | None


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
    read_indexes: indexes with the table's own key schema, to spread eventually consistent queries
    over. provisioned: bounds for raising a provisioned table's writes; None: it is never raised.
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
        self._threads: Executor | None = None

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

        With ReturnValues="ALL_OLD", a put that moves the item tells what it had found before.
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
        """Update an item, or make it, as boto3's `Table.update_item`."""
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
        """Delete an item, as boto3's `Table.delete_item`."""
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

        It costs a read of each shard where the item may be (`placement.expected_candidates`).
        """
        key = key_of(self.schema, typed_item(Key))
        projection = _projection(
            self.schema.partition.name, ProjectionExpression, ExpressionAttributeNames
        )
        item = self._find(key, ConsistentRead, projection)
        if item is None:
            return {}
        told = logical_item(self.schema, item, key.logical)
        if ProjectionExpression is not None and not _asks_for(
            self.schema.partition.name, ProjectionExpression, ExpressionAttributeNames
        ):
            told.pop(self.schema.partition.name, None)
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
        question = self._question(key, between, descending, limit + 1, consistent, page_token)
        found = list(self._merged(question))
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
        return token_of(self._question(key, between, descending, None, False, None), typed(last))

    def batch_write(self, items: Iterable[Mapping[str, Any]]) -> BatchResult:
        """Put many items; of two with the same key the later one counts.

        Those that need no look go by BatchWriteItem, 25 at a time; what it leaves over is written
        one by one, as only a single write is told why it was throttled. Nothing is dropped: what
        could not be written is in the result, with its error.
        """
        return write_batch(self, items)

    def close(self) -> None:
        """Report the traffic that was not reported yet, and end the reading threads."""
        if "metadata" in vars(self):
            self.metadata.flush()
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    @property
    def counts(self) -> Counts:
        """What all calls have come to."""
        return self.calls.counts

    @cached_property
    def calls(self) -> Calls:
        """The client's calls, counted."""
        with self._making:
            client = self._client or dynamodb_client(self._endpoint, CONNECTIONS)
            return Calls(client, self._clock, self._patience, chance=self._chance)

    @cached_property
    def schema(self) -> Schema:
        """Its keys; raises CannotStart for a table that cannot be sharded."""
        with self._making:
            if "schema" in vars(self):
                found: Schema = vars(self)["schema"]
                return found
            target = describe(self.calls.client, self._endpoint, self.name)
            return schema_of(target.space, self.name, self._separator)

    @cached_property
    def metadata(self) -> Metadata:
        """Its shard metadata."""
        with self._making:
            if "metadata" in vars(self):
                found: Metadata = vars(self)["metadata"]
                return found
            return Metadata(
                self.calls,
                self._metadata_name,
                self.schema.partition,
                self._settle,
                self.placement,
                self._separator,
            )

    @cached_property
    def writer(self) -> Writer:
        """Writes single items."""
        with self._making:
            if "writer" in vars(self):
                found: Writer = vars(self)["writer"]
                return found
            cloudwatch = self._cloudwatch
            capacity = Capacity(self.calls, self.name, self._provisioned, cloudwatch)
            thermometer = Thermometer(self.calls, self.metadata, self.name, capacity, self.policy)
            return Writer(
                self.calls, self.metadata, thermometer, self.name, self.schema, self.placement
            )

    def _write(self, key: ItemKey, act: Act, clause: Clause, returns: str | None) -> dict[str, Any]:
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

    def _find(
        self, key: ItemKey, consistent: bool, projection: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        place = self.writer.place_of(key)
        for attempt in (1, 2):
            known = self.metadata.of(key.logical)
            where = protocol.candidates(known.shards, self.placement, place)
            keys = [physical_key(self.schema, key, shard) for shard in where]
            items = self.calls.read_items(self.name, keys, consistent, **projection)
            if items:
                return self._believed(items, known.shards)
            if not consistent or len(where) == 1 or attempt == 2:
                return None
            # It may have been moved between two reads; it is not moved twice within moments.
        return None

    def _believed(self, items: list[dict[str, Any]], shards: Any) -> dict[str, Any]:
        """Of copies that were being moved, the one that was read at the target."""
        order = protocol.order_of_reading(shards, self.placement)
        name = self.schema.partition.name
        by_shard = {}
        for item in items:
            parsed = self.schema.names.parsed(item[name])
            by_shard[parsed[1] if parsed else 0] = item
        return by_shard[protocol.newest_first(order, by_shard)[0]]

    def _merged(self, question: Question) -> Iterator[dict[str, Any]]:
        reader = Reader(
            self.calls,
            self.metadata,
            self.name,
            self.schema,
            self.placement,
            self._executor(),
            self._indexes,
        )
        return islice(Merge(reader, question), question.limit)

    def _executor(self) -> Executor:
        with self._making:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(READING_THREADS, "keyhop-query")
            return self._threads

    def _question(
        self,
        key: Any,
        between: tuple[Any, Any] | None,
        descending: bool,
        limit: int | None,
        consistent: bool,
        token: str | None,
    ) -> Question:
        if limit is not None and limit < 1:
            raise CannotStart(f"limit is {limit}; it must be at least 1.")
        if consistent and self._indexes:
            raise CannotStart(
                "A consistent query cannot be spread over read_indexes: indexes are eventually "
                "consistent."
            )
        low, high = between or (None, None)
        ends = tuple(None if end is None else self._sort_value(end) for end in (low, high))
        question = Question(typed(key), (ends[0], ends[1]), descending, consistent, None, limit)
        if token is not None:
            question = replace(question, after=after_token(question, token))
        return question

    def _sort_value(self, value: Any) -> TypedValue:
        told = typed(value)
        attribute = self.schema.sort
        if attribute.type not in told:
            raise CannotStart(
                f"between has a value that is not of the type {attribute.type} of the sort key "
                f"{attribute.name}."
            )
        return told


def schema_of(space: KeySpace, table: str, separator: str) -> Schema:
    """The keys of a table; raises CannotStart if it cannot be sharded."""
    if space.sort is None:
        raise CannotStart(
            f"The table {table!r} has no sort key: each partition key has one item, and a single "
            "item cannot be spread over shards."
        )
    (partition,) = space.partition
    return Schema(partition, space.sort, Names(partition.type, separator))


def cloudwatch_of(endpoint: Endpoint) -> Any:
    """A CloudWatch client, for throttles that give no reason."""
    return aws_client("cloudwatch", endpoint)


def explained_to_user(error: ClientError | BotoCoreError, table: ShardedTable) -> Exception:
    """One clear sentence for what boto3 raised."""
    return explained(error, table._endpoint, table.name)


def _projection(
    partition: str, expression: str | None, names: Mapping[str, str] | None
) -> dict[str, Any]:
    if expression is None:
        return {}
    asked = dict(names or {})
    if not _asks_for(partition, expression, names):
        asked["#kh_p"] = partition
        expression = f"{expression}, #kh_p"
    told: dict[str, Any] = {"ProjectionExpression": expression}
    if asked:
        told["ExpressionAttributeNames"] = asked
    return told


def _asks_for(partition: str, expression: str, names: Mapping[str, str] | None) -> bool:
    asked = [path.strip() for path in expression.split(",")]
    return any((names or {}).get(path, path) == partition for path in asked)
