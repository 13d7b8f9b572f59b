"""How a table of the corpus is declared: its data, what is seen of it, and what a report must say.

Times are seconds before `now`, the moment of the report. Attribute values are plain Python values;
`typed` writes them as DynamoDB's JSON. All chance comes from the `Random` of the case's name.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any, Literal
from zlib import crc32

Item = dict[str, Any]
Rule = tuple[str, str]
"""Id and target: ("A9", "byStatus"), ("A1", "") for the table itself."""

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
    """Key attributes as "name" or "name:N"; those of indexes too."""

    partition: str = "pk"
    sort: str | None = None
    indexes: tuple[Index, ...] = ()
    ttl: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One record of the stream. ago: seconds before now. old, new: images, None if there is none.
    Its shard is that of its partition key.
    """

    ago: float
    old: Item | None
    new: Item | None

    @property
    def event(self) -> str:
        return "INSERT" if self.old is None else "REMOVE" if self.new is None else "MODIFY"


SHARDS = 6


def shard_of(partition: Any) -> int:
    """Of the stream, where a partition key's records are: one shard has a range of hashes."""
    return crc32(str(partition).encode()) % SHARDS


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of CloudWatch's AWS/DynamoDB over the last `days`, as a sum (or samples) a minute.

    per_minute: of a busy minute. busy: which minutes of a day are, as [first, last). ago: only
    within the last so many seconds.
    """

    name: str
    per_minute: float
    index: str = ""
    operation: str = ""
    busy: tuple[int, int] = (0, 1440)
    days: float = 14.0
    since: float = 0.0
    """The last data point is so many seconds old."""
    every_days: int = 1
    """Only on every so-manieth day."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """A key of Contributor Insights with the units of its minutes. kind: PKC, PKT, SKC, SKT as in
    the rules' names. minutes: how many it lasted.
    """

    kind: Literal["PKC", "PKT", "SKC", "SKT"]
    key: tuple[Any, ...]
    per_minute: float
    minutes: int = 30
    index: str = ""
    ago: float = 600.0


Application = Callable[[Any, str, Random], None]
"""The user's application: takes a boto3 client and the table's name, and works; the request
sampler watches it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One table of the corpus.

    found: what a report must find. allowed: what it may find, up to `low`, with the reason.
    traps: what a decoy tempts it to find, with the reason that it is wrong (any finding that is
    neither in found nor in allowed is false; these are named for the matrix). known_code: files of
    the user's code. overlay: fields laid over DescribeTable's answer. virtual: the table is served
    by the stand-in, which makes its items as they are read.
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
    """ "A9 byStatus" is rule A9 of the index byStatus; "A1" is rule A1 of the table."""
    return frozenset((one.partition(" ")[0], one.partition(" ")[2]) for one in names)


def typed(value: Any) -> dict[str, Any]:
    """A plain value as DynamoDB's JSON."""
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
            return {"L": [typed(one) for one in value]}
        case dict():
            return {"M": {name: typed(one) for name, one in value.items()}}
        case set() | frozenset():
            return {"SS": sorted(value)}
    raise TypeError(type(value))


def item_json(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: typed(value) for name, value in item.items()}


ALL: dict[str, Case] = {}
"""By name; filled as the modules of tables/ are imported."""


def case(name: str, kind: Kind, schema: Schema, **more: Any) -> Case:
    """Declare a table. found: as strings, see `rules`; traps: by such strings."""
    more["found"] = rules(*more.get("found", ()))
    more["traps"] = {
        next(iter(rules(named))): reason for named, reason in more.get("traps", {}).items()
    }
    if name in ALL:
        raise ValueError(f"{name} is declared twice")
    ALL[name] = Case(name, kind, schema, **more)
    return ALL[name]


def table(
    name: str, kind: Kind, schema: Schema, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a table whose items the decorated function makes."""

    def declare(items: Callable[..., Any]) -> Callable[..., Any]:
        case(name, kind, schema, items=items, **more)
        return items

    return declare


# Fields that are laid over DescribeTable's answer


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
