"""Map the items of a table to another primary key, and back, by a template or a pair of functions.

A *source* item has its *destination* item. A *place* is a primary key of the destination. The
*owner* of a destination item is the primary key of the source item from which it is made. Pure.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item, Key
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
