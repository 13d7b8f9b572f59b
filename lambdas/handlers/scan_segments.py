"""State ScanSegments: process a group of segments until it is done or time is short."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.each.outcomes import FAILED
from keyhop.jobs.fleet import scan_segments
from keyhop.jobs.journal import Commit, RunPlan, usage_json

from handlers.settings import JobSettings
from handlers.telemetry import Reading, function, make_logger

logger = make_logger()


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Continue from the checkpoint, if there is one, and return the next checkpoint."""
    settings = JobSettings.from_env(os.environ)
    logger.append_keys(run=event["run"], group=event["item"]["group"])
    usage = Usage()
    reading = Reading(usage)
    allowed = event["maxReadRate"] or 0.0

    def report(plan: RunPlan, commit: Commit | None) -> None:
        keys, ended = (commit.keys, commit.ended) if commit else (0, 0)
        failed = commit.counts[FAILED] if commit else 0
        reading.report(plan.table, plan.id, keys=keys, done=ended, allowed=allowed, failed=failed)

    result = scan_segments(
        event,
        settings.deployment,
        settings.tasks,
        context.get_remaining_time_in_millis() / 1000,
        context.aws_request_id,
        usage,
        report=report,
    )
    logger.info("worked", done=result["done"], keys=result["keys"], **usage_json(usage))
    return result
