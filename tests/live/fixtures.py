"""The suite's tables: their names, key schemas, items and keys. This module sends no requests."""

import base64
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any

from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.units import MOST_INDEXES, UNITS_PER_BLOCK, blocks_of
from keyhop.dynamodb.values import KeyType
from keyhop.rekey.pair import SIDE_SUFFIX

from testing.databases import EXTREMES, partition_value

TYPES: tuple[KeyType, ...] = ("S", "N", "B")
COMMON = "keyhop-live-"
INDEX = "by-day"
DAYS = 9

SCHEDULE = "rate(10 minutes)"
"""The schedule of the table `scheduled`."""
FEATURE = {"sk": "#feature", "plan": "free"}
"""The item that ForEachKey puts for each key of the table `each`."""

LARGE_ITEMS = 300
LARGE_FILLING = 3_700
"""The items have 1.1 MB together, more than a page, and less than 4 KB each, for 0.5 RRU."""

MANY_SIZES = [1, 6, 1, 25, 2] * 60
MANY_FILLING = 300
KEPT_SIZES = [1, 6, 1, 25, 2] * 8
WIDE_KEYS = 7_000
WIDE_BYTES = 2_000
"""The length of a random partition key. Compressed, all of them have more than 8 MB."""
PLAIN_ITEMS = 300
ORDERS = 300
TENANTS = 7
WRITE_BLOCK_BYTES = 1024
NUMBER_BYTES = 21
SMALL_CAPACITY = 5
KEPT_CAPACITY = 25
"""The read and write units of provisioned tables with a key index."""


@dataclass(frozen=True)
class Fixture:
    """A table.

    Attributes:
        shape: hops, plain, index, many, kept, wide, days, orders, empty, or full, which has no
            items, and one index less than the maximum.
        capacity: The provisioned read and write units; None for on demand.
        streams: Whether the table has a stream from the beginning.
        key: The customer-managed key of its encryption.
    """

    name: str
    shape: str
    partition: KeyType = "S"
    sort: KeyType | None = "S"
    capacity: int | None = None
    streams: bool = False
    key: str | None = None

    @property
    def has_index(self) -> bool:
        """True if the table has the index INDEX, whose partition key is `day`."""
        return self.shape == "index"

    @property
    def indexes(self) -> dict[str, str]:
        """The names of its indexes, each with the attribute that is its partition key."""
        if self.shape == "full":
            return {f"by-sort-key-{number}": "sk" for number in range(1, MOST_INDEXES)}
        return {INDEX: "day"} if self.has_index else {}

    @property
    def label(self) -> str:
        """The name without the prefix."""
        return self.name.rpartition(COMMON)[2]

    @cached_property
    def items(self) -> list[dict[str, Any]]:
        makers: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
            "hops": self._hops,
            "plain": _plain,
            "index": _index,
            "many": lambda: _many(MANY_SIZES),
            "kept": lambda: _many(KEPT_SIZES),
            "wide": _wide,
            "days": _days,
            "orders": _orders,
            "empty": lambda: iter(()),
            "full": lambda: iter(()),
        }
        return list(makers[self.shape]())

    @cached_property
    def keys(self) -> set[Any]:
        """The distinct partition keys, as `comparable` values."""
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
        """The write units of loading it."""
        each = 2 if self.has_index else 1
        return sum(each * -(-size_of(item) // WRITE_BLOCK_BYTES) for item in self.items)

    @property
    def full_read_units(self) -> float:
        """The read units of an eventually consistent Scan of the whole table."""
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
    """Return all tables. Their names depend on the prefix alone, for an allow-list."""
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


@dataclass(frozen=True)
class OfOwnStack:
    """The tables that only the suite's own stack may access.

    Attributes:
        shards: The metadata of `hot`.
        days: A table for a report; its partition keys are dates.
        orders: A table for a re-key, which creates `by_tenant`.
        scheduled: A table whose keys a schedule lists.
        enclosed: A table whose keys are listed from a VPC without a route to the internet.
        twice: A table that is replaced by another one with its name.
        full: A table that gets its last index, and a vector index.
        quick: A table that the check of a worker's speed loads.
    """

    kept: list[Fixture]
    wide: Fixture
    hot: Fixture
    small: Fixture
    small_shards: Fixture
    shards: Fixture
    each: Fixture
    days: Fixture
    orders: Fixture
    scheduled: Fixture
    enclosed: Fixture
    twice: Fixture
    full: Fixture
    quick: Fixture

    @classmethod
    def of(cls, prefix: str, key: str | None) -> "OfOwnStack":
        """Return the tables. `key` is the customer-managed key, if the service has such keys."""
        base = f"{prefix}{COMMON}"
        kept = [
            Fixture(f"{base}kept-off", "kept"),
            Fixture(f"{base}kept-on", "kept", streams=True),
            Fixture(f"{base}kept-small", "kept", capacity=KEPT_CAPACITY),
            *([Fixture(f"{base}kept-key", "kept", key=key)] if key else ()),
        ]
        return cls(
            kept,
            Fixture(f"{base}wide", "wide", sort=None),
            Fixture(f"{base}hot", "empty"),
            Fixture(f"{base}small", "empty", capacity=SMALL_CAPACITY),
            Fixture(f"{base}small-shards", "empty", sort=None),
            Fixture(f"{base}hot-shards", "empty", sort=None),
            Fixture(f"{base}each", "kept"),
            Fixture(f"{base}days", "days"),
            Fixture(f"{base}orders", "orders"),
            Fixture(f"{base}scheduled", "plain", sort=None),
            Fixture(f"{base}enclosed", "plain", sort=None),
            Fixture(f"{base}twice", "empty"),
            Fixture(f"{base}full", "full"),
            Fixture(f"{base}quick", "empty"),
        )

    @property
    def by_tenant(self) -> str:
        """The name of the table that the re-key of `orders` makes."""
        return f"{self.orders.name}-by-tenant"

    @property
    def made_by_rekey(self) -> list[str]:
        """The tables that the re-key makes; they have the tags of `orders`."""
        return [self.by_tenant, f"{self.by_tenant}{SIDE_SUFFIX}"]

    def made(self, stack_makes_tables: bool) -> list[Fixture]:
        """Return the tables that the suite creates, rather than the stack."""
        metadata = [] if stack_makes_tables else [self.shards]
        return [
            *(*self.kept, self.wide, self.hot, self.small, self.small_shards, *metadata),
            *(self.each, self.days, self.orders, self.scheduled, self.enclosed, self.twice),
            *(self.full, self.quick),
        ]

    def context(self) -> list[dict[str, Any]]:
        """Return the entries of the context's `tables` for the deployment."""
        sharding = {"partitionKey": "pk", "metadata": self.shards.name}
        return [
            *(
                {"table": t.name, "keyIndex": True, **({"kmsKey": t.key} if t.key else {})}
                for t in self.kept
            ),
            *({"table": t.name} for t in (self.wide, self.quick)),
            {"table": self.hot.name, "sharding": sharding},
            {"table": self.each.name, "each": {"put": True, "delete": True}},
            {"table": self.days.name, "report": True},
            {"table": self.scheduled.name, "runSchedule": SCHEDULE},
        ]


def enumerated(tables: list[Fixture]) -> list[Fixture]:
    """Return the tables that the state machine reads: all shapes, and each type of either key."""
    pairs = {("S", "N"), ("N", "B"), ("B", "S")}
    return [t for t in tables if t.shape != "hops" or (t.partition, t.sort) in pairs]


def comparable(value: Mapping[str, Any]) -> tuple[str, Any]:
    """Return a typed value in which equal numbers are equal, as the service rewrites them."""
    ((type_, content),) = value.items()
    return type_, Decimal(content) if type_ == "N" else content


def in_order(type_: KeyType) -> list[dict[str, Any]]:
    """Return EXTREMES in the order of the service, which sorts strings by their UTF-8 bytes."""
    sorters: dict[str, Any] = {"S": lambda text: text.encode(), "N": Decimal, "B": bytes}
    return [{type_: value} for value in sorted(EXTREMES[type_], key=sorters[type_])]


def ordinary_sort_value(type_: KeyType, number: int) -> Any:
    return {"S": f"{number:06}", "N": str(number), "B": b"%06d" % number}[type_]


def size_of(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the bytes of an item as the service counts them, with the maximum for a number."""
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


def _days() -> Iterator[dict[str, Any]]:
    """Return items partitioned by 336 dates, which rule A3 of a report finds."""
    for month, day in product(range(1, 13), range(1, 29)):
        for number in range(2):
            yield {"pk": {"S": f"2025-{month:02}-{day:02}"}, "sk": {"S": f"{number:06}"}}


def order(number: int) -> dict[str, Any]:
    """Return an item of the table `orders`."""
    return {
        "pk": {"S": f"USER#{number % 40}"},
        "sk": {"S": f"ORDER#{number}"},
        "tenant": {"S": str(number % TENANTS)},
    }


def _orders() -> Iterator[dict[str, Any]]:
    return map(order, range(ORDERS))


def _wide() -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    for _ in range(WIDE_KEYS):
        yield {"pk": {"S": base64.b64encode(chance.randbytes(WIDE_BYTES * 3 // 4)).decode()}}


def _many(sizes: list[int]) -> Iterator[dict[str, Any]]:
    filling = {"S": "x" * MANY_FILLING}
    for number, size in enumerate(sizes):
        for item in range(size):
            yield {"pk": {"S": f"k{number}"}, "sk": {"S": f"{item:06}"}, "filling": filling}
