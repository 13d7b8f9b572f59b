"""State PlanRun: check the input, look at the table, plan the run."""

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.jobs.fleet import Planner
from keyhop.jobs.runs import Execution
from keyhop.key_index.request import parse_walk
from keyhop.keys.request import parse

from handlers.settings import PlanSettings
from handlers.telemetry import count, count_reads, function

logger = Logger()
metrics = Metrics()

PARSERS = {"keys": parse, "key_index": parse_walk}
"""By the task of the state machine: what reads its input."""


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From the execution's input to the state for ScanGroups, or for the end."""
    settings = PlanSettings.from_env(os.environ)
    request = PARSERS[event.get("task", "keys")](event["input"])
    usage = Usage()
    planner = Planner(
        Execution.from_context(event["execution"]),
        settings.deployment,
        settings.tasks,
        settings.worker,
        usage,
        settings.most_workers,
    )
    try:
        state = planner.plan_run(request)
    finally:
        count_reads(metrics, usage)
    count(metrics, RunsPlanned=1)
    logger.info("planned", run=state.get("run"), table=request.table, plan=state.get("plan"))
    return state
