"""State CutOver of RekeyCutOver: the next step of a cutover or a rollback, and what follows.

The freeze runs within one invocation. The wait for the long lease is between two invocations.
"""

import math
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.rekey.cutover.change import CONNECTIONS, REQUEST_SECONDS, Change, Next, change_of
from keyhop.rekey.cutover.deployed import Deployed
from keyhop.rekey.pair import allowed_pair
from keyhop.rekey.request import CutOverInput
from keyhop.rekey.task import plan_of, side_table

from handlers.settings import CutOverSettings
from handlers.telemetry import function, logger, report_rekey

ABORT = "abort"


@function
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the next state; `step` in the event is `next`, or `abort` after an error."""
    settings = CutOverSettings.from_env()
    request = CutOverInput.parse(event["request"])
    change = _change(settings, request)
    if event["step"] == ABORT:
        next_step = change.abort(str(event["last"].get("Error", "")))
    elif request.dry_run:
        next_step = change.dry_run()
    else:
        last = event["last"]
        next_step = change.step(last if "action" in last else None)
    _report(request.rekey, next_step)
    return {**next_step.to_json(), "seconds": math.ceil(next_step.seconds)}


def _change(settings: CutOverSettings, request: CutOverInput) -> Change:
    allowed = allowed_pair(settings.pairs, request.rekey)
    connection = connect(Endpoint(), CONNECTIONS, patience=REQUEST_SECONDS)
    pair = plan_of(side_table(connection, request.rekey), request.rekey)
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
        request.rekey,
        request.to,
        boto3.client("dynamodbstreams"),
        deployed=deployed,
        accept=request.accept,
        expect=request.expect,
        freeze_limit=request.freeze_limit,
        report=lambda step: logger.info("stepped", step=step),
    )


def _report(destination: str, next_step: Next) -> None:
    figures: dict[str, float] = {}
    if next_step.pause is not None:
        figures["PauseSeconds"] = next_step.pause
    if next_step.action == "called off":
        figures["CutoversAborted"] = 1.0
    if figures:
        report_rekey(destination, **figures)
    logger.info(next_step.action, stage=next_step.control.stage, why=next_step.why)
