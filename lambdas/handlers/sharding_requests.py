"""What callers ask WriteSharded, QuerySharded and MoveShards for. Pure; no message shows a key."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.checks import STARTED_BY, InvalidInput

from handlers.item_json import InvalidItem, value_of

DEFAULT_LIMIT = 100
MOST_ITEMS = 1000
"""Of one answer of QuerySharded."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Items to write, as the event has them. typed: as DynamoDB's own JSON."""

    table: str
    items: list[Any]
    typed: bool = False

    @classmethod
    def from_event(cls, event: object) -> "WriteRequest":
        """Raises InvalidInput."""
        given = _fields(event, ("table", "items", "typed"), '{"table": "Audit", "items": [...]}')
        table, items = _table(given), given.get("items")
        if not isinstance(items, list):
            raise InvalidInput("items must be an array of items.")
        return cls(table, items, _truth(given, "typed"))


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A page of a key's items. key, between: in boto3's words; an open end is None."""

    table: str
    key: Any
    between: tuple[Any, Any] | None = None
    descending: bool = False
    limit: int = DEFAULT_LIMIT
    consistent: bool = False
    page_token: str | None = None
    typed: bool = False

    @classmethod
    def from_event(cls, event: object) -> "QueryRequest":
        """Raises InvalidInput."""
        given = _fields(
            event,
            (
                *("table", "key", "between", "descending", "limit", "consistent"),
                *("pageToken", "typed"),
            ),
            '{"table": "Audit", "key": "/f.txt"}',
        )
        typed = _truth(given, "typed")
        token = given.get("pageToken")
        if token is not None and not isinstance(token, str):
            raise InvalidInput("pageToken must be the text that an answer had.")
        return cls(
            _table(given),
            _key(given, typed),
            _between(given.get("between"), typed),
            _truth(given, "descending"),
            _whole(given, "limit", MOST_ITEMS, DEFAULT_LIMIT),
            _truth(given, "consistent"),
            token,
            typed,
        )


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """A key that shall have `shards` shards: the input of an execution of DrainShards."""

    table: str
    key: Any
    shards: int

    @classmethod
    def from_event(cls, event: object) -> "MoveRequest":
        """Raises InvalidInput."""
        if isinstance(event, Mapping):
            event = {name: value for name, value in event.items() if name != STARTED_BY}
        like = '{"table": "Audit", "key": "/f.txt", "shards": 1}'
        given = _fields(event, ("table", "key", "shards", "typed"), like)
        key = _key(given, _truth(given, "typed"))
        return cls(_table(given), key, _whole(given, "shards", None, None))


def _fields(event: object, known: Sequence[str], like: str) -> Mapping[str, Any]:
    if not isinstance(event, Mapping):
        raise InvalidInput(f"The input must be a JSON object such as {like}.")
    for name in event:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(known)}."
            raise InvalidInput(f"The field {str(name)[:50]!r} is not known; {hint}")
    return event


def _table(given: Mapping[str, Any]) -> str:
    table = given.get("table")
    if not isinstance(table, str) or not table:
        raise InvalidInput("table must be the name of a sharded table.")
    return table


def _key(given: Mapping[str, Any], typed: bool) -> Any:
    key = given.get("key")
    if isinstance(key, str) and key:
        return key
    found = _scalar("key", key, typed) if typed and key is not None else None
    if not isinstance(found, str | bytes) or not found:
        raise InvalidInput(
            'key must be a text, not empty; a binary key is {"B": "<base64>"}, with "typed": true.'
        )
    return found


def _between(value: object, typed: bool) -> tuple[Any, Any] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidInput("between must be an array of two sort keys, or null for an open end.")
    low, high = (None if end is None else _scalar("between", end, typed) for end in value)
    return low, high


def _scalar(name: str, value: object, typed: bool) -> Any:
    """A key's value; a text or a number may be plain with `typed` as well: it has one reading."""
    try:
        return value_of(value, typed and isinstance(value, Mapping))
    except InvalidItem as error:
        raise InvalidInput(f"{name} is wrong: {error}.") from None


def _truth(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false.")
    return value


def _whole(given: Mapping[str, Any], name: str, most: int | None, default: int | None) -> int:
    value = given.get(name, default)
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < 1
        or value > (most or value)
    ):
        allowed = f"from 1 to {most:,}" if most else "of at least 1"
        raise InvalidInput(f"{name} must be a whole number {allowed}.")
    return value
