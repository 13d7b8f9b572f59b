"""Items as the JSON of an event or an answer, and in boto3's words. Pure.

Plain JSON knows texts, numbers, truth values, null, arrays and objects. So binaries and sets can
only be written typed, as DynamoDB's own JSON ({"B": "<base64>"}, {"SS": [...]}); in a plain answer
they are base64 text and arrays. A number of a plain answer is exact as long as the reader's JSON
keeps it: whole numbers always; others if a double holds them, or else they are the nearest double.
Numbers of a plain event have gone through such a double, too. A text would be wrong as a number, so
none is made of it: whoever needs all 38 digits asks for `typed`.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import DYNAMODB_CONTEXT, Binary, TypeSerializer

_SERIALIZER = TypeSerializer()


class InvalidItem(ValueError):
    """A value that no item can have; the message never shows the value."""


def item_of(given: object, typed: bool) -> dict[str, Any]:
    """An item of an event, in boto3's words. Raises InvalidItem."""
    if not isinstance(given, Mapping):
        raise InvalidItem("an item must be a JSON object of attributes")
    return {str(name): value_of(value, typed) for name, value in given.items()}


def item_json(item: Mapping[str, Any], typed: bool) -> dict[str, Any]:
    """An item for an answer."""
    return {name: value_json(value, typed) for name, value in item.items()}


def value_of(given: object, typed: bool) -> Any:
    """A value of an event, in boto3's words. Raises InvalidItem."""
    return _from_typed(given) if typed else _from_plain(given)


def value_json(value: Any, typed: bool) -> Any:
    """A value for an answer."""
    return _typed_json(_SERIALIZER.serialize(value)) if typed else _plain_json(value)


def _from_plain(given: object) -> Any:
    if isinstance(given, bool) or given is None or isinstance(given, str):
        return given
    if isinstance(given, int | float):
        return _number(repr(given))
    if isinstance(given, Mapping):
        return {str(name): _from_plain(value) for name, value in given.items()}
    if isinstance(given, list):
        return [_from_plain(value) for value in given]
    raise InvalidItem("a value is not of JSON")


def _from_typed(given: object) -> Any:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise InvalidItem('a typed value must have one type, as {"S": "a"} or {"N": "1.5"}')
    ((type_, content),) = given.items()
    if type_ not in _READERS:
        raise InvalidItem(f"a typed value has a type that is none of {', '.join(_READERS)}")
    return _READERS[type_](content)


def _plain_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray | Binary):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, set | frozenset):
        return [_plain_json(one) for one in sorted(value, key=_for_order)]
    if isinstance(value, Mapping):
        return {name: _plain_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_json(one) for one in value]
    return value


def _typed_json(value: Mapping[str, Any]) -> dict[str, Any]:
    ((type_, content),) = value.items()
    if type_ == "B":
        content = base64.b64encode(bytes(content)).decode()
    elif type_ == "BS":
        content = sorted(base64.b64encode(bytes(one)).decode() for one in content)
    elif type_ in ("SS", "NS"):
        content = sorted(content)
    elif type_ == "M":
        content = {name: _typed_json(one) for name, one in content.items()}
    elif type_ == "L":
        content = [_typed_json(one) for one in content]
    return {type_: content}


def _for_order(value: Any) -> Any:
    return bytes(value) if isinstance(value, Binary) else value


def _text(content: object) -> str:
    if not isinstance(content, str):
        raise InvalidItem("the content of S must be a text")
    return content


def _number(content: object) -> Decimal:
    if not isinstance(content, str):
        raise InvalidItem("the content of N must be a text, as all digits are kept in one")
    try:
        number: Decimal = DYNAMODB_CONTEXT.create_decimal(content)
    except ArithmeticError:
        raise InvalidItem("a number is not one of DynamoDB, which have 38 digits") from None
    if not number.is_finite():
        raise InvalidItem("NaN and Infinity are no numbers of DynamoDB")
    return number


def _binary(content: object) -> bytes:
    try:
        return base64.b64decode(_text(content), validate=True)
    except (binascii.Error, InvalidItem):
        raise InvalidItem("the content of B must be base64 text") from None


def _truth(content: object) -> bool:
    if not isinstance(content, bool):
        raise InvalidItem("the content of BOOL must be true or false")
    return content


def _null(content: object) -> None:
    if content is not True:
        raise InvalidItem("the content of NULL must be true")


def _map(content: object) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        raise InvalidItem("the content of M must be an object")
    return {str(name): _from_typed(value) for name, value in content.items()}


def _list(content: object) -> list[Any]:
    if not isinstance(content, list):
        raise InvalidItem("the content of L must be an array")
    return [_from_typed(value) for value in content]


def _set_of(read: Callable[[object], Any]) -> Callable[[object], set[Any]]:
    def read_set(content: object) -> set[Any]:
        if not isinstance(content, list) or not content:
            raise InvalidItem("the content of a set must be an array, not empty")
        values = {read(one) for one in content}
        if len(values) != len(content):
            raise InvalidItem("a set has a value twice")
        return values

    return read_set


_READERS: dict[str, Callable[[object], Any]] = {
    "S": _text,
    "N": _number,
    "B": _binary,
    "BOOL": _truth,
    "NULL": _null,
    "M": _map,
    "L": _list,
    "SS": _set_of(_text),
    "NS": _set_of(_number),
    "BS": _set_of(_binary),
}
