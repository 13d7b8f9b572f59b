"""Whole items, beside their keys: from JSON of either kind, their size, and whether two are equal.

*DynamoDB JSON* has typed values, `{"plan": {"S": "free"}}`; plain JSON has not, `{"plan": "x"}`.
Binary values are base64 text in DynamoDB JSON, and bytes in a typed value. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from keyhop.dynamodb.values import TypedValue, is_number, same_value

MOST_ITEM_BYTES = 400 * 1024
MOST_LEVELS = 32
"""Of a value in a value (AWS documentation, both)."""

TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
Item = Mapping[str, TypedValue]


def is_typed(value: Any) -> bool:
    """Whether it has the form of a typed value: an object of one member that is called as a type.

    The content is not looked at.
    """
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in TYPES


def is_item(candidate: Any) -> bool:
    """Whether it is an item of typed values, each with a content of its type."""
    return isinstance(candidate, Mapping) and all(
        isinstance(name, str) and _is_value(value) for name, value in candidate.items()
    )


def _is_value(value: Any) -> bool:
    if not is_typed(value):
        return False
    ((type_, content),) = value.items()
    if type_ in ("SS", "NS", "BS"):
        is_list = isinstance(content, list | tuple) and len(content) > 0
        return is_list and all(_is_value({type_[0]: member}) for member in content)
    if type_ == "L":
        return isinstance(content, list | tuple) and all(map(_is_value, content))
    if type_ == "M":
        return is_item(content)
    if type_ == "N":
        return isinstance(content, str) and is_number(content)
    if type_ == "NULL":
        return content is True
    return isinstance(content, _CONTENTS[type_])


_CONTENTS: Mapping[str, type] = {"S": str, "B": bytes, "BOOL": bool}


def _as_text(text: str) -> dict[str, Any]:
    return {"S": text}


def item_json(
    candidate: Any, of_text: Callable[[str], dict[str, Any]] = _as_text
) -> dict[str, Any]:
    """An item, or the values of an expression, as DynamoDB JSON; it may be plain JSON.

    Either all of its values are typed, or none is. of_text: what becomes of a text of plain JSON.
    Raises ValueError.
    """
    if not isinstance(candidate, Mapping):
        raise ValueError("it must be a JSON object")
    typed = [name for name, value in candidate.items() if is_typed(value)]
    if not typed:
        return {name: _typed(value, of_text, MOST_LEVELS) for name, value in candidate.items()}
    if len(typed) < len(candidate):
        plain = next(name for name in candidate if name not in typed)
        raise ValueError(
            f"{typed[0]!r} is DynamoDB JSON and {plain!r} is plain JSON: write all in one of them"
        )
    return dict(candidate)


def size_of(item: Item) -> int:
    """Bytes, by the service's rules; of a number they are approximate (AWS documentation,
    "DynamoDB item sizes and formats").
    """
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: TypedValue) -> int:
    """Bytes of a typed value, as `size_of`."""
    ((type_, content),) = value.items()
    if type_ == "S":
        return len(content.encode())
    if type_ == "N":
        return _number_bytes(content)
    if type_ == "M":
        return 3 + len(content) + size_of(content)
    if type_ == "L":
        return 3 + len(content) + sum(map(value_bytes, content))
    if type_ in ("SS", "NS", "BS"):
        return sum(value_bytes({type_[0]: member}) for member in content)
    return len(content) if type_ == "B" else 1


def same_item(first: Item, second: Item) -> bool:
    """Whether two items have the same attributes with the same values."""
    return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)


def same(first: TypedValue, second: TypedValue) -> bool:
    """Whether two typed values of any type are equal, as the service compares: numbers by value,
    sets in any order.
    """
    if first == second:
        return True
    ((type_, content),) = first.items()
    ((other_type, its),) = second.items()
    if type_ != other_type:
        return False
    if type_ == "N":
        return same_value(first, second)
    if type_ in ("SS", "BS"):
        return set(content) == set(its)
    if type_ == "NS":
        return set(map(Decimal, content)) == set(map(Decimal, its))
    if type_ == "L":
        return len(content) == len(its) and all(map(same, content, its))
    return type_ == "M" and same_item(content, its)


def are_distinct(type_: str, content: Iterable[Any]) -> bool:
    """Whether the members of a set are."""
    members = [Decimal(member) if type_ == "NS" else member for member in content]
    return len(set(members)) == len(members)


def _number_bytes(text: str) -> int:
    """A byte for each two digits, one more, and one for the sign."""
    try:
        digits = "".join(map(str, Decimal(text).as_tuple().digits)).strip("0")
    except InvalidOperation:
        return len(text)
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")


def _typed(value: Any, of_text: Callable[[str], dict[str, Any]], levels: int) -> dict[str, Any]:
    """A float is the number that it is written as."""
    if not levels:
        raise ValueError(f"it is nested deeper than {MOST_LEVELS} levels")
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return of_text(value)
        case int() | float() | Decimal():
            return {"N": str(value)}
        case Mapping():
            members = value.items()
            return {
                "M": {str(name): _typed(member, of_text, levels - 1) for name, member in members}
            }
        case Sequence():
            return {"L": [_typed(member, of_text, levels - 1) for member in value]}
    raise ValueError(f"{type(value).__name__} is no part of JSON")
