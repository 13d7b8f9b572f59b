"""The beginning of a job: what to read, how it is spread, and the plan that is written down."""

import math
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from keyhop.checks import InvalidInput
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.errors import RunConflict
from keyhop.jobs.clock import now
from keyhop.jobs.first_look import Start, prepare
from keyhop.jobs.formats import Format
from keyhop.jobs.groups import Fleet
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Layout, Wishes
from keyhop.jobs.model import RunPlan, Totals, manifest
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task, TaskPlan, Tasks
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader


class Spread(Protocol):
    """How a run is spread: over one process, or over the workers of a fleet (groups.py)."""

    @property
    def gzip(self) -> bool:
        """Whether parts are compressed."""

    @property
    def format(self) -> Format:
        """How keys are written, if nothing else is asked for."""

    def wishes(self, request: Request, size_bytes: int, one_worker: bool) -> Wishes:
        """What the layout has to know. size_bytes: of what is read."""

    def fleet(self, layout: Layout, one_worker: bool) -> Fleet:
        """The groups of a layout."""

    def learnt(self, ledger: Ledger) -> Mapping[str, Any] | None:
        """What of a first look each group begins with."""


@dataclass(frozen=True, slots=True)
class OneProcess:
    """All segments are one group, worked by the threads of this process."""

    gzip: bool = False
    format: Format = "text"

    def wishes(self, request: Request, size_bytes: int, one_worker: bool) -> Wishes:
        return Wishes(
            request.segments, request.threads, request.max_read_rate, request.verify_share
        )

    def fleet(self, layout: Layout, one_worker: bool) -> Fleet:
        return Fleet(layout.segments, 1, 1)

    def learnt(self, ledger: Ledger) -> None:
        """Spread.learnt: the process goes on with the ledger itself."""


def chosen(
    tasks: Tasks, request: Request, table: Table, connection: Connection
) -> tuple[Task, TaskPlan]:
    """The task of a request, and what it will read; raises CannotStart and its kin."""
    task = tasks[request.task](connection, request.options)
    return task, task.plan(table, request)


def needs_memory(plan: TaskPlan) -> bool:
    """Whether one worker must see all keys: those of an index that has several rows for a key."""
    return plan.source.index is not None and plan.method != "index"


def begin(
    journal: Journal,
    request: Request,
    reader: PageReader,
    task: Task,
    plan: TaskPlan,
    spread: Spread,
    most: float = math.inf,
    check: Callable[[Start], None] = lambda start: None,
    **own: Any,
) -> tuple[RunPlan, Start]:
    """Look at the table, for `most` read units at most, and write down what the run will do.

    check: may raise what ends it after the look. own: further fields of the plan. Raises
    RunConflict if another run was begun in the same place meanwhile.
    """
    began = time.monotonic()
    source, one_worker = plan.source, needs_memory(plan)
    wishes = spread.wishes(request, source.size_bytes, one_worker)
    start = prepare(reader, plan.method, wishes, most)
    if task.visits:
        start = replace(start, opening=None)  # what the look has shown has not been visited
    check(start)
    fleet = spread.fleet(start.layout, one_worker)
    fields: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "table": source.name,
        "index": source.index,
        "identity": source.identity,
        "space": source.space,
        "method": plan.method,
        "reason": plan.reason,
        "segments": fleet.segments,
        "groups": fleet.groups,
        "at_once": fleet.at_once,
        "gzip": spread.gzip,
        "format": request.format or spread.format,
        "started": now(),
        "planning": reader.usage.copy(),
        "planning_seconds": time.monotonic() - began,
        "ledger": spread.learnt(start.ledger),
        "task": request.task,
        "options": plan.options,
    }
    run_plan = RunPlan(**{**fields, **own})
    if not journal.begin(run_plan):
        raise RunConflict("Another run was begun in the same place at the same moment.")
    journal.write_summary(manifest(run_plan, Totals.of(run_plan, ()), False, now()))
    return run_plan, start


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
    was begun otherwise than is asked for now.
    """
    if plan.task not in tasks or plan.task not in ("", request.task):
        raise RunConflict(f"{place.where} holds a job of another kind: {plan.task or 'keys'}.")
    if request.index not in (None, plan.index):
        what = f"index {plan.index}" if plan.index else "the table itself"
        raise RunConflict(
            f"{place.run} lists the keys of {what}, not of index {request.index}: leave "
            f"{place.prefix}index out."
        )
    check_can_be_verified(plan.index, request)
    task = tasks[plan.task](connection, plan.options)
    source = task.view(table.source(plan.index))
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


def check_can_be_verified(index: str | None, request: Request) -> None:
    """Raises InvalidInput if the keys of an index are to be verified."""
    if index is not None and request.verify_share is not None:
        raise InvalidInput(
            "verifyShare does not work for an index: that is read through by plain Scans anyway."
        )


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
