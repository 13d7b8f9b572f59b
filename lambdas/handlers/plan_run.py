"""State PlanRun: check the input, look at the table, plan the run."""

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.each.request import EachInput
from keyhop.jobs.fleet import CONNECTIONS, Planner
from keyhop.jobs.journal import Commit
from keyhop.jobs.request import RunInput
from keyhop.jobs.runs import ExecutionContext
from keyhop.key_index.request import WalkInput
from keyhop.keys.request import KeysInput
from keyhop.rekey.allowed import allowed_pair
from keyhop.rekey.daily import nothing_to_compare
from keyhop.rekey.opening import side_table
from keyhop.rekey.request import BACKFILL, VERIFY, BackfillInput, VerifyInput
from keyhop.report.request import ReportInput

from handlers.settings import PlanSettings
from handlers.telemetry import Reading, function, make_logger

logger = make_logger()

INPUTS: dict[str, type[RunInput | WalkInput]] = {
    "keys": KeysInput,
    "key_index": WalkInput,
    "each": EachInput,
    "report": ReportInput,
    BACKFILL: BackfillInput,
    VERIFY: VerifyInput,
}
"""The input of each state machine, by its task."""


@function(logger)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return the state for ScanGroups, or for the end, from the execution's input."""
    settings = PlanSettings.from_env(os.environ)
    task = event.get("task", "keys")
    request = INPUTS[task].parse(event["input"])
    deployment = settings.deployment_for(task)
    if task in (BACKFILL, VERIFY):
        allowed_pair(settings.pairs, request.table)
    if task == VERIFY and event["input"].get("scheduled"):
        side = side_table(deployment.connect(request.table, CONNECTIONS), request.table)
        if (why := nothing_to_compare(side)) is not None:
            logger.info("nothing to compare", table=request.table, why=why)
            return {"dryRun": True, "estimate": {"table": request.table, "skipped": why}}
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
        ended = sum(commit.ended for commit in opening)
        Reading(usage).report(
            request.table,
            state.get("run"),
            keys=sum(commit.keys for commit in opening),
            done=ended,
            planned=ended + state.get("segmentsLeft", 0),
        )
    logger.info("planned", run=state.get("run"), table=request.table, plan=state.get("plan"))
    return state
