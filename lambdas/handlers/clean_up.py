"""State CleanUp: say why a run failed and what to do; or let a redriven one go on."""

import os
import sys
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.failure import RunFailed, clean_up
from keyhop.jobs.runs import Execution

from handlers.settings import CleanUpSettings
from handlers.telemetry import count, function

logger = Logger()
metrics = Metrics()


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Fails with RunFailed on purpose: so ends the execution, with a cause for people."""
    settings = CleanUpSettings.from_env(os.environ)
    execution = Execution.from_context(event["execution"])
    runs = settings.runs
    try:
        clean_up(event["state"], execution, event["entered"], runs, settings.worker)
    except RunFailed as failed:
        count(metrics, RunsFailed=1)
        logger.error("failed", run=event["state"]["run"], cause=str(failed))
        sys.tracebacklimit = 0  # the execution's cause is for people: no stack trace in it
        raise
    logger.info("redriven", run=event["state"]["run"])
    return {}
