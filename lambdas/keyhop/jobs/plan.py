"""The beginning of a job: what to read, how it is spread, and the plan that is written down."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.checks import InvalidInput
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.errors import (
    BrokenPromise,
    Disbelieved,
    IndexBusy,
    IndexNotFound,
    RunConflict,
)
from keyhop.jobs.clock import now
from keyhop.jobs.first_look import Start
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan, Totals, manifest
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task, TaskPlan, Tasks
from keyhop.scan.reader import PageReader


def begin(
    journal: Journal,
    request: Request,
    reader: PageReader,
    plan: TaskPlan,
    start: Start,
    **spread: Any,
) -> RunPlan:
    """Write down what the run will do; raises RunConflict if another was begun here meanwhile.

    spread: the run's groups and format, and what else of its plan is not usual.
    """
    source = reader.source
    is_as_planned = source.ignores == plan.source.ignores
    begun = RunPlan(
        table=source.name,
        index=source.index,
        identity=source.identity,
        space=source.space,
        method=plan.method,
        reason=plan.reason,
        segments=start.layout.segments,
        buckets=start.layout.buckets,
        started=now(),
        planning_seconds=start.seconds,
        task=request.task,
        prices=reader.connection.prices,
        options=plan.options if is_as_planned else plan.if_seen or plan.options,
        **{"id": uuid.uuid4().hex, "planning": reader.usage.copy(), **spread},
    )
    if not journal.begin(begun):
        raise RunConflict("Another run was begun in the same place at the same moment.")
    journal.write_summary(manifest(begun, Totals.of(begun, ()), False, now()))
    return begun


@dataclass(frozen=True, slots=True)
class Place:
    """How messages speak of a run that is gone on with. prefix: before the names of settings."""

    where: str
    run: str
    prefix: str = ""


def resumed(
    journal: Journal,
    plan: RunPlan,
    request: Request,
    tasks: Tasks,
    table: Table,
    connection: Connection,
    place: Place,
    may_be_finished: bool = False,
) -> tuple[Task, Source]:
    """The task of a run to go on with, and what it reads: the index need not be given again.

    Raises RunConflict if the run is finished, is not one of this very table, does another task, or
    was begun otherwise than is asked for now; Disbelieved if it reads a trusted index that is gone.
    """
    if plan.task not in tasks or plan.task not in ("", request.task):
        raise RunConflict(f"{place.where} holds a job of another kind: {plan.task or 'keys'}.")
    if request.index not in (None, plan.index):
        what = f"index {plan.index}" if plan.index else "the table itself"
        raise RunConflict(
            f"{place.run} lists the keys of {what}, not of index {request.index}: leave "
            f"{place.prefix}index out."
        )
    if plan.index is not None and request.verify_share is not None:
        raise InvalidInput(
            "verifyShare does not work for an index: that is read through by plain Scans anyway."
        )
    task = tasks[plan.task](connection, plan.options)
    source = _source_of(task, plan, task.reads(table))
    if journal.is_finished() and not may_be_finished:
        raise RunConflict(
            f"{place.where} holds a finished run of {plan.title}: use its keys, or begin another "
            f"run."
        )
    if (plan.identity, plan.space) != (source.identity, source.space):
        raise RunConflict(
            f"{place.where} holds a run of another table: {plan.title}, {plan.identity}; begin "
            f"another run for {source.title}, {source.identity}."
        )
    _check_same_settings(request, plan, task.settings(), place)
    return task, source


def _source_of(task: Task, plan: RunPlan, table: Table) -> Source:
    """Return what a run reads; raises Disbelieved if that is a trusted index that is gone."""
    try:
        return task.view(table.source(plan.index))
    except (IndexNotFound, IndexBusy) as error:
        if not task.view(table.source()).trusted:
            raise
        raise Disbelieved(f"The key index could not be read: {error}") from error


def begun_task(tasks: Tasks, plan: RunPlan, connection: Connection) -> tuple[Task, Source]:
    """Return the task of a run, and what it reads.

    Raises BrokenPromise if the table was replaced, and Disbelieved (see `_source_of`).
    """
    task = tasks[plan.task](connection, plan.options)
    source = _source_of(task, plan, look_up(connection, plan.table))
    if (plan.identity, plan.space) != (source.identity, source.space):
        raise BrokenPromise(
            f"{plan.title} is not the table that the run was begun with, {plan.identity}, but "
            f"{source.identity}: start a new run."
        )
    return task, source


def _check_same_settings(
    request: Request, plan: RunPlan, settings: Mapping[str, Any], place: Place
) -> None:
    """Raises RunConflict if something was asked for that the run was not begun with.

    settings: of its task, by the names of `Request.wanted`.
    """
    begun: dict[str, Any] = {
        "method": plan.method,
        "segments": plan.segments,
        "format": plan.format,
        **settings,
    }
    wanted = {
        "method": None if request.method == "auto" else request.method,
        "segments": request.segments,
        "format": request.format,
        **request.wanted,
    }
    for name, value in wanted.items():
        if value is not None and value != begun[name]:
            setting = f"{place.prefix}{name}"
            how = f"without {setting}"
            if begun[name]:
                how = f"with {setting} {begun[name]}, not {value}"
            raise RunConflict(f"{place.run} was begun {how}: leave it out.")
