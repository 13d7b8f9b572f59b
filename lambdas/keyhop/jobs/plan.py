"""State PlanRun: from the execution's input to groups of segments, or to an estimate."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import Target, describe
from keyhop.dynamodb.usage import Tally
from keyhop.errors import BudgetSpent, RunConflict
from keyhop.jobs.check import units_checked
from keyhop.jobs.costs import Worker, run_cost
from keyhop.jobs.estimate import estimate
from keyhop.jobs.first_look import Start, prepare
from keyhop.jobs.groups import (
    LEAST_BLIND_SHARE,
    LEAST_SHARE,
    Fleet,
    allowances,
    fleet_of,
    fleet_wishes,
    workers_at_once,
)
from keyhop.jobs.journal import RunLog
from keyhop.jobs.layout import DEFAULT_UNITS, MOST_WORKERS, Choice, Wishes, choose_method
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.request import InvalidInput, Request, allowed
from keyhop.jobs.runs import Execution, Runs, dynamodb_for, groups_of, unfinished
from keyhop.jobs.work import sought
from keyhop.jobs.worker import GroupRun, Progress, begin, check_resumable, plan_of, summed_up
from keyhop.keys.logical import check_can_fold
from keyhop.scan.page_size import FIRST_DEPOSIT, Ledger
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

CONNECTIONS = 16
Sources = Callable[
    [DynamoDB, Endpoint, Target, str, Mapping[str, Any] | None], tuple[Target, Choice]
]
"""From client, endpoint, table, method and walk to what is read, and how (key_index/fleet.py)."""

LEAST_LOOK_UNITS = 50.0
LOOK_SECONDS = 120.0
LEAST_PART_AFTER_LOOK = 0.2
PATIENCE_SECONDS = 300.0


def plan_run(
    request: Request,
    execution: Execution,
    runs: Runs,
    tables: list[str],
    worker: Worker,
    tally: Tally,
    most_workers: int | None = None,
    sources: Sources | None = None,
) -> dict[str, Any]:
    """Begin a run, go on with one, or estimate; returns the next state.

    tally: gets all that is read, also if it ends with an error. most_workers: how many the
    deployment can run at once, if it reserves their concurrency. May be called again for the same
    execution: then it finds its own run. sources: knows the key indexes. Raises CannotStart and its
    kin before anything is read; BudgetSpent; what reading can raise.
    """
    table = allowed(request.table, tables)
    client, endpoint = dynamodb_for(table, tables, CONNECTIONS)
    begun = None if request.resume is None else runs.begun(request.resume)
    index = request.index if begun is None else _index_of(begun[1], request)
    if index is not None and request.verify_share is not None:
        raise InvalidInput(
            "verifyShare does not work for an index: that is read through by plain Scans anyway."
        )
    target = describe(client, endpoint, table, index, PATIENCE_SECONDS)
    if request.logical:
        check_can_fold(target.space)
    if begun is not None:
        target, choice = sought(begun[1], target), Choice(begun[1].method, begun[1].reason)
    else:
        target, choice = _chosen(request, target, sources, client, endpoint)
    budget = Budget(request.max_read_rate, request.max_read_units)
    reader = PageReader(client, target, budget, endpoint=endpoint, patience=PATIENCE_SECONDS)
    reader.tally = tally
    if request.plan_only:
        return _estimate(request, execution, runs, reader, choice, worker, most_workers)
    if begun is not None:
        log, plan = begun
        _check_resumable(request, log, plan, target)
    else:
        log, plan = _begun(request, execution, runs, reader, choice)
    totals = summed_up(log, plan)[0]
    return _state(request, execution, runs, plan, totals, most_workers)


def _chosen(
    request: Request,
    target: Target,
    sources: Sources | None,
    client: DynamoDB,
    endpoint: Endpoint,
) -> tuple[Target, Choice]:
    """What to read and how: the key index has a say where there is one."""
    by_table = request.index is not None or request.plan_only or request.verify_share is not None
    if sources is None or (by_table and request.walk is None):
        return target, choose_method(target.space, target.index, request.method)
    return sources(client, endpoint, target, request.method, request.walk)


def _estimate(
    request: Request,
    execution: Execution,
    runs: Runs,
    reader: PageReader,
    choice: Choice,
    worker: Worker,
    most_workers: int | None,
) -> dict[str, Any]:
    target = reader.target
    allowance = min(DEFAULT_UNITS, request.max_read_units or DEFAULT_UNITS)
    found = estimate(reader, choice, _wishes(request, target, choice), allowance)
    fleet = fleet_of(found.layout, _needs_memory(target, choice))
    at_once = workers_at_once(fleet.at_once, request.max_read_rate, most_workers)
    cost = found.costs[choice.method]
    threads = min(MOST_WORKERS * at_once, found.layout.workers)
    told = found.to_json()
    told["workers"] = at_once
    told["groups"] = fleet.groups
    told["cost"] = run_cost(
        worker,
        cost.units.mean,
        seconds=cost.seconds * at_once,
        invocations=fleet.groups,
        groups=fleet.groups,
        commits=fleet.groups,
    )
    told["threads"] = threads
    name = f"estimate-{execution.name}.json"
    store = runs.store(execution.name)
    store.replace(name, json.dumps(told).encode())
    return {"planOnly": True, "estimate": {**told, "file": store.url(name)}}


def _needs_memory(target: Target, choice: Choice) -> bool:
    """Whether one worker must see all keys: those of an index that is not the key index."""
    return target.index is not None and choice.method != "index"


def _wishes(request: Request, target: Target, choice: Choice) -> Wishes:
    return fleet_wishes(
        request.segments,
        request.max_concurrency,
        request.max_read_rate,
        request.verify_share,
        _needs_memory(target, choice),
        target.size_bytes,
    )


def _begun(
    request: Request, execution: Execution, runs: Runs, reader: PageReader, choice: Choice
) -> tuple[RunLog, RunPlan]:
    """The run of this execution: begun now, or by an earlier attempt at this very call."""
    log = runs.log(execution.name)
    plan = log.plan()
    if plan is None:
        began = time.monotonic()
        wishes = _wishes(request, reader.target, choice)
        start = prepare(reader, choice.method, wishes, _look_units(request))
        if request.walk is not None:
            start = replace(start, opening=None)  # it has shown keys, but no visitor has seen them
        _check_the_look_was_paid(request, reader, start)
        plan = _plan(request, execution, reader, choice, start, time.monotonic() - began)
        try:
            begin(log, plan)
        except RunConflict:
            plan = log.plan()  # a first attempt that was given up, and that was quicker after all
        else:
            if start.opening is not None:  # what it has found is the first slice of group 0
                GroupRun(log, plan, 0, reader, 1, Progress(plan.segments)).run(start, seconds=0)
    if plan is None or plan.begun_by != execution.key:
        raise RunConflict(
            f"There is a run named {execution.name!r} already: start with another name, or give "
            f'"resume": "{execution.name}" to go on with it.'
        )
    return log, plan


def _look_units(request: Request) -> float:
    """What the first look may cost: under a low rate, not more than the function has time for."""
    if request.max_read_rate is None:
        return math.inf
    return max(LEAST_LOOK_UNITS, LOOK_SECONDS * request.max_read_rate)


def _check_the_look_was_paid(request: Request, reader: PageReader, start: Start) -> None:
    """Raises BudgetSpent, before a run begins whose plan would rest on too little."""
    is_read = start.opening is not None and start.opening.position is None
    limit = request.max_read_units
    if limit is None or is_read or not reader.tally.requests:
        return
    if reader.budget.left < LEAST_PART_AFTER_LOOK * limit:
        raise BudgetSpent(
            f"maxReadUnits {limit:g} does not pay for more than the first look at the table, which "
            f"costs up to about 8 read units: start again, under another name, with more."
        )


def _plan(
    request: Request,
    execution: Execution,
    reader: PageReader,
    choice: Choice,
    start: Start,
    seconds: float,
) -> RunPlan:
    fleet: Fleet = fleet_of(start.layout, _needs_memory(reader.target, choice))
    return replace(
        plan_of(reader, choice, start, request.format or "jsonl", seconds),
        id=execution.name,
        groups=fleet.groups,
        at_once=fleet.at_once,
        gzip=True,
        begun_by=execution.key,
        ledger=_learnt(start.ledger),
        walk=request.walk,
        fold=request.fold,
    )


def _learnt(ledger: Ledger) -> Mapping[str, Any]:
    """What each group begins with: all that was learnt, and credit as for one process."""
    state = ledger.to_json()
    state["bank"] = min(state["bank"], FIRST_DEPOSIT * MOST_WORKERS)
    return state


def _index_of(plan: RunPlan, request: Request) -> str | None:
    """The index of the run to resume, which need not be given again."""
    if request.index not in (None, plan.index):
        raise RunConflict(
            f"The run {plan.id!r} lists the keys of "
            f"{f'index {plan.index}' if plan.index else 'the table itself'}, not of index "
            f"{request.index}: leave index out."
        )
    return plan.index


def _check_resumable(request: Request, log: RunLog, plan: RunPlan, target: Target) -> None:
    to_check = request.verify_share is not None  # also a run that is finished
    check_resumable(log, plan, target, f"runs/{plan.id}", may_be_finished=to_check)
    asked = {
        "method": (plan.method if request.method == "auto" else request.method, plan.method),
        "segments": (request.segments or plan.segments, plan.segments),
        "format": (request.format or plan.format, plan.format),
    }
    for name, (wanted, begun) in asked.items():
        if wanted != begun:
            raise RunConflict(
                f"The run {plan.id!r} was begun with {name} {begun}, not {wanted}: leave it out."
            )
    if request.logical:
        if plan.fold is None:
            raise RunConflict(f"The run {plan.id!r} was begun without logical: leave it out.")
        if request.separator not in (None, plan.fold["separator"]):
            raise RunConflict(
                f"The run {plan.id!r} was begun with separator {plan.fold['separator']}, not "
                f"{request.separator}: leave it out."
            )


def _state(
    request: Request,
    execution: Execution,
    runs: Runs,
    plan: RunPlan,
    totals: Totals,
    most_workers: int | None,
) -> dict[str, Any]:
    waiting = unfinished(plan.groups, totals.finished)
    limit = None
    least = LEAST_SHARE if plan.planning.items else LEAST_BLIND_SHARE
    items: dict[int, float | None] = dict.fromkeys(waiting)
    if request.max_read_units is not None:
        # What this start has read counts; what earlier starts have read does not.
        before = totals.tally.units if request.resume else 0.0
        limit = before + request.max_read_units
        shares = allowances(limit - totals.tally.units, totals.spent_by_group, waiting, least)
        if waiting and not shares:
            raise BudgetSpent(
                f"The first look has cost {totals.tally.units:g} read units, and nothing is left "
                f"of maxReadUnits: start again with more."
            )
        items = dict(shares)
    wanted = plan.at_once if request.max_concurrency is None else request.max_concurrency
    if plan.needs_memory:
        wanted = 1
    at_once = workers_at_once(wanted, request.max_read_rate, most_workers)
    return {
        "planOnly": False,
        "run": plan.id,
        "execution": execution.id,
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
        "readUnitsBefore": totals.tally.units,
        "checkUnitsBefore": units_checked(runs.store(plan.id)),
        "leastShare": least,
        "verifyShare": request.verify_share,
        "again": _again(request, plan),
        # A map needs an item: a group that is finished is told so at once.
        **groups_of(runs, plan.id, execution, 0, items or {0: None}),
    }


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
