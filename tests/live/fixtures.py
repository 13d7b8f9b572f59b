"""The suite's tables: their names, key schemas, items and keys. Nothing here talks to a service."""

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
"""Of the table `scheduled`."""
FEATURE = {"sk": "#feature", "plan": "free"}
"""The item that ForEachKey puts for each key of the table `each`."""

LARGE_ITEMS = 300
LARGE_FILLING = 3_700
"""1.1 MB: more than one page of 1 MB; each item under 4 KB, so that reading it costs 0.5."""

MANY_SIZES = [1, 6, 1, 25, 2] * 60
MANY_FILLING = 300
KEPT_SIZES = [1, 6, 1, 25, 2] * 8
WIDE_KEYS = 7_000
WIDE_BYTES = 2_000
"""Of a random partition key: together, packed, above 8 MB."""
PLAIN_ITEMS = 300
ORDERS = 300
TENANTS = 7
WRITE_BLOCK_BYTES = 1024
NUMBER_BYTES = 21
SMALL_CAPACITY = 5
KEPT_CAPACITY = 25
"""Of provisioned tables, for reads and for writes."""


@dataclass(frozen=True)
class Fixture:
    """One table. shape: hops, plain, index, many, kept, wide, days, orders, empty or full, which is
    empty, and has all indexes but one that a table may have.

    capacity: provisioned units, for reads and for writes; None: on demand. streams: from the
    beginning. key: the customer-managed key it is encrypted with.
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
        """Whether it has the index INDEX, by attribute `day`."""
        return self.shape == "index"

    @property
    def indexes(self) -> dict[str, str]:
        """The names of its indexes, each with the attribute that is its partition key."""
        if self.shape == "full":
            return {f"by-sort-key-{number}": "sk" for number in range(1, MOST_INDEXES)}
        return {INDEX: "day"} if self.has_index else {}

    @property
    def label(self) -> str:
        """The name without what all have in common."""
        return self.name.rpartition(COMMON)[2]

    @cached_property
    def items(self) -> list[dict[str, Any]]:
        """All items."""
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


@dataclass(frozen=True)
class OfOwnStack:
    """The tables that only a stack of the suite's own may touch.

    shards: the metadata of `hot`. days: for a report; its partition keys are dates. orders: for a
    re-key, to `by_tenant`, which the re-key makes. scheduled: its keys are listed by a schedule.
    enclosed: its keys are listed from a VPC without a route to the internet. twice: is replaced by
    another table of its name. full: gets its last index, and a vector index. quick: is loaded by
    the check of a worker's speed.
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
        """key: the customer-managed one, where there are any."""
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
        """Those that the suite makes by itself, and not the stack."""
        others = [] if stack_makes_tables else [self.shards]
        further = [self.each, self.days, self.orders, self.scheduled, self.enclosed, self.twice]
        further += [self.full, self.quick]
        sharded = [self.hot, self.small, self.small_shards, *others]
        return [*self.kept, self.wide, *sharded, *further]

    def context(self) -> list[dict[str, Any]]:
        """What the context says of those that the deployment may touch."""
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


def _days() -> Iterator[dict[str, Any]]:
    """Items of 336 days, by whose date they are partitioned: rule A3 of a report."""
    for month, day in product(range(1, 13), range(1, 29)):
        for number in range(2):
            yield {"pk": {"S": f"2025-{month:02}-{day:02}"}, "sk": {"S": f"{number:06}"}}


def order(number: int) -> dict[str, Any]:
    """An item of the table `orders`."""
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
