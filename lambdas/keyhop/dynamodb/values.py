"""Typed values, keys and items: their JSON, their size, and whether they are equal. Pure.

A *typed value* is DynamoDB's own form of an attribute: `{"S": "a"}`, `{"N": "1.5"}` or
`{"B": b"..."}`. In JSON the bytes of a B value are base64 text, as in the service's own wire
format.

*DynamoDB JSON* has typed values, as in `{"plan": {"S": "free"}}`; plain JSON has none, as in
`{"plan": "x"}`. Binary values are base64 text in DynamoDB JSON, and bytes in a typed value.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Literal

KeyType = Literal["S", "N", "B"]
TypedValue = Mapping[str, Any]
Key = Mapping[str, TypedValue]
"""Attribute name -> typed value; for example an ExclusiveStartKey."""

_EXACT = Context(prec=38, Emin=-999, Emax=999, traps=[])
"""A number of DynamoDB has 38 digits and an exponent of up to 125."""
MOST_DIGITS = 38
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")


def is_number(text: str) -> bool:
    """Return whether this is a number that the service keeps as it is (AWS documentation)."""
    if not _NUMBER.fullmatch(text):  # Decimal takes more: spaces, underscores, other digits
        return False
    number = Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(digits) > MOST_DIGITS:
        return False
    return number == 0 or -130 <= number.adjusted() <= 125


def same_value(first: TypedValue, second: TypedValue) -> bool:
    """Return whether two typed values are equal, in whatever form the service writes numbers.

    Raise ArithmeticError if the content of a number is not a number.
    """
    if "N" in first and "N" in second:
        return Decimal(first["N"]) == Decimal(second["N"])
    return first == second


def has_values(item: Mapping[str, TypedValue], values: Mapping[str, TypedValue]) -> bool:
    """Return whether an item has these attributes, with these values."""
    return all(name in item and same_value(item[name], value) for name, value in values.items())


def canonical(value: TypedValue) -> tuple[str, str | bytes]:
    """Return a key attribute's value in one form, to look it up; a number has many forms."""
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        # Not with the caller's context, which may round.
        return "N", "0" if not number else str(number.normalize(_EXACT))
    return type_, content if isinstance(content, str) else bytes(content)


def text_of(value: TypedValue) -> str:
    """Return a key attribute's value as text: a number without an exponent, binary as base64."""
    ((type_, content),) = value.items()
    if type_ == "N":
        return format(Decimal(str(canonical(value)[1])), "f")
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()


def key_text(key: Key) -> str:
    """Return a key as JSON text, which is the same for equal keys."""
    texts = {name: {next(iter(value)): text_of(value)} for name, value in key.items()}
    return json.dumps(texts, sort_keys=True)


def distinct_bytes(value: TypedValue) -> bytes:
    """Return bytes to hash: unequal values have different ones, also one after another."""
    type_, content = canonical(value)
    data = content.encode() if isinstance(content, str) else content
    return b"%b%d:%b" % (type_.encode(), len(data), data)


def to_json(key: Key) -> dict[str, dict[str, str]]:
    """Return a key as plain JSON: bytes become base64 text."""
    return _converted(key, lambda content: base64.b64encode(content).decode())


def from_json(key: Mapping[str, Mapping[str, str]]) -> dict[str, TypedValue]:
    """Return the key in plain JSON; the inverse of `to_json`."""
    return _converted(key, base64.b64decode)


def typed_json(item: Mapping[str, Any]) -> str:
    """Return any typed values as JSON text; bytes become base64."""
    return json.dumps(item, ensure_ascii=False, default=lambda b: base64.b64encode(b).decode())


def with_bytes(value: Any) -> Any:
    """Return a copy in which bytes replace the base64 of each {"B": text}."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("B"), str):
            return {"B": base64.b64decode(value["B"])}
        texts = value.get("BS") if len(value) == 1 else None
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            return {"BS": [base64.b64decode(text) for text in texts]}
        return {name: with_bytes(content) for name, content in value.items()}
    if isinstance(value, list):
        return [with_bytes(content) for content in value]
    return value


def plain(value: TypedValue) -> str | int | float:
    """Return a value without its type: bytes as base64, a number as text unless it is a double.

    Readers of JSON take numbers as doubles: 0.1 comes back as 0.1, and 2**53 + 1 does not.
    """
    ((type_, content),) = value.items()
    if type_ == "B":
        return content if isinstance(content, str) else base64.b64encode(content).decode()
    if type_ == "S":
        return str(content)
    number, double = Decimal(content), float(content)
    if Decimal(repr(double)) != number:
        return str(content)
    return int(number) if double.is_integer() else double


def _converted(key: Key, binary: Callable[[Any], Any]) -> dict[str, Any]:
    converted = {}
    for name, value in key.items():
        ((type_, content),) = value.items()
        converted[name] = {type_: binary(content) if type_ == "B" else content}
    return converted


MOST_ITEM_BYTES = 400 * 1024
MOST_LEVELS = 32
"""The maximum nesting of values. Both limits are from the AWS documentation."""

TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})
Item = Mapping[str, TypedValue]


def is_typed(value: Any) -> bool:
    """Return whether it is an object of one member named by a type, whatever the content is."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in TYPES


def is_item(candidate: Any) -> bool:
    """Return whether it is an item of typed values, each with a content of its type."""
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


def item_json(
    candidate: Any, of_text: Callable[[str], dict[str, Any]] = lambda text: {"S": text}
) -> dict[str, Any]:
    """Convert an item, or the values of an expression, to DynamoDB JSON from that or plain JSON.

    Either all of its values are typed, or none is. `of_text` converts a text of plain JSON. Raise
    ValueError for anything else.
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
    """Return the bytes (AWS, "DynamoDB item sizes and formats"); of a number, approximately."""
    return sum(len(name.encode()) + value_bytes(value) for name, value in item.items())


def value_bytes(value: TypedValue) -> int:
    """Return the bytes of a typed value (see `size_of`)."""
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
    """Return whether two items have the same attributes with the same values."""
    return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)


def same(first: TypedValue, second: TypedValue) -> bool:
    """Return whether two typed values are equal: numbers by value, sets in any order."""
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
    """Return whether the members of a set are distinct."""
    members = [Decimal(member) if type_ == "NS" else member for member in content]
    return len(set(members)) == len(members)


def _number_bytes(text: str) -> int:
    """Return one byte for each two digits, one more, and one for the sign."""
    try:
        digits = "".join(map(str, Decimal(text).as_tuple().digits)).strip("0")
    except InvalidOperation:
        return len(text)
    return (len(digits) + 1) // 2 + 1 + text.startswith("-")


def _typed(value: Any, of_text: Callable[[str], dict[str, Any]], levels: int) -> dict[str, Any]:
    """Return a typed value. A float is the number that it is written as."""
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
        case bytes() | bytearray():
            return {"B": base64.b64encode(value).decode()}
        case Mapping():
            members = value.items()
            return {
                "M": {str(name): _typed(member, of_text, levels - 1) for name, member in members}
            }
        case Sequence():
            return {"L": [_typed(member, of_text, levels - 1) for member in value]}
        case Set():
            return _typed_set([_typed(member, lambda text: {"S": text}, 1) for member in value])
    raise ValueError(f"{type(value).__name__} cannot be written as JSON")


def _typed_set(members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    types = {type_ for member in members for type_ in member}
    if len(types) != 1 or not types <= {"S", "N", "B"}:
        raise ValueError("a set must have texts, numbers or bytes, all of one type")
    (type_,) = types
    return {f"{type_}S": [member[type_] for member in members]}
