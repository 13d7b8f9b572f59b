"""State PlanRun: check the input, look at the table, plan the run."""

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Tally
from keyhop.jobs.plan import plan_run
from keyhop.jobs.request import parse
from keyhop.jobs.runs import Execution

from handlers.settings import PlanSettings, key_indexes_of, runs_in
from handlers.telemetry import count, count_reads, function_tracer

logger = Logger()
metrics = Metrics()
tracer = function_tracer()


@logger.inject_lambda_context
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From the execution's input to the state for ScanGroups, or for the end."""
    settings = PlanSettings.from_env(os.environ)
    execution = Execution.from_context(event["execution"])
    request = parse(event["input"])
    runs = runs_in(settings.bucket)
    tally = Tally()
    try:
        state = plan_run(
            request,
            execution,
            runs,
            settings.tables,
            settings.worker,
            tally,
            settings.most_workers,
            key_indexes_of(runs, settings.places).source,
        )
    finally:
        count_reads(metrics, tally)
    count(metrics, RunsPlanned=1)
    logger.info("planned", run=state.get("run"), table=request.table, plan=state.get("plan"))
    return state
