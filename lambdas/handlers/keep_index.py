"""The keeper: reconciles the partition keys that a batch of stream records names.

The registry says where the sentinels are, because the configuration may have changed since the
index was built. If the registry cannot be read, the batch fails and is retried.

Its logs and metrics contain no keys.
"""

import time
from functools import lru_cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table, look_up
from keyhop.jobs.request import allowed, table_name
from keyhop.key_index.deployment import KeyIndexes
from keyhop.key_index.keeper import THREADS, Collections, keep, usage_json
from keyhop.key_index.registry import OCCUPIED
from keyhop.key_index.sentinel import Sentinel

from handlers.settings import JobSettings
from handlers.telemetry import function, logger, report, report_throttles

PLACE_SECONDS = 5
"""The time for which a place in the registry is cached. It changes only between a removal, which
detaches the keeper and waits longer than this, and a build, which attaches it again."""

MARGIN_SECONDS = 10.0
LEAST_PATIENCE_SECONDS = 1.0


@function
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Process the records of one stream; return the records to retry."""
    records = event["Records"]
    remaining = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
    stream = records[0]["eventSourceARN"]
    table, connection, sentinel, item_bytes = _keeper_of(stream)
    collections = Collections(
        connection,
        table,
        sentinel,
        item_bytes=item_bytes,
        patience=max(LEAST_PATIENCE_SECONDS, remaining),
        ends_at=time.monotonic() + max(LEAST_PATIENCE_SECONDS, remaining),
    )
    result = keep(
        records,
        collections,
        lambda error: logger.error("not reconciled", cause=type(error).__name__, table=table),
        withdraw=lambda: _withdraw(stream),
    )
    usage = collections.usage
    report(
        table,
        KeysReconciled=result.keys,
        SentinelsPut=usage.counters["put"],
        SentinelsDeleted=usage.counters["deleted"],
        RecordsFailed=len(result.failed),
    )
    report(table, of_all=True, PlacesOccupied=usage.counters["occupied"])
    report_throttles(table, usage.throttles)
    logger.info(
        "kept",
        records=result.records,
        keys=result.keys,
        failed=len(result.failed),
        **usage_json(usage),
    )
    return result.to_response()


def _keeper_of(stream: str) -> tuple[str, Connection, Sentinel, float | None]:
    """Return the table, client, sentinels and mean item size for a stream."""
    table, connection, _ = _table_of(stream)
    sentinel = _sentinel(stream, int(time.time() // PLACE_SECONDS))
    return table.name, connection, sentinel, table.source().mean_item_bytes


def _withdraw(stream: str) -> None:
    """Record that the key index of the stream's table lacks a collection."""
    table, _, indexes = _table_of(stream)
    indexes.registry(table).withdraw(OCCUPIED)


@lru_cache(maxsize=64)
def _table_of(stream: str) -> tuple[Table, Connection, KeyIndexes]:
    """Return the table of a stream, cached for all batches of a process."""
    settings = JobSettings.from_env()
    arn = stream.partition("/stream/")[0]
    name = allowed(arn if arn in settings.tables else table_name_of(arn), settings.tables)
    connection = settings.deployment.connect(name, 2 * THREADS)
    return look_up(connection, name), connection, settings.key_indexes


@lru_cache(maxsize=64)
def _sentinel(stream: str, moment: int) -> Sentinel:
    """Return the sentinel, read once in each `moment`."""
    table, _, indexes = _table_of(stream)
    return indexes.kept_sentinel(table)


def table_name_of(arn: str) -> str:
    """Return the table's name in an ARN, also of DynamoDB Local, whose region is invalid."""
    name = table_name(arn)
    return name if name != arn else arn.rpartition("/")[2]
