"""State PlanRun: check the input, look at the table, plan the run."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.each.request import parse as parse_each
from keyhop.jobs.model import Commit
from keyhop.jobs.plan_run import CONNECTIONS, Planner
from keyhop.jobs.runs import ExecutionContext
from keyhop.key_index.request import parse_walk
from keyhop.keys.request import parse
from keyhop.rekey.allowed import allowed_pair
from keyhop.rekey.daily import nothing_to_compare
from keyhop.rekey.opening import side_table
from keyhop.rekey.request import BACKFILL, VERIFY, parse_backfill, parse_verify
from keyhop.report.request import parse as parse_report

from handlers.settings import PlanSettings
from handlers.telemetry import Reading, function, make_logger

logger = make_logger()

PARSERS = {
    "keys": parse,
    "key_index": parse_walk,
    "each": parse_each,
    "report": parse_report,
    BACKFILL: parse_backfill,
    VERIFY: parse_verify,
}
"""By the task of the state machine: what reads its input."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the state for ScanGroups, or for the end, from the execution's input."""
    settings = PlanSettings.from_env(os.environ)
    task = event.get("task", "keys")
    request = PARSERS[task](event["input"])
    deployment = settings.deployment_for(task)
    if task in (BACKFILL, VERIFY):
        allowed_pair(settings.pairs, request.table)
    if task == VERIFY and event["input"].get("scheduled"):
        side = side_table(deployment.connect(request.table, CONNECTIONS), request.table)
        if (why := nothing_to_compare(side)) is not None:
            logger.info("nothing to compare", table=request.table, why=why)
            return {"planOnly": True, "estimate": {"table": request.table, "skipped": why}}
    usage = Usage()
    opening: list[Commit] = []
    planner = Planner(
        ExecutionContext.from_context(event["execution"]),
        deployment,
        settings.tasks,
        settings.worker,
        usage,
        settings.most_workers,
        opening.append,
        settings.max_cost,
    )
    state: dict[str, Any] = {}
    try:
        before = event.get("state") or {}
        state = planner.plan_run(request, before if before.get("next") == "plan" else None)
    finally:
        done = sum(commit.ended for commit in opening)
        Reading(usage).report(
            request.table,
            state.get("run"),
            keys=sum(commit.keys for commit in opening),
            done=done,
            planned=done + state.get("segmentsLeft", 0),
        )
    logger.info("planned", run=state.get("run"), table=request.table, plan=state.get("plan"))
    return state
