"""Items in boto3's words, with the logical key, and as the table has them.

boto3's resources know numbers as Decimal, binaries as Binary and sets as sets; its own serializer
makes typed values of them. Only the partition key's value differs between the two.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boto3.dynamodb.conditions import ConditionBase, ConditionExpressionBuilder
from boto3.dynamodb.types import Binary, TypeDeserializer, TypeSerializer

from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.errors import CannotStart
from keyhop.sharding.key.names import Names
from keyhop.sharding.store.requests import Requests

FENCE = "keyhop_fence"
"""The attribute that says that an item was changed while its shard is being emptied."""

_TO_TYPED = TypeSerializer()
_FROM_TYPED = TypeDeserializer()
_SET_CLAUSE = re.compile(r"(?<![#:\w.])SET(?=[\s#])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Schema:
    """The keys of a sharded table."""

    partition: KeyAttribute
    sort: KeyAttribute
    names: Names

    @property
    def exists(self) -> "Clause":
        """That the item is there."""
        return Clause("attribute_exists(#kh_p)", {"#kh_p": self.partition.name})

    @property
    def absent(self) -> "Clause":
        """That the item is not there."""
        return Clause("attribute_not_exists(#kh_p)", {"#kh_p": self.partition.name})


@dataclass(frozen=True, slots=True)
class ItemKey:
    """A logical key and a sort key, typed."""

    logical: TypedValue
    sort: TypedValue


@dataclass(frozen=True, slots=True)
class Clause:
    """Expressions of a request with what they name. Empty: no condition."""

    condition: str = ""
    names: Mapping[str, str] | None = None
    values: Mapping[str, TypedValue] | None = None

    def and_(self, other: "Clause") -> "Clause":
        """Both must hold."""
        both = f"({self.condition}) AND {other.condition}" if self.condition else other.condition
        values = {**(self.values or {}), **(other.values or {})}
        return Clause(both, {**(self.names or {}), **(other.names or {})}, values)

    def parameters(self) -> dict[str, Any]:
        """As request parameters."""
        parameters = {
            "ConditionExpression": self.condition,
            "ExpressionAttributeNames": self.names and dict(self.names),
            "ExpressionAttributeValues": self.values and dict(self.values),
        }
        return {name: value for name, value in parameters.items() if value}

    def checked(self, table: str, key: Mapping[str, TypedValue]) -> dict[str, dict[str, Any]]:
        """As a part of a transaction that changes nothing."""
        return {"ConditionCheck": {"TableName": table, "Key": key, **self.parameters()}}


def typed(value: Any) -> dict[str, Any]:
    """A typed value of one in boto3's words. Raises TypeError as boto3 does, for a float say."""
    serialized: dict[str, Any] = _plain(_TO_TYPED.serialize(value))
    return serialized


def untyped(value: TypedValue) -> Any:
    """The inverse of `typed`."""
    return _FROM_TYPED.deserialize(value)


def typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """All attributes of an item."""
    return {name: typed(value) for name, value in item.items()}


def key_of(schema: Schema, typed_attributes: Mapping[str, Any]) -> ItemKey:
    """The key of an item, or a Key; raises CannotStart if it lacks one of the key attributes."""
    if FENCE in typed_attributes:
        raise CannotStart(f"The attribute {FENCE} is Keyhop's own: an item cannot have it.")
    for attribute in (schema.partition, schema.sort):
        value = typed_attributes.get(attribute.name)
        if value is None or attribute.type not in value:
            raise CannotStart(
                f"The item has no key attribute {attribute.name} of the type {attribute.type}."
            )
    return ItemKey(typed_attributes[schema.partition.name], typed_attributes[schema.sort.name])


def physical_key(schema: Schema, key: ItemKey, shard: int) -> dict[str, Any]:
    """The key of an item in one of the shards, as requests have it."""
    return {
        schema.partition.name: schema.names.physical(key.logical, shard),
        schema.sort.name: key.sort,
    }


def find_copies(
    requests: Requests,
    table: str,
    schema: Schema,
    key: ItemKey,
    shards: Sequence[int],
    consistent: bool = True,
    **projection: Any,
) -> dict[int, dict[str, Any]]:
    """The item's copies by the shard, of these, in which each is. A projection has the key."""
    keys = [physical_key(schema, key, shard) for shard in shards]
    name = schema.partition.name
    shard_of = {canonical(k[name]): shard for k, shard in zip(keys, shards, strict=True)}
    items = requests.read_items(table, keys, consistent, **projection)
    return {shard_of[canonical(item[name])]: item for item in items}


def logical_item(schema: Schema, item: Mapping[str, Any], logical: TypedValue) -> dict[str, Any]:
    """A typed item as its user knows it: in boto3's words, with the logical key, no fence."""
    shown = {name: untyped(value) for name, value in item.items() if name != FENCE}
    if schema.partition.name in shown:
        shown[schema.partition.name] = untyped(logical)
    return shown


def clause_of(
    condition: Any,
    names: Mapping[str, str] | None,
    values: Mapping[str, Any] | None,
) -> Clause:
    """A user's condition: a text, or boto3's `Attr(...)`."""
    given = typed_item(values or {})
    if isinstance(condition, ConditionBase):
        built = ConditionExpressionBuilder().build_expression(condition)
        more = typed_item(built.attribute_value_placeholders)
        return Clause(
            built.condition_expression,
            {**(names or {}), **built.attribute_name_placeholders},
            {**given, **more},
        )
    return Clause(condition or "", names, given)


def with_fence(update: str) -> str:
    """An UpdateExpression that also leaves a fence, by the names `#kh_fence` and `:kh_fence`."""
    addition = "#kh_fence = :kh_fence"
    clause = _SET_CLAUSE.search(update)
    if clause is None:
        return f"{update} SET {addition}".strip()
    return f"{update[: clause.end()]} {addition}, {update[clause.end() :].lstrip()}"


def _plain(value: Any) -> Any:
    """boto3's Binary as bytes, so that a request has one form of them."""
    if isinstance(value, Binary):
        return bytes(value)
    if isinstance(value, dict):
        return {name: _plain(content) for name, content in value.items()}
    if isinstance(value, list):
        return [_plain(content) for content in value]
    return value
