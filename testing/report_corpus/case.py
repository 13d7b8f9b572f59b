"""The declaration of a table of the corpus: its data, its traffic, and the expected findings.

Times are seconds before `now`, the time of the report. Attribute values are plain Python values;
`typed` converts them to DynamoDB's JSON. All random numbers come from a `Random` that is seeded
with the case's name.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Literal
from zlib import crc32

Item = dict[str, Any]
Rule = tuple[str, str]
"""A rule's id and target, such as ("A9", "byStatus"); ("A1", "") for the table itself."""

Kind = Literal["planted", "clean", "decoy", "real"]
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    partition: str
    sort: str | None = None
    local: bool = False
    projection: str = "ALL"
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """The keys of a table and its indexes; an attribute is written as "name" or "name:N"."""

    partition: str = "pk"
    sort: str | None = None
    indexes: tuple[Index, ...] = ()
    ttl: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A record in the shard of its partition key, with its old and new images (or None)."""

    ago: float
    old: Item | None
    new: Item | None

    @property
    def event(self) -> str:
        return "INSERT" if self.old is None else "REMOVE" if self.new is None else "MODIFY"


SHARDS = 6


def shard_of(partition: Any) -> int:
    """Return the shard of the stream with the records of a partition key."""
    return crc32(str(partition).encode()) % SHARDS


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of CloudWatch's AWS/DynamoDB over the last `days`, as a sum (or samples) per minute.

    Attributes:
        per_minute: The value in a busy minute.
        busy: The busy minutes of a day, as [first, last).
        since: The age of the last data point in seconds.
        every_days: The interval in days between days with data.
    """

    name: str
    per_minute: float
    index: str = ""
    operation: str = ""
    busy: tuple[int, int] = (0, 1440)
    days: float = 14.0
    since: float = 0.0
    every_days: int = 1


@dataclass(frozen=True, slots=True)
class Contributor:
    """A key of Contributor Insights, with its units per minute over so many minutes.

    The kind is that in the names of the rules: PKC, PKT, SKC or SKT.
    """

    kind: Literal["PKC", "PKT", "SKC", "SKT"]
    key: tuple[Any, ...]
    per_minute: float
    minutes: int = 30
    index: str = ""
    ago: float = 600.0


Application = Callable[[Any, str, Random], None]
"""The user's application, which gets a boto3 client and the table's name.

The request sampler observes it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A table of the corpus.

    Any finding that is neither in `found` nor in `allowed` is false.

    Attributes:
        found: The rules that a report must find.
        allowed: The rules that it may find, up to `low`, each with the reason.
        traps: The rules that a decoy tempts it to find, each with the reason why that is wrong.
        code: The files of the user's code.
        overlay: Fields to add to the answer of DescribeTable.
        virtual: The collections of a table in the stand-in, which generates items on demand.
    """

    name: str
    kind: Kind
    schema: Schema
    items: Callable[[Random, float], Iterable[Item]] | None = None
    found: frozenset[Rule] = frozenset()
    allowed: Mapping[str, str] = field(default_factory=dict)
    traps: Mapping[Rule, str] = field(default_factory=dict)
    stream: Callable[[Random, float, list[Item]], Iterable[Write]] | None = None
    metrics: tuple[Metric, ...] = ()
    insights: tuple[Contributor, ...] = ()
    application: Application | None = None
    code: Mapping[str, str] = field(default_factory=dict)
    overlay: Mapping[str, Any] = field(default_factory=dict)
    virtual: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    slow: bool = False

    def chance(self) -> Random:
        return Random(self.name)


def rules(*names: str) -> frozenset[Rule]:
    """Return the rules; "A9 byStatus" is A9 of the index byStatus, and "A1" is A1 of the table."""
    return frozenset((name.partition(" ")[0], name.partition(" ")[2]) for name in names)


def typed(value: Any) -> dict[str, Any]:
    """Return a plain value as DynamoDB's JSON."""
    match value:
        case bool():
            return {"BOOL": value}
        case None:
            return {"NULL": True}
        case str():
            return {"S": value}
        case int() | float() | Decimal():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case list() | tuple():
            return {"L": [typed(member) for member in value]}
        case dict():
            return {"M": item_json(value)}
        case set() | frozenset():
            return {"SS": sorted(value)}
    raise TypeError(type(value))


def item_json(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: typed(value) for name, value in item.items()}


ALL: dict[str, Case] = {}
"""The cases by name; the modules of tables/ add theirs when they are imported."""


def case(name: str, kind: Kind, schema: Schema, **more: Any) -> Case:
    """Declare a table; `found` and the keys of `traps` are strings for `rules`."""
    more["found"] = rules(*more.get("found", ()))
    more["traps"] = {
        next(iter(rules(text))): reason for text, reason in more.get("traps", {}).items()
    }
    if name in ALL:
        raise ValueError(f"{name} is declared twice")
    ALL[name] = Case(name, kind, schema, **more)
    return ALL[name]


def table(
    name: str, kind: Kind, schema: Schema, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a table whose items the decorated function returns."""

    def declare(items: Callable[..., Any]) -> Callable[..., Any]:
        case(name, kind, schema, items=items, **more)
        return items

    return declare


# Fields to add to the answer of DescribeTable


def provisioned(reads: int, writes: int) -> dict[str, Any]:
    return {
        "BillingModeSummary": {"BillingMode": "PROVISIONED"},
        "ProvisionedThroughput": {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes},
    }


def at_most(reads: int, writes: int) -> dict[str, Any]:
    return {"OnDemandThroughput": {"MaxReadRequestUnits": reads, "MaxWriteRequestUnits": writes}}


def warm(reads: int, writes: int) -> dict[str, Any]:
    sizes = {"ReadUnitsPerSecond": reads, "WriteUnitsPerSecond": writes, "Status": "ACTIVE"}
    return {"WarmThroughput": sizes}
