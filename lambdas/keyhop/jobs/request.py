"""The request of a job, and the input that all jobs have in common. Pure."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar

from keyhop.checks import (
    Must,
    Truth,
    camel,
    number,
    one_of,
    read,
    some_of,
    text,
    whole,
    without_origin,
    wrong_input,
)
from keyhop.dynamodb.endpoint import TABLE_ARN
from keyhop.dynamodb.units import LEAST_COST, UNITS_PER_BLOCK
from keyhop.errors import InvalidInput
from keyhop.jobs.formats import Format
from keyhop.jobs.layout import (
    ASSUMED_RATE,
    CPU_SECONDS,
    MOST_CONCURRENCY,
    SEGMENTS_PER_GROUP,
    Wishes,
    segments_to_check,
)

TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
INDEX_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
RUN_ID = re.compile(r"(?!\.+$)[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")
"""The names of executions, which are the names of runs. A name of dots only is refused, because it
would lead out of the folder of the run."""

DEFAULT_STACK = "Keyhop"
"""The name of a deployment's stack, unless it has another."""

LEAST_RATE = 1.0
"""The least limit in read units a second: two pages of 0.5."""

A_TABLE = Must(text(TABLE_NAME, TABLE_ARN), "the name or the ARN of a table")
A_RUN = Must(text(RUN_ID), "the id of a run")
A_METHOD = Must(one_of("auto", "skip", "scan", "index"), '"auto", "skip", "scan" or "index"')
A_READ_RATE = Must(number(LEAST_RATE), f"a number of read units a second, at least {LEAST_RATE:g}")
READ_UNITS = Must(number(UNITS_PER_BLOCK), f"a number of read units, at least {UNITS_PER_BLOCK:g}")
DOLLARS = Must(number(LEAST_COST), f"a number of dollars, at least {LEAST_COST:g}")
WORKERS = Must(whole(1, MOST_CONCURRENCY), f"a whole number from 1 to {MOST_CONCURRENCY:,}", int)
"""Requirements on the fields of inputs (checks.py)."""


def accepting(*choices: str) -> Must:
    """Require a list of conditions that the caller accepts, each with one of these names."""
    return Must(some_of(*choices), f"a list of {' and '.join(map(repr, choices))}", tuple)


@dataclass(frozen=True, slots=True)
class Request:
    """A job for a task.

    Attributes:
        options: The options of the task, as plain JSON.
        wanted: The options that the caller has named. A run that is resumed must have been begun
            with them.
        max_concurrency: The maximum number of workers of a fleet at the same time.
        max_read_rate: Read units a second, of all workers together.
        max_cost: Dollars: a run is refused before it begins if its estimate, of DynamoDB and the
            workers' time, exceeds them. They stop no run that has begun.
        is_part: Whether the job is a part of a larger one, which the caller restarts instead.
        job_input: The input as the caller wrote it, for messages.
        named_by: The field of the input that names the table.
    """

    table: str
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    wanted: Mapping[str, Any] = field(default_factory=dict)
    index: str | None = None
    method: str = "auto"
    segments: int | None = None
    threads: int | None = None
    max_concurrency: int | None = None
    max_read_rate: float | None = None
    max_read_units: float | None = None
    max_write_units: float | None = None
    max_cost: float | None = None
    format: Format | None = None
    dry_run: bool = False
    verify_share: float | None = None
    resume: str | None = None
    is_part: bool = False
    job_input: Mapping[str, Any] = field(default_factory=dict)
    named_by: str = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInput:
    """The fields that the input of every job has; each capability adds its own."""

    LIKE: ClassVar[str] = '{"table": "Orders"}'
    """An example of the input, as JSON."""

    max_concurrency: Annotated[
        int | None, WORKERS, "the maximum number of workers at the same time"
    ] = None
    max_read_rate: Annotated[
        float | None,
        A_READ_RATE,
        "the maximum read units a second, of all workers together; no limit by default",
    ] = None
    max_cost: Annotated[
        float | None,
        DOLLARS,
        "refuse the job if the upper end of its estimate is more; the deployment's maxCost by "
        "default",
    ] = None
    dry_run: Annotated[Truth, "end with an estimate, and change nothing"] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput(JobInput, ABC):
    """The fields that the input of every run over a table has."""

    max_read_units: Annotated[
        float | None, READ_UNITS, "end the run before it reads more than this; no limit by default"
    ] = None
    resume: Annotated[
        str | None, A_RUN, "the run to continue, which has the name of its execution"
    ] = None
    scheduled: Annotated[Truth, "set by a schedule: an input that is refused raises the alarm"] = (
        False
    )

    @classmethod
    def parse(cls, job_input: object) -> Request:
        """Return the request in the input of an execution; raise InvalidInput, with all faults."""
        return read(cls, job_input, cls.LIKE).request(camel, without_origin(job_input))

    def request(self, called: Callable[[str], str], job_input: Mapping[str, Any]) -> Request:
        """Return the request for this input; raise InvalidInput if fields contradict each other.

        `called` returns the caller's name of a field.
        """
        if problems := self.contradictions(called):
            raise wrong_input(problems)
        return self._request(job_input)

    def contradictions(self, called: Callable[[str], str]) -> Sequence[str]:
        """Return the faults of the combination of fields; for `called`, see `request`."""
        return ()

    @abstractmethod
    def _request(self, job_input: Mapping[str, Any]) -> Request:
        """Return the request for fields that do not contradict each other."""

    def _of_every_run(self) -> dict[str, Any]:
        """Return the fields that a Request takes as they are."""
        names = [field.name for field in fields(RunInput) if field.name != "scheduled"]
        return {name: getattr(self, name) for name in names}


def wishes_of_fleet(request: Request, size_bytes: int, one_worker: bool) -> Wishes:
    """Return the settings for the layout of a run by a fleet that reads `size_bytes` bytes.

    With `one_worker`, one worker must read everything, because it must know all keys.
    """
    rate = request.max_read_rate
    return Wishes(
        segments=request.segments,
        threads=SEGMENTS_PER_GROUP,
        max_rate=rate,
        verify_share=request.verify_share,
        processes=1 if one_worker else request.max_concurrency,
        most_processes=math.ceil((rate or ASSUMED_RATE) / UNITS_PER_BLOCK * CPU_SECONDS),
        least_segments=segments_to_check(size_bytes, rate),
    )


def allowed(table: str, tables: Sequence[str]) -> str:
    """Return the name of a table in requests: an ARN if the deployment lists it by its ARN.

    Raise InvalidInput if it is not one of `tables`, or if the name is ambiguous.
    """
    matches = [entry for entry in tables if entry == table or table_name(entry) == table]
    if table in matches:
        return table
    if not matches and TABLE_ARN.fullmatch(table) and table_name(table) in tables:
        return table
    if len(matches) > 1:
        raise InvalidInput(
            f"table {table!r} is ambiguous in this deployment: give one of {', '.join(matches)}."
        )
    if not matches:
        raise InvalidInput(
            f"table {table!r} is not one of the tables of this deployment ({', '.join(tables)}): "
            f'add it to "tables" in keyhop.json and deploy again.'
        )
    return matches[0]


def table_name(table: str) -> str:
    """Return the name of a table that is given by its name or its ARN."""
    arn = TABLE_ARN.fullmatch(table)
    return arn["name"] if arn else table
