"""What people give RekeyBackfill, RekeyVerify and RekeyCutOver: the inputs of executions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from keyhop.checks import Must, Truth, number, one_of, read, without_origin, wrong_input
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.jobs.request import (
    A_READ_RATE,
    A_RUN,
    A_TABLE,
    DOLLARS,
    READ_UNITS,
    WORKERS,
    Request,
)
from keyhop.rekey.control import Side

BACKFILL, VERIFY, DIGESTS = "rekey_backfill", "rekey_verify", "rekey_digests"
"""The tasks' names. Digests are made first for a verify."""

LIKE = '{"rekey": "OrdersByTenant"}'

LEAST_FREEZE_SECONDS, MOST_FREEZE_SECONDS = 6.0, 20.0
"""Of a freeze: two leases and the drain; and what routers wait for without being told (25 s)."""

_DESTINATION = "the destination of a re-key: all else is in its side table"
_RATE = "for all workers together; no limit if left out"
_COST = "refused if the upper end of the estimate is more; the deployment's maxCost if left out"


@dataclass(frozen=True, slots=True)
class BackfillInput:
    """The input of RekeyBackfill."""

    rekey: Annotated[str, A_TABLE, _DESTINATION]
    max_write_rate: Annotated[
        float,
        Must(number(1), "a number of write units a second, at least 1", float),
        f"for all workers together; {DEFAULT_WRITE_RATE:g} if left out; `keyhop rekey throttle` "
        "changes it while the backfill runs",
    ] = DEFAULT_WRITE_RATE
    max_read_rate: Annotated[float | None, A_READ_RATE, _RATE] = None
    max_read_units: Annotated[
        float | None, READ_UNITS, "for reading the source; no limit if left out"
    ] = None
    max_concurrency: Annotated[int | None, WORKERS, "workers at once, at most"] = None
    max_cost: Annotated[float | None, DOLLARS, _COST] = None
    without_stream: Annotated[
        Truth, "copy though nothing replicates: what is written meanwhile, verify has to find"
    ] = False
    with_shards: Annotated[
        Truth, "the source is a sharded table, and the template deals with its shards' suffixes"
    ] = False
    plan_only: Annotated[Truth, "read a sample, and end with the estimate"] = False
    resume: Annotated[str | None, A_RUN, "go on with this run"] = None


@dataclass(frozen=True, slots=True)
class VerifyInput:
    """The input of RekeyVerify."""

    rekey: Annotated[str, A_TABLE, _DESTINATION]
    repair: Annotated[Truth, "put right what differs; else only count it"] = False
    sample: Annotated[
        float | None,
        Must(number(1e-6, 1), "a number from 0.000001 to 1"),
        "compare only this share of both tables, drawn at random; such a check opens no cutover",
    ] = None
    max_read_rate: Annotated[float | None, A_READ_RATE, _RATE] = None
    max_read_units: Annotated[
        float | None, READ_UNITS, "for reading both tables; no limit if left out"
    ] = None
    max_concurrency: Annotated[int | None, WORKERS, "workers at once, at most"] = None
    max_cost: Annotated[float | None, DOLLARS, _COST] = None
    plan_only: Annotated[Truth, "end with the estimate"] = False
    scheduled: Annotated[
        Truth, "by a schedule: where there is nothing to compare, it ends with the reason"
    ] = False
    resume: Annotated[str | None, A_RUN, "go on with this run"] = None


@dataclass(frozen=True, slots=True)
class CutOverInput:
    """The input of RekeyCutOver."""

    rekey: Annotated[str, A_TABLE, _DESTINATION]
    to: Annotated[
        Side,
        Must(one_of("source", "destination"), '"destination" or "source"'),
        "the table that is to serve: the destination by a cutover, the source by a rollback",
    ] = "destination"
    accept: Annotated[
        Truth,
        "go on though something is lost: items that cannot be mapped back, and writes that "
        "bypassed the routers, which are overwritten with what the serving table says",
    ] = False
    expect: Annotated[
        int | None,
        Must(number(0, 100_000), "a whole number, 0 or more"),
        "how many routers must have reported; as the control item says if left out",
    ] = None
    freeze_limit: Annotated[
        float | None,
        Must(
            number(LEAST_FREEZE_SECONDS, MOST_FREEZE_SECONDS),
            f"seconds, from {LEAST_FREEZE_SECONDS:g} to {MOST_FREEZE_SECONDS:g}",
        ),
        "go back if writes would wait for longer; if left out as the last time, at first 10",
    ] = None
    dry_run: Annotated[Truth, "look at the gates, and change nothing"] = False


def parse_backfill(given: object) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong."""
    asked = read(BackfillInput, given, LIKE)
    options = {
        "rekey": asked.rekey,
        "max_write_rate": asked.max_write_rate,
        "without_stream": asked.without_stream,
        "with_shards": asked.with_shards,
    }
    return _request(asked, BACKFILL, options, given)


def parse_verify(given: object) -> Request:
    """The request in an execution's input; raises InvalidInput, which names all that is wrong."""
    asked = read(VerifyInput, given, LIKE)
    options = {"rekey": asked.rekey, "repair": asked.repair, "sample": asked.sample}
    return _request(asked, VERIFY, options, given)


def parse_cut_over(given: object) -> CutOverInput:
    """Raises InvalidInput, which names all that is wrong."""
    return read(CutOverInput, given, LIKE)


def digests_of(request: Request) -> Request:
    """The run that has to be made first for a verify."""
    return replace(request, task=DIGESTS)


def with_digests(request: Request, run: str) -> Request:
    """The verify, when that run is finished: no more is read than what differs."""
    options = {**request.options, "digests": run}
    return replace(request, options=options, max_read_rate=None, max_read_units=None)


def _request(
    asked: BackfillInput | VerifyInput, task: str, options: Mapping[str, Any], given: Any
) -> Request:
    if asked.plan_only and asked.resume is not None:
        raise wrong_input(["planOnly is of a new run: leave it, or resume, out"])
    return Request(
        table=asked.rekey,
        task=task,
        options=options,
        max_concurrency=asked.max_concurrency,
        max_read_rate=asked.max_read_rate,
        max_read_units=asked.max_read_units,
        max_cost=asked.max_cost,
        format="jsonl",
        plan_only=asked.plan_only,
        resume=asked.resume,
        given=without_origin(given),
        named_by="rekey",
    )
