"""State VerifyRun: read a share of the segments again, and compare the keys."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.keys.verify import verify_run

from handlers.settings import WorkerSettings
from handlers.telemetry import Reading, function, make_logger

logger = make_logger()


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the state of FinishRun with the result of the check, or for another turn."""
    settings = WorkerSettings.from_env(os.environ)
    usage = Usage()
    try:
        state, verdict = verify_run(
            event,
            settings.deployment,
            settings.tasks,
            settings.worker,
            context.get_remaining_time_in_millis() / 1000,
            usage,
        )
    finally:
        Reading(usage).report(event["table"], event["run"])
    logger.info("checked", run=state["run"], segments=verdict.segments, drawn=verdict.drawn)
    return state
