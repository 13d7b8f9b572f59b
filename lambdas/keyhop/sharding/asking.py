"""What a sharded table is like, what may be asked of it, and single items looked for by readers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Endpoint, explained
from keyhop.dynamodb.schema import KeySpace, indexes_of
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding import protocol
from keyhop.sharding.calls import Again, Calls
from keyhop.sharding.items import Clause, ItemKey, Schema, physical_key, typed
from keyhop.sharding.names import Names
from keyhop.sharding.parts import rank_of
from keyhop.sharding.placement import Place
from keyhop.sharding.reader import Reader
from keyhop.sharding.shards import ATTRIBUTES, Shards


def described(calls: Calls, endpoint: Endpoint, table: str) -> Mapping[str, Any]:
    """DescribeTable's `Table`; raises TableNotFound, NotPermitted, Unreachable and others."""
    try:
        answer = calls.patiently(lambda: calls.client.describe_table(TableName=table))
    except (ClientError, BotoCoreError) as error:
        raise explained(error, endpoint, table) from error
    found: Mapping[str, Any] = answer["Table"]
    return found


def schema_of(space: KeySpace, table: str, separator: str) -> Schema:
    """The keys of a table; raises CannotStart if it cannot be sharded."""
    if space.sort is None:
        raise CannotStart(
            f"The table {table!r} has no sort key: each partition key has one item, and a single "
            "item cannot be spread over shards."
        )
    (partition,) = space.partition
    if partition.name in ATTRIBUTES:
        raise CannotStart(
            f"The table {table!r} cannot be sharded: its partition key is called {partition.name}, "
            "as is something else in the shard metadata."
        )
    return Schema(partition, space.sort, Names(partition.type, separator))


def check_indexes(description: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raises CannotStart for an index that does not answer as the table does."""
    found = {index["IndexName"]: index for index in indexes_of(description)}
    for name in names:
        index = found.get(name)
        if index is None:
            raise CannotStart(f"The table has no index {name!r}, which read_indexes names.")
        same = index["KeySchema"] == description["KeySchema"]
        if not same or index["Projection"]["ProjectionType"] != "ALL":
            raise CannotStart(
                f"The index {name!r} cannot be read in the table's place: read_indexes must have "
                "the table's key schema, and project all attributes."
            )


def check_condition(schema: Schema, clause: Clause) -> None:
    """Raises CannotStart for a condition on the partition key's value, which has a suffix."""
    names = {schema.partition.name, *(clause.names or {})}
    meant = [n for n in names if (clause.names or {}).get(n, n) == schema.partition.name]
    for name in meant:
        word = re.escape(name)
        exists = rf"attribute_(not_)?exists\s*\(\s*{word}\s*\)"
        left = re.sub(exists, "", clause.condition)
        if re.search(rf"(?<![#:\w.-]){word}(?![\w-])", left):
            raise CannotStart(
                f"A condition cannot compare the partition key {schema.partition.name}: in the "
                "table its value carries the shard's suffix. That it exists can be asked."
            )


def ends_of(schema: Schema, between: Any) -> tuple[TypedValue | None, TypedValue | None]:
    """Where a query begins and ends; None: at the end of all."""
    if between is None:
        return None, None
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise CannotStart("between must be (least, greatest) sort key, with None for an open end.")
    low, high = (None if end is None else sort_value(schema, end) for end in between)
    if low and high and rank_of(high, False) < rank_of(low, False):
        raise CannotStart("between must have the lesser sort key first, also for descending.")
    return low, high


def sort_value(schema: Schema, value: Any) -> TypedValue:
    """A sort key that a query is to begin or end at."""
    told = typed(value)
    if schema.sort.type not in told:
        raise CannotStart(
            f"between has a value that is not of the type {schema.sort.type} of the sort key "
            f"{schema.sort.name}."
        )
    return told


def find(
    reader: Reader, place: Place, key: ItemKey, consistent: bool, projection: Mapping[str, Any]
) -> dict[str, Any] | None:
    """An item, wherever it is; typed, with its physical key."""
    calls = reader.calls
    looks = 0

    def attempt() -> dict[str, Any] | None:
        nonlocal looks
        known = reader.metadata.of(key.logical)
        where = protocol.candidates(known.shards, reader.placement, place)
        keys = [physical_key(reader.schema, key, shard) for shard in where]
        items = calls.read_items(reader.table, keys, consistent, **projection)
        if items:
            return _believed(reader, items, known.shards)
        if not consistent:
            return None
        if calls.clock.monotonic() >= known.expires:
            raise Again  # it may be where this metadata does not know of
        looks += 1
        if len(where) > 1 and looks < 2:
            raise Again  # it may have been moved from one shard to another between the reads
        return None

    try:
        return calls.patiently(attempt)
    except Again:
        raise GaveUp(
            "The shard metadata expires before an item can be read: the connection is too slow "
            "for its settle_seconds."
        ) from None


def projected(
    partition: str, expression: str | None, names: Mapping[str, str] | None
) -> dict[str, Any]:
    """The parameters of a projection that has the partition key, which tells the shard."""
    if expression is None:
        return {}
    asked = dict(names or {})
    if not asks_for(partition, expression, names):
        asked["#kh_p"] = partition
        expression = f"{expression}, #kh_p"
    told: dict[str, Any] = {"ProjectionExpression": expression}
    if asked:
        told["ExpressionAttributeNames"] = asked
    return told


def asks_for(partition: str, expression: str | None, names: Mapping[str, str] | None) -> bool:
    """Whether a projection has the partition key; None: it has everything."""
    if expression is None:
        return True
    asked = [path.strip() for path in expression.split(",")]
    return any((names or {}).get(path, path) == partition for path in asked)


def _believed(reader: Reader, items: list[dict[str, Any]], shards: Shards) -> dict[str, Any]:
    """Of copies that were being moved, the one that was read at the target."""
    order = protocol.order_of_reading(shards, reader.placement)
    name = reader.schema.partition.name
    by_shard = {}
    for item in items:
        parsed = reader.schema.names.parsed(item[name])
        by_shard[parsed[1] if parsed else 0] = item
    return by_shard[protocol.newest_first(order, by_shard)[0]]
