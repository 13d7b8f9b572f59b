"""What a person asks of BuildKeyIndex, AuditKeyIndex and RemoveKeyIndex: their inputs. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal

from keyhop.checks import STARTED_BY, Must, Truth, number, read, text, whole
from keyhop.jobs.request import Request
from keyhop.key_index.protocol import GRACE_SECONDS
from keyhop.key_index.task import LONGEST_GRACE_SECONDS, Kind, Walk

DEFAULT_WRITE_RATE = 1000.0
"""Write units a second: 500 sentinels."""

Action = Literal["build", "audit", "remove"]
LIKE = '{"table": "Orders"}'
MOST_RATE = 1e6
MOST_CONCURRENCY = 10_000


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asks for: what all three take, and what is so where it is not asked for."""

    action: ClassVar[Action]
    plan_only = False
    repair = True
    scheduled = False
    sweep = False

    table: Annotated[str, Must(text(), f"the name or the ARN of a table, as {LIKE}")]
    max_write_rate: Annotated[
        float, Must(number(2, MOST_RATE), f"a number from 2 to {MOST_RATE:g}", float)
    ] = DEFAULT_WRITE_RATE
    max_read_rate: Annotated[
        float | None, Must(number(1, MOST_RATE), f"a number from 1 to {MOST_RATE:g}")
    ] = None
    max_concurrency: Annotated[
        int | None,
        Must(whole(1, MOST_CONCURRENCY), f"a whole number from 1 to {MOST_CONCURRENCY}", int),
    ] = None
    grace_seconds: Annotated[
        float,
        Must(
            number(0, LONGEST_GRACE_SECONDS), f"a number from 0 to {LONGEST_GRACE_SECONDS:g}", float
        ),
    ] = GRACE_SECONDS

    @staticmethod
    def parse(action: Action, given: object) -> "Order":
        """From an execution's input; raises InvalidInput, which names all that is wrong."""
        return read(ORDERS[action], given, LIKE)

    def walk(self, kind: Kind, grace_seconds: float | None = None) -> Walk:
        """One walk of it."""
        grace = self.grace_seconds if grace_seconds is None else grace_seconds
        return Walk(kind, self.repair, grace, self.max_write_rate)

    def run_input(self, walk: Walk, started_by: str) -> dict[str, Any]:
        """The input of WalkKeyIndexes for a walk."""
        given = {
            "table": self.table,
            "walk": asdict(walk),
            "maxReadRate": self.max_read_rate,
            "maxConcurrency": self.max_concurrency,
            STARTED_BY: started_by,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Build(Order):
    """The input of BuildKeyIndex."""

    action = "build"
    plan_only: Truth = False


@dataclass(frozen=True, slots=True)
class Audit(Order):
    """The input of AuditKeyIndex. scheduled: nobody asked, so a table without a key index is none
    of an audit's business.
    """

    action = "audit"
    repair: Truth = True
    scheduled: Truth = False


@dataclass(frozen=True, slots=True)
class Remove(Order):
    """The input of RemoveKeyIndex. sweep: look for sentinels also where no index is known."""

    action = "remove"
    sweep: Truth = False


ORDERS: Mapping[str, type[Order]] = {"build": Build, "audit": Audit, "remove": Remove}


@dataclass(frozen=True, slots=True)
class WalkInput:
    """The input of WalkKeyIndexes, which only the three state machines give."""

    table: Annotated[str, Must(text(), "the name or the ARN of a table")]
    walk: Annotated[
        Any,
        Must(
            lambda value: (
                isinstance(value, Mapping)
                and set(value) == set(Walk.__annotations__)
                and value["kind"] in ORDERS
            ),
            "what the state machines of the key index make of their own inputs",
        ),
    ]
    max_read_rate: Annotated[float | None, Must(number(0), "a number")] = None
    max_concurrency: Annotated[int | None, Must(whole(1), "a whole number", int)] = None


def parse_walk(given: object) -> Request:
    """The request in an execution's input of WalkKeyIndexes; raises InvalidInput."""
    wanted = read(WalkInput, given, LIKE)
    return Request(
        table=wanted.table,
        task="key_index",
        options={"walk": asdict(Walk(**wanted.walk))},
        max_read_rate=wanted.max_read_rate,
        max_concurrency=wanted.max_concurrency,
    )
