"""What a person gives EnumerateKeys: the input of an execution. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from keyhop.checks import (
    Check,
    Must,
    Truth,
    camel,
    is_number,
    one_of,
    read,
    text,
    whole,
    without_origin,
    wrong_input,
)
from keyhop.jobs.request import (
    A_METHOD,
    A_READ_RATE,
    A_TABLE,
    DOLLARS,
    INDEX_NAME,
    READ_UNITS,
    RUN_ID,
    TABLE_NAME,
    WORKERS,
    Request,
)
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.sharding.key.names import DEFAULT_SEPARATOR

LIKE = '{"table": "Orders"}'
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")
_IN_AN_INPUT = {"index": "the field index", "status": "AuditKeyIndex", "audit": "AuditKeyIndex"}


def _up_to(most: int) -> Must:
    return Must(whole(1, most), f"a whole number from 1 to {most:,}", int)


_SHARE = Check(
    lambda value: is_number(value) and 0 < value <= 1,
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
)


@dataclass(frozen=True, slots=True)
class KeysInput:
    """The input of EnumerateKeys. metadata: the table that says which keys have a suffix."""

    table: Annotated[
        str,
        A_TABLE,
        "a table of the deployment",
    ]
    index: Annotated[
        str | None,
        Must(text(INDEX_NAME), "the name of an index"),
        "keys of this index instead; read through, by one worker",
    ] = None
    method: Annotated[
        str,
        A_METHOD,
        "hop (skip), read through (scan), read the key index (index), or what is best (auto)",
    ] = "auto"
    segments: Annotated[
        int | None, _up_to(MOST_SEGMENTS), "parts of the hash space; planned if left out"
    ] = None
    max_concurrency: Annotated[
        int | None, WORKERS, "workers at once at most; each has 8 requests at work"
    ] = None
    max_read_rate: Annotated[
        float | None,
        A_READ_RATE,
        "for all workers together; no limit if left out",
    ] = None
    max_read_units: Annotated[
        float | None,
        READ_UNITS,
        "the run ends before this start spends more, its check included; no limit if left out",
    ] = None
    max_cost: Annotated[
        float | None,
        DOLLARS,
        "refused if the upper end of the estimate, of what is left to be read, is more; the "
        "deployment's maxCost if left out",
    ] = None
    format: Annotated[
        Any, Must(one_of("jsonl", "csv"), '"jsonl" or "csv"'), "of the parts; jsonl if left out"
    ] = None
    plan_only: Annotated[Truth, "read a sample, and end with the estimate"] = False
    verify_share: Annotated[
        float | None,
        Must(_SHARE, "a number above 0, up to 1"),
        "then read this share of the table through by plain Scans, and compare",
    ] = None
    anyway: Annotated[
        Truth, "with method index: read the key index though it is not to be believed"
    ] = False
    logical: Annotated[Truth, "list logical keys: /f.txt once for /f.txt_1, /f.txt_2, ..."] = False
    separator: Annotated[
        str | None,
        Must(text(_SEPARATOR), "1 to 16 printable ASCII characters, with no digits and no spaces"),
        f"with logical: between a logical key and its shard; {DEFAULT_SEPARATOR} if left out",
    ] = None
    metadata: Annotated[
        str | None,
        Must(text(TABLE_NAME), "the name of a table"),
        "with logical: fold only what this shard-metadata table of the deployment knows",
    ] = None
    resume: Annotated[
        str | None,
        Must(text(RUN_ID), "the id of a run, which is its execution's name"),
        "go on with this run from what it has committed",
    ] = None
    scheduled: Annotated[Truth, "by a schedule: an input that is refused raises the alarm"] = False


def _called_in_an_input(name: str) -> str:
    return _IN_AN_INPUT.get(name, camel(name))


def parse(given: object, called: Callable[[str], str] = _called_in_an_input) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong.

    called: see `contradictions`.
    """
    fields = asdict(read(KeysInput, given, LIKE))
    del fields["scheduled"]  # the state machine's own
    request = keys_request(**fields, given=without_origin(given))
    if problems := contradictions(request, called):
        raise wrong_input(problems)
    return request


def keys_request(
    logical: bool,
    separator: str | None,
    metadata: str | None,
    anyway: bool = False,
    first: Sequence[str] = (),
    **more: Any,
) -> Request:
    """A job for the task `keys`. first: see KeysTask. more: the other fields of Request."""
    options: dict[str, Any] = {"anyway": True} if anyway else {}
    if first:
        options["first"] = [*first]
    named = {"logical": logical or None, "separator": separator, "metadata": metadata}
    fields = {name: value for name, value in named.items() if value is not None}
    fold = {"separator": separator or DEFAULT_SEPARATOR, "metadata": metadata}
    if logical:
        options["fold"] = fold
    return Request(task="keys", options=options, wanted=fields, **more)


def contradictions(asked: Request, called: Callable[[str], str]) -> list[str]:
    """Return which fields of a request contradict each other.

    Args:
        asked: The request.
        called: Returns the caller's name for a field of KeysInput, and for "status" and "audit" how
            to start that action on a key index.
    """
    index, logical, separator, metadata = map(called, ("index", "logical", "separator", "metadata"))
    plan, verify, resume = map(called, ("plan_only", "verify_share", "resume"))
    method, status, audit = map(called, ("method", "status", "audit"))
    by_index, folds = asked.method == "index", "fold" in asked.options
    names_suffix = {"separator", "metadata"} & asked.wanted.keys()
    anyway = called("anyway")
    rules = {
        f"{anyway} is for {method} index: give that too": "anyway" in asked.options
        and not by_index,
        f"{plan} samples the table; {status} tells of the key index": by_index and asked.plan_only,
        f"{separator} and {metadata} are for {logical}: give that too": names_suffix and not folds,
        f"{logical} folds the keys of the table: leave {index} out": folds and asked.index,
        f"{plan} samples physical keys: leave {logical} out": folds and asked.plan_only,
        f"{method} index reads the key index: leave {index} out": by_index and asked.index,
        f"{verify} does not work with {method} index: {audit} checks all of it": by_index
        and asked.verify_share,
        f"{verify} does not work with {index}: plain Scans read that anyway": asked.index
        and asked.verify_share is not None,
        f"{resume} and {plan} cannot be combined: a begun run has its plan": asked.resume
        and asked.plan_only,
    }
    return [sentence for sentence, is_broken in rules.items() if is_broken]
