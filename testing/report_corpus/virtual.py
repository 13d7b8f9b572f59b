"""Tables of gigabytes that nobody has loaded: their items are made as they are read."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from keyhop.dynamodb.values import size_of

from testing.report_corpus.case import Item, Schema, item_json
from testing.report_corpus.words import iso
from testing.simulation.tables import Table, hash_of


@dataclass(frozen=True, slots=True)
class Giant:
    key: str
    items: int


@dataclass(frozen=True, slots=True)
class Collections:
    """`count` collections of some `mean` items each (half to one and a half), and giants.

    item: attributes beside the key, of a key, a number in the collection, and a time, which rises
    with the number. span: the times, from and to, in seconds before now.
    """

    count: int
    mean: int
    item: Callable[[str, int, float], Item]
    span: tuple[float, float]
    giants: tuple[Giant, ...] = ()
    key: Callable[[int, int], str] = lambda number, chance: f"TENANT#{chance:016x}{number}"
    """Of the number of a collection, and 64 bits of chance."""
    sort: Callable[[str, int, float], str] = lambda key, number, at: iso(at)
    """As `item`, the sort key alone: places are found by it."""

    def sizes(self) -> dict[str, int]:
        chance = 88_172_645
        sizes = {}
        for number in range(self.count):
            chance = chance * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (1 << 64) - 1
            share = 0.5 + (chance >> 32) / (1 << 32)
            sizes[self.key(number, chance)] = max(1, round(self.mean * share))
        return sizes | {one.key: one.items for one in self.giants}


def few(
    sizes: Mapping[str, int],
    item: Callable[[str, int, float], Item],
    span: tuple[float, float],
    sort: Callable[[str, int, float], str] = lambda key, number, at: iso(at),
) -> Collections:
    """Return collections of exactly these partition keys and sizes, and no others."""
    giants = tuple(Giant(key, items) for key, items in sizes.items())
    return Collections(0, 0, item, span, giants, sort=sort)


class Place(tuple):  # type: ignore[type-arg]
    """A place in scan order, which knows whose it is: (hash, partition, sort) and `number`."""

    key: str
    number: int


@dataclass
class Places(Sequence[Any]):
    """All places in scan order; also the mapping of each to its item."""

    collections: Collections
    now: float
    keys: list[str] = field(init=False)
    hashes: list[int] = field(init=False)
    ends: list[int] = field(init=False)
    sizes: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.collections.sizes()
        places = sorted((hash_of((key.encode(),)), key) for key in self.sizes)
        self.hashes = [place for place, _ in places]
        self.keys = [key for _, key in places]
        self.ends = list(accumulate(self.sizes[key] for key in self.keys))

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, at: Any) -> Place:
        which = bisect_right(self.ends, at)
        number = at - (self.ends[which - 1] if which else 0)
        key = self.keys[which]
        sort = self.collections.sort(key, number, self.at(key, number))
        place = Place((self.hashes[which], (key.encode(),), (sort.encode(),)))
        place.key, place.number = key, number
        return place

    def item(self, key: str, number: int) -> Item:
        at = self.at(key, number)
        sort = self.collections.sort(key, number, at)
        return {"pk": key, "sk": sort, **self.collections.item(key, number, at)}

    def at(self, key: str, number: int) -> float:
        """When it was written: in the span, and later than those with lower numbers."""
        began, ended = (self.now - ago for ago in self.collections.span)
        chance = (number * 2_654_435_761 + len(key)) % 997 / 1_000
        return began + (ended - began) * (number + chance) / self.sizes[key]


@dataclass(frozen=True)
class Made(Mapping[Any, Any]):
    """From place to item."""

    places: Places

    def __getitem__(self, place: Any) -> Mapping[str, Any]:
        if not isinstance(place, Place):
            raise KeyError(place)
        return item_json(self.places.item(place.key, place.number))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def virtual_table(request: Mapping[str, Any], collections: Collections, now: float) -> Table:
    """A table for the stand-in's Service.tables; it is read, and never written."""
    table = Table(request)
    places = Places(collections, now)
    table.base.places, table.base.items = places, Made(places)  # type: ignore[assignment]
    example = item_json(places.item(places.keys[0], 0))
    table.reported = (len(places), len(places) * size_of(example))
    return table


def index_sizes(schema: Schema, collections: Collections, now: float) -> dict[str, dict[str, int]]:
    """What DescribeTable says of its LSIs: entries, and bytes with their 100 of overhead."""
    places = Places(collections, now)
    example = places.item(places.keys[0], 0)
    told = {}
    for index in schema.indexes:
        names = {"pk", "sk", index.sort, *index.include}
        kept = (
            example if index.projection == "ALL" else {n: example[n] for n in names & set(example)}
        )
        told[index.name] = {
            "ItemCount": len(places),
            "IndexSizeBytes": len(places) * (size_of(item_json(kept)) + 100),
        }
    return told
