"""Conversion between boto3's items and the JSON of events and answers. Pure.

Plain JSON has texts, numbers, truth values, null, arrays and objects. So binaries and sets can only
be written typed, as DynamoDB's own JSON ({"B": "<base64>"}, {"SS": [...]}). In a plain answer they
are base64 text and arrays. A number of a plain answer is exact if the JSON library of the reader
keeps it: whole numbers always are. Other numbers are exact if a double holds them, and otherwise
become the nearest double. Numbers of a plain event have passed through such a double, too. A text
would be wrong as a number, so numbers do not become texts. Callers that need all 38 digits use
`typed`.
"""

import base64
import binascii
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import DYNAMODB_CONTEXT, Binary, TypeSerializer

_SERIALIZER = TypeSerializer()
_SET = (list, "a set must be an array, not empty")
_CONTENTS: dict[str, tuple[Any, str]] = {
    "S": (str, "S must be a text"),
    "N": (str, "N must be a text, as all digits are kept in one"),
    "B": (str, "B must be base64 text"),
    "BOOL": (bool, "BOOL must be true or false"),
    "NULL": (bool, "NULL must be true"),
    "M": (Mapping, "M must be an object"),
    "L": (list, "L must be an array"),
    **{"SS": _SET, "NS": _SET, "BS": _SET},
}
"""The Python type of each type's content, and a description for messages."""
_NEVER_EMPTY = ("NULL", "SS", "NS", "BS")


class InvalidItem(ValueError):
    """A value is not possible in an item; the message never shows the value."""


def item_of(source: object, typed: bool) -> dict[str, Any]:
    """Return an item of an event with boto3's types; raise InvalidItem if it is wrong."""
    if not isinstance(source, Mapping):
        raise InvalidItem("an item must be a JSON object of attributes")
    try:
        return {str(name): value_of(value, typed) for name, value in source.items()}
    except RecursionError:
        raise InvalidItem("it is nested far deeper than items of DynamoDB are") from None


def item_json(item: Mapping[str, Any], typed: bool) -> dict[str, Any]:
    """Return an item as the JSON of an answer."""
    return {name: value_json(value, typed) for name, value in item.items()}


def value_of(source: object, typed: bool) -> Any:
    """Return a value of an event with boto3's types; raise InvalidItem if it is wrong."""
    return _from_typed(source) if typed else _from_plain(source)


def value_json(value: Any, typed: bool) -> Any:
    """Return a value as the JSON of an answer."""
    return _typed_json(_SERIALIZER.serialize(value)) if typed else _plain_json(value)


def _from_plain(source: object) -> Any:
    if isinstance(source, bool) or source is None or isinstance(source, str):
        return source
    if isinstance(source, int | float):
        return _number(repr(source))
    if isinstance(source, Mapping):
        return {str(name): _from_plain(value) for name, value in source.items()}
    if isinstance(source, list):
        return [_from_plain(value) for value in source]
    raise InvalidItem("a value is not of JSON")


def _from_typed(source: Any) -> Any:
    if not isinstance(source, Mapping) or len(source) != 1:
        raise InvalidItem('a typed value must have one type, as {"S": "a"} or {"N": "1.5"}')
    ((type_, content),) = source.items()
    if type_ not in _CONTENTS:
        raise InvalidItem(f"a typed value has a type that is none of {', '.join(_CONTENTS)}")
    kind, must_be = _CONTENTS[type_]
    if not isinstance(content, kind) or (type_ in _NEVER_EMPTY and not content):
        raise InvalidItem(f"the content of {must_be}")
    match type_:
        case "N":
            return _number(content)
        case "B":
            return _binary(content)
        case "NULL":
            return None
        case "M":
            return {str(name): _from_typed(value) for name, value in content.items()}
        case "L":
            return [_from_typed(value) for value in content]
        case "SS" | "NS" | "BS":
            values = {_from_typed({type_[0]: element}) for element in content}
            if len(values) != len(content):
                raise InvalidItem("a set has a value twice")
            return values
    return content


def _number(text: str) -> Decimal:
    try:
        number: Decimal = DYNAMODB_CONTEXT.create_decimal(text)
    except ArithmeticError:
        raise InvalidItem("a number is not one of DynamoDB, which have 38 digits") from None
    if not number.is_finite():
        raise InvalidItem("NaN and Infinity are no numbers of DynamoDB")
    return number


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidItem(f"the content of {_CONTENTS['B'][1]}") from None


def _plain_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray | Binary):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, set | frozenset):
        return sorted(_plain_json(element) for element in value)
    if isinstance(value, Mapping):
        return {name: _plain_json(element) for name, element in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_json(element) for element in value]
    return value


def _typed_json(value: Mapping[str, Any]) -> dict[str, Any]:
    ((type_, content),) = value.items()
    match type_:
        case "B":
            content = _plain_json(content)
        case "BS":
            content = sorted(_plain_json(element) for element in content)
        case "SS" | "NS":
            content = sorted(content)
        case "M":
            content = {name: _typed_json(element) for name, element in content.items()}
        case "L":
            content = [_typed_json(element) for element in content]
    return {type_: content}
