"""State FinishRun: sum the run up, or send groups round again."""

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.fleet import finish_run
from keyhop.jobs.runs import Execution

from handlers.settings import FinishSettings
from handlers.telemetry import count, function

logger = Logger()
metrics = Metrics()


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From the state of ScanGroups to the state for a check, another round, or the end."""
    settings = FinishSettings.from_env(os.environ)
    execution = Execution.from_context(event["execution"])
    state = finish_run(
        event["state"],
        execution,
        settings.deployment,
        settings.tasks,
        settings.worker,
        context.get_remaining_time_in_millis() / 1000,
    )
    if state["next"] != "scan":
        result = state["result"]
        count(metrics, RunsFinished=1)
        count(metrics, RunSeconds=result["seconds"], RunDollars=result["cost"]["total"])
    logger.info("summed up", run=state["run"], following=state["next"])
    return state
