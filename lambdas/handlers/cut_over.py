"""State CutOver of RekeyCutOver: the next step of a cutover or a rollback, and what follows.

The freeze runs inside one invocation; the long lease is waited for between two.
"""

import math
import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.rekey.allowed import allowed_pair
from keyhop.rekey.cutover.assembly import CONNECTIONS, REQUEST_SECONDS, change_of
from keyhop.rekey.cutover.change import Change, Next
from keyhop.rekey.cutover.deployed import Deployed
from keyhop.rekey.opening import plan_of, side_table
from keyhop.rekey.request import CutOverInput

from handlers.settings import CutOverSettings
from handlers.telemetry import function, make_logger, report_rekey

logger = make_logger()

ABORT = "abort"


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the next state from the execution's input and the last step, which is `next` or
    `abort`.
    """
    settings = CutOverSettings.from_env(os.environ)
    asked = CutOverInput.parse(event["request"])
    change = _change(settings, asked)
    if event["step"] == ABORT:
        found = change.abort(str(event["last"].get("Error", "")))
    elif asked.dry_run:
        found = change.dry_run()
    else:
        last = event["last"]
        found = change.step(last if "action" in last else None)
    _tell(asked.rekey, found)
    return {**found.to_json(), "seconds": math.ceil(found.seconds)}


def _change(settings: CutOverSettings, asked: CutOverInput) -> Change:
    allowed = allowed_pair(settings.pairs, asked.rekey)
    connection = connect(Endpoint(), CONNECTIONS, patience=REQUEST_SECONDS)
    pair = plan_of(side_table(connection, asked.rekey), asked.rekey)
    allowed.check(pair)
    deployed = Deployed(
        boto3.client("lambda"),
        boto3.client("sqs"),
        settings.replicate,
        settings.queue,
        pair,
        lambda table: look_up(connection, table).stream,
    )
    return change_of(
        connection,
        asked.rekey,
        asked.to,
        boto3.client("dynamodbstreams"),
        deployed=deployed,
        accept=asked.accept,
        expect=asked.expect,
        freeze_limit=asked.freeze_limit,
        told=lambda step: logger.info("stepped", step=step),
    )


def _tell(destination: str, found: Next) -> None:
    told: dict[str, float] = {}
    if found.pause is not None:
        told["PauseSeconds"] = found.pause
    if found.action == "called off":
        told["CutoversAborted"] = 1.0
    if told:
        report_rekey(destination, **told)
    logger.info(found.action, stage=found.control.stage, why=found.why)
