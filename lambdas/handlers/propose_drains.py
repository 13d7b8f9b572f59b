"""ProposeDrains: proposes drains of keys with surplus shards, and starts them if configured.

It returns [{"table", "key", "from", "to", "reason", "started"}], and "typed": true with a binary
key. Table, key, `to` and typed are the input of DrainShards. Keys are in the answer and in the
inputs of executions, but never in a log.
"""

import datetime
import hashlib
import json
import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.errors import KeyhopError
from keyhop.sharding.manage import KeyShards, proposals

from handlers.item_json import value_json
from handlers.settings import ProposeSettings
from handlers.sharded_tables import at_work
from handlers.telemetry import function, make_logger, report

logger = make_logger()

MOST_STARTED = 100
"""The maximum number of drains per invocation, as they write. The next one starts the rest."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> list[dict[str, Any]]:
    """Return proposals for all sharded tables. The event is ignored."""
    settings = ProposeSettings.from_env(os.environ)
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
        started = start(boto3.client("stepfunctions"), settings.machine, proposed)
    logger.info("proposed", drains=len(proposed), started=started)
    if failed:
        raise failed[0]
    return proposed


def proposal(table: str, key_shards: KeyShards) -> dict[str, Any]:
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


def start(stepfunctions: Any, machine: str, proposed: list[dict[str, Any]]) -> int:
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
