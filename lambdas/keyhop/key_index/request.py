"""What a person asks of BuildKeyIndex, AuditKeyIndex and RemoveKeyIndex: their inputs. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, cast

from keyhop.checks import STARTED_BY, Check, Must, Truth, number, read, text, whole
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE, LEAST_COST
from keyhop.jobs.layout import MOST_CONCURRENCY
from keyhop.jobs.request import Request
from keyhop.key_index.index import VIEWS
from keyhop.key_index.protocol import GRACE_SECONDS
from keyhop.key_index.registry import Action
from keyhop.key_index.task import KINDS, LONGEST_GRACE_SECONDS, Kind, Walk

LIKE = '{"table": "Orders"}'
MOST_RATE = 1e6


@dataclass(frozen=True, slots=True)
class Order:
    """The input of an action, with the defaults of all three actions."""

    action: ClassVar[Action]
    plan_only = False
    stream_view = cast("str | None", None)
    region = cast("str | None", None)
    repair = True
    scheduled = False
    sweep = False
    keep_stream = False

    table: Annotated[
        str,
        Must(text(), f"the name or the ARN of a table, as {LIKE}"),
        "a table that has keyIndex in this deployment",
    ]
    max_write_rate: Annotated[
        float,
        Must(number(2, MOST_RATE), f"a number from 2 to {MOST_RATE:g}", float),
        "write units a second, for all workers together",
    ] = DEFAULT_WRITE_RATE
    max_read_rate: Annotated[
        float | None,
        Must(number(1, MOST_RATE), f"a number from 1 to {MOST_RATE:g}"),
        "read units a second, for all workers together; no limit if left out",
    ] = None
    max_concurrency: Annotated[
        int | None,
        Must(whole(1, MOST_CONCURRENCY), f"a whole number from 1 to {MOST_CONCURRENCY}", int),
        "workers at once, at most",
    ] = None
    max_cost: Annotated[
        float | None,
        Must(number(LEAST_COST), f"a number of dollars, at least {LEAST_COST:g}"),
        "refused if the upper end of the estimate, of reads and writes, is more; the deployment's "
        "maxCost if left out",
    ] = None
    grace_seconds: Annotated[
        float,
        Must(
            number(0, LONGEST_GRACE_SECONDS), f"a number from 0 to {LONGEST_GRACE_SECONDS:g}", float
        ),
        "how long the keeper may be behind before that counts as drift",
    ] = GRACE_SECONDS

    @staticmethod
    def parse(action: Action, given: object) -> "Order":
        """Parse the input of an execution; raise InvalidInput, which names everything that is
        wrong.
        """
        return read(ORDERS[action], given, LIKE)

    def walk(self, kind: Kind, grace_seconds: float | None = None) -> Walk:
        """One walk of it."""
        grace = self.grace_seconds if grace_seconds is None else grace_seconds
        return Walk(kind, self.repair, grace, self.max_write_rate)

    def run_input(self, walk: Walk, started_by: str) -> dict[str, Any]:
        """Return the input of WalkKeyIndexes for a walk. `started_by` is the holder of the
        lease.
        """
        fields = {
            "table": self.table,
            "walk": asdict(walk),
            "lease": started_by,
            "maxReadRate": self.max_read_rate,
            "maxConcurrency": self.max_concurrency,
            STARTED_BY: started_by,
        }
        return {name: value for name, value in fields.items() if value is not None}


_VIEW = Check(lambda value: value is None or value in VIEWS, {"enum": [None, *VIEWS]})


@dataclass(frozen=True, slots=True)
class Build(Order):
    """The input of BuildKeyIndex.

    stream_view: what the stream's records are to hold, if it is turned on for the keeper. region:
    of a global table, the one that puts and deletes sentinels.
    """

    action = "build"
    plan_only: Annotated[Truth, "change nothing, and end with what a build would cost"] = False
    stream_view: Annotated[
        Any,
        Must(_VIEW, f"one of {', '.join(VIEWS)}"),
        "what the stream's records hold, where the build turns it on",
    ] = None
    region: Annotated[
        Any,
        Must(text(), 'the name of a region, as {"region": "eu-west-1"}'),
        "of a global table: the region that puts and deletes sentinels",
    ] = None


@dataclass(frozen=True, slots=True)
class Audit(Order):
    """The input of AuditKeyIndex. scheduled: nobody asked, so a table without a key index is none
    of an audit's business.
    """

    action = "audit"
    repair: Annotated[Truth, "put right what is wrong; else only look"] = True
    scheduled: Annotated[Truth, "by the schedule: skip a table without a key index"] = False


@dataclass(frozen=True, slots=True)
class Remove(Order):
    """The input of RemoveKeyIndex.

    sweep: look for sentinels also where no index is known. keep_stream: leave the stream on though
    Keyhop turned it on, for readers that Lambda does not know.
    """

    action = "remove"
    sweep: Annotated[Truth, "look for sentinels also where no index is known"] = False
    keep_stream: Annotated[
        Truth, "leave on a stream that a build turned on, for readers that Lambda does not know"
    ] = False


ORDERS: Mapping[str, type[Order]] = {"build": Build, "audit": Audit, "remove": Remove}


_WALK = Check(
    lambda value: (
        isinstance(value, Mapping)
        and set(value) == set(Walk.__annotations__)
        and value["kind"] in KINDS
    ),
    {
        "type": "object",
        "properties": {"kind": {"enum": [*KINDS]}},
        "required": [*Walk.__annotations__],
        "propertyNames": {"enum": [*Walk.__annotations__]},
    },
)


@dataclass(frozen=True, slots=True)
class WalkInput:
    """The input of WalkKeyIndexes, which only the three state machines give."""

    table: Annotated[
        str, Must(text(), "the name or the ARN of a table"), "a table that has keyIndex"
    ]
    walk: Annotated[
        Any,
        Must(_WALK, "what the state machines of the key index make of their own inputs"),
        "what is done with each collection",
    ]
    lease: Annotated[
        str, Must(text(), "who holds the lease on the key index"), "the execution that began it"
    ] = ""
    max_read_rate: Annotated[
        float | None, Must(number(0), "a number"), "read units a second, for all workers together"
    ] = None
    max_concurrency: Annotated[
        int | None, Must(whole(1), "a whole number", int), "workers at once, at most"
    ] = None


def parse_walk(given: object) -> Request:
    """The request in an execution's input of WalkKeyIndexes; raises InvalidInput."""
    parsed = read(WalkInput, given, LIKE)
    walk = Walk(**parsed.walk)
    return Request(
        table=parsed.table,
        task="key_index",
        options={"walk": asdict(walk), "lease": parsed.lease},
        wanted={"no-repair": not walk.repair or None},
        max_read_rate=parsed.max_read_rate,
        max_concurrency=parsed.max_concurrency,
        is_part=True,
    )
