"""State CleanUp: report why a run failed and what to do, or let a redriven run continue.

It ends its state by the state's token, because Lambda would turn an exception into JSON, and nobody
could read an input in the cause of the execution then. The error is the error of the run.
"""

import os
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.fleet import RunFailed, clean_up
from keyhop.jobs.runs import ExecutionContext

from handlers.settings import CleanUpSettings
from handlers.telemetry import function, make_logger

logger = make_logger()

MOST_CAUSE = 16_000
"""The maximum length of a cause. An error can have 32,768 characters (AWS documentation), and the
error of a walk is contained in another one."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """End the execution by the token of the state, with a cause that people can read."""
    settings = CleanUpSettings.from_env(os.environ)
    execution = ExecutionContext.from_context(event["execution"])
    runs = settings.runs
    try:
        clean_up(event["state"], execution, runs, settings.worker)
    except RunFailed as failed:
        logger.error("failed", run=event["state"]["run"], cause=str(failed))
        boto3.client("stepfunctions").send_task_failure(
            taskToken=event["token"], error=failed.error, cause=str(failed)[:MOST_CAUSE]
        )
        return {}
    logger.info("redriven", run=event["state"]["run"])
    boto3.client("stepfunctions").send_task_success(taskToken=event["token"], output="{}")
    return {}
