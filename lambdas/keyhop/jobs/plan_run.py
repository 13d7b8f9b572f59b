"""A job by many workers, begun: the state PlanRun of its state machine.

The states pass only names and counts; what is large, or holds keys, lies in the run's files.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BudgetSpent, RunConflict, StaleIndex
from keyhop.jobs.estimate import (
    Start,
    ahead,
    estimate_of_fleet,
    estimate_of_visits,
    first_look,
    of_the_rest,
)
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import (
    LEAST_BLIND_SHARE,
    LEAST_SHARE,
    Method,
    allowances,
    groups_of_layout,
    learnt_for_each,
    workers_at_once,
)
from keyhop.jobs.lifecycle import Place, begin, resumed, sum_up
from keyhop.jobs.model import Commit, RunPlan, needs_memory
from keyhop.jobs.price import FunctionSize, check_within, dollars_of_reading, price
from keyhop.jobs.request import Request, allowed, wishes_of_fleet
from keyhop.jobs.runs import DeploymentSettings, ExecutionContext, Runs
from keyhop.jobs.task import Task, TaskPlan, Tasks
from keyhop.jobs.worker import GroupWorker
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval

CONNECTIONS = 16
LEAST_LOOK_UNITS = 50.0
LOOK_SECONDS = 120.0
LEAST_PART_AFTER_LOOK = 0.2
ANEW = "-anew"
"""The suffix of the name of a run that replaces one whose key index was not trusted."""


@dataclass(frozen=True, slots=True)
class Planner:
    """Begins, resumes or estimates the runs of an execution.

    Attributes:
        execution: The execution.
        deployment: The runs and tables of the deployment.
        tasks: The kinds of job.
        worker: The size of a worker, for the cost.
        usage: Counts everything that is read, even if a method raises.
        most_workers: How many workers can run at once, by their reserved concurrency or by the
            account's limit; None if it is unknown.
        committed: Is called with the first slice, which the first look has found.
        max_cost: The limit in dollars of a run whose input has none.
    """

    execution: ExecutionContext
    deployment: DeploymentSettings
    tasks: Tasks
    worker: FunctionSize
    usage: Usage
    most_workers: int | None = None
    committed: Callable[[Commit], None] = lambda commit: None
    max_cost: float = math.inf

    def plan_run(self, request: Request, ended: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the next state. A second call for the same execution finds the run of the first.

        Args:
            request: The request.
            ended: The state after a run that another one follows (finish_run). If that run listed
                the keys for this one, this one begins. If its key index was not trusted, a
                run by skip-scan begins, and both count against the budget.

        Raises:
            CannotStart: The run cannot be done. Nothing was read.
            BudgetSpent: The budget does not pay for the run.
        """
        name = allowed(request.table, self.deployment.tables)
        connection = self.deployment.connect(name, CONNECTIONS)
        if ended is not None:
            return self._plan_next(request, ended, connection)
        resumed_run = (
            None if request.resume is None else self.deployment.runs.open_run(request.resume)
        )
        table = look_up(connection, name)
        first, suffix = None, ""
        if resumed_run is None or resumed_run[1].task != request.task:
            last = self.tasks[request.task](connection, request.options)
            first, suffix = last.before(table, request), f"-{last.first}"
        step_request = first or request
        if resumed_run is not None:
            journal, plan = resumed_run
            if first is not None and journal.is_finished():
                return self._plan_next(request, {"run": plan.id}, connection)
            place = Place(f"runs/{plan.id}", f"The run {plan.id!r}")
            to_check = step_request.verify_share is not None  # also a run that is finished
            try:
                task, source = resumed(
                    journal, plan, step_request, self.tasks, table, connection, place, to_check
                )
            except StaleIndex as error:
                return self._plan_anew(
                    step_request, plan.table, str(error), suffix, sum_up(*resumed_run)[0].usage
                )
            rest = of_the_rest(plan, sum_up(journal, plan)[0])
            reader = PageReader(
                connection, source, Budget(step_request.max_read_rate), usage=self.usage
            )
            self._check_cost(step_request, reader, plan.method, plan.at_once, *rest)
        else:
            task = self.tasks[step_request.task](connection, step_request.options)
            task_plan = task.plan(task.reads(table), step_request)
            budget = Budget(step_request.max_read_rate, step_request.max_read_units)
            reader = PageReader(connection, task_plan.source, budget, usage=self.usage)
            if request.dry_run:
                return self._estimate(request, step_request, reader, task, task_plan)
            name = self.execution.name if first is None else self.execution.run(suffix)
            try:
                journal, plan = self._new(step_request, reader, task, task_plan, name)
            except StaleIndex as error:
                spent = reader.usage.copy()
                return self._plan_anew(step_request, table.name, str(error), suffix, spent)
        return self._state(step_request, journal, plan, task, follows=first is not None)

    def _plan_next(
        self, request: Request, ended: Mapping[str, Any], connection: Connection
    ) -> dict[str, Any]:
        run = self.deployment.runs.open_run(ended["run"])
        table = look_up(connection, run[1].table)
        task = self.tasks[request.task](connection, request.options)
        follows = bool(ended.get("follows"))
        if "stale_index" in ended:
            first = task.before(table, request) if follows else None
            suffix = f"-{task.first}" if follows else ""
            spent = sum_up(*run)[0].usage
            return self._plan_anew(
                first or request, run[1].table, ended["stale_index"], suffix, spent
            )
        request = replace(task.after(request, run[1].id), resume=None)
        task = self.tasks[request.task](connection, request.options)
        task_plan = task.plan(table, request)
        reader = PageReader(connection, task_plan.source, Budget(), usage=self.usage)
        journal, plan = self._new(request, reader, task, task_plan, self.execution.name)
        return self._state(request, journal, plan, task)

    def _plan_anew(
        self, request: Request, name: str, why: str, suffix: str, spent: Usage
    ) -> dict[str, Any]:
        """Begin a run that finds the keys without the key index, after one that has read it.

        Args:
            request: The request of that run.
            name: The table.
            why: The reason why the index is not trusted any more.
            suffix: The suffix of the name of a run that another one follows, or "".
            spent: What the reading of the index has cost.
        """
        request = replace(request, method="skip", resume=None)
        remaining = math.inf if request.max_read_units is None else request.max_read_units
        remaining -= spent.read_units
        if remaining <= 0:
            raise BudgetSpent(
                f"Reading the key index, which was not to be believed at the end, has cost "
                f"{spent.read_units:g} read units: nothing is left of maxReadUnits; start again."
            )
        connection = self.deployment.connect(name, CONNECTIONS)
        task = self.tasks[request.task](connection, request.options)
        task_plan = task.plan(look_up(connection, name), request)
        task_plan = replace(task_plan, reason=why)
        budget = Budget(request.max_read_rate, None if math.isinf(remaining) else remaining)
        reader = PageReader(connection, task_plan.source, budget, usage=Usage())
        try:
            run = self.execution.run(f"{suffix}{ANEW}")
            journal, plan = self._new(request, reader, task, task_plan, run, spent)
        finally:
            self.usage.add(reader.usage)
        return self._state(request, journal, plan, task, follows=bool(suffix))

    def _estimate(
        self,
        execution_request: Request,
        request: Request,
        reader: PageReader,
        task: Task,
        plan: TaskPlan,
    ) -> dict[str, Any]:
        """Estimate a run, and write the estimate.

        Args:
            execution_request: The request of the execution.
            request: The request of its first run, or `execution_request` if it has only one.
            reader: Reads the sample.
            task: The task of `request`.
            plan: Its plan.
        """
        report: dict[str, Any] = {"table": reader.source.name, "reason": plan.reason}
        keys, prices = float(plan.rows or 0), reader.connection.prices
        if plan.layout is None:
            estimated_keys, report = estimate_of_fleet(
                request, reader, plan, self.worker, self.most_workers
            )
            keys = keys or estimated_keys
        elif plan.units is not None:
            report |= {"read_units": round(plan.units.mean, 1), **price(plan.units.mean, prices)}
        if execution_request is not request or plan.rows is not None:
            if execution_request is not request:
                task = self.tasks[execution_request.task](
                    reader.connection, execution_request.options
                )
            report["each"] = estimate_of_visits(reader, task, keys)
        name = f"estimate-{self.execution.name}.json"
        journal = self.deployment.runs.journal(self.execution.name)
        journal.keep(name, report)
        return {"dryRun": True, "estimate": {**report, "file": journal.store.url(name)}}

    def _check_cost(
        self,
        request: Request,
        reader: PageReader,
        method: Method,
        at_once: int,
        keys: Interval | None,
        share: float = 1.0,
        more: float = 0.0,
    ) -> None:
        """Raise TooExpensive if a run costs more than the limit.

        A request that is a part of a larger one was checked with that one.

        Args:
            request: The request.
            reader: Reads the sample.
            method: How the run reads.
            at_once: The number of workers.
            keys: See estimate.ahead.
            share: See estimate.ahead.
            more: Further costs in dollars.
        """
        if request.is_part:
            return
        limit = self.max_cost if request.max_cost is None else request.max_cost
        at_once = workers_at_once(at_once, request.max_read_rate, self.most_workers)
        maximum = math.inf if request.max_read_units is None else request.max_read_units

        def dollars(units: float) -> float:
            return more + dollars_of_reading(
                self.worker,
                min(units, maximum),
                method,
                at_once,
                request.max_read_rate,
                reader.connection.prices,
            )

        if dollars(maximum) <= limit:
            return
        one_worker = needs_memory(method, reader.source.index)
        wishes = wishes_of_fleet(request, reader.source.size_bytes, one_worker)
        units = ahead(reader, method, wishes, keys, share, lambda u: dollars(u.high) <= limit)
        check_within(dollars, units, limit, request.given, request.max_cost is not None)

    def _new(
        self,
        request: Request,
        reader: PageReader,
        task: Task,
        task_plan: TaskPlan,
        name: str,
        before: Usage | None = None,
    ) -> tuple[Journal, RunPlan]:
        """Return the run of this execution, and begin it unless an earlier attempt has.

        Args:
            request: The request.
            reader: Reads the first look.
            task: The task.
            task_plan: Its plan.
            name: The name of the run.
            before: The usage of the execution before this run.
        """
        journal = self.deployment.runs.journal(name)
        plan = journal.plan()
        if plan is None:
            task_plan = task.look(reader, task_plan)
            one_worker = needs_memory(task_plan.method, task_plan.source.index)
            wishes = wishes_of_fleet(request, task_plan.source.size_bytes, one_worker)
            maximum = _look_units(request)
            start = first_look(reader, task_plan, wishes, task.visits, maximum)
            _check_the_look_was_paid(request, reader, start)
            groups, at_once = groups_of_layout(start.layout, one_worker)
            writes, reads = task.units_per_key(task_plan.source)
            rows = task_plan.rows or 0
            more = reader.connection.prices.dollars(rows * reads, rows * writes)
            self._check_cost(request, reader, task_plan.method, at_once, start.units, more=more)
            try:
                plan = begin(
                    journal,
                    request,
                    reader,
                    task_plan,
                    start,
                    id=name,
                    begun_by=self.execution.key,
                    groups=groups,
                    at_once=at_once,
                    format=request.format or "jsonl",
                    gzip=not start.layout.buckets,  # of those, pieces are read
                    ledger=learnt_for_each(start.ledger),
                    planning=_sum(before, reader.usage),
                )
            except RunConflict:
                plan = journal.plan()  # an earlier attempt that timed out has begun the run
            else:
                # The keys of the first look are the first slice of group 0.
                pages = task.pages(journal, plan, reader, start.ledger)
                opening = GroupWorker(journal, plan, 0, pages, 1, committed=self.committed)
                opening.run(start.opening, over_at=0.0)
        if plan is None or plan.begun_by != self.execution.key:
            raise RunConflict(
                f"There is a run named {name!r} already: start with another name, or give "
                f'"resume": "{name}" to go on with it.'
            )
        return journal, plan

    def _state(
        self, request: Request, journal: Journal, plan: RunPlan, task: Task, follows: bool = False
    ) -> dict[str, Any]:
        """Return the state after planning.

        Args:
            request: The request.
            journal: The files of the run.
            plan: Its plan.
            task: Its task.
            follows: Whether another run begins when this one is finished.
        """
        totals, undo = sum_up(journal, plan)[0], task.undo(plan)
        waiting = [group for group in range(plan.groups) if group not in totals.finished]
        limit = None
        least_share = LEAST_SHARE if plan.planning.items else LEAST_BLIND_SHARE
        items: dict[int, float | None] = dict.fromkeys(waiting)
        spent = plan.spent(totals.usage)
        listed = plan.method == "listed"
        maximum = request.max_write_units if listed else request.max_read_units
        if maximum is not None:
            # The units of this start count; those of earlier starts do not.
            limit = (spent if request.resume else 0.0) + maximum
            shares = allowances(limit - spent, totals.spent_by_group, waiting, least_share)
            if waiting and not shares:
                raise BudgetSpent(
                    f"The first look has cost {spent:g} read units, and nothing is left of "
                    f"maxReadUnits: start again with more."
                )
            items = dict(shares)
        concurrency = plan.at_once if request.max_concurrency is None else request.max_concurrency
        if plan.needs_memory:
            concurrency = 1
        at_once = workers_at_once(concurrency, request.max_read_rate, self.most_workers)
        check = journal.load("verify.json")
        return {
            "dryRun": False,
            "run": plan.id,
            "execution": self.execution.id,
            "table": plan.table,
            "plan": {
                "method": plan.method,
                "reason": plan.reason,
                "segments": plan.segments,
                "groups": plan.groups,
            },
            "segmentsLeft": plan.segments - totals.ended,
            "maxConcurrency": max(1, min(at_once, len(items))),
            "maxReadRate": request.max_read_rate,
            "readUnitsLimit": limit,
            "readUnitsBefore": spent,
            "checkUnitsBefore": 0.0 if check is None else float(check["read_units"]),
            "leastShare": least_share,
            "verifyShare": request.verify_share,
            "again": _again(request, plan, follows),
            **({"undo": undo} if undo else {}),
            **({"follows": True} if follows else {}),
            # A map needs an item. If no group remains, it gets one that is finished.
            **groups_of(self.deployment.runs, plan.id, self.execution, 0, items or {0: None}),
        }


def _sum(before: Usage | None, usage: Usage) -> Usage:
    total = usage.copy()
    if before is not None:
        total.add(before)
    return total


def _look_units(request: Request) -> float:
    """Return the limit of a first look: a low rate leaves time for few read units only."""
    if request.max_read_rate is None:
        return math.inf
    return max(LEAST_LOOK_UNITS, LOOK_SECONDS * request.max_read_rate)


def _check_the_look_was_paid(request: Request, reader: PageReader, start: Start) -> None:
    """Raise BudgetSpent if the budget was too small for a first look that a plan can rest on."""
    is_read = start.opening is not None and start.opening.position is None
    limit = request.max_read_units
    if limit is None or is_read or not reader.usage.requests:
        return
    if reader.budget.left < LEAST_PART_AFTER_LOOK * limit:
        raise BudgetSpent(
            f"maxReadUnits {limit:g} does not pay for more than the first look at the table, which "
            f"costs up to about 8 read units: start again, under another name, with more."
        )


def _again(request: Request, plan: RunPlan, follows: bool) -> dict[str, Any] | None:
    """Return the input that resumes a run, and the one that follows it, with the same limits.

    Returns:
        None for a request that is a part of a larger one.
    """
    if request.is_part:
        return None
    if follows:
        return {**request.given, "resume": plan.id}
    input_fields = {
        request.named_by: request.table,
        "resume": plan.id,
        "maxConcurrency": request.max_concurrency,
        "maxReadRate": request.max_read_rate,
        "maxReadUnits": request.max_read_units,
        "maxCost": request.max_cost,
        "verifyShare": request.verify_share,
        "maxWriteUnits": request.max_write_units,
    }
    return {name: value for name, value in input_fields.items() if value is not None}


def groups_of(
    runs: Runs,
    run: str,
    execution: ExecutionContext,
    round_: int,
    items: Mapping[int, float | None],
) -> dict[str, Any]:
    """Write the items of a distributed map, and return the fields of the state that refer to them.

    The items are always stored in S3, because a state holds 256 KiB only.

    Args:
        runs: The runs of the deployment.
        run: The run.
        execution: The execution.
        round_: The number of the map within the execution.
        items: The units that each group may read in all; None for no limit.
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
