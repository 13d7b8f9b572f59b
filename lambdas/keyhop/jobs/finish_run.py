"""The state FinishRun, which ends a run of many workers or asks for another round of its map.

A worker that was given up may still upload a part after the end of the run. A reader that lists the
parts by their prefix would count its keys twice. So readers get two lists of the parts that count,
made from the commits:

parts.json       a JSON array, the items of a distributed map: {"bucket", "key", "keys", "size"}
links/parts.txt  one s3:// address a line: what Hive's SymlinkTextInputFormat reads (Athena)
"""

import json
import math
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from keyhop.errors import BrokenPromise, BudgetSpent, StaleIndex
from keyhop.jobs.journal import STALE_INDEX
from keyhop.jobs.layout import shared_again
from keyhop.jobs.lifecycle import conclude
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.plan_run import CONNECTIONS, groups_of
from keyhop.jobs.price import FunctionSize, run_cost
from keyhop.jobs.runs import DeploymentSettings, ExecutionContext, Runs
from keyhop.jobs.scan_segments import working_seconds
from keyhop.jobs.task import Tasks
from keyhop.storage.s3 import Bucket
from keyhop.wording import counted

PARTS = "parts.json"
LINKS = "links/parts.txt"


def finish_run(
    state: Mapping[str, Any],
    execution: ExecutionContext,
    deployment: DeploymentSettings,
    tasks: Tasks,
    worker: FunctionSize,
    remaining_seconds: float = math.inf,
) -> dict[str, Any]:
    """Sum up a run, and return the next state; it is safe to call this again.

    The next state is a check, the end, another round, this function again, or another plan. That
    plan is of the run that follows, or of the same run again if what it has read may be stale.

    Raises:
        BrokenPromise: The result is incomplete.
        BudgetSpent: Some groups are unfinished, and the remaining units are too few for them.
        NoProgress: The time did not suffice.
    """
    over_at = time.monotonic() + working_seconds(remaining_seconds)
    runs = deployment.runs
    journal, plan = runs.open_run(state["run"])
    if (stale := journal.load(STALE_INDEX)) is not None:
        return {**state, "next": "plan", "stale_index": stale["why"]}
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
    except StaleIndex as error:
        return {**state, "next": "plan", "stale_index": str(error)}
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
    plan: RunPlan, totals: Totals, worker: FunctionSize, execution: ExecutionContext
) -> dict[str, Any]:
    """Return what the summary of a fleet has in addition.

    The seconds are those of this execution, by the clock. The worker seconds and the cost are those
    of all workers of the run.
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


def write_part_index(store: Bucket, parts: Iterable[Mapping[str, Any]]) -> None:
    """Write both lists of a manifest's parts; they are the same whenever they are written again."""
    ordered = sorted(parts, key=lambda part: part["name"])
    items = [
        {
            "bucket": store.bucket,
            "key": store.prefix + part["name"],
            "keys": part["keys"],
            "size": part["size"],
        }
        for part in ordered
    ]
    store.replace(PARTS, json.dumps(items).encode())
    store.replace(LINKS, "".join(f"{store.url(part['name'])}\n" for part in ordered).encode())


def output(
    runs: Runs, plan: RunPlan, manifest: Mapping[str, Any], more: Mapping[str, str]
) -> dict[str, Any]:
    """Return the execution's output, without any keys.

    It begins with what a person looks for; the totals follow.

    Args:
        more: The names of further entries of the manifest, with their names in the output.
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
        **{label: manifest[name] for name, label in more.items() if name in manifest},
        "segments": segments,
    }


def _another_round(
    state: Mapping[str, Any], execution: ExecutionContext, runs: Runs, plan: RunPlan, totals: Totals
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
    shares, least_share = shared_again(
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
        "leastShare": least_share,
        "maxConcurrency": min(state["maxConcurrency"], len(shares)),
        **groups_of(runs, plan.id, execution, round_, dict(shares)),
    }
