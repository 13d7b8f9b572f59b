"""Operations on single items with the parameters and results of boto3's Table."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.io.items import (
    check_expressions,
    clause_of,
    key_of,
    logical_item,
    logical_typed,
    projected,
    typed_item,
)
from keyhop.sharding.io.reader import Reader
from keyhop.sharding.io.words import Conditional, Got
from keyhop.sharding.io.writer import Act, Writer
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.store.requests import Overtaken, Requests


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
            "With append_only a put has no condition: nobody looks where the item may be."
        )
    check_expressions(schema, clause, act.expression)
    returns = words.get("ReturnValues")
    shows_failed = words.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    try:
        answer = writer.write(
            key, act, clause, None if returns == "NONE" else returns, shows_failed
        )
    except Overtaken as overtaken:
        raise GaveUp(
            str(overtaken)
            or "The item was changed by others, or its shards were, whenever it was to be written, "
            f"for {writer.requests.patience:g} seconds."
        ) from None
    except ClientError as error:
        if "Item" in error.response:
            item = logical_typed(schema, error.response["Item"], key.logical)
            error.response["Item"] = item
        raise _of_operation(error, f"{act.kind}Item") from error.__cause__
    if not answer.get("Attributes"):
        return {}
    return {"Attributes": logical_item(schema, answer["Attributes"], key.logical)}


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
    """Return the error as that of the user's own operation, not of the look at several shards."""
    looked = error.operation_name == "BatchGetItem"
    return type(error)(error.response, operation) if looked else error
