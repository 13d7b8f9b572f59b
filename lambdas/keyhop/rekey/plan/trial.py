"""A transform, tried on items: what becomes of them, counted. Pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import (
    MOST_ITEM_BYTES,
    Item,
    Key,
    canonical,
    has_values,
    same_item,
    size_of,
)
from keyhop.rekey.transform import Transform, Unmappable

EXAMPLES = 10
BLOCK_BYTES = 1024
"""Of a write."""

_Frozen = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Collisions:
    """Pairs of items that want one place. how: "none" can be, by proof; "estimate"; "counted".

    at_most: of an estimate, with 95 % chance; None where a sample of that size says nothing.
    """

    how: str
    pairs: float = 0.0
    at_most: float | None = 0.0


@dataclass(slots=True)
class Trial:
    """What a sample of the source tells about a transform.

    Attributes:
        indexes: Keys of the destination's global indexes, by name.
        ours: What tells sentinels of a key index, which are not tried.
        items: Items that were tried.
        unmappable: Items without a form under the other key, by the reason, which holds no values.
        not_back: Items that the way back does not make again.
        write_units: For putting all items; `index_units`: for their indexes beside.
        source_counts: Items by partition key of the source.
        places: By each place, the collections of the items that want it.
        not_there: By attribute of the destination's key, items that do not have its value under
            its name already.
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
    before: Counter[str] = field(default_factory=Counter)
    entered: Counter[str] = field(default_factory=Counter)
    firsts: list[tuple[Item, Item]] = field(default_factory=list)
    others: list[tuple[Item, Item]] = field(default_factory=list)

    def add(self, items: Iterable[Item]) -> "Trial":
        """Try these too."""
        for item in items:
            self._try(item)
        return self

    @property
    def collections(self) -> int:
        """Of the source, of which there were items."""
        return len(self.source_counts)

    @property
    def mapped(self) -> int:
        return self.items - self.left_out - sum(self.unmappable.values())

    @property
    def examples(self) -> list[tuple[Item, Item]]:
        """Items before and after, of as many collections as there are."""
        return [*self.firsts, *self.others][:EXAMPLES]

    @property
    def pairs(self) -> tuple[int, int]:
        """Of items that want the same place: of one collection of the source, and of two."""
        within = between = 0
        for wanting in self.places.values():
            own = sum(count * (count - 1) // 2 for count in Counter(wanting).values())
            within += own
            between += len(wanting) * (len(wanting) - 1) // 2 - own
        return within, between

    def _try(self, item: Item) -> None:
        if self.ours is not None and has_values(item, self.ours):
            return
        self.items += 1
        self.bytes_before += size_of(item)
        own = _frozen([item[self.transform.source.partition]])
        self.source_counts[own] += 1
        for name, keys in self.indexes.items():
            self.before[name] += _has(item, keys)
        try:
            there = self.transform.forward(item)
        except Unmappable as error:
            self.unmappable[str(error)] += 1
            return
        if there is None:
            self.left_out += 1
            return
        self._count(item, there)
        kept = self.firsts if self.source_counts[own] == 1 else self.others
        if len(kept) < EXAMPLES:
            kept.append((item, there))

    def _count(self, item: Item, there: Item) -> None:
        place = self.transform.destination.of(there)
        size = size_of(there)
        units = float(max(1, -(-size // BLOCK_BYTES)))
        self.bytes_after += size
        self.write_units += units
        self.too_large += size > MOST_ITEM_BYTES
        self.not_back += not self._comes_back(item, there)
        own = _frozen([item[self.transform.source.partition]])
        self.places.setdefault(_frozen(place.values()), []).append(own)
        self.new_collections[_frozen([place[self.transform.destination.partition]])] += 1
        for name, value in place.items():
            self.not_there[name] += name not in item or not _equal(item[name], value)
        for name, keys in self.indexes.items():
            if _has(there, keys):
                self.entered[name] += 1
                self.index_units += units  # as if it held all attributes: at most that

    def _comes_back(self, item: Item, there: Item) -> bool:
        try:
            again = self.transform.back(there)
        except Unmappable:
            return False
        return again is not None and same_item(again, item)


def estimated(trial: Trial, share: float) -> Collisions:
    """Of all items, from a sample of that share, in which collections are whole or absent."""
    if trial.transform.kind == "bijective":
        return Collisions("none")
    within, between = trial.pairs
    if share == 1.0:
        return Collisions("counted", within + between, within + between)
    if not trial.items:
        return Collisions("estimate", 0.0, None)
    # A pair of one collection is drawn with it; of two collections, both must be drawn.
    pairs = within / share + between / share**2
    most = _most(within) / share + _most(between) / share**2
    return Collisions("estimate", round(pairs), round(most))


def _most(seen: int) -> float:
    """Of events of which so many were seen, with 95 % chance (normal, and 3 for none)."""
    return 3.0 if seen == 0 else seen + 2 * math.sqrt(seen) + 2


def _has(item: Item, keys: Sequence[str]) -> bool:
    return all(key in item for key in keys)


def _equal(one: Any, other: Any) -> bool:
    return next(iter(one)) in "SNB" and canonical(one) == canonical(other)


def _frozen(values: Iterable[Any]) -> _Frozen:
    return tuple(canonical(value) for value in values)
