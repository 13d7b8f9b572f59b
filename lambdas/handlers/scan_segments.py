"""State ScanSegments: work a group of segments until it is done or the time is nearly over."""

import os
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Tally
from keyhop.jobs.work import GroupWork, scan_segments

from handlers.settings import ScanSettings, key_indexes_of, runs_in
from handlers.telemetry import count, count_reads, function_tracer

logger = Logger()
metrics = Metrics()
tracer = function_tracer()


@logger.inject_lambda_context
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """From an item of the map, and a checkpoint if there is one, to the next checkpoint."""
    settings = ScanSettings.from_env(os.environ)
    work = GroupWork.from_state(event)
    logger.append_keys(run=work.run, group=work.group)
    tally = Tally()
    runs = runs_in(settings.bucket)
    try:
        worked = scan_segments(
            work,
            runs,
            settings.tables,
            context.get_remaining_time_in_millis() / 1000,
            context.aws_request_id,
            tally,
            walks=key_indexes_of(runs, settings.places).walker,
        )
    finally:
        count_reads(metrics, tally)
    count(metrics, KeysFound=worked.keys, Slices=worked.commits)
    if work.max_read_rate is not None:
        count(metrics, ReadBudget=work.max_read_rate)
    logger.info("worked", done=worked.done, keys=worked.keys, **tally.to_json())
    return worked.to_state()
