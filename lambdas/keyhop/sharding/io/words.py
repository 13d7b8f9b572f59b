"""The parameters of boto3's requests for items: those that are supported, and the others. Pure.

docs/reference/sharding-boto3.md lists them all beside boto3's; a test compares it with this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypedDict

from keyhop.errors import CannotStart

CapacityTold = Literal["NONE", "TOTAL", "INDEXES"]


class Told(TypedDict, total=False):
    """Parameters for additional information in the answer."""

    ReturnConsumedCapacity: CapacityTold


class Names(TypedDict, total=False):
    """ExpressionAttributeNames."""

    ExpressionAttributeNames: Mapping[str, str] | None


class Conditional(Told, Names, total=False):
    """Further parameters of writes: ConditionExpression is a text, or `Attr(...)`."""

    ConditionExpression: Any
    ExpressionAttributeValues: Mapping[str, Any] | None
    ReturnValues: str | None
    ReturnValuesOnConditionCheckFailure: Literal["NONE", "ALL_OLD"]


class Got(Told, Names, total=False):
    """Further parameters of get_item."""

    ConsistentRead: bool
    ProjectionExpression: str | None


class BatchGot(Names, total=False):
    """Parameters of a table in RequestItems of batch_get_item."""

    Keys: Sequence[Mapping[str, Any]]
    ConsistentRead: bool
    ProjectionExpression: str | None


class Queried(Got, total=False):
    """Parameters of query, as boto3 has them; KeyConditionExpression is required."""

    KeyConditionExpression: Any
    FilterExpression: Any
    ExpressionAttributeValues: Mapping[str, Any] | None
    IndexName: str | None
    Select: str | None
    Limit: int | None
    ScanIndexForward: bool
    ExclusiveStartKey: Mapping[str, Any] | None


class Range(TypedDict, total=False):
    """A range of a key's items, and their order; its ends are included, and None is no limit."""

    between: tuple[Any, Any] | None
    descending: bool


class Reading(Range, total=False):
    """The options of a read, with the token of the previous page.

    A consistent read has each write that was finished before it started, and each item once even if
    it is being moved.
    """

    consistent: bool
    page_token: str | None


_OLD = {
    "AttributesToGet": "ProjectionExpression",
    "AttributeUpdates": "UpdateExpression",
    "ConditionalOperator": "an expression",
    "Expected": "ConditionExpression",
    "KeyConditions": "KeyConditionExpression",
    "QueryFilter": "FilterExpression",
}
REFUSED = {
    **{
        name: f"{name} is of the interface that DynamoDB had before expressions: use {instead}."
        for name, instead in _OLD.items()
    },
    "ReturnItemCollectionMetrics": "ReturnItemCollectionMetrics is not possible: the items of a "
    "key are in several collections, one in each shard.",
}
"""Parameters of boto3 that are not supported, each with the reason."""

ELSEWHERE = {
    "transact_write_items": "Transactions are not possible here: the shard of an item is known "
    "to ShardedTable alone, and may change between a look and the transaction.",
    "transact_get_items": "Transactions are not possible here: the shards of a key are read one "
    "by one. get_item and query with ConsistentRead see each write that was finished before.",
    "scan": "A scan would show the shards' keys. keyhop.list_keys with logical=True lists the "
    "logical keys, each once; query reads the items of one.",
    "execute_statement": "PartiQL is not possible here: its keys would be those of the shards.",
    "search_vectors": "A vector search is not possible here: the items that it finds have the keys "
    "of the shards, and a vector index whose search schema partitions it by the table's partition "
    "key has a part for each shard.",
    "start_bulk_put_items": "A bulk put is not possible here: only ShardedTable chooses the shard "
    "of an item, and an item that is put under its logical key is not found again.",
}
"""Methods of boto3's table or client that ShardedTable cannot have, each with the reason."""


def check_words(words: Mapping[str, Any], supported: type) -> None:
    """Raise CannotStart for a refused parameter of boto3, TypeError for one not in `supported`."""
    for name in words:
        if name in supported.__annotations__:
            continue
        if name in REFUSED:
            raise CannotStart(REFUSED[name])
        raise TypeError(f"unexpected parameter {name!r}")


class Refusing:
    """Replaces boto3's client at `table.meta.client`, with its classes of errors only."""

    def __init__(self, exceptions: Any) -> None:
        self.exceptions = exceptions

    def __getattr__(self, name: str) -> NoReturn:
        why = "only its exceptions are here: for other calls make a client of boto3's own."
        raise AttributeError(ELSEWHERE.get(name, f"The client has no {name}; {why}"))


@dataclass(frozen=True, slots=True)
class Meta:
    """The `meta` of a table, like boto3's `table.meta`."""

    client: Refusing

    @classmethod
    def of(cls, client: Any) -> "Meta":
        return cls(Refusing(getattr(client, "exceptions", None)))
