"""The states of a job by many workers: PlanRun, ScanSegments, FinishRun and CleanUp.

The states pass only names and counts. Large data, and all keys, are in the run's files.

A worker that was given up may still upload a part after the end of the run. A reader that lists the
parts by their prefix would count its keys twice. So FinishRun writes two lists of the parts that
count, made from the commits:

parts.json       a JSON array, the items of a distributed map: {"bucket", "key", "keys", "size"}
links/parts.txt  one s3:// address a line: what Hive's SymlinkTextInputFormat reads (Athena)
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from keyhop.checks import camel
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Source, look_up
from keyhop.dynamodb.usage import Usage
from keyhop.errors import (
    BrokenPromise,
    BudgetSpent,
    KeyhopError,
    NoProgress,
    RunConflict,
    RunFailed,
    StaleIndex,
)
from keyhop.jobs.estimate import estimate, of_the_rest, predicted_units
from keyhop.jobs.fleet_rate import FleetRate, MapLevels
from keyhop.jobs.journal import ANEW, STALE_INDEX, Commit, Journal, RunPlan, Totals, needs_memory
from keyhop.jobs.layout import (
    DEFAULT_UNITS,
    Method,
    Wishes,
    allowances,
    groups_of_layout,
    learnt_for_each,
    shared_again,
    workers_at_once,
)
from keyhop.jobs.lifecycle import Planned, begun_task, conclude, resumed, sum_up
from keyhop.jobs.price import FunctionSize, dollars_of_reading, price, refuse_above, run_cost
from keyhop.jobs.request import Request, allowed, wishes_of_fleet
from keyhop.jobs.runs import ExecutionContext, Runs
from keyhop.jobs.task import Task, Tasks, note_examples
from keyhop.jobs.worker import CALM_SLICES, GroupWorker, patience_within, working_seconds
from keyhop.scan.in_flight import MOST
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval
from keyhop.storage.s3 import Bucket
from keyhop.storage.store import Store
from keyhop.wording import counted

LIMITS = (
    *("max_concurrency", "max_read_rate", "max_read_units", "max_cost", "verify_share"),
    "max_write_units",
)
"""The fields of a request that an input to resume its run has too."""

CONNECTIONS = 16
LEAST_LOOK_UNITS = 50.0
LOOK_SECONDS = 120.0
LEAST_PART_AFTER_LOOK = 0.2

PARTS = "parts.json"
LINKS = "links/parts.txt"
FAILURES = "failures"
TOLERANCE_EXCEEDED = "States.ExceedToleratedFailureThreshold"

OTHER = "RunFailed"
"""The error of a run that failed with one of AWS (States.*, Lambda.*), which are retried."""

MORE_UNITS = 2
"""The factor by which CleanUp advises to raise a budget that was spent."""

ADVICE = {
    "BrokenPromise": "Do not use this run's keys; start a new run.",
    "BudgetSpent": "To go on, with twice as much: {resume}.",
    "KeysMissing": (
        "If the table was written to during the run, the keys may be new; the check recognizes new "
        "keys only in a table with a sort key. Otherwise do not use the result, and report it. To "
        "check once more: {resume}."
    ),
    "SegmentsTooLarge": (
        "All keys were found, and the manifest is there; only the check failed. Check with a "
        'higher "maxReadRate": {resume}; or start a new run with more segments.'
    ),
    "NotPermitted": "Give the permission (cdk deploy), then redrive the execution, or: {resume}.",
    "NoProgress": "Then redrive the execution, or: {resume}.",
    "GaveUp": "When the table has room again, redrive the execution, or: {resume}.",
}
OTHER_ADVICE = "Redrive the execution to continue after the last commits, or: {resume}."


@dataclass(frozen=True, slots=True)
class Planner:
    """Begins, resumes or estimates the runs of an execution.

    Attributes:
        worker: The size of a worker, for the cost.
        usage: Counts everything that is read, even if a method raises.
        most_workers: How many workers can run at once, by their reserved concurrency or by the
            account's limit; None if it is unknown.
        committed: Is called with the first slice, which the first look has found.
        max_cost: The limit in dollars of a run whose input has none.
    """

    execution: ExecutionContext
    deployment: Runs
    tasks: Tasks
    worker: FunctionSize
    usage: Usage
    most_workers: int | None = None
    committed: Callable[[Commit], None] = lambda commit: None
    max_cost: float = math.inf

    def plan_run(self, request: Request, ended: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the next state. A second call for the same execution finds the run of the first.

        Args:
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
        resumed_run = None if request.resume is None else self.deployment.open_run(request.resume)
        table = look_up(connection, name)
        first, suffix = None, ""
        if resumed_run is None or resumed_run[1].task != request.task:
            last = self._task(request, connection)
            first, suffix = last.before(table, request), f"-{last.first}"
        step_request = first or request
        if resumed_run is not None:
            journal, plan = resumed_run
            if first is not None and journal.is_finished():
                return self._plan_next(request, {"run": plan.id}, connection)
            to_check = step_request.verify_share is not None  # also a run that is finished
            try:
                task, source = resumed(
                    journal,
                    plan,
                    step_request,
                    self.tasks,
                    table,
                    connection,
                    f"runs/{plan.id}",
                    may_be_finished=to_check,
                )
            except StaleIndex as error:
                return self._plan_anew(
                    step_request, plan.table, str(error), suffix, sum_up(*resumed_run)[0].usage
                )
            rest = of_the_rest(plan, sum_up(journal, plan)[0])
            reader = PageReader(
                connection, source, Budget(step_request.max_read_rate), usage=self.usage
            )
            more = rest[1] * _dollars_of_rows(task, reader, plan.rows)
            self._refuse_if_too_expensive(
                step_request, reader, plan.method, plan.at_once, *rest, more=more
            )
        else:
            task = self._task(step_request, connection)
            planned = Planned.of(
                task, step_request, connection, task.reads(table), usage=self.usage
            )
            if request.dry_run:
                return self._estimate(request, planned)
            name = self.execution.name if first is None else self.execution.run(suffix)
            try:
                return self._begin(planned, name, follows=first is not None)
            except StaleIndex as error:
                spent = planned.reader.usage.copy()
                return self._plan_anew(step_request, table.name, str(error), suffix, spent)
        return self._state(step_request, journal, plan, task, follows=first is not None)

    def _task(self, request: Request, connection: Connection) -> Task:
        return self.tasks[request.task](connection, request.options)

    def _plan_next(
        self, request: Request, ended: Mapping[str, Any], connection: Connection
    ) -> dict[str, Any]:
        run = self.deployment.open_run(ended["run"])
        table = look_up(connection, run[1].table)
        task = self._task(request, connection)
        follows = bool(ended.get("follows"))
        if "stale_index" in ended:
            first = task.before(table, request) if follows else None
            suffix = f"-{task.first}" if follows else ""
            spent = sum_up(*run)[0].usage
            return self._plan_anew(
                first or request, run[1].table, ended["stale_index"], suffix, spent
            )
        request = replace(task.after(request, run[1].id), resume=None)
        task = self._task(request, connection)
        planned = Planned.of(task, request, connection, table, budget=Budget(), usage=self.usage)
        return self._begin(planned, self.execution.name)

    def _plan_anew(
        self, request: Request, name: str, why: str, suffix: str, spent: Usage
    ) -> dict[str, Any]:
        """Begin a run that finds the keys without the key index, after one that has read it.

        Args:
            why: The reason why the index is not trusted any more.
            suffix: The suffix of the name of a run that another one follows, or "".
            spent: What the reading of the index has cost.
        """
        request = replace(request, method="skip", resume=None)
        remaining = math.inf if request.max_read_units is None else request.max_read_units
        remaining -= spent.read_units
        if remaining <= 0:
            raise BudgetSpent(
                f"Reading the key index, which was out of date at the end, has cost "
                f"{spent.read_units:g} read units, and none of maxReadUnits remain: start again."
            )
        connection = self.deployment.connect(name, CONNECTIONS)
        budget = Budget(request.max_read_rate, None if math.isinf(remaining) else remaining)
        table = look_up(connection, name)
        planned = Planned.of(
            self._task(request, connection), request, connection, table, why, budget=budget
        )
        try:
            name = self.execution.run(f"{suffix}{ANEW}")
            return self._begin(planned, name, follows=bool(suffix), before=spent)
        finally:
            self.usage.add(planned.reader.usage)

    def _estimate(self, execution_request: Request, planned: Planned) -> dict[str, Any]:
        """Estimate the first run of an execution and what the execution does then; write both."""
        request, reader, task, plan = planned.request, planned.reader, planned.task, planned.plan
        report: dict[str, Any] = {"table": reader.source.name, "reason": plan.reason}
        keys, prices = float(plan.rows or 0), reader.connection.prices
        if plan.layout is None:
            estimated_keys, report = self._estimate_reading(planned)
            keys = keys or estimated_keys
        elif plan.units is not None:
            report |= {"read_units": round(plan.units.mean, 1), **price(plan.units.mean, prices)}
        if execution_request is not request or plan.rows is not None:
            if execution_request is not request:
                task = self._task(execution_request, reader.connection)
            writes, reads = (keys * units for units in task.units_per_key(reader.source))
            report["each"] = {
                "keys": round(keys),
                "write_units": round(writes, 1),
                "read_units": round(reads, 1),
                "dollars": round(prices.dollars(reads, writes), 6),
                "prices": prices.on_demand,
                "seconds": round(writes / (task.max_write_rate or math.inf), 1),
            }
        name = f"estimate-{self.execution.name}.json"
        journal = self.deployment.journal(self.execution.name)
        journal.keep(name, report)
        return {"dryRun": True, "estimate": {**report, "file": journal.store.url(name)}}

    def _estimate_reading(self, planned: Planned) -> tuple[float, dict[str, Any]]:
        """Return the approximate number of keys, and the report of a run by a fleet."""
        request, reader, plan = planned.request, planned.reader, planned.plan
        allowance = min(DEFAULT_UNITS, request.max_read_units or DEFAULT_UNITS)
        wishes = _wishes(request, plan.method, plan.source)
        result = estimate(reader, plan.method, plan.reason, wishes, allowance)
        layout, cost = result.layout, result.costs[plan.method]
        groups, at_once = groups_of_layout(layout, needs_memory(plan.method, plan.source.index))
        at_once = workers_at_once(at_once, request.max_read_rate, self.most_workers)
        return result.findings.keys.mean, {
            **result.to_json(),
            "workers": at_once,
            "groups": groups,
            "cost": run_cost(
                self.worker,
                cost.units.mean,
                seconds=cost.seconds * at_once,
                invocations=groups,
                groups=groups,
                commits=groups,
                prices=reader.connection.prices,
            ),
            "threads": math.ceil(layout.threads * at_once / layout.processes),
        }

    def _refuse_if_too_expensive(
        self,
        request: Request,
        reader: PageReader,
        method: Method,
        at_once: int,
        keys: Interval | None,
        share: float = 1.0,
        more: float = 0.0,
    ) -> None:
        """Raise TooExpensive if a run costs more than the limit, with `more` dollars besides.

        A part of a larger job was checked with it. For `keys` and `share`, see
        estimate.predicted_units.
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
        wishes = _wishes(request, method, reader.source)
        units = predicted_units(
            reader, method, wishes, keys, share, lambda u: dollars(u.high) <= limit
        )
        refuse_above(dollars, units, limit, request.job_input, request.max_cost is not None)

    def _begin(
        self, planned: Planned, name: str, follows: bool = False, before: Usage | None = None
    ) -> dict[str, Any]:
        """Begin the run of this execution, unless an earlier attempt has; return the next state.

        `before` is the usage of the execution before this run. For `follows`, see `_state`.
        """
        journal = self.deployment.journal(name)
        plan = journal.plan()
        if plan is None:
            request, reader, task = planned.request, planned.reader, planned.task
            planned.look(
                lambda plan: _wishes(request, plan.method, plan.source), _look_units(request)
            )
            _check_the_look_was_paid(planned)
            source, method = planned.plan.source, planned.plan.method
            groups, at_once = groups_of_layout(planned.layout, needs_memory(method, source.index))
            more = _dollars_of_rows(task, reader, planned.plan.rows or 0)
            self._refuse_if_too_expensive(
                request, reader, method, at_once, planned.units, more=more
            )
            planning = reader.usage.copy()
            planning.add(before or Usage())
            try:
                plan = planned.begin(
                    journal,
                    id=name,
                    begun_by=self.execution.key,
                    groups=groups,
                    at_once=at_once,
                    format=request.format or "jsonl",
                    gzip=not planned.layout.buckets,  # of those, pieces are read
                    ledger=learnt_for_each(planned.ledger),
                    planning=planning,
                )
            except RunConflict:
                plan = journal.plan()  # an earlier attempt that timed out has begun the run
            else:
                # The keys of the first look are the first slice of group 0.
                pages = task.pages(journal, plan, reader, planned.ledger)
                opening = GroupWorker(journal, plan, 0, pages, 1, committed=self.committed)
                opening.run(planned.opening, over_at=0.0)
        if plan is None or plan.begun_by != self.execution.key:
            raise RunConflict(
                f"There is a run named {name!r} already: start with another name, or give "
                f'"resume": "{name}" to continue it.'
            )
        return self._state(planned.request, journal, plan, planned.task, follows)

    def _state(
        self, request: Request, journal: Journal, plan: RunPlan, task: Task, follows: bool = False
    ) -> dict[str, Any]:
        """Return the state after planning; another run `follows` when this one is finished."""
        totals, undo = sum_up(journal, plan)[0], task.undo(plan)
        waiting = [group for group in range(plan.groups) if group not in totals.finished]
        limit = None
        items: dict[int, float | None] = dict.fromkeys(waiting)
        spent = plan.spent(totals.usage)
        maximum = request.max_write_units if plan.counts_writes else request.max_read_units
        if maximum is not None:
            # The units of this start count; those of earlier starts do not.
            limit = (spent if request.resume else 0.0) + maximum
            shares = allowances(limit - spent, totals.spent_by_group, waiting, plan.least_share)
            if waiting and not shares:
                raise BudgetSpent(
                    f"The first look has cost {spent:g} read units, and none of maxReadUnits "
                    f"remain: start again with more."
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
            "leastShare": plan.least_share,
            "verifyShare": request.verify_share,
            "again": _again(request, plan, follows),
            **({"undo": undo} if undo else {}),
            **({"follows": True} if follows else {}),
            # A map needs an item. If no group remains, it gets one that is finished.
            **groups_of(self.deployment, plan.id, self.execution, 0, items or {0: None}),
        }


def _wishes(request: Request, method: Method, source: Source) -> Wishes:
    return wishes_of_fleet(request, source.size_bytes, needs_memory(method, source.index))


def _dollars_of_rows(task: Task, reader: PageReader, rows: int) -> float:
    """Return the expected price of acting on this number of rows of a list."""
    writes, reads = task.units_per_key(reader.source)
    return reader.connection.prices.dollars(rows * reads, rows * writes)


def _look_units(request: Request) -> float:
    """Return the limit of a first look: a low rate leaves time for few read units only."""
    if request.max_read_rate is None:
        return math.inf
    return max(LEAST_LOOK_UNITS, LOOK_SECONDS * request.max_read_rate)


def _check_the_look_was_paid(planned: Planned) -> None:
    """Raise BudgetSpent if the budget was too small for the first look that a plan needs."""
    reader, limit = planned.reader, planned.request.max_read_units
    is_read = planned.opening is not None and planned.opening.position is None
    if limit is None or is_read or not reader.usage.requests:
        return
    if reader.budget.remaining < LEAST_PART_AFTER_LOOK * limit:
        raise BudgetSpent(
            f"maxReadUnits {limit:g} pays only for the first look at the table, which costs up to "
            "about 8 read units: start again, under another name, with more."
        )


def _again(request: Request, plan: RunPlan, follows: bool) -> dict[str, Any] | None:
    """Return the input that resumes a run, and the one that follows it, with the same limits.

    A request that is a part of a larger one has none.
    """
    if request.is_part:
        return None
    if follows:
        return {**request.job_input, "resume": plan.id}
    limits = {camel(name): getattr(request, name) for name in LIMITS}
    input_fields = {request.named_by: request.table, "resume": plan.id, **limits}
    return {name: value for name, value in input_fields.items() if value is not None}


def groups_of(
    runs: Runs,
    run: str,
    execution: ExecutionContext,
    round_: int,
    items: Mapping[int, float | None],
) -> dict[str, Any]:
    """Write the items of a distributed map, and return the fields of the state that refer to them.

    A state holds 256 KiB only. `items` are the units that each group may read in all; None for no
    limit. `round_` is the number of the map within the execution.
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


def scan_segments(
    state: Mapping[str, Any],
    runs: Runs,
    tasks: Tasks,
    remaining_seconds: float,
    worker: str,
    usage: Usage,
    levels_of: Callable[[str, str, Store], MapLevels] = MapLevels,
    report: Callable[[RunPlan, Commit | None], None] = lambda plan, commit: None,
) -> dict[str, Any]:
    """Continue a group after its last commit.

    Args:
        state: The input, as the ItemSelector of the map makes it.
        usage: Counts everything that is read, even if this function raises.
        report: Is called with each commit, and at the end with None.

    Returns:
        A small checkpoint for Step Functions: whether the group is done, and what this invocation
        has found and committed. The real checkpoint is in the last commit.

    Raises:
        GaveUp: No request succeeded for most of the time.
        NoProgress: There was no time to commit anything.
    """
    over_at = time.monotonic() + working_seconds(remaining_seconds)
    number, may_read = state["item"]["group"], state["item"]["mayRead"]
    max_read_rate = state["maxReadRate"]
    journal, plan = runs.open_run(state["run"])
    connection = runs.connect(plan.table, MOST)
    try:
        task, source = begun_task(tasks, plan, connection)
    except StaleIndex as error:
        return _end_stale(journal, error)
    patience = patience_within(over_at - time.monotonic())
    reader = PageReader(connection, source, Budget(), patience=patience, usage=usage)
    task.start(reader)

    def spent(units: float) -> None:
        remaining = None if may_read is None else may_read - units
        if plan.counts_writes:
            task.allow_writes(remaining)
        elif remaining is not None:
            reader.budget.allow_more(remaining)

    group = GroupWorker(
        journal,
        plan,
        number,
        task.pages(journal, plan, reader),
        MOST,
        slices=CALM_SLICES,
        spent=spent,
        committed=lambda commit: report(plan, commit),
        worker=worker,
    )
    if max_read_rate is not None or task.max_write_rate is not None:
        levels = levels_of(state["execution"], state["map"], journal.store)

        def limit(share: float) -> None:
            if max_read_rate is not None:
                reader.limit_rate(share * max_read_rate)
            if task.max_write_rate is not None:
                task.limit_writes(share * task.max_write_rate)

        rate = FleetRate(levels, limit, reader.stop.wait, time.time)
        if not rate.open(time.time() + over_at - time.monotonic()):
            return {"done": False, "keys": 0, "commits": 0}
        group.idle = rate.tick
    seconds = over_at - time.monotonic()
    try:
        is_done = group.run(over_at=over_at)
    except BudgetSpent:
        is_done = True  # FinishRun may assign it units that other groups did not need
    except StaleIndex as error:
        return _end_stale(journal, error)
    finally:
        report(plan, None)
        note_examples(journal, task, f"g{number}-{worker}")
    if not is_done and not group.has_moved and seconds > 0.5 * working_seconds(remaining_seconds):
        advice = "give workers more time (workerTimeoutSeconds), or read on your own machine"
        if max_read_rate is not None:
            advice = (
                "a worker's share of maxReadRate does not pay for a page in that time, so raise "
                "maxReadRate, or lower the map's concurrency"
            )
        what = f"Group {number} could do nothing in {counted(seconds, 'second')}: {advice}."
        raise NoProgress(what)
    return {"done": is_done, "keys": group.new_keys, "commits": group.commits}


def _end_stale(journal: Journal, error: StaleIndex) -> dict[str, Any]:
    """Record why the index cannot be read, and end the group. FinishRun then starts a new run."""
    journal.keep(STALE_INDEX, {"why": str(error)})
    return {"done": True, "keys": 0, "commits": 0}


def finish_run(
    state: Mapping[str, Any],
    execution: ExecutionContext,
    runs: Runs,
    tasks: Tasks,
    worker: FunctionSize,
    remaining_seconds: float = math.inf,
) -> dict[str, Any]:
    """Sum up a run, and return the next state; it is safe to call this again.

    The next state is a check, the end, another round, this function again, or another plan. That
    plan is of the run that follows, or of a new run instead of this one, if what this one has read
    may be stale.

    Raises:
        BrokenPromise: The result is incomplete.
        BudgetSpent: The remaining units are too few for the unfinished groups.
        NoProgress: The time did not suffice.
    """
    over_at = time.monotonic() + working_seconds(remaining_seconds)
    journal, plan = runs.open_run(state["run"])
    if (stale := journal.load(STALE_INDEX)) is not None:
        return {**state, "next": "plan", "stale_index": stale["why"]}
    task = tasks[plan.task](runs.connect(plan.table, CONNECTIONS), plan.options)
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

    Its seconds are those of this execution; worker seconds and cost are those of the whole run.
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
    """Write both lists of a manifest's parts."""
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
    """Return the execution's output, without any keys; first what a person looks for.

    `more` has the names of further entries of the manifest, with their names in the output.
    """
    store = runs.store(plan.id)
    names = ("run", "finished", "table", "index", "method", "format", "keys", "requests")
    more_names = ("read_units", "seconds", "throttles", "cost")
    segments = {name: count for name, count in manifest["segments"].items() if name != "keys"}
    source = plan.table if plan.index is None else f"the index {plan.index} of {plan.table}"
    return {
        "says": f"{counted(manifest['keys'], 'key')} of {source}: in the files that {PARTS} names.",
        "parts": store.url(PARTS),
        "manifest": store.url("manifest.json"),
        **{name: manifest[name] for name in (*names, *more_names)},
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
        field = "maxWriteUnits" if plan.counts_writes else "maxReadUnits"
        raise BudgetSpent(
            f"The rest of {field} does not pay for the next pages: the run has spent "
            f"{spent:,.1f} units in all."
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


def clean_up(
    state: Mapping[str, Any], execution: ExecutionContext, runs: Runs, worker: FunctionSize
) -> None:
    """Write a summary of a failed run, and raise RunFailed.

    Commits are kept, so the run can be resumed. If somebody has redriven the execution since it
    failed, delete the records of its failures and return. The `state` has the run, the failure, how
    often the execution was redriven before, and the input that resumes the run, if there is one.
    """
    # A redrive begins at the state that failed and does not run earlier states again. So the number
    # of redrives that was recorded right after the failure is smaller than the present one.
    failed_after = state.get("failedAfter")
    if failed_after is None or (failed_after["redrives"] or 0) >= execution.redrives:
        raise _failed(state, execution, runs, worker)
    store = runs.store(state["run"])
    for name in store.sizes(FAILURES):
        if (Journal(store).load(name) or {}).get("execution") == execution.id:
            store.delete(name)


def _failed(
    state: Mapping[str, Any], execution: ExecutionContext, runs: Runs, worker: FunctionSize
) -> RunFailed:
    run = state["run"]
    try:
        journal, plan = runs.open_run(run)
        totals, summary = sum_up(journal, plan)
        if not summary["finished"]:  # only FinishRun may mark a run as finished
            journal.write_summary(summary | figures(plan, totals, worker, execution))
        outcomes = ", ".join(f"{count:,} {name}" for name, count in totals.counts.most_common())
        progress = (
            f"{totals.ended:,} of {counted(plan.segments, 'segment')} "
            f"{'is' if totals.ended == 1 else 'are'} done, with "
            f"{counted(totals.keys, 'key')}{f' ({outcomes})' if outcomes else ''}."
        )
    except KeyhopError as error:
        progress = f"Its files cannot be summed up: {error}"
    where, name, cause = _first_cause(state["failure"], execution, runs.store(run))
    error_name, detail = (OTHER, f"{name}: {cause}") if "." in name else (name, cause)
    says = f"{where}{detail} {progress}"
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


def _first_cause(
    failure: Mapping[str, Any], execution: ExecutionContext, store: Bucket
) -> tuple[str, str, str]:
    """Return the place, the name and the message of an error; of a map, of its first failure."""
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
