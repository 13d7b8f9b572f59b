"""What a person asks of a job, whether on the command line or as an execution's input. Pure."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.checks import InvalidInput, Must, number, one_of, text, whole
from keyhop.dynamodb.units import LEAST_COST, UNITS_PER_BLOCK
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
TABLE_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:(?P<region>[a-z0-9-]+):[0-9]{12}:table/(?P<name>[a-zA-Z0-9_.-]{3,255})"
)
RUN_ID = re.compile(r"(?!\.+$)[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")
"""The names that Step Functions allows an execution, which are the names of runs; but dots alone
would be a way out of a run's place."""


LEAST_RATE = 1.0
"""Read units a second: two pages of 0.5."""

A_TABLE = Must(text(TABLE_NAME, TABLE_ARN), "the name or the ARN of a table")
A_RUN = Must(text(RUN_ID), "the id of a run")
A_METHOD = Must(one_of("auto", "skip", "scan", "index"), '"auto", "skip", "scan" or "index"')
A_READ_RATE = Must(number(LEAST_RATE), f"a number of read units a second, at least {LEAST_RATE:g}")
READ_UNITS = Must(number(UNITS_PER_BLOCK), f"a number of read units, at least {UNITS_PER_BLOCK:g}")
DOLLARS = Must(number(LEAST_COST), f"a number of dollars, at least {LEAST_COST:g}")
WORKERS = Must(whole(1, MOST_CONCURRENCY), f"a whole number from 1 to {MOST_CONCURRENCY:,}", int)
"""What fields of inputs must be (checks.py)."""


@dataclass(frozen=True, slots=True)
class Request:
    """A job for a task. max_read_rate: read units a second of all workers together.

    resume: the run to go on with. options: the task's own, as plain JSON. wanted: those of them
    that were asked for by name, which a run that goes on must have been begun with. threads: of one
    process. max_concurrency: workers of a fleet at once. is_part: of something larger, which is
    what a person starts again if this fails. max_cost: dollars, of all that it costs. given: the
    input as it was, for advice. named_by: the field of the input that names the table.
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
    plan_only: bool = False
    verify_share: float | None = None
    resume: str | None = None
    is_part: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)
    named_by: str = "table"


def wishes_of_fleet(request: Request, size_bytes: int, one_worker: bool) -> Wishes:
    """Return the settings for the layout of a run by a fleet.

    Args:
        size_bytes: The size of what the run reads.
        one_worker: Whether one worker must read everything, because it must know all keys.
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


def allowed(table: str, tables: list[str]) -> str:
    """The table as requests are to name it: a name, or an ARN if it is listed by that.

    tables: the names and ARNs that this deployment may touch. Raises InvalidInput.
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
    """The name of a table that is given by its name or its ARN."""
    arn = TABLE_ARN.fullmatch(table)
    return arn["name"] if arn else table


def table_region(table: str) -> str | None:
    """The region of a table that is given by its ARN."""
    arn = TABLE_ARN.fullmatch(table)
    return arn["region"] if arn else None
