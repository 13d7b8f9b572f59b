"""What a person gives EnumerateKeys: the input of an execution. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from keyhop.checks import Must, Truth, number, one_of, read, refuse, text, whole
from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.jobs.request import INDEX_NAME, RUN_ID, TABLE_ARN, TABLE_NAME, Request
from keyhop.scan.segments import MOST_SEGMENTS

MOST_CONCURRENCY = 10_000
"""Children that a distributed map runs at once, at most (Step Functions' quota)."""

LEAST_RATE = 1.0
"""Read units a second: two pages of 0.5."""

SEPARATOR = "_"
"""Between a logical key and its suffix, if nothing else is said."""

LIKE = '{"table": "Orders"}'
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")

TableName = Annotated[str, Must(text(TABLE_NAME, TABLE_ARN), "the name or the ARN of a table")]
IndexName = Annotated[str | None, Must(text(INDEX_NAME), "the name of an index")]
Rate = Annotated[
    float | None,
    Must(number(LEAST_RATE), f"a number of read units a second, at least {LEAST_RATE:g}"),
]
Units = Annotated[
    float | None,
    Must(number(UNITS_PER_BLOCK), f"a number of read units, at least {UNITS_PER_BLOCK:g}"),
]
Concurrency = Annotated[
    int | None,
    Must(whole(1, MOST_CONCURRENCY), f"a whole number from 1 to {MOST_CONCURRENCY:,}", int),
]


@dataclass(frozen=True, slots=True)
class KeysInput:
    """The input of EnumerateKeys. metadata: the table that says which keys have a suffix."""

    table: TableName
    index: IndexName = None
    method: Annotated[
        str, Must(one_of("auto", "skip", "scan", "index"), '"auto", "skip", "scan" or "index"')
    ] = "auto"
    segments: Annotated[
        int | None,
        Must(whole(1, MOST_SEGMENTS), f"a whole number from 1 to {MOST_SEGMENTS:,}", int),
    ] = None
    max_concurrency: Concurrency = None
    max_read_rate: Rate = None
    max_read_units: Units = None
    format: Annotated[Any, Must(one_of("jsonl", "csv"), '"jsonl" or "csv"')] = None
    plan_only: Truth = False
    verify_share: Annotated[
        float | None,
        Must(lambda value: number(0, 1)(value) and value != 0, "a number above 0, up to 1"),
    ] = None
    logical: Truth = False
    separator: Annotated[
        str | None,
        Must(text(_SEPARATOR), "1 to 16 printable ASCII characters, with no digits and no spaces"),
    ] = None
    metadata: Annotated[str | None, Must(text(TABLE_NAME), "the name of a table")] = None
    resume: Annotated[
        str | None, Must(text(RUN_ID), "the id of a run, which is its execution's name")
    ] = None


def parse(given: object) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong."""
    wanted = read(KeysInput, given, LIKE)
    refuse(_contradictions(wanted))
    return Request(
        table=wanted.table,
        task="keys",
        options=keys_options(wanted.logical, wanted.separator, wanted.metadata),
        wanted=wanted_options(wanted.logical, wanted.separator, wanted.metadata),
        index=wanted.index,
        method=wanted.method,
        segments=wanted.segments,
        max_concurrency=wanted.max_concurrency,
        max_read_rate=wanted.max_read_rate,
        max_read_units=wanted.max_read_units,
        format=wanted.format,
        plan_only=wanted.plan_only,
        verify_share=wanted.verify_share,
        resume=wanted.resume,
    )


def keys_options(
    logical: bool, separator: str | None = None, metadata: str | None = None
) -> Mapping[str, Any]:
    """The options of a task `keys`."""
    if not logical:
        return {}
    return {"fold": {"separator": separator or SEPARATOR, "metadata": metadata}}


def wanted_options(logical: bool, separator: str | None, metadata: str | None) -> Mapping[str, Any]:
    """What was asked for by name, which a run that goes on must have been begun with."""
    given = {"logical": logical or None, "separator": separator, "metadata": metadata}
    return {name: value for name, value in given.items() if value is not None}


def _contradictions(wanted: KeysInput) -> list[str]:
    by_index = wanted.method == "index"
    rules = {
        'method "index" reads the key index: leave the field index out': by_index and wanted.index,
        'planOnly samples the table, so it does not go with method "index"': by_index
        and wanted.plan_only,
        'verifyShare does not work with method "index": AuditKeyIndex checks it': by_index
        and wanted.verify_share is not None,
        "logical folds the keys of the table, so leave the field index out": wanted.logical
        and wanted.index,
        "planOnly samples physical keys, so leave logical out": wanted.logical and wanted.plan_only,
        'separator is for logical keys: give "logical": true with it': wanted.separator is not None
        and not wanted.logical,
        'metadata is for logical keys: give "logical": true with it': wanted.metadata is not None
        and not wanted.logical,
        "resume and planOnly cannot be combined: a begun run has its plan": wanted.resume
        and wanted.plan_only,
    }
    return [sentence for sentence, broken in rules.items() if broken]
