"""The beginning of a job: what to read, how it is spread, and the plan that is written down."""

import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from keyhop.checks import InvalidInput
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


@dataclass(frozen=True, slots=True)
class OneProcess:
    """All segments are one group, worked by the threads of this process."""

    gzip: bool = False
    format: Format = "text"

    def wishes(self, request: Request, size_bytes: int, one_worker: bool) -> Wishes:
        """Spread.wishes."""
        return Wishes(
            request.segments, request.threads, request.max_read_rate, request.verify_share
        )

    def fleet(self, layout: Layout, one_worker: bool) -> Fleet:
        """Spread.fleet."""
        return Fleet(layout.segments, 1, 1)


def chosen(tasks: Tasks, request: Request, table: Table, connection: Any) -> tuple[Task, TaskPlan]:
    """The task of a request, and what it will read; raises CannotStart and its kin."""
    task = tasks[request.task](connection, request.options)
    return task, task.plan(table, request)


def needs_memory(plan: TaskPlan) -> bool:
    """Whether one worker must see all keys: those of an index that has several rows for a key."""
    return plan.source.index is not None and plan.method != "index"


def first_look(
    request: Request, reader: PageReader, task: Task, plan: TaskPlan, spread: Spread, most: float
) -> Start:
    """Look at the table, for `most` read units at most; choose the layout."""
    wishes = spread.wishes(request, plan.source.size_bytes, needs_memory(plan))
    start = prepare(reader, plan.method, wishes, most)
    # What it has shown has not been visited.
    return replace(start, opening=None) if task.visits else start


def run_plan(
    request: Request,
    reader: PageReader,
    plan: TaskPlan,
    start: Start,
    spread: Spread,
    seconds: float,
    **own: Any,
) -> RunPlan:
    """What the run will do. seconds: how long the first look took. own: further fields."""
    source = plan.source
    fleet = spread.fleet(start.layout, needs_memory(plan))
    fields: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "table": source.name,
        "index": source.index,
        "identity": source.identity,
        "space": source.space,
        "method": plan.method,
        "reason": plan.reason,
        "segments": start.layout.segments,
        "groups": fleet.groups,
        "at_once": fleet.at_once,
        "gzip": spread.gzip,
        "format": request.format or spread.format,
        "started": now(),
        "planning": reader.usage.copy(),
        "planning_seconds": seconds,
        "task": request.task,
        "options": plan.options,
    }
    return RunPlan(**{**fields, **own})


def begin(journal: Journal, plan: RunPlan) -> None:
    """Write down what the run will do; raises RunConflict."""
    if not journal.begin(plan):
        raise RunConflict("Another run was begun in the same place at the same moment.")
    journal.write_summary(manifest(plan, Totals.of(plan, ()), False, now()))


@dataclass(frozen=True, slots=True)
class Place:
    """How messages speak of a run that is gone on with. prefix: before the names of settings."""

    where: str
    run: str
    prefix: str = ""


def check_resumable(
    journal: Journal, plan: RunPlan, source: Source, place: Place, may_be_finished: bool = False
) -> None:
    """Raises RunConflict if the run is finished, or is not one of this very table."""
    if journal.is_finished() and not may_be_finished:
        raise RunConflict(
            f"{place.where} holds a finished run of {plan.title}: use its keys, or begin another "
            f"run."
        )
    if (plan.index, plan.space) != (source.index, source.space) or plan.identity != source.identity:
        raise RunConflict(
            f"{place.where} holds a run of another table: {plan.title}, {plan.identity}; begin "
            f"another run for {source.title}, {source.identity}."
        )


def check_can_be_verified(index: str | None, request: Request) -> None:
    """Raises InvalidInput if the keys of an index are to be verified."""
    if index is not None and request.verify_share is not None:
        raise InvalidInput(
            "verifyShare does not work for an index: that is read through by plain Scans anyway."
        )


def check_same_settings(
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


def timed_look(
    request: Request, reader: PageReader, task: Task, plan: TaskPlan, spread: Spread
) -> tuple[Start, float]:
    """A first look without a limit of its own, and how many seconds it took."""
    began = time.monotonic()
    start = first_look(request, reader, task, plan, spread, math.inf)
    return start, time.monotonic() - began
