"""The suite's tables: their names, key schemas, items and keys. Nothing here talks to a service."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK, blocks_of
from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.values import KeyType

from testing.databases import EXTREMES, partition_value

TYPES: tuple[KeyType, ...] = ("S", "N", "B")
COMMON = "keyhop-live-"
INDEX = "by-day"
DAYS = 9

LARGE_ITEMS = 300
LARGE_FILLING = 3_700
"""1.1 MB: more than one page of 1 MB; each item under 4 KB, so that reading it costs 0.5."""

MANY_SIZES = [1, 6, 1, 25, 2] * 60
MANY_FILLING = 300
PLAIN_ITEMS = 300
WRITE_BLOCK_BYTES = 1024
NUMBER_BYTES = 21


@dataclass(frozen=True)
class Fixture:
    """One table. shape: hops, plain, index or many."""

    name: str
    shape: str
    partition: KeyType = "S"
    sort: KeyType | None = "S"

    @property
    def has_index(self) -> bool:
        """Whether it has the index INDEX, by attribute `day`."""
        return self.shape == "index"

    @property
    def label(self) -> str:
        """The name without what all have in common."""
        return self.name.rpartition(COMMON)[2]

    @cached_property
    def items(self) -> list[dict[str, Any]]:
        """All items."""
        makers = {"hops": self._hops, "plain": _plain, "index": _index, "many": _many}
        return list(makers[self.shape]())

    @cached_property
    def keys(self) -> set[Any]:
        """Its distinct partition keys, as `comparable` values."""
        return {comparable(item["pk"]) for item in self.items}

    @property
    def large(self) -> dict[str, Any]:
        """The partition key of the collection that is larger than a page; of shape `hops`."""
        return {self.partition: partition_value(self.partition, 0)}

    @property
    def of_all_extremes(self) -> dict[str, Any]:
        """The partition key of a collection with each value of EXTREMES; of shape `hops`."""
        return {self.partition: partition_value(self.partition, 1)}

    @property
    def write_units(self) -> int:
        """What loading it costs; a deletion of the table costs nothing."""
        each = 2 if self.has_index else 1
        return sum(each * -(-size_of(item) // WRITE_BLOCK_BYTES) for item in self.items)

    @property
    def full_read_units(self) -> float:
        """What reading it through costs, eventually consistent."""
        return UNITS_PER_BLOCK * blocks_of(sum(map(size_of, self.items)))

    def _hops(self) -> Iterator[dict[str, Any]]:
        assert self.sort is not None
        for number in range(24):
            key = {self.partition: partition_value(self.partition, number)}
            if number == 0:
                filling = {"S": "x" * LARGE_FILLING}
                for item in range(LARGE_ITEMS):
                    sort = {self.sort: ordinary_sort_value(self.sort, item)}
                    yield {"pk": key, "sk": sort, "filling": filling}
            elif number < 12:
                for value in EXTREMES[self.sort]:
                    yield {"pk": key, "sk": {self.sort: value}}
            elif number < 18:  # its only item is at the greatest sort key
                yield {"pk": key, "sk": GREATEST_SORT_KEY[self.sort]}
            else:
                yield {"pk": key, "sk": {self.sort: ordinary_sort_value(self.sort, number)}}


def fixtures(prefix: str) -> list[Fixture]:
    """All tables, by names that follow from the prefix alone: they can be allow-listed before."""
    base = f"{prefix}{COMMON}"
    hops = [
        Fixture(f"{base}{partition.lower()}-{sort.lower()}", "hops", partition, sort)
        for partition, sort in product(TYPES, TYPES)
    ]
    return [
        *hops,
        Fixture(f"{base}plain", "plain", sort=None),
        Fixture(f"{base}index", "index"),
        Fixture(f"{base}many", "many"),
    ]


def enumerated(tables: list[Fixture]) -> list[Fixture]:
    """Those that the state machine reads: each key type once as either key, and all shapes."""
    pairs = {("S", "N"), ("N", "B"), ("B", "S")}
    return [t for t in tables if t.shape != "hops" or (t.partition, t.sort) in pairs]


def comparable(value: Mapping[str, Any]) -> tuple[str, Any]:
    """A typed value that equals another one of the same meaning: the service rewrites numbers."""
    ((type_, content),) = value.items()
    return type_, Decimal(content) if type_ == "N" else content


def in_order(type_: KeyType) -> list[dict[str, Any]]:
    """EXTREMES as the service sorts them: strings by their UTF-8 bytes."""
    sorters: dict[str, Any] = {"S": lambda text: text.encode(), "N": Decimal, "B": bytes}
    return [{type_: value} for value in sorted(EXTREMES[type_], key=sorters[type_])]


def ordinary_sort_value(type_: KeyType, number: int) -> Any:
    """A short sort key."""
    return {"S": f"{number:06}", "N": str(number), "B": b"%06d" % number}[type_]


def size_of(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of an item, as the service counts them; a number as its longest."""
    total = 0
    for name, value in item.items():
        ((type_, content),) = value.items()
        length = len(content.encode()) if type_ == "S" else len(content)
        total += len(name) + (NUMBER_BYTES if type_ == "N" else length)
    return total


def _plain() -> Iterator[dict[str, Any]]:
    for number in range(PLAIN_ITEMS):
        yield {"pk": {"S": f"k{number}"}, "filling": {"S": "x" * 100}}


def _index() -> Iterator[dict[str, Any]]:
    for number in range(PLAIN_ITEMS):
        day = {"S": f"d{number % DAYS}"}
        yield {"pk": {"S": f"k{number // 3}"}, "sk": {"S": f"{number:06}"}, "day": day}


def _many() -> Iterator[dict[str, Any]]:
    filling = {"S": "x" * MANY_FILLING}
    for number, size in enumerate(MANY_SIZES):
        for item in range(size):
            yield {"pk": {"S": f"k{number}"}, "sk": {"S": f"{item:06}"}, "filling": filling}
