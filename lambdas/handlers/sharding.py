"""The functions of sharded tables, for callers in any language, and their drains.

Items are plain JSON, or DynamoDB's JSON with "typed": true, which binaries, sets and numbers with
more digits than a double need (sharding_requests.py). No log contains a key.
"""

import datetime
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.client import DynamoDB, NamedTable, aws_client, name_table
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code, explained, is_transient
from keyhop.errors import GaveUp, KeyhopError
from keyhop.jobs.request import allowed
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import CONNECTIONS, ShardedTable

from handlers.settings import ProposeSettings, ShardingSettings
from handlers.sharding_requests import (
    InvalidItem,
    MoveRequest,
    QueryRequest,
    WriteRequest,
    item_json,
    item_of,
    value_json,
)
from handlers.telemetry import function, logger, report, report_sharding

if TYPE_CHECKING:
    from keyhop.sharding.drain import DrainStep
    from keyhop.sharding.manage import KeyShards

MESSAGE_CHARACTERS = 300
"""The maximum characters of an item's message, as an answer of Lambda has up to 6 MB."""

Failures = dict[int, tuple[str, str]]
"""The name of an error and a message for each item that was not written, by its index."""

ANSWER_BYTES = 5_900_000
"""The maximum size of items; Lambda refuses an answer above 6,291,556 bytes (AWS documentation)."""

LAST_MOVES_SECONDS = 60.0
"""The time to finish moves in flight, when no more are started. It exceeds their patience."""
LEAST_WAIT_SECONDS = 1
"""Limits a drain without progress to one state transition per second."""

MOST_STARTED = 100
"""The maximum number of drains per invocation, as they write. The next one starts the rest."""

MARGIN_SECONDS = 5.0
"""The time before its timeout in which an invocation sends no requests, so that it can answer."""


@function
def write_sharded(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Write items into a sharded table, and return the result of each item.

    {"table": "Audit", "items": [{"path": "/f.txt", "at": "2026-11-21T09:00:00Z"}]} is answered by
    {"written": 1, "failed": [], "results": [{"index": 0, "status": "written"}]}. Each item is in
    `results`. An item that was not written is also in `failed`, with an error's name and a message:
    {"index", "error", "message"}. A caller may send such an item again. After Unreachable or
    OutOfTime it may have been written after all.
    """
    request = WriteRequest.from_event(event)
    with at_work(request.table, context, writes=True) as table:
        failures = write_items(table, request)
    written = len(request.items) - len(failures)
    report(request.table, ItemsWritten=written, ItemsFailed=len(failures))
    causes = Counter(error for error, _ in failures.values())
    logger.info("written", table=request.table, items=written, failed=dict(causes))
    return _results(len(request.items), failures)


@function
def query_sharded(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Read all shards of a key as one, and return a page of its items.

    {"table": "Audit", "key": "/f.txt", "descending": true, "limit": 50} is answered by
    {"items": [...], "count": 50, "pageToken": "..."}. The items are in the order of their sort key.
    The page token requests the next page, together with the same input; it is null at the end. An
    answer of Lambda has at most 6 MB, so a page may end before `limit`: only pageToken shows
    whether more items follow.

    Numbers are plain JSON; a number that a double cannot hold becomes the nearest one that it can.
    Binaries are base64 text, sets are arrays. "typed": true answers in DynamoDB's own JSON instead,
    which is exact.
    """
    request = QueryRequest.from_event(event)
    with at_work(request.table, context) as table:
        page = _page(table, request)
    logger.info("read", table=request.table, items=page["count"], more=bool(page["pageToken"]))
    return page


@function
def move_shards(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """State MoveShards of DrainShards: take the next step of a drain, and say how long to wait.

    Return the next state from the execution's input and the last step: done, or a wait and a step.
    """
    from keyhop.sharding.drain import Drain

    request = MoveRequest.from_event(event["request"])
    last = event["last"]  # at first this is the request, which has none of these fields
    has_begun = last.get("begun") is True
    previous = (last["last_updated"], last["seconds"]) if "last_updated" in last else None
    seconds = max(0.0, seconds_left(context) - LAST_MOVES_SECONDS)
    with at_work(request.table, context) as table:
        drain = Drain(table)
        step = drain.step(
            request.key, shards=request.shards, seconds=seconds, begun=has_begun, seen=previous
        )
    state = to_state(step)
    logger.info("stepped", table=request.table, **state)
    return state


@function
def propose_drains(event: dict[str, Any], context: LambdaContext) -> list[dict[str, Any]]:
    """Propose drains of keys with surplus shards in all tables, and start them if configured.

    The event is ignored. Return [{"table", "key", "from", "to", "reason", "started"}], and
    "typed": true with a binary key. Table, key, `to` and typed are the input of DrainShards. Keys
    are in the answer and in the inputs of executions, but never in a log.
    """
    from keyhop.sharding.manage import proposals

    settings = ProposeSettings.from_env()
    proposed: list[dict[str, Any]] = []
    failed: list[KeyhopError] = []
    for name in settings.tables:
        try:
            with at_work(name, context) as table:
                of_table = [proposal(name, key_shards) for key_shards in proposals(table)]
            report(name, DrainsProposed=len(of_table))
            proposed += of_table
        except KeyhopError as error:  # the other tables are still examined
            logger.error("not looked through", table=name, cause=type(error).__name__)
            failed.append(error)
    started = 0
    if settings.start:
        started = start_drains(boto3.client("stepfunctions"), settings.machine, proposed)
    logger.info("proposed", drains=len(proposed), started=started)
    if failed:
        raise failed[0]
    return proposed


class OutOfTime(BotoCoreError):  # type: ignore[misc]
    """No request was sent, because the invocation is nearly over.

    It is one of botocore's errors, because the library records those for each item and continues.
    """

    fmt = "The time of the invocation was over before an answer came; try this again."


class TimedClient:
    """Keyhop's client, which raises OutOfTime after `ends_at` (of time.monotonic)."""

    def __init__(self, client: DynamoDB) -> None:
        self.ends_at = float("inf")
        self._client = client

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if time.monotonic() >= self.ends_at:
            raise OutOfTime
        return self._client.call(operation, **parameters)


@contextmanager
def at_work(
    requested: str, context: LambdaContext, *, writes: bool = False
) -> Iterator[ShardedTable]:
    """Yield a sharded table for one invocation, which ends in time and reports its metrics.

    With `writes` the role may ask CloudWatch. Raise InvalidInput if the table is not listed, and a
    KeyhopError that a user can act on in place of an error of botocore.
    """
    settings = ShardingSettings.from_env()
    name = allowed(requested, settings.tables)
    table, client = warm(name, writes)
    client.ends_at = time.monotonic() + seconds_left(context)
    try:
        yield table
    except OutOfTime as error:
        raise GaveUp(str(error)) from error
    except (ClientError, BotoCoreError) as error:
        explanation = explained(error, table.endpoint, name)
        raise (GaveUp(str(explanation)) if is_transient(error) else explanation) from error
    finally:
        if writes:
            table.pause()
        report_sharding(name, table.usage.take())


@lru_cache(maxsize=64)
def warm(name: str, writes: bool) -> tuple[ShardedTable, TimedClient]:
    """Return a table and its client, cached for all invocations of a process."""
    settings = ShardingSettings.from_env()
    sharded = settings.sharded[name]
    connection, _ = name_table(name, connections=CONNECTIONS)
    timed = TimedClient(connection.client)
    table = ShardedTable(
        NamedTable(replace(connection, client=timed), name),
        metadata=sharded["metadata"],
        placement=sharded["placement"],
        hash=sharded["hash"],
        append_only=sharded["appendOnly"],
        separator=sharded["separator"],
        policy=Policy(most=sharded["mostShards"], start_shards=sharded.get("startShards", {})),
        cloudwatch=aws_client("cloudwatch", Endpoint()) if writes else None,
    )
    return table, timed


def seconds_left(context: LambdaContext) -> float:
    """Return the seconds in which the invocation may still send requests."""
    return max(0.0, context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS)


def write_items(table: ShardedTable, request: WriteRequest) -> Failures:
    """Write all valid items, and return the failures."""
    failures: Failures = {}
    places: list[int] = []
    items: list[dict[str, Any]] = []
    for index, source in enumerate(request.items):
        try:
            items.append(item_of(source, request.typed))
            places.append(index)
        except InvalidItem as error:
            failures[index] = ("InvalidItem", f"The item cannot be written: {error}.")
    for place, _, cause in table.batch_write(items).failed:
        failures[places[place]] = _explained(cause, table)
    return failures


def _results(items: int, failures: Failures) -> dict[str, Any]:
    return {
        "written": items - len(failures),
        "failed": [
            {"index": index, "error": error, "message": message[:MESSAGE_CHARACTERS]}
            for index, (error, message) in sorted(failures.items())
        ],
        "results": [
            {"index": index, "status": "failed" if index in failures else "written"}
            for index in range(items)
        ],
    }


def _explained(error: Exception, table: ShardedTable) -> tuple[str, str]:
    if isinstance(error, KeyhopError | OutOfTime):
        return type(error).__name__, str(error)
    if not isinstance(error, ClientError | BotoCoreError):
        return "InvalidItem", f"The item cannot be written: {error}."
    refusal = explained(error, table.endpoint, table.name)
    return error_code(error) or type(refusal).__name__, str(refusal)


def _page(table: ShardedTable, request: QueryRequest) -> dict[str, Any]:
    """Return a page of items, limited by the request and by the size of an answer."""
    stored = table.query(
        key=request.key,
        between=request.between,
        descending=request.descending,
        limit=request.limit + 1,  # so that a further item shows that more follow
        consistent=request.consistent,
        page_token=request.page_token,
    )
    items, last = take(stored, request.limit, request.typed)
    token = None
    if last is not None:
        where = {"between": request.between, "descending": request.descending}
        token = table.page_token(request.key, last[table.schema.sort.name], **where)
    return {"items": items, "count": len(items), "pageToken": token}


def take(
    stored: Iterator[dict[str, Any]], limit: int, typed: bool
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return items as JSON, and the last one if more follow. The first always fits.

    The size is measured with escapes for all characters but ASCII, so it is never too low.
    """
    items: list[dict[str, Any]] = []
    last: dict[str, Any] | None = None
    size = 0
    for item in stored:
        encoded = item_json(item, typed)
        size += len(json.dumps(encoded)) + len(", ")
        if len(items) == limit or (items and size > ANSWER_BYTES):
            return items, last
        items.append(encoded)
        last = item
    return items, None


def to_state(step: "DrainStep") -> dict[str, Any]:
    """Return a step for the state machine. It contains no key."""
    return {
        "action": step.action.value,
        "seconds": max(LEAST_WAIT_SECONDS, math.ceil(step.seconds)),
        "phase": step.shards.phase.value,
        "moved": step.moved,
        "readable": step.shards.readable,
        "shards": step.shards.number,
        "begun": step.begun,
        "last_updated": step.shards.last_updated,
    }


def proposal(table: str, key_shards: "KeyShards") -> dict[str, Any]:
    """Return the proposal for one key as JSON."""
    key = {"key": key_shards.key}
    if not isinstance(key_shards.key, str):
        key = {"key": value_json(key_shards.key, typed=True), "typed": True}
    return {
        "table": table,
        **key,
        "from": key_shards.shards.number,
        "to": key_shards.would_do,
        "reason": key_shards.reason,
        "started": False,
    }


def start_drains(stepfunctions: Any, machine: str, proposed: list[dict[str, Any]]) -> int:
    """Start DrainShards for the first proposals, mark them, and return their number."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    started = 0
    for entry in proposed[:MOST_STARTED]:
        request = {name: entry[name] for name in ("table", "key", "typed") if name in entry}
        try:
            stepfunctions.start_execution(
                stateMachineArn=machine,
                name=execution_name(entry, today),
                input=json.dumps({**request, "shards": entry["to"]}),
            )
        except stepfunctions.exceptions.ExecutionAlreadyExists:
            continue  # it was started today already, and is proposed again tomorrow
        entry["started"] = True
        started += 1
    return started


def execution_name(entry: dict[str, Any], day: str) -> str:
    """Return a name that is the same for a key on one day, and does not show the key."""
    identity = json.dumps([entry["table"], entry["key"]], sort_keys=True)
    return f"{day}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
