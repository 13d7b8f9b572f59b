"""What a sharded table must be like, and what a request to it may have."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Endpoint, explained
from keyhop.dynamodb.schema import KeySpace, indexes_of
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import Clause, Schema, typed
from keyhop.sharding.io.query import rank_of
from keyhop.sharding.key.names import Names
from keyhop.sharding.key.shards import ATTRIBUTES
from keyhop.sharding.store.requests import Requests


def described(requests: Requests, endpoint: Endpoint, table: str) -> Mapping[str, Any]:
    """DescribeTable's `Table`; raises TableNotFound, NotPermitted, Unreachable and others."""
    try:
        answer = requests.patiently(lambda: requests.client.describe_table(TableName=table))
    except (ClientError, BotoCoreError) as error:
        raise explained(error, endpoint, table) from error
    description: Mapping[str, Any] = answer["Table"]
    return description


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
    indexes = {index["IndexName"]: index for index in indexes_of(description)}
    for name in names:
        index = indexes.get(name)
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
    end = typed(value)
    if schema.sort.type not in end:
        raise CannotStart(
            f"between has a value that is not of the type {schema.sort.type} of the sort key "
            f"{schema.sort.name}."
        )
    return end


def projected(
    partition: str, expression: str | None, names: Mapping[str, str] | None
) -> dict[str, Any]:
    """The parameters of a projection that has the partition key, which tells the shard."""
    if expression is None:
        return {}
    aliases = dict(names or {})
    if not has_attribute(partition, expression, names):
        aliases["#kh_p"] = partition
        expression = f"{expression}, #kh_p"
    parameters = {"ProjectionExpression": expression, "ExpressionAttributeNames": aliases}
    return {name: value for name, value in parameters.items() if value}


def has_attribute(name: str, expression: str | None, names: Mapping[str, str] | None) -> bool:
    """Whether a projection has an attribute; None: it has all."""
    if expression is None:
        return True
    paths = [path.strip() for path in expression.split(",")]
    return any((names or {}).get(path, path) == name for path in paths)
