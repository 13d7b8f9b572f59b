"""The steps of ReportKeys: examine a table, evaluate the result, and write the page."""

import time
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.request import allowed
from keyhop.jobs.runs import ExecutionContext
from keyhop.report.latest import latest_in
from keyhop.report.request import ReportInput
from keyhop.report.steps import Steps

from handlers.settings import JobSettings
from handlers.telemetry import function, logger, report_findings

CONNECTIONS = 4


@function
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the next state from the step, the input and the state."""
    settings = JobSettings.from_env()
    execution = ExecutionContext.from_context(event["execution"])
    request = ReportInput.parse(event["input"])
    table = allowed(request.table, settings.tables)
    runs = settings.deployment
    steps = Steps(
        ReportInput.of(request),
        request.job_input,
        table,
        execution,
        runs.connect(table, CONNECTIONS),
        runs.journal(execution.name),
        runs.journal,
        latest_in(runs.s3, runs.bucket, table),
        partial(report_findings, table),
        time.time,
    )
    state = steps.take(event["step"], event.get("state") or {})
    logger.info("examined", step=event["step"], table=table)
    return state
