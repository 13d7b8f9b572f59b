"""The inputs of WriteSharded, QuerySharded and MoveShards. Pure; no message shows a key."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from keyhop.checks import Check, InvalidInput, Must, Truth, read, text, whole

from handlers.item_json import InvalidItem, value_of

DEFAULT_LIMIT = 100
MOST_ITEMS = 1000
"""The maximum number of items in an answer of QuerySharded."""
MOST_WRITTEN = 10_000
"""The maximum items per call of WriteSharded, whose answer has a result for each of them."""


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
        """Read the request; raise InvalidInput if it is wrong."""
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
            "an array of two sort keys, or null",
            type=["array", "null"],
            minItems=2,
            maxItems=2,
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
        """Read the request; raise InvalidInput if it is wrong."""
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
        """Read the request; raise InvalidInput if it is wrong."""
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
