"""The inputs of BuildKeyIndex, VerifyKeyIndex, RemoveKeyIndex and WalkKeyIndexes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast

from keyhop.checks import STARTED_BY, Check, Must, Truth, number, read, text, whole
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.jobs.request import JobInput, Request
from keyhop.key_index.index import VIEWS
from keyhop.key_index.protocol import GRACE_SECONDS
from keyhop.key_index.registry import Action
from keyhop.key_index.task import KINDS, LONGEST_GRACE_SECONDS, WALK, Kind

MOST_RATE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(JobInput):
    """The input of an action, with the defaults of the fields that only some actions have."""

    action: ClassVar[Action]
    stream_view = cast("str | None", None)
    region = cast("str | None", None)
    repair = True
    scheduled = False
    sweep = False
    keep_stream = False

    table: Annotated[
        str,
        Must(text(), f"the name or the ARN of a table, as {JobInput.LIKE}"),
        "a table that has keyIndex in this deployment",
    ]
    max_write_rate: Annotated[
        float,
        Must(number(2, MOST_RATE), f"a number from 2 to {MOST_RATE:g}", float),
        "the maximum write units a second, of all workers together",
    ] = DEFAULT_WRITE_RATE
    grace_seconds: Annotated[
        float,
        Must(
            number(0, LONGEST_GRACE_SECONDS), f"a number from 0 to {LONGEST_GRACE_SECONDS:g}", float
        ),
        "how long the keeper may be behind before that counts as drift",
    ] = GRACE_SECONDS

    @staticmethod
    def parse(action: Action, job_input: object) -> "Order":
        """Return the input of an execution; raise InvalidInput if it is wrong."""
        return read(ORDERS[action], job_input, JobInput.LIKE)

    def run_input(self, kind: Kind, grace_seconds: float, started_by: str) -> dict[str, Any]:
        """Return the input of WalkKeyIndexes. `started_by` is the holder of the lease."""
        walk = (kind, self.repair, grace_seconds, self.max_write_rate)
        fields = {
            "table": self.table,
            "walk": dict(zip(WALK, walk, strict=True)),
            "lease": started_by,
            "maxReadRate": self.max_read_rate,
            "maxConcurrency": self.max_concurrency,
            STARTED_BY: started_by,
        }
        return {name: value for name, value in fields.items() if value is not None}


_VIEW = Check(lambda value: value is None or value in VIEWS, {"enum": [None, *VIEWS]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Build(Order):
    """The input of BuildKeyIndex."""

    action = "build"
    stream_view: Annotated[
        Any,
        Must(_VIEW, f"one of {', '.join(VIEWS)}"),
        "what the records of the stream contain, if the build turns the stream on",
    ] = None
    region: Annotated[
        Any,
        Must(text(), 'the name of a region, as {"region": "eu-west-1"}'),
        "for a global table: the region that puts and deletes the sentinels",
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify(Order):
    """The input of VerifyKeyIndex."""

    action = "verify"
    repair: Annotated[Truth, "repair the differences; otherwise only report them"] = True
    scheduled: Annotated[Truth, "set by a schedule: skip a table without a key index"] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove(Order):
    """The input of RemoveKeyIndex."""

    action = "remove"
    sweep: Annotated[Truth, "look for sentinels even if no index is known"] = False
    keep_stream: Annotated[Truth, "leave the stream on, for readers that Lambda does not know"] = (
        False
    )


ORDERS: Mapping[str, type[Order]] = {"build": Build, "verify": Verify, "remove": Remove}


_WALK = Check(
    lambda value: isinstance(value, Mapping) and set(value) == set(WALK) and value["kind"] in KINDS,
    {
        "type": "object",
        "properties": {"kind": {"enum": [*KINDS]}},
        "required": [*WALK],
        "propertyNames": {"enum": [*WALK]},
    },
)


@dataclass(frozen=True, slots=True)
class WalkInput:
    """The input of WalkKeyIndexes, which only the three state machines start."""

    table: Annotated[
        str, Must(text(), "the name or the ARN of a table"), "a table that has keyIndex"
    ]
    walk: Annotated[
        Any,
        Must(_WALK, "a walk as the state machines of the key index define it"),
        "the action on each collection",
    ]
    lease: Annotated[
        str, Must(text(), "who holds the lease on the key index"), "the execution that began it"
    ] = ""
    max_read_rate: Annotated[
        float | None,
        Must(number(0), "a number"),
        "the maximum read units a second, of all workers together",
    ] = None
    max_concurrency: Annotated[
        int | None,
        Must(whole(1), "a whole number", int),
        "the maximum number of workers at the same time",
    ] = None

    @classmethod
    def parse(cls, job_input: object) -> Request:
        """Return the request in the input of an execution; raise InvalidInput if it is wrong."""
        parsed = read(cls, job_input, JobInput.LIKE)
        return Request(
            parsed.table,
            "key_index",
            options={"walk": dict(parsed.walk), "lease": parsed.lease},
            max_read_rate=parsed.max_read_rate,
            max_concurrency=parsed.max_concurrency,
            is_part=True,
        )
