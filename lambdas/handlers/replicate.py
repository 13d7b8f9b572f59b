"""The worker of re-keys: it replicates a batch of stream records into the other table of a pair.

It processes the whole batch or fails, and then the same batch is retried. The stream's ARN
identifies the pair and the direction. Its logs and metrics contain no keys.
"""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from random import SystemRandom
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import Key, from_json, typed_json
from keyhop.rekey.cutover.change import REQUEST_SECONDS
from keyhop.rekey.cutover.deployed import GIVEN_UP, PROBE, Probe
from keyhop.rekey.cutover.markers import random_key
from keyhop.rekey.pair import allowed_pair, pair_of_stream
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.task import opened
from keyhop.rekey.worker.drive import THREADS
from keyhop.rekey.worker.replicate import Replicator, Worked

from handlers.settings import ReplicateSettings, deployed_transform
from handlers.telemetry import function, logger, report_rekey, report_throttles

MARGIN_SECONDS = 10.0
"""The last seconds of an invocation, in which no request is sent that might outlast it."""

MOST_PLACES = 40
"""The maximum number of places in a message, which has 256 KB. A key has at most 3 KB, which are 4
KB of base64, and the names of attributes."""

PLAN_SECONDS = 5
"""The time for which a plan is cached. It is replaced only after a `cancel` and a `create`, which
attaches the worker again."""


@function
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str] | None:
    """Process the records of one stream.

    The event may also be a question of CutOver (deployed.PROBE), or a message of the failure
    queue, whose source key is settled again. Without a `key`, claims are settled. After an
    exception, the records must be retried.
    """
    if PROBE in event:
        return {"why_not": _why_not(event[PROBE])}
    if GIVEN_UP in event:
        return {"why_not": _settle_again(event, context)}
    records = event["Records"]
    stream = records[0]["eventSourceARN"]
    pair, _ = pair_of_stream(ReplicateSettings.from_env().pairs, stream)
    replicator = _replicator(stream, context)
    try:
        result = replicator.work(records)
    finally:
        usage = replicator.take_usage()
        report_throttles(pair.destination, usage.throttles)
    _report(pair.destination, result)
    logger.info(
        "replicated",
        share=result.share,
        records=result.records,
        keys=result.keys,
        lag=round(result.lag, 3),
        read_units=usage.read_units,
        write_units=usage.write_units,
        retries=usage.retries,
    )
    return None


def _replicator(stream: str, context: LambdaContext) -> Replicator:
    """Return the replicator of a stream, limited to the remaining time of this invocation."""
    remaining = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
    replicator = _replicator_of(stream, _plan_of(stream, int(time.time() // PLAN_SECONDS)))
    replicator.end_at(time.monotonic() + remaining)
    return replicator


def _settle_again(message: Mapping[str, Any], context: LambdaContext) -> str:
    """Settle a source key or all claims again; return why it failed, or an empty text."""
    pairs = ReplicateSettings.from_env().pairs
    pair = allowed_pair(pairs, message[GIVEN_UP])
    table = pair.source if message["direction"] == "forward" else pair.destination
    stream = look_up(_connection(), table).stream
    if stream is None:
        return f"the stream of {table} is off"
    replicator = _replicator(stream, context)
    if "key" in message:
        is_settled = replicator.again(
            from_json(message["key"]), [from_json(place) for place in message["places"]]
        )
        return "" if is_settled else "it stays a claim, as verify and batches try again"
    replicator.sweep()
    return ""


def _why_not(table: str) -> str:
    """Return why this function cannot write to a table; an empty text if it can."""
    allowed_pair(ReplicateSettings.from_env().pairs, table)
    connection = _connection()
    key = random_key(look_up(connection, table).space, SystemRandom())
    return Probe(connection, table).why_not(key)


def _report(destination: str, result: Worked) -> None:
    for error in result.failures:
        logger.error("not written", cause=type(error).__name__, table=destination)
    report_rekey(
        destination,
        RecordsReplicated=result.keys,
        ReplicationLag=result.lag,
        ClaimsLeft=result.left,
        ClaimsSettled=result.swept,
        Unmappable=result.unmapped,
        RecordsGivenUp=result.given_up,
        Stragglers=result.stragglers,
    )


@lru_cache(maxsize=64)
def _plan_of(stream: str, moment: int) -> str:
    """Return the digest of the plan, read once in each `moment`."""
    pair, _ = pair_of_stream(ReplicateSettings.from_env().pairs, stream)
    return SideTable(_connection(), pair.side).plan_digest()


@lru_cache(maxsize=64)
def _replicator_of(stream: str, plan: str) -> Replicator:
    """Return the replicator for a stream and the digest of a plan, as a process outlives a plan."""
    settings = ReplicateSettings.from_env()
    pair, direction = pair_of_stream(settings.pairs, stream)
    connection = _connection()
    rekey = opened(connection, pair.destination, partial(deployed_transform, settings.pairs))

    def give_up(key: Key, places: Sequence[Key]) -> None:
        client = boto3.client("sqs")
        for first in range(0, len(places) or 1, MOST_PLACES):
            message = {
                GIVEN_UP: pair.destination,
                "direction": direction,
                "key": key,
                "places": places[first : first + MOST_PLACES],
            }
            client.send_message(QueueUrl=settings.queue, MessageBody=typed_json(message))

    return Replicator(
        rekey.pair,
        direction,
        rekey.transform,
        lambda table: connection,
        give_up=give_up,
    )


@lru_cache(maxsize=1)
def _connection() -> Connection:
    return connect(Endpoint(), 2 * THREADS, patience=REQUEST_SECONDS)
