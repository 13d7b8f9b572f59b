"""Try a transform on items, and count the results. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.values import (
    MOST_ITEM_BYTES,
    Item,
    Key,
    canonical,
    has_values,
    same_item,
    size_of,
)
from keyhop.rekey.transform import Transform
from keyhop.template import Unmappable

EXAMPLES = 10
_Frozen = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Collisions:
    """Pairs of items that map to one place: "none" if the transform excludes them, or an
    "estimate", or "counted". `at_most` is its upper limit (95 %), or None for too small a sample.
    """

    how: str
    pairs: float = 0.0
    at_most: float | None = 0.0


@dataclass(slots=True)
class Trial:
    """The results of a transform on a sample of the source, which skips sentinels of a key index.

    Attributes:
        indexes: Keys of the destination's global indexes, by name.
        unmappable: Unmappable items by the reason, which contains no values.
        not_back: Items that are not equal after the way back.
        write_units: The units to put all items; `index_units` are those of their indexes.
        source_counts: Items by partition key of the source.
        places: By each place, the collections of the items that map to it.
        not_there: By attribute of the destination's key, items that do not already have its value
            under its name.
        types: By attribute of the items that an index could have in its key, the types of its
            values; "" for an item without it.
        before: By index, items that are in it in the source; `entered`: in the destination.
    """

    transform: Transform
    indexes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ours: Key | None = None
    items: int = 0
    left_out: int = 0
    unmappable: Counter[str] = field(default_factory=Counter)
    not_back: int = 0
    too_large: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    write_units: float = 0.0
    index_units: float = 0.0
    source_counts: Counter[_Frozen] = field(default_factory=Counter)
    new_collections: Counter[_Frozen] = field(default_factory=Counter)
    places: dict[_Frozen, list[_Frozen]] = field(default_factory=dict)
    not_there: Counter[str] = field(default_factory=Counter)
    types: dict[str, Counter[str]] = field(init=False)
    before: Counter[str] = field(default_factory=Counter)
    entered: Counter[str] = field(default_factory=Counter)
    firsts: list[tuple[Item, Item]] = field(default_factory=list)
    others: list[tuple[Item, Item]] = field(default_factory=list)

    def __post_init__(self) -> None:
        composed = (self.transform.key_attributes or {}).values()
        names = (*self.transform.destination.all, *chain.from_iterable(composed))
        self.types = {name: Counter() for name in names}

    def add(self, items: Iterable[Item]) -> "Trial":
        """Try these items too."""
        for item in items:
            self._try(item)
        return self

    @property
    def collections(self) -> int:
        """Return the number of the source's collections in the sample."""
        return len(self.source_counts)

    @property
    def mapped(self) -> int:
        return self.items - self.left_out - sum(self.unmappable.values())

    @property
    def examples(self) -> list[tuple[Item, Item]]:
        """Return items before and after, of as many collections as possible."""
        return [*self.firsts, *self.others][:EXAMPLES]

    @property
    def pairs(self) -> tuple[int, int]:
        """Return the pairs that map to one place, within a source collection and between two."""
        within = between = 0
        for wanting in self.places.values():
            same_collection = sum(count * (count - 1) // 2 for count in Counter(wanting).values())
            within += same_collection
            between += len(wanting) * (len(wanting) - 1) // 2 - same_collection
        return within, between

    def _try(self, item: Item) -> None:
        if self.ours is not None and has_values(item, self.ours):
            return
        self.items += 1
        self.bytes_before += size_of(item)
        collection = _frozen([item[self.transform.source.partition]])
        self.source_counts[collection] += 1
        for name, keys in self.indexes.items():
            self.before[name] += _has(item, keys)
        try:
            mapped = self.transform.forward(item)
        except Unmappable as error:
            self.unmappable[str(error)] += 1
            return
        if mapped is None:
            self.left_out += 1
            return
        self._count(item, mapped)
        examples = self.firsts if self.source_counts[collection] == 1 else self.others
        if len(examples) < EXAMPLES:
            examples.append((item, mapped))

    def _count(self, item: Item, mapped: Item) -> None:
        place = self.transform.destination.of(mapped)
        size = size_of(mapped)
        units = write_units(size)
        self.bytes_after += size
        self.write_units += units
        self.too_large += size > MOST_ITEM_BYTES
        self.not_back += not self._comes_back(item, mapped)
        collection = _frozen([item[self.transform.source.partition]])
        self.places.setdefault(_frozen(place.values()), []).append(collection)
        self.new_collections[_frozen([place[self.transform.destination.partition]])] += 1
        for name, types in self.types.items():
            types[next(iter(item.get(name, {"": ""})))] += 1
        for name, value in place.items():
            self.not_there[name] += name not in item or not _equal(item[name], value)
        for name, keys in self.indexes.items():
            if _has(mapped, keys):
                self.entered[name] += 1
                self.index_units += units  # as if it held all attributes: at most that

    def _comes_back(self, item: Item, mapped: Item) -> bool:
        try:
            restored = self.transform.back(mapped)
        except Unmappable:
            return False
        return restored is not None and same_item(restored, item)


def estimated(trial: Trial, share: float) -> Collisions:
    """Estimate the collisions of all items, from a sample of that share of whole collections."""
    if trial.transform.kind == "bijective":
        return Collisions("none")
    within, between = trial.pairs
    if share == 1.0:
        return Collisions("counted", within + between, within + between)
    if not trial.items:
        return Collisions("estimate", 0.0, None)
    # A pair of one collection is drawn with it; of two collections, both must be drawn.
    pairs = within / share + between / share**2
    upper = _most(within) / share + _most(between) / share**2
    return Collisions("estimate", round(pairs), round(upper))


def _most(count: int) -> float:
    """Return the upper limit for a count with 95 % probability (normal; 3 for none)."""
    return 3.0 if count == 0 else count + 2 * math.sqrt(count) + 2


def _has(item: Item, keys: Sequence[str]) -> bool:
    return all(key in item for key in keys)


def _equal(first: Any, second: Any) -> bool:
    return next(iter(first)) in "SNB" and canonical(first) == canonical(second)


def _frozen(values: Iterable[Any]) -> _Frozen:
    return tuple(canonical(value) for value in values)
