"""The steps of BuildKeyIndex, AuditKeyIndex and RemoveKeyIndex that are not runs."""

import os
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.runs import Execution
from keyhop.key_index.life_cycle import Manager
from keyhop.streams.event_source import Mappings

from handlers.settings import ManageSettings, key_indexes_of, runs_in
from handlers.telemetry import count, function_tracer

logger = Logger()
metrics = Metrics()
tracer = function_tracer()


@logger.inject_lambda_context
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From action, step, input and state to the next state."""
    settings = ManageSettings.from_env(os.environ)
    execution = Execution.from_context(event["execution"])
    runs = runs_in(settings.bucket)
    manager = Manager(
        runs,
        settings.tables,
        key_indexes_of(runs, settings.places),
        Mappings(boto3.client("lambda"), settings.keeper, settings.queue),
        settings.settle_seconds,
        drift=lambda found: count(metrics, KeyIndexDrift=found),
    )
    state = manager.step(
        event["action"], event["step"], event["input"], execution, event.get("state") or {}
    )
    logger.info(
        "stepped",
        action=event["action"],
        step=event["step"],
        following=state["next"],
        says=state.get("says"),
    )
    return state
