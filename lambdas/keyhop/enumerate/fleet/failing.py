"""State CleanUp: what a failed run has come to, why, and what to do about it."""

import json
from collections.abc import Mapping
from typing import Any

from keyhop.enumerate.bucket import Bucket
from keyhop.enumerate.fleet.costs import Worker
from keyhop.enumerate.fleet.finishing import note_progress
from keyhop.enumerate.fleet.runs import Execution, Runs, load
from keyhop.errors import KeyhopError

NOTES = "failed"
FAILURES = "failures"
TOLERANCE_EXCEEDED = "States.ExceedToleratedFailureThreshold"

ADVICE = {
    "BrokenPromise": "Do not use this run's keys; start a new run.",
    "BudgetSpent": 'To go on: {resume}, with more "maxReadUnits".',
    "KeysMissing": (
        "If the table was written to meanwhile they may be new; without a sort key that cannot be "
        "told. Else do not use the result, and report it."
    ),
    "NotPermitted": "Give the permission (cdk deploy), then redrive the execution, or: {resume}.",
    "NoProgress": "Then redrive the execution, or: {resume}.",
    "GaveUp": "When the table has room again, redrive the execution, or: {resume}.",
}
OTHER_ADVICE = "Redrive the execution to go on from what is committed, or: {resume}."


class RunFailed(KeyhopError):
    """A run failed; the message says why, and what to do."""


def clean_up(
    run: str,
    failure: Mapping[str, Any],
    execution: Execution,
    entered: str,
    runs: Runs,
    worker: Worker,
    verify_share: float | None = None,
) -> None:
    """Raise RunFailed; or return, if somebody has redriven the execution since it failed here.

    entered: when the state was entered, which is the same for all attempts at it. What is committed
    stays, for a later start; a summary says how far it is.
    """
    store = runs.store(run)
    name = f"{NOTES}/{execution.name}.json"
    before = load(store, name)
    fails = must_fail(before, execution, entered)
    note = {
        "execution": execution.key,
        "redrives": execution.redrives,
        "entered": entered,
        "fails": fails,
    }
    store.replace(name, json.dumps(note).encode())
    if fails:
        raise RunFailed(_message(run, failure, execution, runs, worker, verify_share))
    for name in store.sizes(FAILURES):
        if (load(store, name) or {}).get("execution") == execution.id:
            store.delete(name)


def must_fail(before: Mapping[str, Any] | None, execution: Execution, entered: str) -> bool:
    """Whether the state fails the run, and does not let a redriven one go on.

    before: what it noted last time, if ever. An attempt whose answer was lost is made again: it
    must decide as it did.
    """
    if before is None or before["execution"] != execution.key:
        return True
    if (before["entered"], before["redrives"]) == (entered, execution.redrives):
        return bool(before["fails"])
    return bool(execution.redrives <= before["redrives"])


def _message(
    run: str,
    failure: Mapping[str, Any],
    execution: Execution,
    runs: Runs,
    worker: Worker,
    verify_share: float | None,
) -> str:
    try:
        totals, plan = note_progress(runs, run, worker, execution)
        check = {} if verify_share is None else {"verifyShare": verify_share}
        resume = json.dumps({"table": plan.table, "resume": run, **check})
        stands = (
            f"{totals.ended:,} of {plan.segments:,} segments are done, with {totals.keys:,} keys."
        )
    except KeyhopError as error:
        resume = json.dumps({"resume": run})
        stands = f"Its files cannot be summed up: {error}"
    where, name, cause = _first_cause(failure, execution, runs.store(run))
    advice = ADVICE.get(name, OTHER_ADVICE).format(resume=f"start again with {resume}")
    return f"{where}{name}: {cause} {stands} {advice}"


def _first_cause(
    failure: Mapping[str, Any], execution: Execution, store: Bucket
) -> tuple[str, str, str]:
    """Where, what and why; of a failed map, what the first of its groups has noted."""
    if failure.get("Error") == TOLERANCE_EXCEEDED:
        for name in sorted(store.sizes(FAILURES)):
            noted = load(store, name)
            if noted and noted.get("execution") == execution.id:
                group = noted["item"]["group"]
                return (f"Group {group} failed. ", *_cause(noted["failure"]))
    return ("", *_cause(failure))


def _cause(failure: Mapping[str, Any]) -> tuple[str, str]:
    """The error and its sentence: Lambda wraps an exception into JSON."""
    name, cause = str(failure.get("Error", "")), str(failure.get("Cause", ""))
    try:
        told = json.loads(cause)
    except ValueError:
        return name, cause
    if isinstance(told, dict) and "errorMessage" in told:
        return str(told.get("errorType") or name), str(told["errorMessage"])
    return name, cause
