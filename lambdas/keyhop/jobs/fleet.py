"""A job by many workers: the states PlanRun and FinishRun of its state machine.

The states pass only names and counts; what is large, or holds keys, lies in the run's files.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BrokenPromise, BudgetSpent, NoProgress, RunConflict
from keyhop.jobs.costs import Worker, run_cost
from keyhop.jobs.estimate import estimate
from keyhop.jobs.finish import conclude, sum_up
from keyhop.jobs.first_look import Start
from keyhop.jobs.groups import (
    LEAST_BLIND_SHARE,
    LEAST_SHARE,
    MORE_IF_STUCK,
    ManyWorkers,
    allowances,
    workers_at_once,
)
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import DEFAULT_UNITS, MOST_THREADS
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.part_index import PARTS, write_part_index
from keyhop.jobs.plan import Place, begin, chosen, needs_memory, resumed
from keyhop.jobs.request import Request, allowed
from keyhop.jobs.runs import Deployment, Execution, Runs
from keyhop.jobs.task import Task, TaskPlan, Tasks
from keyhop.jobs.work import working_seconds
from keyhop.jobs.worker import GroupWorker, Progress
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

CONNECTIONS = 16
LEAST_LOOK_UNITS = 50.0
LOOK_SECONDS = 120.0
LEAST_PART_AFTER_LOOK = 0.2
SPREAD = ManyWorkers()


@dataclass(frozen=True, slots=True)
class Planner:
    """Begins the runs of one execution, goes on with them, or estimates.

    usage: gets all that is read, also if it ends with an error. most_workers: how many the
    deployment can run at once, if it reserves their concurrency.
    """

    execution: Execution
    deployment: Deployment
    tasks: Tasks
    worker: Worker
    usage: Usage
    most_workers: int | None = None

    def plan_run(self, request: Request) -> dict[str, Any]:
        """The next state. May be called again for the same execution: then it finds its own run.

        Raises CannotStart and its kin before anything is read; BudgetSpent; what reading can raise.
        """
        name = allowed(request.table, self.deployment.tables)
        connection = self.deployment.connect(name, CONNECTIONS)
        begun = None if request.resume is None else self.deployment.runs.begun(request.resume)
        table = look_up(connection, name)
        if begun is not None:
            journal, plan = begun
            place = Place(f"runs/{plan.id}", f"The run {plan.id!r}")
            to_check = request.verify_share is not None  # also a run that is finished
            resumed(journal, plan, request, self.tasks, table, connection, place, to_check)
        else:
            task, task_plan = chosen(self.tasks, request, table, connection)
            budget = Budget(request.max_read_rate, request.max_read_units)
            reader = PageReader(connection, task_plan.source, budget, usage=self.usage)
            if request.plan_only:
                return self._estimate(request, reader, task_plan)
            journal, plan = self._new(request, reader, task, task_plan)
        return self._state(request, plan, sum_up(journal, plan)[0])

    def _estimate(self, request: Request, reader: PageReader, plan: TaskPlan) -> dict[str, Any]:
        allowance = min(DEFAULT_UNITS, request.max_read_units or DEFAULT_UNITS)
        one_worker = needs_memory(plan)
        wishes = SPREAD.wishes(request, plan.source.size_bytes, one_worker)
        found = estimate(reader, plan.method, plan.reason, wishes, allowance)
        fleet = SPREAD.fleet(found.layout, one_worker)
        at_once = workers_at_once(fleet.at_once, request.max_read_rate, self.most_workers)
        cost = found.costs[plan.method]
        report = {
            **found.to_json(),
            "workers": at_once,
            "groups": fleet.groups,
            "cost": run_cost(
                self.worker,
                cost.units.mean,
                seconds=cost.seconds * at_once,
                invocations=fleet.groups,
                groups=fleet.groups,
                commits=fleet.groups,
            ),
            "threads": min(MOST_THREADS * at_once, found.layout.threads),
        }
        name = f"estimate-{self.execution.name}.json"
        journal = self.deployment.runs.journal(self.execution.name)
        journal.keep(name, report)
        return {"planOnly": True, "estimate": {**report, "file": journal.store.url(name)}}

    def _new(
        self, request: Request, reader: PageReader, task: Task, task_plan: TaskPlan
    ) -> tuple[Journal, RunPlan]:
        """The run of this execution: begun now, or by an earlier attempt at this very call."""
        name = self.execution.name
        journal = self.deployment.runs.journal(name)
        plan = journal.plan()
        if plan is None:
            try:
                plan, start = begin(
                    journal,
                    request,
                    reader,
                    task,
                    task_plan,
                    SPREAD,
                    _look_units(request),
                    lambda start: _check_the_look_was_paid(request, reader, start),
                    id=name,
                    begun_by=self.execution.key,
                )
            except RunConflict:
                plan = journal.plan()  # a first attempt that was given up was quicker after all
            else:
                # What the first look has found is the first slice of group 0.
                group = GroupWorker(journal, plan, 0, reader, task, 1, Progress(plan.segments))
                group.run(start, seconds=0)
        if plan is None or plan.begun_by != self.execution.key:
            raise RunConflict(
                f"There is a run named {name!r} already: start with another name, or give "
                f'"resume": "{name}" to go on with it.'
            )
        return journal, plan

    def _state(self, request: Request, plan: RunPlan, totals: Totals) -> dict[str, Any]:
        waiting = unfinished(plan.groups, totals.finished)
        limit = None
        least = LEAST_SHARE if plan.planning.items else LEAST_BLIND_SHARE
        items: dict[int, float | None] = dict.fromkeys(waiting)
        spent = totals.usage.read_units
        if request.max_read_units is not None:
            # What this start has read counts; what earlier starts have read does not.
            limit = (spent if request.resume else 0.0) + request.max_read_units
            shares = allowances(limit - spent, totals.spent_by_group, waiting, least)
            if waiting and not shares:
                raise BudgetSpent(
                    f"The first look has cost {spent:g} read units, and nothing is left of "
                    f"maxReadUnits: start again with more."
                )
            items = dict(shares)
        wanted = plan.at_once if request.max_concurrency is None else request.max_concurrency
        if plan.needs_memory:
            wanted = 1
        at_once = workers_at_once(wanted, request.max_read_rate, self.most_workers)
        check = self.deployment.runs.journal(plan.id).load("verify.json")
        return {
            "planOnly": False,
            "run": plan.id,
            "execution": self.execution.id,
            "table": plan.table,
            "plan": {
                "method": plan.method,
                "reason": plan.reason,
                "segments": plan.segments,
                "groups": plan.groups,
            },
            "maxConcurrency": max(1, min(at_once, len(items))),
            "maxReadRate": request.max_read_rate,
            "readUnitsLimit": limit,
            "readUnitsBefore": spent,
            "checkUnitsBefore": 0.0 if check is None else float(check["read_units"]),
            "leastShare": least,
            "verifyShare": request.verify_share,
            "again": _again(request, plan),
            # A map needs an item: a group that is finished is told so at once.
            **groups_of(self.deployment.runs, plan.id, self.execution, 0, items or {0: None}),
        }


def _look_units(request: Request) -> float:
    """What the first look may cost: under a low rate, not more than the function has time for."""
    if request.max_read_rate is None:
        return math.inf
    return max(LEAST_LOOK_UNITS, LOOK_SECONDS * request.max_read_rate)


def _check_the_look_was_paid(request: Request, reader: PageReader, start: Start) -> None:
    """Raises BudgetSpent, before a run begins whose plan would rest on too little."""
    is_read = start.opening is not None and start.opening.position is None
    limit = request.max_read_units
    if limit is None or is_read or not reader.usage.requests:
        return
    if reader.budget.left < LEAST_PART_AFTER_LOOK * limit:
        raise BudgetSpent(
            f"maxReadUnits {limit:g} does not pay for more than the first look at the table, which "
            f"costs up to about 8 read units: start again, under another name, with more."
        )


def _again(request: Request, plan: RunPlan) -> dict[str, Any]:
    """The input by which another execution goes on with the run, within the same limits."""
    given = {
        "table": request.table,
        "resume": plan.id,
        "maxConcurrency": request.max_concurrency,
        "maxReadRate": request.max_read_rate,
        "maxReadUnits": request.max_read_units,
        "verifyShare": request.verify_share,
    }
    return {name: value for name, value in given.items() if value is not None}


def groups_of(
    runs: Runs, run: str, execution: Execution, round_: int, items: Mapping[int, float | None]
) -> dict[str, Any]:
    """Write the items of a distributed map; returns what the state machine must know of them.

    items: for each group, what it may read in all. They go through S3 whatever their number, so
    that there is one way, which each run takes: in the state itself only 256 KiB would fit.
    """
    map_ = f"{execution.name}-{round_}"
    name = f"groups/{map_}.json"
    content = [{"group": group, "mayRead": units} for group, units in items.items()]
    runs.journal(run).keep(name, content)
    return {
        "groups": {
            "map": map_,
            "key": f"runs/{run}/{name}",
            "count": len(content),
            "round": round_,
        },
        "mapResults": f"runs/{run}/map-results/{map_}",
    }


def unfinished(groups: int, finished: Iterable[int]) -> list[int]:
    """The groups that are left."""
    done = set(finished)
    return [group for group in range(groups) if group not in done]


def finish_run(
    state: Mapping[str, Any],
    execution: Execution,
    deployment: Deployment,
    tasks: Tasks,
    worker: Worker,
    remaining_seconds: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Sum a run up; returns the state for what follows: a check, the end, or another round.

    May be called again. Raises BrokenPromise if the result is not whole, BudgetSpent if groups are
    left that nothing may be read for, and NoProgress if the time did not suffice.
    """
    over_at = clock() + working_seconds(remaining_seconds)
    runs = deployment.runs
    journal, plan = runs.begun(state["run"])
    task = tasks[plan.task](deployment.connect(plan.table, CONNECTIONS), plan.options)

    def check(done: int) -> None:
        if clock() > over_at:
            raise NoProgress(task.too_slow(done))

    totals, result = conclude(
        journal,
        plan,
        task,
        check,
        lambda totals: figures(plan, totals, worker, execution),
        lambda parts: write_part_index(runs.store(plan.id), parts),
    )
    if not result.summary["finished"]:
        return _another_round(state, execution, runs, plan, totals)
    return {
        **state,
        "next": "verify" if state["verifyShare"] is not None else "end",
        "readUnitsBefore": totals.usage.read_units,
        "result": output(runs, plan, result.summary, task.outputs),
    }


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
            totals.usage.read_units,
            totals.seconds,
            invocations,
            plan.groups,
            totals.commits,
            totals.usage.write_units,
        ),
    }


def output(
    runs: Runs, plan: RunPlan, manifest: Mapping[str, Any], more: Mapping[str, str]
) -> dict[str, Any]:
    """The execution's output: where things are, and the totals. It holds no keys.

    more: what else of the manifest is told, by the names in the output.
    """
    store = runs.store(plan.id)
    names = ("run", "finished", "table", "index", "method", "format", "keys", "requests")
    figures_ = ("read_units", "seconds", "throttles", "cost")
    segments = {name: count for name, count in manifest["segments"].items() if name != "keys"}
    return {
        **{name: manifest[name] for name in (*names, *figures_)},
        **{shown: manifest[name] for name, shown in more.items() if name in manifest},
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
    spent = totals.usage.read_units
    is_stuck = spent <= state["readUnitsBefore"]
    least = state["leastShare"] * (MORE_IF_STUCK if is_stuck else 1.0)
    shares = allowances(limit - spent, totals.spent_by_group, waiting, least)
    if not shares or (is_stuck and state["groups"]["count"] == 1):
        raise BudgetSpent(
            f"Of maxReadUnits too little is left for the next pages, after {spent:,.1f} read units "
            f"of the run in all."
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


def note_progress(
    runs: Runs, run: str, worker: Worker, execution: Execution
) -> tuple[Totals, RunPlan]:
    """Write what a run that failed has come to so far; raises BrokenPromise, RunConflict.

    If all its groups are finished, only FinishRun may say so.
    """
    journal, plan = runs.begun(run)
    totals, summary = sum_up(journal, plan)
    if not summary["finished"]:
        journal.write_summary(summary | figures(plan, totals, worker, execution))
    return totals, plan
