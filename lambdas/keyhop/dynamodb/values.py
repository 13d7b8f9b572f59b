"""Typed values, as items and keys have them, and their JSON.

A *typed value* is DynamoDB's own form of an attribute: `{"S": "a"}`, `{"N": "1.5"}` or
`{"B": b"..."}`. In JSON the bytes of a B value are base64 text, as in the service's own wire
format.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
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
    """Whether it is a number that the service keeps as it is (AWS documentation)."""
    if not _NUMBER.fullmatch(text):  # Decimal takes more: spaces, underscores, other digits
        return False
    number = Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(digits) > MOST_DIGITS:
        return False
    return number == 0 or -130 <= number.adjusted() <= 125


def same_value(first: TypedValue, second: TypedValue) -> bool:
    """Return whether two typed values are equal. The service writes a number in another form than
    it was sent.

    Raises:
        ArithmeticError: The content of a number is not a number.
    """
    if "N" in first and "N" in second:
        return Decimal(first["N"]) == Decimal(second["N"])
    return first == second


def has_values(item: Mapping[str, TypedValue], values: Mapping[str, TypedValue]) -> bool:
    """Whether an item has these attributes, with these values."""
    return all(name in item and same_value(item[name], value) for name, value in values.items())


def canonical(value: TypedValue) -> tuple[str, str | bytes]:
    """A key attribute's value in one form only, as a dictionary's key; a number has many forms."""
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        # Not with the caller's context, which may round.
        return "N", "0" if not number else str(number.normalize(_EXACT))
    return type_, content if isinstance(content, str) else bytes(content)


def text_of(value: TypedValue) -> str:
    """A key attribute's value as text: a number without an exponent, binary as base64."""
    ((type_, content),) = value.items()
    if type_ == "N":
        return format(Decimal(str(canonical(value)[1])), "f")
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()


def distinct_bytes(value: TypedValue) -> bytes:
    """Return bytes to hash: equal values have equal bytes, and unequal values have different ones,
    also one after another.
    """
    type_, content = canonical(value)
    data = content.encode() if isinstance(content, str) else content
    return b"%b%d:%b" % (type_.encode(), len(data), data)


def to_json(key: Key) -> dict[str, dict[str, str]]:
    """A key as plain JSON: bytes become base64 text."""
    return _converted(key, lambda content: base64.b64encode(content).decode())


def from_json(key: Mapping[str, Mapping[str, str]]) -> dict[str, TypedValue]:
    """The inverse of `to_json`."""
    return _converted(key, base64.b64decode)


def typed_json(item: Mapping[str, Any]) -> str:
    """Any typed values as JSON text; bytes become base64."""
    return json.dumps(item, ensure_ascii=False, default=lambda b: base64.b64encode(b).decode())


def with_bytes(value: Any) -> Any:
    """Return a copy in which bytes replace the base64 of each {"B": text}."""
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("B"), str):
            return {"B": base64.b64decode(value["B"])}
        if len(value) == 1 and _is_texts(value.get("BS")):
            return {"BS": [base64.b64decode(text) for text in value["BS"]]}
        return {name: with_bytes(content) for name, content in value.items()}
    if isinstance(value, list):
        return [with_bytes(content) for content in value]
    return value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def plain(value: TypedValue) -> str | int | float:
    """A value without its type: bytes as base64 text, a number as text if no double is equal to it.

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
