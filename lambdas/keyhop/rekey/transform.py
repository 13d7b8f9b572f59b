"""From the items of a table to the same under another primary key, and back: what a template or a
pair of functions comes to.

Words: a *source* item has its *destination* item; a *place* is a primary key of the destination;
the *owner* of a destination item is the primary key of the source item that it is made of. Pure.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key, value_bytes

Kind = Literal["bijective", "recoverable"]

MOST_KEY_BYTES = (2048, 1024)
"""Of a partition key and of a sort key (AWS documentation)."""


class Unmappable(ValueError):
    """An item that has no form under the other key; the message says why, and holds no value."""


@dataclass(frozen=True, slots=True)
class KeyNames:
    """Names of a table's primary key: the partition key's, and the sort key's if it has one."""

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
        """The primary key of an item; KeyError if it lacks it."""
        return {name: item[name] for name in self.all}


class Transform(ABC):
    """One direction. kind: bijective if the place alone determines the owner, so that no two items
    contend for a place. Of a recoverable one, the place and `owner_attributes` do.

    source, destination: the primary keys' names on the two sides.
    """

    source: KeyNames
    destination: KeyNames
    kind: Kind
    owner_attributes: Sequence[str]
    """Attributes of a destination item, beside its key, from which its owner is told."""

    @abstractmethod
    def forward(self, item: Item) -> Item | None:
        """The destination item; None if this item is left out on purpose. Raises Unmappable."""

    @abstractmethod
    def back(self, item: Item) -> Item | None:
        """The source item of a destination item; None if it is none of ours. Raises Unmappable."""

    @property
    @abstractmethod
    def reverse(self) -> "Transform":
        """The other direction: its `forward` is `back`."""

    def place_of(self, item: Item) -> Key | None:
        """Where a source item lies in the destination; None if nowhere. Raises Unmappable."""
        there = self.forward(item)
        return None if there is None else self.destination.of(there)

    def owner_of(self, item: Item) -> Key | None:
        """The primary key of the source item of a destination item; None if it is none of ours."""
        try:
            here = self.back(item)
        except Unmappable:
            return None
        return None if here is None else self.source.of(here)


def check_key(names: KeyNames, item: Item) -> None:
    """Raises Unmappable for a key that the service would not take."""
    for name, most in zip(names.all, MOST_KEY_BYTES, strict=False):
        value = item.get(name, {})
        text = value.get("S")
        if text and len(text) * 4 <= most:
            continue
        if value.keys().isdisjoint(("S", "N", "B")):
            raise Unmappable(f"{name!r} is a key, and would be missing")
        size = value_bytes(value)
        if not size:
            raise Unmappable(f"{name!r} is a key, and would be empty")
        if size > most:
            raise Unmappable(f"{name!r} would have {size:,} bytes; {most:,} are most")
