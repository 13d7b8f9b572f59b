"""The inputs of WriteSharded, QuerySharded and MoveShards, and items as JSON. Pure; no message
shows a key.

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
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

from boto3.dynamodb.types import DYNAMODB_CONTEXT, Binary, TypeSerializer
from keyhop.checks import Check, Must, Truth, read, text, whole
from keyhop.errors import InvalidInput

DEFAULT_LIMIT = 100
MOST_ITEMS = 1000
"""The maximum number of items in an answer of QuerySharded."""
MOST_WRITTEN = 10_000
"""The maximum items per call of WriteSharded, whose answer has a result for each of them."""

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


def _later(be: str, **schema: Any) -> Must:
    """Return a constraint that `from_event` checks; `schema` has only its certain part."""
    return Must(Check(lambda value: True, schema), be)


Table = Annotated[
    str, Must(text(), "the name of a sharded table"), "a table that has sharding in this deployment"
]
Key = Annotated[
    Any,
    _later(
        "a text, not empty; or typed",
        anyOf=[
            {"type": "string", "minLength": 1},
            {"type": "object", "minProperties": 1, "maxProperties": 1},
        ],
    ),
    "the logical key",
]
Typed = Annotated[Truth, "values in DynamoDB's own JSON: for binaries, sets and 38 digits"]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The items to write, as in the event; with `typed` they are DynamoDB's JSON."""

    table: Table
    items: Annotated[
        Any,
        _later("an array of items", type="array", maxItems=MOST_WRITTEN),
        f"the items to write, each an object of attributes; {MOST_WRITTEN:,} at most",
    ] = None
    typed: Typed = False

    @classmethod
    def from_event(cls, event: object) -> "WriteRequest":
        request = read(cls, event, '{"table": "Audit", "items": [...]}')
        if not isinstance(request.items, list):
            raise InvalidInput("items must be an array of items.")
        if len(request.items) > MOST_WRITTEN:
            raise InvalidInput(f"items must be an array of at most {MOST_WRITTEN:,} items.")
        return request


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A page of a key's items. Values have boto3's types; an open end of `between` is None."""

    table: Table
    key: Key = None
    between: Annotated[
        Any,
        _later(
            "an array of two sort keys, or null", type=["array", "null"], minItems=2, maxItems=2
        ),
        "the least and the greatest sort key; null for an open end",
    ] = None
    descending: Annotated[Truth, "the greatest sort key first"] = False
    limit: Annotated[
        int,
        Must(whole(1, MOST_ITEMS), f"a whole number from 1 to {MOST_ITEMS:,}", int),
        "items of a page, at most",
    ] = DEFAULT_LIMIT
    consistent: Annotated[Truth, "strongly consistent reads"] = False
    page_token: Annotated[
        str | None,
        Must(
            Check(lambda value: isinstance(value, str | None), {"type": ["string", "null"]}),
            "the text that an answer had",
        ),
        "of the page before; the other fields as they were",
    ] = None
    typed: Typed = False

    @classmethod
    def from_event(cls, event: object) -> "QueryRequest":
        request = read(cls, event, '{"table": "Audit", "key": "/f.txt"}')
        between = _between(request.between, request.typed)
        return replace(request, key=_key(request.key, request.typed), between=between)


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """The input of DrainShards: a key, and the number of shards to which it is lowered."""

    table: Table
    shards: Annotated[
        int, Must(whole(1), "a whole number of at least 1", int), "how many the key shall have"
    ]
    key: Key = None
    typed: Typed = False

    @classmethod
    def from_event(cls, event: object) -> "MoveRequest":
        request = read(cls, event, '{"table": "Audit", "key": "/f.txt", "shards": 1}')
        return replace(request, key=_key(request.key, request.typed))


def _key(key: object, typed: bool) -> Any:
    if isinstance(key, str) and key:
        return key
    value = _scalar("key", key, typed) if typed and key is not None else None
    if not isinstance(value, str | bytes) or not value:
        raise InvalidInput(
            'key must be a text, not empty; a binary key is {"B": "<base64>"}, with "typed": true.'
        )
    return value


def _between(value: object, typed: bool) -> tuple[Any, Any] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidInput("between must be an array of two sort keys, or null for an open end.")
    low, high = (None if end is None else _scalar("between", end, typed) for end in value)
    return low, high


def _scalar(name: str, value: object, typed: bool) -> Any:
    """Return a key's value. Even with `typed`, a text or number may be plain: it is unambiguous."""
    try:
        return value_of(value, typed and isinstance(value, Mapping))
    except InvalidItem as error:
        raise InvalidInput(f"{name} is wrong: {error}.") from None


class InvalidItem(ValueError):
    """A value is not possible in an item; the message never shows the value."""


def item_of(source: object, typed: bool) -> dict[str, Any]:
    """Return an item of an event with boto3's types; raise InvalidItem if it is wrong."""
    if not isinstance(source, Mapping):
        raise InvalidItem("an item must be a JSON object of attributes")
    try:
        return {str(name): value_of(value, typed) for name, value in source.items()}
    except RecursionError:
        raise InvalidItem("it is nested deeper than items of DynamoDB can be") from None


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
    raise InvalidItem("a value is not a JSON value")


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
            try:
                return base64.b64decode(content, validate=True)
            except (binascii.Error, ValueError):
                raise InvalidItem(f"the content of {must_be}") from None
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
        raise InvalidItem("a number has more than the 38 digits of DynamoDB") from None
    if not number.is_finite():
        raise InvalidItem("DynamoDB does not have the numbers NaN and Infinity")
    return number


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
