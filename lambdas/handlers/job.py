"""The states of a job, in the order in which they run: one function for each state.

Each function imports what only it needs, so that none starts slower than necessary.
"""

from typing import TYPE_CHECKING, Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.errors import RunFailed
from keyhop.jobs import fleet
from keyhop.jobs.journal import Commit, RunPlan, usage_json
from keyhop.jobs.runs import ExecutionContext
from keyhop.rekey.pair import allowed_pair
from keyhop.rekey.request import BACKFILL, VERIFY

from handlers.settings import CleanUpSettings, JobSettings, PlanSettings, WorkerSettings
from handlers.telemetry import Reading, function, logger, report, report_rekey

if TYPE_CHECKING:
    from keyhop.jobs.request import RunInput
    from keyhop.key_index.request import WalkInput

MOST_CAUSE = 16_000
"""The maximum length of a cause. An error can have 32,768 characters (AWS documentation), and the
error of a walk is contained in another one."""


@function
def plan_run(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """State PlanRun: check the input, look at the table, plan the run.

    Return the state for ScanGroups, or for the end, from the execution's input.
    """
    from keyhop.rekey.compare.digests import nothing_to_compare
    from keyhop.rekey.task import side_table

    settings = PlanSettings.from_env()
    task = event.get("task", "keys")
    request = _inputs()[task].parse(event["input"])
    deployment = settings.deployment_for(task)
    if task in (BACKFILL, VERIFY):
        allowed_pair(settings.pairs, request.table)
    if task == VERIFY and event["input"].get("scheduled"):
        side = side_table(deployment.connect(request.table, fleet.CONNECTIONS), request.table)
        if (why := nothing_to_compare(side)) is not None:
            logger.info("nothing to compare", table=request.table, why=why)
            return {"dryRun": True, "estimate": {"table": request.table, "skipped": why}}
    usage = Usage()
    opening: list[Commit] = []
    planner = fleet.Planner(
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


def _inputs() -> "dict[str, type[RunInput | WalkInput]]":
    """Return the input of each state machine, by its task."""
    from keyhop.each.request import EachInput
    from keyhop.key_index.request import WalkInput
    from keyhop.keys.request import KeysInput
    from keyhop.rekey.request import BackfillInput, VerifyInput
    from keyhop.report.request import ReportInput

    return {
        "keys": KeysInput,
        "key_index": WalkInput,
        "each": EachInput,
        "report": ReportInput,
        BACKFILL: BackfillInput,
        VERIFY: VerifyInput,
    }


@function
def scan_segments(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """State ScanSegments: process a group of segments until it is done or time is short.

    Continue from the checkpoint, if there is one, and return the next checkpoint.
    """
    from keyhop.each.outcomes import FAILED

    settings = JobSettings.from_env()
    logger.append_keys(run=event["run"], group=event["item"]["group"])
    usage = Usage()
    reading = Reading(usage)
    allowed = event["maxReadRate"] or 0.0

    def report_commit(plan: RunPlan, commit: Commit | None) -> None:
        keys, ended = (commit.keys, commit.ended) if commit else (0, 0)
        failed = commit.counts[FAILED] if commit else 0
        reading.report(plan.table, plan.id, keys=keys, done=ended, allowed=allowed, failed=failed)

    result = fleet.scan_segments(
        event,
        settings.deployment,
        settings.tasks,
        _seconds_left(context),
        context.aws_request_id,
        usage,
        report=report_commit,
    )
    logger.info("worked", done=result["done"], keys=result["keys"], **usage_json(usage))
    return result


@function
def finish_run(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """State FinishRun: summarize the run, or start another round of groups.

    Return the state for a check, another round or turn, or the end, from the state of ScanGroups.
    """
    settings = WorkerSettings.from_env()
    state = fleet.finish_run(
        event["state"],
        ExecutionContext.from_context(event["execution"]),
        settings.deployment,
        settings.tasks,
        settings.worker,
        _seconds_left(context),
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


@function
def verify_run(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """State VerifyRun: read a share of the segments again, and compare the keys.

    Return the state of FinishRun with the result of the check, or for another turn.
    """
    from keyhop.keys.verify import verify_run as verify

    settings = WorkerSettings.from_env()
    usage = Usage()
    try:
        state, verdict = verify(
            event,
            settings.deployment,
            settings.tasks,
            settings.worker,
            _seconds_left(context),
            usage,
        )
    finally:
        Reading(usage).report(event["table"], event["run"])
    logger.info("checked", run=state["run"], segments=verdict.segments, drawn=verdict.drawn)
    return state


@function
def clean_up(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """State CleanUp: report why a run failed and what to do, or let a redriven run continue.

    It ends its state by the state's token, because Lambda would turn an exception into JSON, and
    nobody could read an input in the cause of the execution then. The error is the error of the
    run.
    """
    settings = CleanUpSettings.from_env()
    execution = ExecutionContext.from_context(event["execution"])
    try:
        fleet.clean_up(event["state"], execution, settings.runs, settings.worker)
    except RunFailed as failed:
        logger.error("failed", run=event["state"]["run"], cause=str(failed))
        boto3.client("stepfunctions").send_task_failure(
            taskToken=event["token"], error=failed.error, cause=str(failed)[:MOST_CAUSE]
        )
        return {}
    logger.info("redriven", run=event["state"]["run"])
    boto3.client("stepfunctions").send_task_success(taskToken=event["token"], output="{}")
    return {}


def _seconds_left(context: LambdaContext) -> float:
    return context.get_remaining_time_in_millis() / 1000
