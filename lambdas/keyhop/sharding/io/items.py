"""Items in boto3's words, with the logical key, and as the table has them.

boto3's resources know numbers as Decimal, binaries as Binary and sets as sets; its own serializer
makes typed values of them. Only the partition key's value differs between the two.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from boto3.dynamodb.conditions import ConditionBase, ConditionExpressionBuilder
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from keyhop.dynamodb.throttling import NO_REASON
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.key.schema import ItemKey, Schema
from keyhop.sharding.store.requests import Requests

FENCE = "keyhop_fence"
"""The attribute that says that an item was changed while its shard is being emptied."""
MOST_KEYS_AT_ONCE = 100
"""Of one BatchGetItem (AWS documentation)."""

MOST_LEVELS = 32
"""Of a value: itself, what is in it, and so on (AWS documentation)."""

_WITHOUT_PARTS = (int, Decimal, bytes, type(None))
_TO_TYPED = TypeSerializer()
_FROM_TYPED = TypeDeserializer()
_BUILT = re.compile(r"([#:])([nv]\d)")
_SET_CLAUSE = re.compile(r"(?<![#:\w.])SET(?=[\s#])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clause:
    """Expressions of a request with what they name. Empty: no condition."""

    condition: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, TypedValue] = field(default_factory=dict)

    def and_(self, other: "Clause") -> "Clause":
        """Both must hold."""
        # The service refuses parentheses twice, and boto3 puts some around what it joins.
        mine = self.condition if is_enclosed(self.condition) else f"({self.condition})"
        both = f"{mine} AND {other.condition}" if self.condition else other.condition
        return Clause(both, {**self.names, **other.names}, {**self.values, **other.values})

    def parameters(self) -> dict[str, Any]:
        """As request parameters."""
        parameters = {
            "ConditionExpression": self.condition,
            "ExpressionAttributeNames": self.names,
            "ExpressionAttributeValues": self.values,
        }
        return {name: value for name, value in parameters.items() if value}


def is_enclosed(text: str) -> bool:
    """Whether an expression as a whole stands in parentheses."""
    text, depth = text.strip(), 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return place == len(text) - 1 and character == ")"
    return False


def exists(schema: Schema) -> Clause:
    """That the item is there."""
    return Clause("attribute_exists(#kh_p)", {"#kh_p": schema.partition.name})


def absent(schema: Schema) -> Clause:
    """That the item is not there."""
    return Clause("attribute_not_exists(#kh_p)", {"#kh_p": schema.partition.name})


def typed(value: Any) -> dict[str, Any]:
    """A typed value of one in boto3's words. Raises TypeError as boto3 does, for a float say.

    And CannotStart for one that could not be read back, or not be sent at all.
    """
    _check(value, MOST_LEVELS)
    serialized: dict[str, Any] = _TO_TYPED.serialize(value)
    return {"B": bytes(serialized["B"])} if "B" in serialized else serialized


def untyped(value: TypedValue) -> Any:
    """The inverse of `typed`."""
    return _FROM_TYPED.deserialize(value)


def typed_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """All attributes of an item. Raises as `typed`."""
    if not isinstance(item, Mapping):
        raise CannotStart(f"An item must be a mapping of attributes; this is of {type(item)}.")
    check_names(item)
    return {name: typed(value) for name, value in item.items()}


def check_names(names: Iterable[Any]) -> None:
    """Raises CannotStart for what cannot be an attribute's name."""
    for name in names:
        if not isinstance(name, str):
            raise CannotStart(f"An attribute's name must be a text; one is of {type(name)}.")
        _check_text(name)


def _check(value: Any, levels: int) -> None:
    """levels: that the value may have; so what holds itself comes to an end, too."""
    if not levels:
        raise CannotStart(
            f"An attribute is nested deeper than {MOST_LEVELS} levels, the most of DynamoDB."
        )
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, _WITHOUT_PARTS):
        return
    elif isinstance(value, Mapping):
        check_names(value)
        for one in value.values():
            _check(one, levels - 1)
    elif isinstance(value, list | tuple):
        for one in value:
            _check(one, levels - 1)
    elif isinstance(value, Set):
        for one in value:
            _check(one, 1)


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CannotStart(
            "A text has half of a surrogate pair, which is no character: it cannot be stored."
        ) from None


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


def key_only(schema: Schema) -> dict[str, Any]:
    """The parameters of a projection to the key."""
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
    """The item's copies by the shard, of these, in which each is. A projection has the key."""
    how = {"ConsistentRead": consistent, **projection}
    if len(shards) == 1:
        physical = schema.physical(key, shards[0])
        answer = requests.call("get_item", TableName=schema.table, Key=physical, **how)
        return {shards[0]: answer["Item"]} if "Item" in answer else {}
    return find_all(requests, schema, [(key, shards)], how)[0]


def find_all(
    requests: Requests,
    schema: Schema,
    wanted: Sequence[tuple[ItemKey, Sequence[int]]],
    how: Mapping[str, Any],
) -> list[dict[int, dict[str, Any]]]:
    """As `find_copies`, for many items; a request for 100 of the places where they may be.

    how: parameters of BatchGetItem; a projection has both attributes of the key.
    """
    copies: list[dict[int, dict[str, Any]]] = [{} for _ in wanted]
    left, places = [], {}
    for number, (key, shards) in enumerate(wanted):
        for shard in shards:
            left.append(schema.physical(key, shard))
            places[schema.name_of(left[-1])] = number, shard

    def attempt() -> None:
        asked = {schema.table: {"Keys": left[:MOST_KEYS_AT_ONCE], **how}}
        answer = requests.once("batch_get_item", RequestItems=asked)
        for item in next(iter(answer["Responses"].values()), []):
            number, shard = places[schema.name_of(item)]
            copies[number][shard] = item
        again = [key for more in answer["UnprocessedKeys"].values() for key in more["Keys"]]
        left[:MOST_KEYS_AT_ONCE] = again
        if again:  # they were throttled, though the service does not call it so
            requests.usage.count_throttle((NO_REASON,))
            code = "ProvisionedThroughputExceededException"
            raise requests.refusal(code, "Keys were left over", "BatchGetItem")

    while left:
        requests.patiently(attempt)
    return copies


def logical_typed(
    schema: Schema, item: Mapping[str, TypedValue], logical: TypedValue
) -> dict[str, TypedValue]:
    """A typed item with the logical key, and without a fence."""
    shown = {name: value for name, value in item.items() if name != FENCE}
    if schema.partition.name in shown:
        shown[schema.partition.name] = logical
    return shown


def logical_item(schema: Schema, item: Mapping[str, Any], logical: TypedValue) -> dict[str, Any]:
    """A typed item as its user knows it: in boto3's words, with the logical key, no fence."""
    return {name: untyped(value) for name, value in logical_typed(schema, item, logical).items()}


def clause_of(
    condition: Any,
    names: Mapping[str, str] | None,
    values: Mapping[str, Any] | None,
    is_key: bool = False,
) -> Clause:
    """A user's condition: a text, or boto3's `Attr(...)`; is_key: `Key(...)`. Raises as `typed`."""
    if isinstance(condition, ConditionBase):
        built = ConditionExpressionBuilder().build_expression(condition, is_key)
        prefix = "key_" if is_key else ""  # a filter may be built besides
        condition = _BUILT.sub(rf"\1{prefix}\2", built.condition_expression)
        names = {**(names or {}), **_renamed(built.attribute_name_placeholders, prefix)}
        values = {**(values or {}), **_renamed(built.attribute_value_placeholders, prefix)}
    names = names or {}
    check_names(names.values())
    return Clause(condition or "", names, typed_item(values or {}))


def _renamed(placeholders: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {f"{name[0]}{prefix}{name[1:]}": value for name, value in placeholders.items()}


def with_fence(update: str) -> str:
    """An UpdateExpression that also leaves a fence, by the names `#kh_fence` and `:kh_fence`."""
    addition = "#kh_fence = :kh_fence"
    clause = _SET_CLAUSE.search(update)
    if clause is None:
        return f"{update} SET {addition}".strip()
    return f"{update[: clause.end()]} {addition}, {update[clause.end() :].lstrip()}"


def check_expressions(schema: Schema, clause: Clause, update: str) -> None:
    """Raises CannotStart for a use of the partition key's value, which has a suffix."""
    partition = schema.partition.name
    names = {partition, *clause.names}
    for word in (re.escape(name) for name in names if clause.names.get(name, name) == partition):
        value = rf"(?<![#:\w.-]){word}(?![\w-])"
        exists = rf"attribute_(not_)?exists\s*\(\s*{word}\s*\)"
        if re.search(value, re.sub(exists, "", clause.condition)):
            raise CannotStart(
                f"A condition cannot compare the partition key {partition}: in the table its "
                "value carries the shard's suffix. That it exists can be asked."
            )
        if re.search(value, update):
            raise CannotStart(
                f"An update cannot use the partition key {partition}: in the table its value "
                "carries the shard's suffix."
            )


def projected(
    expression: str | None, names: Mapping[str, str] | None, needed: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """The parameters of a projection that has the attributes needed, and which are ours alone.

    expression: None for all attributes, empty for no others.
    """
    if expression is None:
        return {}, []
    paths = {path.strip() for path in expression.split(",")}
    wanted = {(names or {}).get(path, path) for path in paths}
    added = [name for name in needed if name not in wanted]
    ours = {f"#kh_{number}": name for number, name in enumerate(added)}
    parameters = {
        "ProjectionExpression": ", ".join(filter(None, [expression, *ours])),
        "ExpressionAttributeNames": {**(names or {}), **ours},
    }
    return {name: value for name, value in parameters.items() if value}, added
