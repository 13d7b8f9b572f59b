"""Tables of gigabytes whose items are generated on demand."""

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
    """`count` collections of 0.5 to 1.5 times `mean` items each, and giants.

    Attributes:
        item: Returns the other attributes of an item, given its key, its number in the collection,
            and its time, which increases with the number.
        span: The begin and the end of the times, in seconds before now.
        key: Returns the key of a collection, given its number and 64 random bits.
        sort: Returns the sort key of an item, with the arguments of `item`.
    """

    count: int
    mean: int
    item: Callable[[str, int, float], Item]
    span: tuple[float, float]
    giants: tuple[Giant, ...] = ()
    key: Callable[[int, int], str] = lambda number, chance: f"TENANT#{chance:016x}{number}"

    sort: Callable[[str, int, float], str] = lambda key, number, at: iso(at)

    def sizes(self) -> dict[str, int]:
        chance = 88_172_645
        sizes = {}
        for number in range(self.count):
            chance = chance * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (1 << 64) - 1
            share = 0.5 + (chance >> 32) / (1 << 32)
            sizes[self.key(number, chance)] = max(1, round(self.mean * share))
        return sizes | {giant.key: giant.items for giant in self.giants}


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
    """A place in scan order, (hash, partition, sort), with its item's key and number."""

    key: str
    number: int


@dataclass
class Places(Sequence[Any]):
    """All places in scan order."""

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
        """Return the time of an item, which is in the span and increases with the number."""
        began, ended = (self.now - ago for ago in self.collections.span)
        chance = (number * 2_654_435_761 + len(key)) % 997 / 1_000
        return began + (ended - began) * (number + chance) / self.sizes[key]


@dataclass(frozen=True)
class Items(Mapping[Any, Any]):
    """The items by their places, generated on demand."""

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
    """Return a read-only table for the stand-in's Service.tables."""
    table = Table(request)
    places = Places(collections, now)
    table.base.places, table.base.items = places, Items(places)  # type: ignore[assignment]
    example = item_json(places.item(places.keys[0], 0))
    table.reported = (len(places), len(places) * size_of(example))
    return table


def index_sizes(schema: Schema, collections: Collections, now: float) -> dict[str, dict[str, int]]:
    """Return the sizes of LSIs in DescribeTable; each entry has 100 bytes of overhead."""
    places = Places(collections, now)
    example = places.item(places.keys[0], 0)
    sizes = {}
    for index in schema.indexes:
        entry = example
        if index.projection != "ALL":
            names = {"pk", "sk", index.sort, *index.include}
            entry = {name: example[name] for name in names & set(example)}
        sizes[index.name] = {
            "ItemCount": len(places),
            "IndexSizeBytes": len(places) * (size_of(item_json(entry)) + 100),
        }
    return sizes
