"""The life cycle of a run: begin it, resume it, sum it up, and write its manifest."""

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from keyhop.clock import now
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.errors import (
    BrokenPromise,
    IndexBusy,
    IndexNotFound,
    InvalidInput,
    RunConflict,
    StaleIndex,
)
from keyhop.jobs.estimate import Start, first_look
from keyhop.jobs.journal import EndedSegments, Journal, RunPlan, Totals, manifest
from keyhop.jobs.layout import Wishes
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, Task, TaskPlan, Tasks
from keyhop.scan.reader import PageReader


@dataclass(slots=True)
class Planned:
    """A run that is planned, and not begun.

    Attributes:
        plan: Its source and method. `look` may change it.
        start: The result of the first look, after `look`.
    """

    request: Request
    task: Task
    plan: TaskPlan
    reader: PageReader
    start: Start = field(init=False)

    @classmethod
    def of(
        cls,
        task: Task,
        request: Request,
        connection: Connection,
        table: Table,
        why: str = "",
        **reader: Any,
    ) -> "Planned":
        """Plan a run without reading items; raise CannotStart if it cannot be done.

        Args:
            table: The table that the run reads (Task.reads).
            why: The reason for the method, if not the task gives it.
            reader: The arguments of the reader. Its budget is that of the request by default.
        """
        plan = task.plan(table, request)
        budget = Budget(request.max_read_rate, request.max_read_units)
        page_reader = PageReader(connection, plan.source, **{"budget": budget, **reader})
        return cls(request, task, replace(plan, reason=why or plan.reason), page_reader)

    def look(self, wishes_of: Callable[[TaskPlan], Wishes], allowance: float = math.inf) -> Start:
        """Take the first look (see `first_look`), after the reads that the task needs."""
        self.plan = self.task.look(self.reader, self.plan)
        wishes = wishes_of(self.plan)
        self.start = first_look(self.reader, self.plan, wishes, self.task.visits, allowance)
        return self.start

    def begin(self, journal: Journal, **spread: Any) -> RunPlan:
        """Write the plan of the run, and return it; raise RunConflict if another run was quicker.

        `spread` has its groups and its format, and fields that differ from their default.
        """
        source, plan, start = self.reader.source, self.plan, self.start
        is_as_planned = source.ignores == plan.source.ignores
        run_plan = RunPlan(
            table=source.name,
            index=source.index,
            identity=source.identity,
            space=source.space,
            method=plan.method,
            reason=plan.reason,
            segments=start.layout.segments,
            buckets=start.layout.buckets,
            rows=plan.rows or 0,
            started=now(),
            planning_seconds=start.seconds,
            task=self.request.task,
            prices=self.reader.connection.prices,
            options=plan.options if is_as_planned else plan.if_seen or plan.options,
            **{"id": uuid.uuid4().hex, "planning": self.reader.usage.copy(), **spread},
        )
        if not journal.begin(run_plan):
            raise RunConflict("Another run was begun in the same place at the same moment.")
        journal.write_summary(manifest(run_plan, Totals(run_plan), False, now()))
        return run_plan


@dataclass(frozen=True, slots=True)
class Place:
    """The words of messages about a run to resume; `suffix` follows the names of arguments."""

    where: str
    run: str
    suffix: str = ""


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
    """Return the task of a run to resume, and its source; the request need not name the index.

    Raises:
        RunConflict: The run is finished, reads another table, does another task, or was begun with
            other settings than those of the request.
        StaleIndex: The run reads a trusted index that is gone.
    """
    if plan.task not in tasks or plan.task not in ("", request.task):
        raise RunConflict(f"{place.where} holds a job of another kind: {plan.task or 'keys'}.")
    if request.index not in (None, plan.index):
        what = f"index {plan.index}" if plan.index else "the table itself"
        raise RunConflict(
            f"{place.run} lists the keys of {what}, not of index {request.index}: leave "
            f"index{place.suffix} out."
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
    """Return what a run reads; raise StaleIndex if that is a trusted index that is gone."""
    try:
        return task.view(table.source(plan.index))
    except (IndexNotFound, IndexBusy) as error:
        if not task.view(table.source()).trusted:
            raise
        raise StaleIndex(f"The key index could not be read: {error}") from error


def begun_task(tasks: Tasks, plan: RunPlan, connection: Connection) -> tuple[Task, Source]:
    """Return the task of a run and its source.

    Raise BrokenPromise if the table was replaced, and StaleIndex if a trusted index is gone.
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
    """Raise RunConflict if the request names a setting with which the run was not begun.

    The `settings` are those of the run's task, with the names of `Request.wanted`.
    """
    of_run: dict[str, Any] = {
        "method": plan.method,
        "segments": plan.segments,
        "format": plan.format,
        **settings,
    }
    of_request = {
        "method": None if request.method == "auto" else request.method,
        "segments": request.segments,
        "format": request.format,
        **request.wanted,
    }
    for name, value in of_request.items():
        if value is not None and value != of_run[name]:
            how = f"without {name}{place.suffix}"
            if of_run[name]:
                how = f"with {name}{place.suffix or ' '}{of_run[name]}, not {value}"
            if name == "format" and place.suffix:  # users have another name for this one
                how = how.replace("jsonl", "typed-json")
            raise RunConflict(f"{place.run} was begun {how}: leave it out.")


def sum_up(journal: Journal, plan: RunPlan) -> tuple[Totals, dict[str, Any]]:
    """Return the totals and the manifest of a run.

    Raises BrokenPromise if its files are damaged, or if it claims to be finished and is not.
    """
    files = journal.commit_files()  # List them before the reads: a twin may add commits.
    segments = EndedSegments(plan)
    totals = Totals(plan, segments.watch(journal.commits_of(sorted(files))))
    if files.total() > totals.commits:
        raise BrokenPromise(
            f"Only {totals.commits} of {files.total()} commits follow one another, so keys are "
            f"lost: run again into another place."
        )
    journal.check_sizes(part.summary() for part in totals.parts)
    finished = len(totals.finished) == plan.groups
    if finished:
        segments.check_complete()
    return totals, manifest(plan, totals, finished, now())


def recover(journal: Journal, plan: RunPlan) -> Totals:
    """Check the commits of an unfinished run before it continues, and delete other parts.

    Raises BrokenPromise if a commit or a part is damaged; then nothing is deleted.
    """
    totals = sum_up(journal, plan)[0]
    journal.check_content(totals.parts)
    journal.sweep(totals.parts)
    return totals


def conclude(
    journal: Journal,
    plan: RunPlan,
    task: Task,
    over_at: float = math.inf,
    stop: Event | None = None,
    figures: Callable[[Totals], Mapping[str, Any]] = lambda totals: {},
    index_parts: Callable[[Sequence[Summary]], None] = lambda parts: None,
) -> tuple[Totals, Summary | None]:
    """Write the manifest, or the progress of an unfinished run. The first manifest stays.

    Args:
        figures: Returns what the summary contains in addition.
        index_parts: Is called with the parts that count, before the manifest is written.

    Returns:
        The totals of reading, and the summary. The summary is None if the task needs another call
        to finish, although everything is read (see `Ended`).

    Raises:
        BrokenPromise: The files of the run are damaged, or the result is incomplete.
    """
    totals, summary = sum_up(journal, plan)
    if not summary["finished"]:
        summary |= figures(totals)
        journal.write_summary(summary)
        return totals, summary
    # No further slice can be committed, so no commit will ever name the other parts.
    journal.sweep(totals.parts)
    stored: Summary | None = journal.manifest()
    if stored is None:
        result = task.finish(Ended(journal, plan, totals, summary, over_at, stop or Event()))
        if result is None:
            return totals, None
        index_parts(result["parts"])
        stored = {**result, **figures(totals)}
        journal.write_summary(stored)
    journal.check_sizes(stored["parts"])
    journal.forget_progress()
    return totals, stored
