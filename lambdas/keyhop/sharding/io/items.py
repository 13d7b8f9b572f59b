"""Conversion between items as boto3's resources have them and items as the table has them.

boto3's resources have numbers as Decimal, binaries as Binary and sets as sets; boto3's serializer
converts these to typed values. Only the partition key's value differs in the table.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from boto3.dynamodb.conditions import ConditionBase, ConditionExpressionBuilder
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from keyhop.dynamodb.throttling import NO_REASON
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.dynamodb.values import TypedValue, same_value
from keyhop.errors import CannotStart
from keyhop.sharding.key.counting import counter_key
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.store.requests import Requests

FENCE = "keyhop_fence"
"""The attribute that marks an item as changed while its shard is drained."""
MOST_LEVELS = 32
"""The maximum nesting of a value (AWS documentation)."""

_WITHOUT_PARTS = (int, Decimal, bytes, type(None))
_TO_TYPED = TypeSerializer()
_FROM_TYPED = TypeDeserializer()
_BUILT = re.compile(r"([#:])([nv]\d)")
_SET_CLAUSE = re.compile(r"(?<![#:\w.])SET(?=[\s#])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """Expressions of a request, with their names and values. Empty: no condition."""

    condition: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, TypedValue] = field(default_factory=dict)

    def and_(self, clause: "Clause") -> "Clause":
        """Return a condition that holds if both do."""
        # The service refuses double parentheses, and boto3 encloses combined conditions.
        own_condition = self.condition if is_enclosed(self.condition) else f"({self.condition})"
        both = f"{own_condition} AND {clause.condition}" if self.condition else clause.condition
        return Clause(both, {**self.names, **clause.names}, {**self.values, **clause.values})

    def parameters(self) -> dict[str, Any]:
        """Return the clause as request parameters."""
        parameters = {
            "ConditionExpression": self.condition,
            "ExpressionAttributeNames": self.names,
            "ExpressionAttributeValues": self.values,
        }
        return {name: value for name, value in parameters.items() if value}


def is_enclosed(text: str) -> bool:
    """Return whether an expression as a whole is enclosed in parentheses."""
    text, depth = text.strip(), 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1 and character == ")"
    return False


def exists(schema: Schema) -> Clause:
    """Return the condition that the item exists."""
    return Clause("attribute_exists(#kh_p)", {"#kh_p": schema.partition.name})


def absent(schema: Schema) -> Clause:
    """Return the condition that the item does not exist."""
    return Clause("attribute_not_exists(#kh_p)", {"#kh_p": schema.partition.name})


def typed(value: Any) -> dict[str, Any]:
    """Return the typed value of one of boto3's values. Raise TypeError as boto3 does, as for a
    float, or CannotStart for a value that could not be sent, or not be read again.
    """
    _check(value, MOST_LEVELS)
    serialized: dict[str, Any] = _TO_TYPED.serialize(value)
    return {"B": bytes(serialized["B"])} if "B" in serialized else serialized


def untyped(value: TypedValue) -> Any:
    """Return the value of a typed value; the inverse of `typed`."""
    return _FROM_TYPED.deserialize(value)


def typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return all attributes of an item as typed values. Raise the errors of `typed`."""
    if not isinstance(item, Mapping):
        raise CannotStart(f"An item must be a mapping of attributes; this is of {type(item)}.")
    check_names(item)
    return {name: typed(value) for name, value in item.items()}


def check_names(names: Iterable[Any]) -> None:
    """Raise CannotStart for an invalid attribute name."""
    for name in names:
        if not isinstance(name, str):
            raise CannotStart(f"An attribute's name must be a text; one is of {type(name)}.")
        _check_text(name)


def _check(value: Any, levels: int) -> None:
    """Check a value. levels: the maximum nesting, which also stops at a circular value."""
    if not levels:
        raise CannotStart(
            f"An attribute is nested deeper than {MOST_LEVELS} levels, the maximum of DynamoDB."
        )
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, _WITHOUT_PARTS):
        return
    elif isinstance(value, Mapping):
        check_names(value)
        for part in value.values():
            _check(part, levels - 1)
    elif isinstance(value, list | tuple):
        for part in value:
            _check(part, levels - 1)
    elif isinstance(value, Set):
        for part in value:
            _check(part, 1)


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CannotStart(
            "A text has half of a surrogate pair, which is not a character: it cannot be stored."
        ) from None


def key_of(schema: Schema, typed_attributes: Mapping[str, Any]) -> ItemKey:
    """Return the key of an item or a Key. Raise CannotStart if it lacks a key attribute."""
    if FENCE in typed_attributes:
        raise CannotStart(f"The attribute {FENCE} is Keyhop's own: an item cannot have it.")
    for attribute in (schema.partition, schema.sort):
        value = typed_attributes.get(attribute.name)
        if value is None or attribute.type not in value:
            raise CannotStart(
                f"The item has no key attribute {attribute.name} of the type {attribute.type}."
            )
    return ItemKey(typed_attributes[schema.partition.name], typed_attributes[schema.sort.name])


def check_is_no_counter(schema: Schema, key: ItemKey) -> None:
    """Raise CannotStart for the key of a counter's parts, which only ShardedCounter writes."""
    if same_value(key.sort, counter_key(schema, key.logical).sort):
        ((_, content),) = key.sort.items()
        raise CannotStart(
            f"The sort key {content!r} is that of a counter: use ShardedCounter to add to it and "
            "to read it, and another sort key for an item."
        )


def key_only(schema: Schema) -> dict[str, Any]:
    """Return the parameters of a projection to the key."""
    names = {"#kh_p": schema.partition.name, "#kh_s": schema.sort.name}
    return {"ProjectionExpression": "#kh_p, #kh_s", "ExpressionAttributeNames": names}


def find_copies(
    requests: Requests,
    schema: Schema,
    key: ItemKey,
    shards: Sequence[int],
    consistent: bool = True,
    **projection: Any,
) -> dict[int, dict[str, Any]]:
    """Return an item's copies in these shards, by shard. A projection must have the key."""
    how = {"ConsistentRead": consistent, **projection}
    if len(shards) == 1:
        physical = schema.physical(key, shards[0])
        answer = requests.call("get_item", TableName=schema.table, Key=physical, **how)
        return {shards[0]: answer["Item"]} if "Item" in answer else {}
    return find_all(requests, schema, [(key, shards)], how)[0]


def find_all(
    requests: Requests,
    schema: Schema,
    items: Sequence[tuple[ItemKey, Sequence[int]]],
    how: Mapping[str, Any],
) -> list[dict[int, dict[str, Any]]]:
    """Return the copies of many items as `find_copies` does, with one BatchGetItem for 100 places.
    A projection must have both key attributes.
    """
    copies: list[dict[int, dict[str, Any]]] = [{} for _ in items]
    remaining, places = [], {}
    for number, (key, shards) in enumerate(items):
        for shard in shards:
            remaining.append(schema.physical(key, shard))
            places[schema.name_of(remaining[-1])] = number, shard

    def attempt() -> None:
        request = {schema.table: {"Keys": remaining[:MOST_KEYS_AT_ONCE], **how}}
        answer = requests.once("batch_get_item", RequestItems=request)
        for item in next(iter(answer["Responses"].values()), []):
            number, shard = places[schema.name_of(item)]
            copies[number][shard] = item
        unprocessed = [key for more in answer["UnprocessedKeys"].values() for key in more["Keys"]]
        remaining[:MOST_KEYS_AT_ONCE] = unprocessed
        if unprocessed:  # throttled, but the service does not say so
            requests.usage.count_throttle((NO_REASON,))
            code = "ProvisionedThroughputExceededException"
            raise requests.refusal(code, "Keys were left over", "BatchGetItem")

    while remaining:
        requests.patiently(attempt)
    return copies


def logical_typed(
    schema: Schema, item: Mapping[str, TypedValue], logical: TypedValue
) -> dict[str, TypedValue]:
    """Return a typed item with the logical key, and without a fence."""
    attributes = {name: value for name, value in item.items() if name != FENCE}
    if schema.partition.name in attributes:
        attributes[schema.partition.name] = logical
    return attributes


def logical_item(schema: Schema, item: Mapping[str, Any], logical: TypedValue) -> dict[str, Any]:
    """Return an item as users have it: untyped, with the logical key, and without a fence."""
    return {name: untyped(value) for name, value in logical_typed(schema, item, logical).items()}


def clause_of(
    condition: Any,
    names: Mapping[str, str] | None,
    values: Mapping[str, Any] | None,
    is_key: bool = False,
) -> Clause:
    """Return a condition: a text, or `Attr(...)`; with is_key, `Key(...)`. Raise as `typed`."""
    if isinstance(condition, ConditionBase):
        built = ConditionExpressionBuilder().build_expression(condition, is_key)
        prefix = "key_" if is_key else ""  # there may also be a filter
        condition = _BUILT.sub(rf"\1{prefix}\2", built.condition_expression)
        names = {**(names or {}), **_renamed(built.attribute_name_placeholders, prefix)}
        values = {**(values or {}), **_renamed(built.attribute_value_placeholders, prefix)}
    names = names or {}
    check_names(names.values())
    return Clause(condition or "", names, typed_item(values or {}))


def _renamed(placeholders: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {f"{name[0]}{prefix}{name[1:]}": value for name, value in placeholders.items()}


def with_fence(update: str) -> str:
    """Add a fence to an UpdateExpression, with the names `#kh_fence` and `:kh_fence`."""
    addition = "#kh_fence = :kh_fence"
    clause = _SET_CLAUSE.search(update)
    if clause is None:
        return f"{update} SET {addition}".strip()
    return f"{update[: clause.end()]} {addition}, {update[clause.end() :].lstrip()}"


def check_expressions(schema: Schema, clause: Clause, update: str) -> None:
    """Raise CannotStart if an expression uses the partition key's value, which has a suffix, or an
    update uses the fence.
    """
    partition = schema.partition.name
    exists = rf"attribute_(not_)?exists\s*\(\s*{_names_of(partition, clause)}\s*\)"
    if _uses(partition, clause, re.sub(exists, "", clause.condition)):
        raise CannotStart(
            f"A condition cannot compare the partition key {partition}: in the table its "
            "value carries the shard's suffix. A condition can only test whether it exists."
        )
    if _uses(partition, clause, update):
        raise CannotStart(
            f"An update cannot use the partition key {partition}: in the table its value "
            "carries the shard's suffix."
        )
    if _uses(FENCE, clause, update):
        raise CannotStart(f"The attribute {FENCE} is Keyhop's own: an update cannot use it.")


def _uses(attribute: str, clause: Clause, expression: str) -> bool:
    """Return whether an expression has an attribute at the top level of the item."""
    pattern = rf"(?<![#:\w.-]){_names_of(attribute, clause)}(?![\w-])"
    return re.search(pattern, expression) is not None


def _names_of(attribute: str, clause: Clause) -> str:
    """Return a pattern of an attribute's name and its placeholders."""
    names = [attribute, *(name for name, path in clause.names.items() if path == attribute)]
    return f"(?:{'|'.join(map(re.escape, names))})"


def projected(
    expression: str | None, names: Mapping[str, str] | None, needed: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters of a projection that includes the needed attributes, and the added
    ones. The expression is None for all attributes, and empty for no others.
    """
    if expression is None:  # names without a use are for the service to refuse
        return ({"ExpressionAttributeNames": names} if names else {}), []
    paths = {path.strip() for path in expression.split(",")}
    requested = {(names or {}).get(path, path) for path in paths}
    added = [name for name in needed if name not in requested]
    ours = {f"#kh_{number}": name for number, name in enumerate(added)}
    parameters = {
        "ProjectionExpression": ", ".join(filter(None, [expression, *ours])),
        "ExpressionAttributeNames": {**(names or {}), **ours},
    }
    return {name: value for name, value in parameters.items() if value}, added
