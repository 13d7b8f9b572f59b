"""Map the items of a table to another primary key, and back, by a template or a pair of functions.

A *source* item has its *destination* item. A *place* is a primary key of the destination. The
*owner* of a destination item is the primary key of the source item from which it is made. Pure.

The text and the digest of a key, and the digest of an item, are the same for equal values, in
whatever form a request gave them: a number counts by its value, a set in a fixed order, and
attributes by name.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import (
    Item,
    Key,
    TypedValue,
    canonical,
    distinct_bytes,
    to_json,
)
from keyhop.template import Unmappable, why_no_key

Kind = Literal["bijective", "recoverable"]


@dataclass(frozen=True, slots=True)
class KeyNames:
    """The names of a table's primary key: the partition key's, and the sort key's if it has one."""

    partition: str
    sort: str | None = None

    @classmethod
    def of_schema(cls, schema: KeySpace) -> "KeyNames":
        (partition,) = schema.partition
        return cls(partition.name, None if schema.sort is None else schema.sort.name)

    @property
    def all(self) -> tuple[str, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    def of(self, item: Item) -> Key:
        """Return the primary key of an item, or raise KeyError if the item lacks it."""
        return {name: item[name] for name in self.all}


class Transform(ABC):
    """One direction of a re-key. It is bijective if the place alone determines the owner, so that
    no two items contend for a place, and recoverable if `owner_attributes` are needed as well.
    """

    source: KeyNames
    destination: KeyNames
    kind: Kind
    owner_attributes: Sequence[str]
    """The attributes of a destination item, beside its key, that identify its owner."""

    @abstractmethod
    def forward(self, item: Item) -> Item | None:
        """Return the destination item, or None for an excluded item, or raise Unmappable."""

    @abstractmethod
    def back(self, item: Item) -> Item | None:
        """Return the source item, or None if it has no source item, or raise Unmappable."""

    @property
    def key_attributes(self) -> Mapping[str, Sequence[str]] | None:
        """The attributes of a source item whose whole values make up the new key, by the new key's
        attributes; None if the new key contains anything else, or if it is unknown.
        """
        return None

    @property
    @abstractmethod
    def reverse(self) -> "Transform":
        """Return the other direction: its `forward` is `back`."""

    def place_of(self, item: Item) -> Key | None:
        """Return the place of a source item, or None for an excluded item, or raise Unmappable."""
        mapped = self.forward(item)
        return None if mapped is None else self.destination.of(mapped)

    def owner_of(self, item: Item) -> Key | None:
        """Return the source item's key of a destination item; None if it has no source item."""
        try:
            source = self.back(item)
        except Unmappable:
            return None
        return None if source is None else self.source.of(source)


def check_key(names: KeyNames, item: Item) -> None:
    """Raise Unmappable for a key that DynamoDB would not accept."""
    for name, is_sort_key in zip(names.all, (False, True), strict=False):
        if wrong := why_no_key(item.get(name), is_sort_key):
            raise Unmappable(f"{name!r} {wrong}")


def possible_key(names: KeyNames, types: Mapping[str, str | None], item: Item) -> Key:
    """Return the primary key of an item, or raise Unmappable for a key that DynamoDB would not
    accept in a table whose key has these types.
    """
    check_key(names, item)
    for name in names.all:
        if types[name] not in item[name]:
            raise Unmappable(f"{name!r} is a key of type {types[name]}")
    return names.of(item)


_KEY_TEXT = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

DIGEST_BYTES = 16
"""With this size, two unequal items among 1e10 have the same digest with a probability of 1e-19."""


def key_text(key: Key) -> str:
    """Return a key as JSON text, which is the same for equal keys."""
    plain = to_json({name: dict([canonical(value)]) for name, value in key.items()})
    return _KEY_TEXT(plain)


def key_digest(key: Key) -> bytes:
    """Return a digest that can be shown instead of a primary key, as keys are personal data."""
    return _digest(b"".join(_named(name, distinct_bytes(key[name])) for name in sorted(key)))


def item_digest(item: Item) -> bytes:
    """Return the digest of a whole item."""
    return _digest(_members(item))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def _members(item: Item) -> bytes:
    return b"".join(_named(name, _bytes(item[name])) for name in sorted(item))


def _named(name: str, content: bytes) -> bytes:
    encoded = name.encode()
    return b"%d:%b%b" % (len(encoded), encoded, content)


def _bytes(value: TypedValue) -> bytes:
    """Return an encoding that no other value's encoding is equal to or begins with."""
    ((type_, content),) = value.items()
    if type_ in ("S", "N", "B"):
        return distinct_bytes(value)
    if type_ in ("SS", "NS", "BS"):
        parts = sorted(distinct_bytes({type_[0]: member}) for member in content)
    elif type_ == "L":
        parts = [_bytes(member) for member in content]
    elif type_ == "M":
        return b"M%d:%b" % (len(content), _members(content))
    else:
        return b"BOOL1;" if type_ == "BOOL" and content else type_.encode() + b"0;"
    return b"%b%d:%b" % (type_.encode(), len(parts), b"".join(parts))
