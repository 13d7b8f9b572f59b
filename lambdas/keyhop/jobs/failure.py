"""State CleanUp: what a failed run has come to, why, and what to do about it."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from keyhop.errors import KeyhopError
from keyhop.jobs.costs import Worker
from keyhop.jobs.fleet import note_progress
from keyhop.jobs.journal import Journal
from keyhop.jobs.runs import Execution, Runs
from keyhop.storage.s3 import Bucket

FAILURES = "failures"
TOLERANCE_EXCEEDED = "States.ExceedToleratedFailureThreshold"

REDRIVE_TAKES = timedelta(seconds=3)
"""From a redrive to the state that it begins at; a failure of the map takes longer."""

MORE_UNITS = 2
"""What is advised after a budget was spent: so many times as much."""

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
    """A run failed; the message says why, and what to do."""


def clean_up(
    state: Mapping[str, Any], execution: Execution, entered: str, runs: Runs, worker: Worker
) -> None:
    """Raise RunFailed; or return, if somebody has redriven the execution that failed here.

    state: run, failure, and the input by which to go on with the run. entered: when the state was
    entered, which is the same for all attempts at it. What is committed stays, for a later start; a
    summary says how far it is.
    """
    if must_fail(execution, entered):
        raise RunFailed(_message(state, execution, runs, worker))
    store = runs.store(state["run"])
    for name in store.sizes(FAILURES):
        if (Journal(store).load(name) or {}).get("execution") == execution.id:
            store.delete(name)


def must_fail(execution: Execution, entered: str) -> bool:
    """Whether the state fails the run, and does not let a redriven one go on.

    A redrive begins at the state that failed: so this one was entered before the redrive, or right
    after it. If it was entered later, then because the redriven run has failed again.
    """
    if execution.redriven is None:
        return True
    since = datetime.fromisoformat(entered) - datetime.fromisoformat(execution.redriven)
    return since > REDRIVE_TAKES


def _message(state: Mapping[str, Any], execution: Execution, runs: Runs, worker: Worker) -> str:
    run = state["run"]
    try:
        totals, plan = note_progress(runs, run, worker, execution)
        stands = (
            f"{totals.ended:,} of {plan.segments:,} segments are done, with {totals.keys:,} keys."
        )
    except KeyhopError as error:
        stands = f"Its files cannot be summed up: {error}"
    where, name, cause = _first_cause(state["failure"], execution, runs.store(run))
    again = dict(state["again"])
    if name == "BudgetSpent" and "maxReadUnits" in again:
        again["maxReadUnits"] *= MORE_UNITS
    resume = f"start again with {json.dumps(again)}"
    advice = ADVICE.get(name, OTHER_ADVICE).format(resume=resume)
    return f"{where}{name}: {cause} {stands} {advice}"


def _first_cause(
    failure: Mapping[str, Any], execution: Execution, store: Bucket
) -> tuple[str, str, str]:
    """Where, what and why; of a failed map, what the first of its groups has noted."""
    if failure.get("Error") == TOLERANCE_EXCEEDED:
        for name in sorted(store.sizes(FAILURES)):
            noted = Journal(store).load(name)
            if noted and noted.get("execution") == execution.id:
                group = noted["item"]["group"]
                return (f"Group {group} failed. ", *_cause(noted["failure"]))
    return ("", *_cause(failure))


def _cause(failure: Mapping[str, Any]) -> tuple[str, str]:
    """The error and its sentence: Lambda wraps an exception into JSON."""
    name, cause = str(failure.get("Error", "")), str(failure.get("Cause", ""))
    try:
        exception = json.loads(cause)
    except ValueError:
        return name, cause
    if isinstance(exception, dict) and "errorMessage" in exception:
        return str(exception.get("errorType") or name), str(exception["errorMessage"])
    return name, cause
