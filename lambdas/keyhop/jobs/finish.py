"""State FinishRun: from the commits of all groups to the manifest, or to another round."""

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from keyhop.errors import BrokenPromise, BudgetSpent, NoProgress
from keyhop.jobs.costs import Worker, run_cost
from keyhop.jobs.groups import MORE_IF_STUCK, allowances
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.part_index import PARTS, list_parts
from keyhop.jobs.runs import Execution, Runs, groups_of, unfinished
from keyhop.jobs.work import working_seconds
from keyhop.jobs.worker import summed_up
from keyhop.keys.logical import Fold, Folding, Parsers, by_suffix, folded


def finish_run(
    state: Mapping[str, Any],
    execution: Execution,
    runs: Runs,
    worker: Worker,
    parsers: Parsers | None = None,
    remaining_seconds: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Sum a run up; returns the state for what follows: a check, the end, or another round.

    parsers: how physical keys are read, for a run that lists logical ones. May be called again.
    Raises BrokenPromise if the result is not whole, BudgetSpent if groups are left that nothing may
    be read for, and NoProgress if the time did not suffice to fold the keys.
    """
    over_at = clock() + working_seconds(remaining_seconds)
    log, plan = runs.begun(state["run"])
    totals, summary = summed_up(log, plan)
    if not summary["finished"]:
        log.write_summary(summary | figures(plan, totals, worker, execution))
        return _another_round(state, execution, runs, plan, totals)
    # No slice can be committed any more, so what no commit names now, none ever will.
    log.sweep(totals.parts)
    parts = totals.parts
    if plan.fold is not None:
        assert parsers is not None
        found = folded(log, plan, parts, _folding(parsers, over_at, clock))
        summary, parts = found.over(summary), list(found.parts)
    list_parts(runs.store(plan.id), parts)
    manifest = log.manifest()
    if manifest is None:
        manifest = summary | figures(plan, totals, worker, execution)
        log.write_summary(manifest)
    log.forget_progress()
    return {
        **state,
        "next": "verify" if state["verifyShare"] is not None else "end",
        "readUnitsBefore": totals.tally.units,
        "result": result(runs, plan, manifest),
    }


def _folding(parsers: Parsers, over_at: float, clock: Callable[[], float]) -> Folding:
    def fold(plan: RunPlan) -> Fold:
        assert plan.fold is not None
        parse = parsers(plan.space.partition[0].type, plan.fold["separator"])
        return by_suffix(plan.space, parse)

    def check(done: int) -> None:
        if clock() > over_at:
            raise NoProgress(
                f"There was no time left after {done:,} physical keys were folded, in one place: "
                f"list the keys without logical, or with keyhop keys --logical, which has no "
                f"deadline."
            )

    return Folding(fold, check)


def figures(plan: RunPlan, totals: Totals, worker: Worker, execution: Execution) -> dict[str, Any]:
    """What the summary of a fleet has on top: dollars, and time: of this execution, by the clock,
    and of all workers of the run.
    """
    invocations = len(totals.workers)
    wall = datetime.now(UTC) - datetime.fromisoformat(execution.started)
    return {
        "seconds": round(wall.total_seconds(), 3),
        "worker_seconds": round(totals.seconds, 3),
        "groups": plan.groups,
        "invocations": invocations,
        "cost": run_cost(
            worker,
            totals.tally.units,
            totals.seconds,
            invocations,
            plan.groups,
            totals.commits,
            float(totals.tally.index["write_units"]),
        ),
    }


def result(runs: Runs, plan: RunPlan, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The execution's output: where things are, and the totals. It holds no keys."""
    store = runs.store(plan.id)
    copied = ("run", "finished", "table", "index", "method", "format", "keys", "requests")
    more = ("read_units", "seconds", "throttles", "cost")
    segments = {name: count for name, count in manifest["segments"].items() if name != "keys"}
    found = {"keyIndex": manifest["index_walk"]} if "index_walk" in manifest else {}
    if "logical" in manifest:
        found["logical"] = manifest["logical"]
    return {
        **{name: manifest[name] for name in (*copied, *more)},
        **found,
        "segments": segments,
        "manifest": store.url("manifest.json"),
        "parts": store.url(PARTS),
    }


def _another_round(
    state: Mapping[str, Any], execution: Execution, runs: Runs, plan: RunPlan, totals: Totals
) -> dict[str, Any]:
    waiting = unfinished(plan.groups, totals.finished)
    limit = state["readUnitsLimit"]
    if limit is None:
        raise BrokenPromise(
            f"{len(waiting)} of {plan.groups} groups are not finished, though their workers ended: "
            f"please report it."
        )
    is_stuck = totals.tally.units <= state["readUnitsBefore"]
    least = state["leastShare"] * (MORE_IF_STUCK if is_stuck else 1.0)
    shares = allowances(limit - totals.tally.units, totals.spent_by_group, waiting, least)
    if not shares or (is_stuck and state["groups"]["count"] == 1):
        raise BudgetSpent(
            f"Of maxReadUnits too little is left for the next pages, after "
            f"{totals.tally.units:,.1f} read units of the run in all."
        )
    round_ = state["groups"]["round"] + 1
    return {
        **state,
        "next": "scan",
        "readUnitsBefore": totals.tally.units,
        "leastShare": least,
        "maxConcurrency": min(state["maxConcurrency"], len(shares)),
        **groups_of(runs, plan.id, execution, round_, dict(shares)),
    }


def note_progress(
    runs: Runs, run: str, worker: Worker, execution: Execution
) -> tuple[Totals, RunPlan]:
    """Write what a run that failed has come to so far; raises BrokenPromise, RunConflict.

    If all its groups are finished, only FinishRun may say so.
    """
    log, plan = runs.begun(run)
    totals, summary = summed_up(log, plan)
    if not summary["finished"]:
        log.write_summary(summary | figures(plan, totals, worker, execution))
    return totals, plan
