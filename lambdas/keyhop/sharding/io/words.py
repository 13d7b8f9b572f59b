"""boto3's words for requests about items: which there are here, and why others are refused. Pure.

docs/sharding-boto3.md has them all, beside boto3's; a test compares it with this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypedDict

from keyhop.errors import CannotStart

CapacityTold = Literal["NONE", "TOTAL", "INDEXES"]


class Told(TypedDict, total=False):
    """What the answer tells besides."""

    ReturnConsumedCapacity: CapacityTold


class Names(TypedDict, total=False):
    """ExpressionAttributeNames."""

    ExpressionAttributeNames: Mapping[str, str] | None


class Conditional(Told, Names, total=False):
    """What writes have besides: ConditionExpression is a text, or `Attr(...)`."""

    ConditionExpression: Any
    ExpressionAttributeValues: Mapping[str, Any] | None
    ReturnValues: str | None
    ReturnValuesOnConditionCheckFailure: Literal["NONE", "ALL_OLD"]


class Got(Told, Names, total=False):
    """What get_item has besides its key."""

    ConsistentRead: bool
    ProjectionExpression: str | None


class BatchGot(Names, total=False):
    """What is asked of a table in RequestItems of batch_get_item."""

    Keys: Sequence[Mapping[str, Any]]
    ConsistentRead: bool
    ProjectionExpression: str | None


class Queried(Got, total=False):
    """What query has in boto3's words; KeyConditionExpression must be there."""

    KeyConditionExpression: Any
    FilterExpression: Any
    ExpressionAttributeValues: Mapping[str, Any] | None
    IndexName: str | None
    Select: str | None
    Limit: int | None
    ScanIndexForward: bool
    ExclusiveStartKey: Mapping[str, Any] | None


class Range(TypedDict, total=False):
    """Which items of a key, and in which order.

    between: (least, greatest) sort key, both included, None for an open end.
    """

    between: tuple[Any, Any] | None
    descending: bool


class Reading(Range, total=False):
    """How they are read.

    consistent: strongly; then no write is missed that was finished before the read began, and no
    item is seen twice or not at all because it is being moved. page_token: of the page before.
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
"""Parameters of boto3 that are not here, with a sentence."""

ELSEWHERE = {
    "transact_write_items": "Transactions are not possible here: the shard of an item is known "
    "to ShardedTable alone, and may change between a look and the transaction.",
    "transact_get_items": "Transactions are not possible here: the shards of a key are read one "
    "by one. get_item and query with ConsistentRead see each write that was finished before.",
    "scan": "A scan would show the shards' keys. `keyhop keys TABLE --logical` lists the logical "
    "keys, each once; query reads the items of one.",
    "execute_statement": "PartiQL is not possible here: its keys would be those of the shards.",
    "search_vectors": "A vector search is not possible here: the items that it finds have the keys "
    "of the shards, and a vector index whose search schema partitions it by the table's partition "
    "key has a part for each shard.",
    "start_bulk_put_items": "A bulk put is not possible here: only ShardedTable chooses the shard "
    "of an item, and an item that is put under its logical key is not found again.",
}
"""What a table, or a client, of boto3 does and ShardedTable cannot, with a sentence."""


def check_words(given: Mapping[str, Any], known: type) -> None:
    """Raises CannotStart for a parameter of boto3 that is refused, TypeError for one that is none.

    known: the TypedDict of those that are possible.
    """
    for name in given:
        if name in known.__annotations__:
            continue
        if name in REFUSED:
            raise CannotStart(REFUSED[name])
        raise TypeError(f"unexpected parameter {name!r}")


class Refusing:
    """In the place of boto3's client, at `table.meta.client`: the classes of errors, and no more.

    exceptions: those that the table raises, as boto3's `client.exceptions`.
    """

    def __init__(self, exceptions: Any) -> None:
        self.exceptions = exceptions

    def __getattr__(self, name: str) -> NoReturn:
        why = "only its exceptions are here: for other calls make a client of boto3's own."
        raise AttributeError(ELSEWHERE.get(name, f"The client has no {name}; {why}"))


@dataclass(frozen=True, slots=True)
class Meta:
    """As boto3's `table.meta`."""

    client: Refusing

    @classmethod
    def of(cls, client: Any) -> "Meta":
        return cls(Refusing(getattr(client, "exceptions", None)))
