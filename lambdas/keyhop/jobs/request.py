"""What a person asks a fleet for: the input of an execution of EnumerateKeys. Pure."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.errors import CannotStart
from keyhop.jobs.formats import Format
from keyhop.jobs.model import SEPARATOR
from keyhop.scan.segments import MOST_SEGMENTS

MOST_CONCURRENCY = 10_000
"""Children that a distributed map runs at once, at most (Step Functions' quota)."""

LEAST_RATE = 1.0
"""Read units a second: two pages of 0.5."""

STARTED_BY = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"
"""How Step Functions knows which execution began another; no field of ours."""

WALKS = ("build", "audit", "remove")
WALK_FIELDS = {"kind", "repair", "grace_seconds", "max_write_rate"}
MOST_NUMBER = 1e15
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")
_TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
_INDEX_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
_TABLE_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:(?P<region>[a-z0-9-]+):[0-9]{12}:table/(?P<name>[a-zA-Z0-9_.-]{3,255})"
)
RUN_ID = re.compile(r"(?!\.+$)[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")
"""The names that Step Functions allows an execution, which are the names of runs; but dots alone
would be a way out of a run's place."""


class InvalidInput(CannotStart):
    """The execution's input is not what EnumerateKeys takes."""


@dataclass(frozen=True, slots=True)
class Request:
    """The input, checked. max_read_rate: read units a second of the whole fleet.

    walk: for the state machines of the key index: what the run does about each collection
    (key_index/walk.py), as plain JSON. logical: list logical keys, of shards that are told by
    `separator` (fold.py).
    """

    table: str
    index: str | None = None
    method: str = "auto"
    segments: int | None = None
    max_concurrency: int | None = None
    max_read_rate: float | None = None
    max_read_units: float | None = None
    format: Format | None = None
    plan_only: bool = False
    verify_share: float | None = None
    resume: str | None = None
    walk: Mapping[str, Any] | None = None
    logical: bool = False
    separator: str | None = None

    @property
    def fold(self) -> dict[str, Any] | None:
        """What the plan of a new run says of folding."""
        if not self.logical:
            return None
        return {"separator": self.separator or SEPARATOR, "metadata": None}


def parse(given: object) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f'The input must be a JSON object such as {{"table": "Orders"}}, not {_shown(given)}.'
        )
    problems = []
    is_started_by_another = STARTED_BY in given
    given = {name: value for name, value in given.items() if name != STARTED_BY}
    unknown = sorted(str(name) for name in given if name not in FIELDS | OURS)
    if unknown:
        names = ", ".join(_shown(name) for name in unknown[:5])
        close = difflib.get_close_matches(unknown[0], FIELDS, 1)
        hint = f", did you mean {close[0]}?" if close else ""
        problems.append(f"unknown: {names}{hint}; the fields are {', '.join(FIELDS)}")
    if "table" not in given:
        problems.append('table is missing: {"table": "Orders"}')
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in FIELDS | OURS:
            attribute, is_right, wanted = (FIELDS | OURS)[name]
            values[attribute] = value
            if not is_right(value):
                problems.append(f"{name} must be {wanted}, not {_shown(value)}")
    if values.get("index") and values.get("method") == "index":
        problems.append('method "index" reads the key index: leave the field index out')
    if values.get("method") == "index" and values.get("plan_only"):
        problems.append('planOnly samples the table, so it does not go with method "index"')
    if values.get("method") == "index" and values.get("verify_share") is not None:
        problems.append('verifyShare does not work with method "index": AuditKeyIndex checks it')
    if values.get("logical") and values.get("index"):
        problems.append("logical folds the keys of the table, so leave the field index out")
    if values.get("logical") and values.get("plan_only"):
        problems.append("planOnly samples physical keys, so leave logical out")
    if "separator" in values and not values.get("logical"):
        problems.append('separator is for logical keys: give "logical": true with it')
    if "walk" in values and not is_started_by_another:
        problems.append("walk is for the state machines of the key index: start one of those")
    if not problems and values.get("resume") and values.get("plan_only"):
        problems.append("resume and planOnly cannot be combined: a begun run has its plan")
    if problems:
        raise InvalidInput(f"The input is wrong: {'; '.join(problems)}.")
    for name in ("segments", "max_concurrency"):
        if name in values:
            values[name] = int(values[name])
    return Request(**values)


def allowed(table: str, tables: list[str]) -> str:
    """The table as requests are to name it: a name, or an ARN if it is listed by that.

    tables: the names and ARNs that this deployment may touch. Raises InvalidInput.
    """
    matches = [entry for entry in tables if entry == table or table_name(entry) == table]
    if table in matches:
        return table
    if not matches and _TABLE_ARN.fullmatch(table) and table_name(table) in tables:
        return table
    if len(matches) > 1:
        raise InvalidInput(
            f"table {table!r} is ambiguous in this deployment: give one of {', '.join(matches)}."
        )
    if not matches:
        raise InvalidInput(
            f"table {table!r} is not one of the tables of this deployment ({', '.join(tables)}): "
            f'add it to "tables" in cdk.json and deploy again.'
        )
    return matches[0]


def table_name(table: str) -> str:
    """The name of a table that is given by its name or its ARN."""
    arn = _TABLE_ARN.fullmatch(table)
    return arn["name"] if arn else table


def table_region(table: str) -> str | None:
    """The region of a table that is given by its ARN."""
    arn = _TABLE_ARN.fullmatch(table)
    return arn["region"] if arn else None


def _shown(value: object) -> str:
    """What was given, for a message: short, and without control characters."""
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "an array"
    names: dict[object, str] = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return names[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 100 else text[:100] + "..."


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(low: int, high: int) -> Callable[[object], bool]:
    def is_right(value: object) -> bool:
        number = cast(float, value)
        return _is_number(value) and low <= number <= high and number == int(number)

    return is_right


def _number(low: float, high: float = MOST_NUMBER) -> Callable[[object], bool]:
    return lambda value: _is_number(value) and low <= cast(float, value) <= high


def _one_of(*choices: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in choices


def _text(*patterns: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and any(p.fullmatch(value) for p in patterns)


FIELDS: dict[str, tuple[str, Callable[[object], bool], str]] = {
    "table": ("table", _text(_TABLE_NAME, _TABLE_ARN), "the name or the ARN of a table"),
    "index": ("index", _text(_INDEX_NAME), "the name of an index"),
    "method": (
        "method",
        _one_of("auto", "skip", "scan", "index"),
        '"auto", "skip", "scan" or "index"',
    ),
    "segments": (
        "segments",
        _whole(1, MOST_SEGMENTS),
        f"a whole number from 1 to {MOST_SEGMENTS:,}",
    ),
    "maxConcurrency": (
        "max_concurrency",
        _whole(1, MOST_CONCURRENCY),
        f"a whole number from 1 to {MOST_CONCURRENCY:,}",
    ),
    "maxReadRate": (
        "max_read_rate",
        _number(LEAST_RATE),
        f"a number of read units a second, at least {LEAST_RATE:g}",
    ),
    "maxReadUnits": (
        "max_read_units",
        _number(UNITS_PER_BLOCK),
        f"a number of read units, at least {UNITS_PER_BLOCK:g}",
    ),
    "format": ("format", _one_of("jsonl", "csv"), '"jsonl" or "csv"'),
    "planOnly": ("plan_only", lambda value: isinstance(value, bool), "true or false"),
    "verifyShare": (
        "verify_share",
        lambda value: _number(0, 1)(value) and value != 0,
        "a number above 0, up to 1",
    ),
    "logical": ("logical", lambda value: isinstance(value, bool), "true or false"),
    "separator": (
        "separator",
        _text(_SEPARATOR),
        "1 to 16 printable ASCII characters, with no digits and no spaces",
    ),
    "resume": ("resume", _text(RUN_ID), "the id of a run, which is its execution's name"),
}
"""Of each field: the attribute of Request, what is right, and how to say that."""

OURS = {
    "walk": (
        "walk",
        lambda value: (
            isinstance(value, Mapping) and value.get("kind") in WALKS and set(value) <= WALK_FIELDS
        ),
        "what the state machines of the key index make of their own inputs",
    ),
}
"""Fields that only other state machines of this deployment give."""
