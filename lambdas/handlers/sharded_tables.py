"""Sharded tables, cached between invocations, with a time limit for each invocation."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import BotoCoreError, ClientError
from keyhop.dynamodb.client import DynamoDB, aws_client, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import explained, is_transient
from keyhop.errors import GaveUp
from keyhop.jobs.request import allowed, table_region
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import CONNECTIONS, ShardedTable

from handlers.settings import ShardingSettings
from handlers.telemetry import report_sharding

MARGIN_SECONDS = 5.0
"""The time before its timeout in which an invocation sends no requests, so that it can answer."""


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

    Args:
        requested: The name of a table, which must be listed.
        context: The context of the invocation.
        writes: Whether the role may ask CloudWatch.

    Raises:
        InvalidInput: The table is not listed.
        KeyhopError: An error that a user can act on, in place of one of botocore.
    """
    settings = ShardingSettings.from_env(os.environ)
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
    settings = ShardingSettings.from_env(os.environ)
    sharded = settings.sharded[name]
    connection = connect(Endpoint(region=table_region(name)), CONNECTIONS)
    timed = TimedClient(connection.client)
    table = ShardedTable(
        name,
        metadata=sharded.metadata,
        placement=sharded.placement,
        hash=sharded.hash,
        append_only=sharded.append_only,
        separator=sharded.separator,
        policy=Policy(most=sharded.most_shards, start_shards=sharded.start_shards),
        endpoint=connection.endpoint,
        client=timed,
        cloudwatch=aws_client("cloudwatch", Endpoint()) if writes else None,
    )
    return table, timed


def seconds_left(context: LambdaContext) -> float:
    """Return the seconds in which the invocation may still send requests."""
    return max(0.0, context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS)
