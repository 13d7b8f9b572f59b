"""State CleanUp: what a failed run has come to, why, and what to do about it."""

import json
from collections.abc import Mapping
from typing import Any

from keyhop.enumerate.bucket import Bucket
from keyhop.enumerate.fleet.costs import Worker
from keyhop.enumerate.fleet.finishing import unfinished_manifest
from keyhop.enumerate.fleet.runs import Execution, Runs, load
from keyhop.errors import KeyhopError

FAILED = "failed.json"
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
    "GaveUp": "When the table has room again, redrive the execution, or: {resume}.",
}
OTHER_ADVICE = "Redrive the execution to go on from what is committed, or: {resume}."


class RunFailed(KeyhopError):
    """A run failed; the message says why, and what to do."""


def clean_up(
    run: str, failure: Mapping[str, Any], execution: Execution, runs: Runs, worker: Worker
) -> None:
    """Raise RunFailed; or return, if somebody has redriven the execution since it failed here.

    What is committed stays, for a later start; a manifest says how far it is.
    """
    store = runs.store(run)
    before = load(store, FAILED)
    note = {"execution": execution.key, "redrives": execution.redrives}
    store.replace(FAILED, json.dumps(note).encode())
    if before and before["execution"] == execution.key and execution.redrives > before["redrives"]:
        for name in store.sizes(FAILURES):
            store.delete(name)
        return
    raise RunFailed(_message(run, failure, execution, runs, worker))


def _message(
    run: str, failure: Mapping[str, Any], execution: Execution, runs: Runs, worker: Worker
) -> str:
    try:
        totals, plan = unfinished_manifest(runs, run, worker)
        resume = json.dumps({"table": plan.table, "resume": run})
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
