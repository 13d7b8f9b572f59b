"""A job by many workers, ended: the state FinishRun, which may ask for more of PlanRun's map."""

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from keyhop.errors import BrokenPromise, BudgetSpent, Disbelieved
from keyhop.jobs.costs import FunctionSize, run_cost
from keyhop.jobs.finish import conclude
from keyhop.jobs.groups import shared_again
from keyhop.jobs.journal import DISBELIEVED
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.part_index import PARTS, write_part_index
from keyhop.jobs.plan_run import CONNECTIONS, groups_of
from keyhop.jobs.runs import Deployment, Execution, Runs
from keyhop.jobs.scan_segments import working_seconds
from keyhop.jobs.task import Tasks
from keyhop.wording import counted


def finish_run(
    state: Mapping[str, Any],
    execution: Execution,
    deployment: Deployment,
    tasks: Tasks,
    worker: FunctionSize,
    remaining_seconds: float = math.inf,
) -> dict[str, Any]:
    """Sum a run up; returns the state for what follows: a check, the end, another round, this
    function once more, or another plan: of the run that follows, or of the same one anew, if what
    was read is not to be believed.

    May be called again. Raises BrokenPromise if the result is not whole, BudgetSpent if groups are
    left that nothing may be read for, and NoProgress if the time did not suffice.
    """
    over_at = time.monotonic() + working_seconds(remaining_seconds)
    runs = deployment.runs
    journal, plan = runs.begun(state["run"])
    if (noted := journal.load(DISBELIEVED)) is not None:
        return {**state, "next": "plan", "disbelieved": noted["why"]}
    task = tasks[plan.task](deployment.connect(plan.table, CONNECTIONS), plan.options)
    try:
        totals, summary = conclude(
            journal,
            plan,
            task,
            over_at,
            figures=lambda totals: figures(plan, totals, worker, execution),
            index_parts=lambda parts: write_part_index(runs.store(plan.id), parts),
        )
    except Disbelieved as error:
        return {**state, "next": "plan", "disbelieved": str(error)}
    if summary is None:
        return {**state, "next": "finish"}
    if not summary["finished"]:
        return _another_round(state, execution, runs, plan, totals)
    if state.get("follows"):
        return {**state, "next": "plan"}
    return {
        **state,
        "next": "verify" if state["verifyShare"] is not None else "end",
        "readUnitsBefore": totals.usage.read_units,
        "result": output(runs, plan, summary, task.outputs),
    }


def figures(
    plan: RunPlan, totals: Totals, worker: FunctionSize, execution: Execution
) -> dict[str, Any]:
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
            totals.usage.read_units,
            totals.seconds,
            invocations,
            plan.groups,
            totals.commits,
            totals.usage.write_units,
            plan.prices,
        ),
    }


def output(
    runs: Runs, plan: RunPlan, manifest: Mapping[str, Any], more: Mapping[str, str]
) -> dict[str, Any]:
    """The execution's output: first what a person looks for, then the totals. It holds no keys.

    more: what else of the manifest is told, by the names in the output.
    """
    store = runs.store(plan.id)
    names = ("run", "finished", "table", "index", "method", "format", "keys", "requests")
    figures_ = ("read_units", "seconds", "throttles", "cost")
    segments = {name: count for name, count in manifest["segments"].items() if name != "keys"}
    source = plan.table if plan.index is None else f"the index {plan.index} of {plan.table}"
    return {
        "says": f"{counted(manifest['keys'], 'key')} of {source}: in the files that {PARTS} names.",
        "parts": store.url(PARTS),
        "manifest": store.url("manifest.json"),
        **{name: manifest[name] for name in (*names, *figures_)},
        **{shown: manifest[name] for name, shown in more.items() if name in manifest},
        "segments": segments,
    }


def _another_round(
    state: Mapping[str, Any], execution: Execution, runs: Runs, plan: RunPlan, totals: Totals
) -> dict[str, Any]:
    waiting = [group for group in range(plan.groups) if group not in totals.finished]
    limit = state["readUnitsLimit"]
    if limit is None:
        raise BrokenPromise(
            f"{len(waiting)} of {counted(plan.groups, 'group')} "
            f"{'is' if len(waiting) == 1 else 'are'} not finished, though their workers ended: "
            f"please report it."
        )
    spent = plan.spent(totals.usage)
    shares, least = shared_again(
        limit - spent,
        totals.spent_by_group,
        waiting,
        state["leastShare"],
        is_stuck=spent <= state["readUnitsBefore"],
        served=state["groups"]["count"],
    )
    if not shares:
        raise BudgetSpent(
            f"Of {plan.limit} too little is left for the next pages, after {spent:,.1f} units of "
            f"the run in all."
        )
    round_ = state["groups"]["round"] + 1
    return {
        **state,
        "next": "scan",
        "readUnitsBefore": spent,
        "leastShare": least,
        "maxConcurrency": min(state["maxConcurrency"], len(shares)),
        **groups_of(runs, plan.id, execution, round_, dict(shares)),
    }
