"""The work that the benchmark of the key index measures: several kinds of users' writes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.units import SENTINEL_WRITE_UNITS
from keyhop.dynamodb.usage import Usage
from keyhop.streams.event_source import SETTINGS

DEPLOYED, ALONE = "Bench", "Alone"
"""The tables of the deployed keeper, and of the one in this process."""

KEYS, ITEMS, ITEM_BYTES = 1_000, 20, 500
BACKLOG = 600
ROUNDS = 2
SINGLES = 50
WARM_UP = 100
DELAYS = 100
BATCH = SETTINGS["BatchSize"]
LANES = SETTINGS["ParallelizationFactor"]
WORKER_SECONDS = "30"
DELIVERY_SECONDS = 60.0
LONGEST_SECONDS = 100.0
LOOK_SECONDS = 0.002
SEED = 7

Requests = Iterator[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of users' writes.

    Attributes:
        expected: the RRU and WRU that the service should charge for each write
    """

    title: str
    requests: Callable[[int], Requests]
    expected: tuple[float, float]


def puts(name: str, sort: str, filling: str = "x") -> Callable[[int], Requests]:
    """Return a function of a count, which makes puts of so many items into separate collections."""
    item = {"sk": {"S": sort}, "d": {"S": filling * 400}}
    return lambda count: (
        {"PutRequest": {"Item": {"pk": {"S": f"{name}{number:06}"}, **item}}}
        for number in range(count)
    )


def _deletes(name: str, sort: str) -> Callable[[int], Requests]:
    return lambda count: (
        {"DeleteRequest": {"Key": {"pk": {"S": f"{name}{number:06}"}, "sk": {"S": sort}}}}
        for number in range(count)
    )


KINDS = (
    Kind("insert into an old collection", puts("k", "more"), (1.0, 0.0)),
    Kind("modification", puts("k", "more", "y"), (0.0, 0.0)),
    Kind("delete, other items remain", _deletes("k", "more"), (1.0, 0.0)),
    Kind("insert into a new collection", puts("new", "a"), (3.0, 2.0)),
    Kind("delete of the last item", _deletes("new", "a"), (2.0, 2.0)),
)
"""The kinds are executed in this order, so the table is the same at the end."""


@dataclass
class Work:
    """The work of a keeper for the writes of one kind: users' writes, seconds, calls, units."""

    kind: Kind
    writes: int
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def rate(self) -> float:
        """Return the users' writes a second."""
        return self.writes / self.seconds

    @property
    def charged_writes(self) -> float:
        """Return the write units that the service charges for the table and for the index."""
        return SENTINEL_WRITE_UNITS * (self.usage.counters["put"] + self.usage.counters["deleted"])
