"""State ScanSegments: work a group of segments until it is done or the time is nearly over."""

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.jobs.model import usage_json
from keyhop.jobs.work import GroupWork, scan_segments

from handlers.settings import ScanSettings
from handlers.telemetry import count, count_reads, function

logger = Logger()
metrics = Metrics()


@function(logger, metrics)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From an item of the map, and a checkpoint if there is one, to the next checkpoint."""
    settings = ScanSettings.from_env(os.environ)
    work = GroupWork.from_state(event)
    logger.append_keys(run=work.run, group=work.group)
    usage = Usage()
    try:
        result = scan_segments(
            work,
            settings.deployment,
            settings.tasks,
            context.get_remaining_time_in_millis() / 1000,
            context.aws_request_id,
            usage,
        )
    finally:
        count_reads(metrics, usage)
    count(metrics, KeysFound=result.keys, Slices=result.commits)
    if work.max_read_rate is not None:
        count(metrics, ReadBudget=work.max_read_rate)
    logger.info("worked", done=result.done, keys=result.keys, **usage_json(usage))
    return result.to_state()
