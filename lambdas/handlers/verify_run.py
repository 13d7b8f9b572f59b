"""State VerifyRun: read a share of the segments through, and compare."""

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeysMissing
from keyhop.keys.check import verify_run

from handlers.settings import VerifySettings
from handlers.telemetry import count, count_reads, function

logger = Logger()
metrics = Metrics()


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From the state of FinishRun to itself with the check's result, or to another turn."""
    settings = VerifySettings.from_env(os.environ)
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
    except KeysMissing as error:
        count(metrics, KeysMissing=error.missing)
        raise
    finally:
        count_reads(metrics, usage)
    if verdict.is_whole:
        count(metrics, KeysMissing=0)
    logger.info("checked", run=state["run"], segments=verdict.segments, drawn=verdict.drawn)
    return state
