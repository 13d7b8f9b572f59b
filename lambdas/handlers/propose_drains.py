"""ProposeDrains: says which keys have more shards than needed; drains them if the settings say so.

It answers [{"table", "key", "from", "to", "reason", "started"}]; with a binary key there is
"typed": true besides. So table, key, `to` and typed are the input of DrainShards. Keys are in the
answer and in the inputs of executions, and in no log.
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
"""Drains that one invocation starts: each writes to its table, and the others come next time."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> list[dict[str, Any]]:
    """Return proposals for all sharded tables. The event is ignored."""
    settings = ProposeSettings.from_env(os.environ)
    proposed: list[dict[str, Any]] = []
    failed: list[KeyhopError] = []
    for name in settings.tables:
        try:
            with at_work(name, context) as table:
                of_table = [proposal(name, one) for one in proposals(table)]
            report(name, DrainsProposed=len(of_table))
            proposed += of_table
        except KeyhopError as error:  # the other tables are looked through all the same
            logger.error("not looked through", table=name, cause=type(error).__name__)
            failed.append(error)
    started = 0
    if settings.start:
        started = start(boto3.client("stepfunctions"), settings.machine, proposed)
    logger.info("proposed", drains=len(proposed), started=started)
    if failed:
        raise failed[0]
    return proposed


def proposal(table: str, one: KeyShards) -> dict[str, Any]:
    """One key's, as JSON."""
    key = {"key": one.key}
    if not isinstance(one.key, str):
        key = {"key": value_json(one.key, typed=True), "typed": True}
    return {
        "table": table,
        **key,
        "from": one.shards.number,
        "to": one.would_do,
        "reason": one.reason,
        "started": False,
    }


def start(stepfunctions: Any, machine: str, proposed: list[dict[str, Any]]) -> int:
    """Start DrainShards for the first of the proposals, and note which; returns how many."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    started = 0
    for one in proposed[:MOST_STARTED]:
        wanted = {name: one[name] for name in ("table", "key", "typed") if name in one}
        try:
            stepfunctions.start_execution(
                stateMachineArn=machine,
                name=execution_name(one, today),
                input=json.dumps({**wanted, "shards": one["to"]}),
            )
        except stepfunctions.exceptions.ExecutionAlreadyExists:
            continue  # it was started today: the remaining ones are proposed again tomorrow
        one["started"] = True
        started += 1
    return started


def execution_name(one: dict[str, Any], day: str) -> str:
    """The same for one key on one day, whatever is proposed; it does not show the key."""
    identity = json.dumps([one["table"], one["key"]], sort_keys=True)
    return f"{day}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
