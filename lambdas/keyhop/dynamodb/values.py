"""Typed values, as items and keys have them, and their JSON.

A *typed value* is DynamoDB's own form of an attribute: `{"S": "a"}`, `{"N": "1.5"}` or
`{"B": b"..."}`. In JSON the bytes of a B value are base64 text, as in the service's own wire
format.
"""

import base64
import hashlib
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, Literal

KeyType = Literal["S", "N", "B"]
TypedValue = Mapping[str, Any]
Key = Mapping[str, TypedValue]
"""Attribute name -> typed value; for example an ExclusiveStartKey."""

_EXACT = Context(prec=38, Emin=-999, Emax=999, traps=[])
"""A number of DynamoDB has 38 digits and an exponent of up to 125."""


def same_value(one: TypedValue, other: TypedValue) -> bool:
    """Whether two typed values are equal; the service writes a number otherwise than it was sent.

    Raises ArithmeticError for what is no number.
    """
    if "N" in one and "N" in other:
        return Decimal(one["N"]) == Decimal(other["N"])
    return one == other


def canonical(value: TypedValue) -> tuple[str, str | bytes]:
    """A key attribute's value in one form only, as a dictionary's key; a number has many forms."""
    ((type_, content),) = value.items()
    if type_ == "N":
        number = Decimal(content)
        # Not by the context of whoever calls: it may round.
        return "N", "0" if not number else str(number.normalize(_EXACT))
    return type_, content if isinstance(content, str) else bytes(content)


def distinct_bytes(value: TypedValue) -> bytes:
    """Bytes to hash: equal values have equal ones, unequal values never, also one after another."""
    type_, content = canonical(value)
    whole = content.encode() if isinstance(content, str) else content
    return b"%b%d:%b" % (type_.encode(), len(whole), whole)


def to_json(key: Key) -> dict[str, dict[str, str]]:
    """A key as plain JSON: bytes become base64 text."""
    return {name: _value_to_json(value) for name, value in key.items()}


def from_json(key: Mapping[str, Mapping[str, str]]) -> dict[str, TypedValue]:
    """The inverse of `to_json`."""
    return {name: _value_from_json(value) for name, value in key.items()}


def _value_to_json(value: TypedValue) -> dict[str, str]:
    ((type_, content),) = value.items()
    return {type_: base64.b64encode(content).decode() if type_ == "B" else content}


def _value_from_json(value: Mapping[str, str]) -> TypedValue:
    ((type_, content),) = value.items()
    return {type_: base64.b64decode(content) if type_ == "B" else content}


def key_text(value: TypedValue) -> str:
    """A typed value as text that tells it from all others."""
    ((type_, content),) = _value_to_json(value).items()
    return f"{type_}{content}"


def digest(value: TypedValue) -> bytes:
    """A typed value in 16 bytes; among ten billion the chance of any two alike is below 1e-18."""
    ((_, content),) = value.items()
    whole = content.encode() if isinstance(content, str) else bytes(content)
    return hashlib.blake2b(whole, digest_size=16).digest()
