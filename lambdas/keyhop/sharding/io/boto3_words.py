"""boto3's requests for the items of a sharded table: their parameters, and the results of all but
queries.

docs/reference/sharding-boto3.md lists the parameters beside boto3's; a test compares it with this
module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import TracebackType
from typing import Any, Literal, NoReturn, TypedDict

from boto3.dynamodb.conditions import ConditionBase
from botocore.exceptions import ClientError

from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.io.batch import BatchResult
from keyhop.sharding.io.items import (
    check_expressions,
    check_is_no_counter,
    clause_of,
    key_of,
    logical_item,
    logical_typed,
    projected,
    typed_item,
)
from keyhop.sharding.io.reader import Reader
from keyhop.sharding.io.writer import Act, Writer
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.store.requests import Call, Overtaken, Requests
from keyhop.wording import counted

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


class Updated(Conditional, total=False):
    """Further parameters of update_item."""

    UpdateExpression: str


class Got(Told, Names, total=False):
    """Further parameters of get_item."""

    ConsistentRead: bool
    ProjectionExpression: str


class BatchGot(Names, total=False):
    """Parameters of a table in RequestItems of batch_get_item."""

    Keys: Sequence[Mapping[str, Any]]
    ConsistentRead: bool
    ProjectionExpression: str


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
    """A range of a key's items, and their order; with its ends; None means without a limit."""

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


_ALL_OLD = ("ALL_OLD", "NONE")
_ACCEPTED = {
    "ReturnConsumedCapacity": ("INDEXES", "TOTAL", "NONE"),
    "ReturnValues": _ALL_OLD,
    "ReturnValuesOnConditionCheckFailure": _ALL_OLD,
    "Select": ("ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT"),
}
"""The values that the service accepts for parameters, except for ReturnValues of an update."""
_ACCEPTED_OF_UPDATE = (*_ALL_OLD, "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW")
_CONDITIONS = ("ConditionExpression", "FilterExpression", "KeyConditionExpression")


def check_values(requests: Requests, words: Mapping[str, Any], operation: str) -> None:
    """Refuse values that the service refuses. It would not get all of them, because lookups and
    transactions lack some parameters, and an empty condition would be no condition.

    Raises:
        ClientError: The service refuses the value.
        CannotStart: An expression has a type that boto3 would not send.
    """
    for name, value in words.items():
        accepted = _ACCEPTED.get(name)
        if operation == "UpdateItem" and name == "ReturnValues":
            accepted = _ACCEPTED_OF_UPDATE
        message = None
        if accepted is not None and value is not None and value not in accepted:
            message = (
                f"1 validation error detected: Value '{value}' at '{name[0].lower()}{name[1:]}' "
                "failed to satisfy constraint: Member must satisfy enum value set: "
                f"[{', '.join(accepted)}]"
            )
        elif name.endswith("Expression") and value == "":
            message = f"Invalid {name}: The expression can not be empty;"
        if message is not None:
            raise requests.refusal("ValidationException", message, operation)
        if name.endswith("Expression"):
            _check_expression(name, value)


def check_limit(name: str, limit: Any) -> None:
    """Raise CannotStart for a limit that is not None or a positive int."""
    is_int = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and (not is_int or limit < 1):
        raise CannotStart(f"{name} is {limit}; it must be a whole number of at least 1.")


def _check_expression(name: str, value: Any) -> None:
    is_condition = name in _CONDITIONS
    if isinstance(value, str) or (is_condition and isinstance(value, ConditionBase)):
        return
    condition = ", or a condition made with Attr or Key" if is_condition else ""
    raise CannotStart(
        f"{name} must be a text{condition}, but is of {type(value)}: leave it out if there is none."
    )


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


def with_metadata(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """Add ResponseMetadata of the last request, and ConsumedCapacity of all, to an answer."""
    answer["ResponseMetadata"] = {**call.metadata, "RetryAttempts": len(call.repeated)}
    if call.consumed:
        answer["ConsumedCapacity"] = reduce(_sum, call.consumed)
    return answer


def _sum(first: Any, second: Any) -> Any:
    """Add numbers by their names; keep the first of two texts."""
    if isinstance(first, Mapping):
        names = [*first, *(name for name in second if name not in first)]
        return {name: _sum(first.get(name), second.get(name)) for name in names}
    if first is None or second is None:
        return second if first is None else first
    return first if isinstance(first, str) else first + second


def exact_key(
    requests: Requests, schema: Schema, key_attributes: Mapping[str, Any], operation: str
) -> ItemKey:
    """Return a Key; refuse it, as the service does, unless it has exactly the key attributes."""
    key = typed_item(key_attributes)
    types = {attribute.name: attribute.type for attribute in (schema.partition, schema.sort)}
    if key.keys() != types.keys() or any(types[name] not in key[name] for name in types):
        message = "The provided key element does not match the schema"
        raise requests.refusal("ValidationException", message, operation)
    return key_of(schema, key)


def write_item(writer: Writer, key: ItemKey, act: Act, words: Conditional) -> dict[str, Any]:
    """Write an item; return its Attributes, if they were requested."""
    schema = writer.schema
    clause = clause_of(
        words.get("ConditionExpression"),
        words.get("ExpressionAttributeNames"),
        words.get("ExpressionAttributeValues"),
    )
    if act.kind == "Put" and clause.condition and writer.placement.append_only:
        raise CannotStart(
            "With append_only a put cannot have a condition, because the shard of an existing "
            "item is unknown."
        )
    check_expressions(schema, clause, act.expression)
    if act.kind != "Delete":
        check_is_no_counter(schema, key)
    returns = words.get("ReturnValues")
    shows_failed = words.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    try:
        answer = writer.write(
            key, act, clause, None if returns == "NONE" else returns, shows_failed
        )
    except Overtaken as overtaken:
        raise GaveUp(
            str(overtaken)
            or "Other clients changed the item or its shards during each attempt to write it, "
            f"for {writer.requests.patience:g} seconds."
        ) from None
    except ClientError as error:
        if "Item" in error.response:
            item = logical_typed(schema, error.response["Item"], key.logical)
            error.response["Item"] = item
        raise _of_operation(error, f"{act.kind}Item") from error.__cause__
    attributes = logical_item(schema, answer.get("Attributes", {}), key.logical)
    return {"Attributes": attributes} if attributes else {}


def get_item(reader: Reader, key: ItemKey, words: Got) -> dict[str, Any]:
    """Return the Item, if it exists."""
    schema = reader.schema
    projection, ours = projected(
        words.get("ProjectionExpression"),
        words.get("ExpressionAttributeNames"),
        [schema.partition.name, schema.sort.name],
    )
    try:
        stored = reader.find(key, words.get("ConsistentRead", False), projection)
    except ClientError as error:
        raise _of_operation(error, "GetItem") from error.__cause__
    if stored is None:
        return {}
    for name in ours:
        del stored[name]
    return {"Item": logical_item(schema, stored, key.logical)}


def _of_operation(error: ClientError, operation: str) -> ClientError:
    """Return the error as that of the user's own operation, not of the look at several shards, or
    of the transaction that moves an item.
    """
    is_ours = error.operation_name in ("BatchGetItem", "TransactWriteItems")
    return type(error)(error.response, operation) if is_ours else error


MOST_BUFFERED = 25
"""The same number as boto3's batch_writer."""


class TableBatch:
    """A batch writer like boto3's: sends 25 writes at a time, and the remaining ones at the end. Of
    two writes of the same key the later one is kept. Raises the first error.
    """

    def __init__(
        self, write: Callable[[Sequence[Mapping[str, Any]], set[int]], BatchResult]
    ) -> None:
        """Initialize; `write` takes items, and the places of those that are keys to delete."""
        self._write = write
        self._items: list[Mapping[str, Any]] = []
        self._deletes: set[int] = set()

    def put_item(self, Item: Mapping[str, Any]) -> None:
        self._items.append(Item)
        self._flush(MOST_BUFFERED)

    def delete_item(self, Key: Mapping[str, Any]) -> None:
        self._deletes.add(len(self._items))
        self._items.append(Key)
        self._flush(MOST_BUFFERED)

    def __enter__(self) -> "TableBatch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send the remaining writes, even after an error, as boto3's batch writer."""
        self._flush(1)

    def _flush(self, minimum: int) -> None:
        if len(self._items) < minimum:
            return
        items, deletes = self._items, self._deletes
        self._items, self._deletes = [], set()
        failed = self._write(items, deletes).failed
        if failed:
            error = failed[0][2]
            error.add_note(f"{len(failed)} of {counted(len(items), 'write')} of a batch failed.")
            raise error


def batch_get(reader: Reader, request_items: Mapping[str, Any]) -> dict[str, Any]:
    """Return Responses; UnprocessedKeys is always empty, because throttled reads are retried."""
    schema = reader.schema
    if not isinstance(request_items, Mapping) or list(request_items) != [schema.table]:
        raise CannotStart(f"RequestItems has one table only here: {schema.table}.")
    words, operation = request_items[schema.table], "BatchGetItem"
    if not isinstance(words, Mapping) or not isinstance(words.get("Keys"), Sequence):
        raise CannotStart(
            f"RequestItems must be {{{schema.table!r}: {{'Keys': [...]}}}}, with a list of keys."
        )
    check_words(words, BatchGot)
    check_values(reader.requests, words, operation)
    keys = [exact_key(reader.requests, schema, key, operation) for key in words["Keys"]]
    message = None
    if not 1 <= len(keys) <= MOST_KEYS_AT_ONCE:
        message = f"Keys must be 1 to {MOST_KEYS_AT_ONCE}"
    elif len({schema.name_of(schema.physical(key, 1)) for key in keys}) < len(keys):
        message = "Provided list of item keys contains duplicates"
    if message is not None:
        raise reader.requests.refusal("ValidationException", message, operation)
    projection, ours = projected(
        words.get("ProjectionExpression"),
        words.get("ExpressionAttributeNames"),
        [schema.partition.name, schema.sort.name],
    )
    stored_items = reader.find_all(keys, words.get("ConsistentRead", False), projection)
    items = []
    for key, stored in zip(keys, stored_items, strict=True):
        if stored is not None:
            item = logical_item(schema, stored, key.logical)
            items.append({name: value for name, value in item.items() if name not in ours})
    return {"Responses": {schema.table: items}, "UnprocessedKeys": {}}
