"""State FinishRun: summarize the run, or start another round of groups."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.jobs.fleet import finish_run
from keyhop.jobs.runs import ExecutionContext
from keyhop.rekey.allowed import allowed_pair

from handlers.settings import WorkerSettings
from handlers.telemetry import function, make_logger, report, report_rekey

logger = make_logger()


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the state for a check, another round or turn, or the end, from the state of
    ScanGroups.
    """
    settings = WorkerSettings.from_env(os.environ)
    execution = ExecutionContext.from_context(event["execution"])
    state = finish_run(
        event["state"],
        execution,
        settings.deployment,
        settings.tasks,
        settings.worker,
        context.get_remaining_time_in_millis() / 1000,
    )
    if state["next"] in ("verify", "end"):
        result = state["result"]
        report(
            result["table"],
            {"run": state["run"]},
            RunSeconds=result["seconds"],
            RunDollars=result["cost"]["total"],
        )
        if compared := result.get("compared"):
            pair = allowed_pair(settings.pairs, result["table"])
            report_rekey(pair.destination, Differences=compared["left"])
    logger.info("summed up", run=state["run"], following=state["next"])
    return state
