"""The keeper: reconciles the partition keys that a batch of stream records names.

What it logs and counts holds no keys.
"""

import os
import time
from functools import lru_cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.client import Connection, Endpoint, connect
from keyhop.dynamodb.tables import look_up
from keyhop.jobs.request import allowed, table_name, table_region
from keyhop.key_index.collections import Collections, usage_json
from keyhop.key_index.keeper import keep
from keyhop.key_index.sentinel import Sentinel
from keyhop.streams.partition_worker import THREADS

from handlers.settings import KeeperSettings
from handlers.telemetry import count, count_throttles, function

logger = Logger()
metrics = Metrics()

MARGIN_SECONDS = 10.0
LEAST_PATIENCE_SECONDS = 1.0


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From the records of one stream to those that must come again."""
    records = event["Records"]
    remaining = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
    table, connection, sentinel = _keeper_of(records[0]["eventSourceARN"])
    collections = Collections(
        connection,
        table,
        sentinel,
        patience=max(LEAST_PATIENCE_SECONDS, remaining),
        ends_at=time.monotonic() + max(LEAST_PATIENCE_SECONDS, remaining),
    )
    result = keep(
        records,
        collections,
        lambda error: logger.error("not reconciled", cause=type(error).__name__, table=table),
    )
    usage = collections.usage
    count(
        metrics,
        KeysReconciled=result.keys,
        SentinelsPut=usage.counters["put"],
        SentinelsDeleted=usage.counters["deleted"],
        PlacesOccupied=usage.counters["occupied"],
        RecordsFailed=len(result.failed),
        KeeperReadUnits=usage.read_units,
        KeeperWriteUnits=usage.write_units,
    )
    count_throttles(metrics, usage.throttles)
    logger.info(
        "kept",
        records=result.records,
        keys=result.keys,
        failed=len(result.failed),
        **usage_json(usage),
    )
    return result.to_response()


@lru_cache(maxsize=64)
def _keeper_of(stream: str) -> tuple[str, Connection, Sentinel]:
    """Table, client and sentinels for a stream: a process is warm for many batches."""
    settings = KeeperSettings.from_env(os.environ)
    arn = stream.partition("/stream/")[0]
    table = allowed(arn if arn in settings.tables else table_name_of(arn), settings.tables)
    region = table_region(allowed(table, settings.tables))
    connection = connect(Endpoint(region=region), 2 * THREADS)
    space = look_up(connection, table).space
    return table, connection, Sentinel.of(space, settings.places[table])


def table_name_of(arn: str) -> str:
    """The table's name in an ARN, also in DynamoDB Local's, whose region is none."""
    name = table_name(arn)
    return name if name != arn else arn.rpartition("/")[2]
