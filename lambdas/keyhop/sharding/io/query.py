"""A query, and the parts of its answer that the single shards give. Pure."""

import base64
import hashlib
import json
from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from functools import total_ordering
from typing import Any

from keyhop.dynamodb.values import TypedValue, from_json, to_json
from keyhop.errors import CannotStart


@dataclass(frozen=True, slots=True)
class Query:
    """What to read of one key. after: go on behind this sort key. limit: items in all."""

    logical: TypedValue
    between: tuple[TypedValue | None, TypedValue | None] = (None, None)
    descending: bool = False
    consistent: bool = False
    after: TypedValue | None = None
    limit: int | None = None


Rank = Any
"""A sort key's place in the result: what compares less comes first."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Backwards:
    """Texts and binaries in descending order."""

    content: bytes

    def __lt__(self, other: "Backwards") -> bool:
        return other.content < self.content


@dataclass(slots=True)
class ShardCursor:
    """How far one shard has been read. items: read and not yet returned, with their ranks.

    after: up to where it has been read, None: not at all; reached: its rank. done: to its end.
    """

    number: int
    after: TypedValue | None
    reached: Rank | None = None
    items: "deque[tuple[Rank, dict[str, Any]]]" = field(default_factory=deque)
    done: bool = False

    @property
    def needs_page(self) -> bool:
        """Whether it must be read on before anything beyond `reached` is returned."""
        return not self.items and not self.done

    def is_behind(self, other: "ShardCursor") -> bool:
        """Whether it was read less far; one that was not read at all is behind all others."""
        if self.done:
            return False
        if self.reached is None or other.reached is None:
            return self.reached is None and other.reached is not None
        return bool(self.reached < other.reached)


class MetadataExpired(Exception):
    """The metadata may not be acted upon any more. cause: what the page failed of, if it did."""

    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__("the shard metadata has expired")
        self.cause = cause


def rank_of(value: TypedValue, descending: bool) -> Rank:
    """The place of a sort key: numbers by value, texts and binaries by their bytes.

    Raises TypeError for a value of another type.
    """
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        return number.copy_negate() if descending else number
    if not isinstance(content, str | bytes | bytearray):
        raise TypeError(f"{type(content).__name__} is no sort key")
    whole = content.encode() if isinstance(content, str) else bytes(content)
    return Backwards(whole) if descending else whole


def token_of(query: Query, last: TypedValue) -> str:
    """A page token: go on behind `last`. It holds the sort key; whoever has it can read that."""
    token = {"after": to_json({"s": last})["s"], "of": _digest(query)}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode()


def after_token(query: Query, token: str) -> TypedValue:
    """Where a page token says to go on; raises CannotStart for one of another query."""
    try:
        content = json.loads(base64.urlsafe_b64decode(token.encode()))
        after = from_json({"s": content["after"]})["s"]
        rank_of(after, False)
        same = content["of"] == _digest(query)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        raise CannotStart("The page token is damaged: begin the query again without it.") from None
    if not same:
        raise CannotStart(
            "The page token belongs to another query: key, between and descending must be the same."
        )
    return after


def _digest(query: Query) -> str:
    low, high = (None if end is None else to_json({"s": end}) for end in query.between)
    identity = [to_json({"p": query.logical}), low, high, query.descending]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
