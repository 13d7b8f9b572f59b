"""The keeper: reconciles the partition keys that a batch of stream records names.

What it logs and counts holds no keys.
"""

import os
import time
from functools import lru_cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.client import Client, Endpoint
from keyhop.dynamodb.tables import describe
from keyhop.jobs.request import allowed, table_name
from keyhop.jobs.runs import dynamodb_for
from keyhop.key_index.collections import Collections
from keyhop.key_index.keeper import WORKERS, keep
from keyhop.key_index.sentinel import Sentinel

from handlers.settings import KeeperSettings
from handlers.telemetry import count, count_throttles, function_tracer

logger = Logger()
metrics = Metrics()
tracer = function_tracer()

MARGIN_SECONDS = 10.0
LEAST_PATIENCE_SECONDS = 1.0


@logger.inject_lambda_context
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From the records of one stream to those that must come again."""
    records = event["Records"]
    remaining = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
    table, client, endpoint, sentinel = _keeper_of(records[0]["eventSourceARN"])
    collections = Collections(
        client,
        table,
        sentinel,
        endpoint=endpoint,
        patience=max(LEAST_PATIENCE_SECONDS, remaining),
        ends_at=time.monotonic() + max(LEAST_PATIENCE_SECONDS, remaining),
    )
    kept = keep(
        records,
        collections,
        lambda error: logger.error("not reconciled", cause=type(error).__name__, table=table),
    )
    spent = collections.spent
    count(
        metrics,
        KeysReconciled=kept.keys,
        SentinelsPut=spent.put,
        SentinelsDeleted=spent.deleted,
        PlacesOccupied=spent.occupied,
        RecordsFailed=len(kept.failed),
        KeeperReadUnits=spent.read_units,
        KeeperWriteUnits=spent.write_units,
    )
    count_throttles(metrics, spent.throttles)
    told = spent.to_json()
    logger.info("kept", records=kept.records, keys=kept.keys, failed=len(kept.failed), **told)
    return kept.to_response()


@lru_cache(maxsize=64)
def _keeper_of(stream: str) -> tuple[str, Client, Endpoint, Sentinel]:
    """Table, client and sentinels for a stream: a process is warm for many batches."""
    settings = KeeperSettings.from_env(os.environ)
    arn = stream.partition("/stream/")[0]
    table = allowed(arn if arn in settings.tables else table_name_of(arn), settings.tables)
    client, endpoint = dynamodb_for(table, settings.tables, 2 * WORKERS)
    space = describe(client, endpoint, table).space
    return table, client, endpoint, Sentinel.of(space, settings.places[table])


def table_name_of(arn: str) -> str:
    """The table's name in an ARN, also in DynamoDB Local's, whose region is none."""
    name = table_name(arn)
    return name if name != arn else arn.rpartition("/")[2]
