"""State CleanUp: explain why a run failed, how far it is, and how to continue it."""

import json
from collections.abc import Mapping
from typing import Any

from keyhop.errors import KeyhopError
from keyhop.jobs.finish_run import figures
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import sum_up
from keyhop.jobs.price import FunctionSize
from keyhop.jobs.runs import ExecutionContext, Runs
from keyhop.storage.s3 import Bucket
from keyhop.wording import counted

FAILURES = "failures"
TOLERANCE_EXCEEDED = "States.ExceedToleratedFailureThreshold"

OTHER = "RunFailed"
"""The error name of a run that failed with an error of AWS (States.*, Lambda.*). Step Functions
retries those."""

MORE_UNITS = 2
"""The factor by which CleanUp advises to raise a budget that was spent."""

ADVICE = {
    "BrokenPromise": "Do not use this run's keys; start a new run.",
    "BudgetSpent": "To go on, with twice as much: {resume}.",
    "KeysMissing": (
        "If the table was written to meanwhile they may be new; without a sort key that cannot be "
        "exception. Else do not use the result, and report it. To check once more: {resume}."
    ),
    "SegmentsTooLarge": (
        "All keys were found, and the manifest is there; only the check failed. Check with a "
        'higher "maxReadRate": {resume}; or start a new run with more segments.'
    ),
    "NotPermitted": "Give the permission (cdk deploy), then redrive the execution, or: {resume}.",
    "NoProgress": "Then redrive the execution, or: {resume}.",
    "GaveUp": "When the table has room again, redrive the execution, or: {resume}.",
}
OTHER_ADVICE = "Redrive the execution to go on from what is committed, or: {resume}."


class RunFailed(KeyhopError):
    """A run failed. The message says why, and what to do.

    Attributes:
        error: The error name that the execution fails with.
    """

    def __init__(self, message: str, error: str = OTHER) -> None:
        super().__init__(message)
        self.error = error


def clean_up(
    state: Mapping[str, Any], execution: ExecutionContext, runs: Runs, worker: FunctionSize
) -> None:
    """Write a summary of a failed run, and raise RunFailed.

    Commits are kept, so the run can be resumed. If somebody has redriven the execution since it
    failed, delete the records of its failures and return.

    Args:
        state: The run, the failure, how many times the execution had been redriven when it failed,
            and the input that resumes the run, if there is one.
        execution: The execution.
        runs: The runs of the deployment.
        worker: The size of a worker, for the cost.
    """
    if not is_redriven(state, execution):
        raise _failed(state, execution, runs, worker)
    store = runs.store(state["run"])
    for name in store.sizes(FAILURES):
        if (Journal(store).load(name) or {}).get("execution") == execution.id:
            store.delete(name)


def is_redriven(state: Mapping[str, Any], execution: ExecutionContext) -> bool:
    """Return whether the execution was redriven since the failure that led here.

    A redrive begins at the state that failed and does not run earlier states again. So the number
    of redrives that was recorded right after the failure is smaller than the present one.
    """
    failed_after = state.get("failedAfter")
    return failed_after is not None and (failed_after["redrives"] or 0) < execution.redrives


def _failed(
    state: Mapping[str, Any], execution: ExecutionContext, runs: Runs, worker: FunctionSize
) -> RunFailed:
    run = state["run"]
    try:
        journal, plan = runs.open_run(run)
        totals, summary = sum_up(journal, plan)
        if not summary["finished"]:  # only FinishRun may mark a run as finished
            journal.write_summary(summary | figures(plan, totals, worker, execution))
        stands = (
            f"{totals.ended:,} of {counted(plan.segments, 'segment')} "
            f"{'is' if totals.ended == 1 else 'are'} done, with "
            f"{counted(totals.keys, 'key')}{_outcomes(totals.counts)}."
        )
    except KeyhopError as error:
        stands = f"Its files cannot be summed up: {error}"
    where, name, cause = _first_cause(state["failure"], execution, runs.store(run))
    error_name, detail = (OTHER, f"{name}: {cause}") if "." in name else (name, cause)
    says = f"{where}{detail} {stands}"
    if state["again"] is None:
        return RunFailed(says, error_name)
    next_input = dict(state["again"])
    if name == "BudgetSpent":
        for limit in {"maxReadUnits", "maxWriteUnits"} & next_input.keys():
            next_input[limit] *= MORE_UNITS
    resume = f"start again with {json.dumps(next_input)}"
    if state.get("undo") is not None:
        says = (
            f"{says} Once it is finished, start with {json.dumps(state['undo'])} to take it back."
        )
    return RunFailed(f"{says} {ADVICE.get(name, OTHER_ADVICE).format(resume=resume)}", error_name)


def _outcomes(counts: Mapping[str, int]) -> str:
    """Format the number of keys of each outcome, with the largest number first."""
    ordered = sorted(counts.items(), key=lambda entry: -entry[1])
    return (
        f" ({', '.join(f'{count:,} {outcome}' for outcome, count in ordered)})" if ordered else ""
    )


def _first_cause(
    failure: Mapping[str, Any], execution: ExecutionContext, store: Bucket
) -> tuple[str, str, str]:
    """Return the place, the name and the message of an error.

    For a failed map, it is the error that the first of its failed groups has recorded.
    """
    if failure.get("Error") == TOLERANCE_EXCEEDED:
        for name in sorted(store.sizes(FAILURES)):
            noted_failure = Journal(store).load(name)
            if noted_failure and noted_failure.get("execution") == execution.id:
                group = noted_failure["item"]["group"]
                return (f"Group {group} failed. ", *_cause(noted_failure["failure"]))
    return ("", *_cause(failure))


def _cause(failure: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the message of an error. Lambda wraps an exception in JSON."""
    name, cause = str(failure.get("Error", "")), str(failure.get("Cause", ""))
    try:
        exception = json.loads(cause)
    except ValueError:
        return name, cause
    if isinstance(exception, dict) and "errorMessage" in exception:
        return str(exception.get("errorType") or name), str(exception["errorMessage"])
    return name, cause
