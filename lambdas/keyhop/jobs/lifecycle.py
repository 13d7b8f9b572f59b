"""The life cycle of a run: plan it, begin it, resume it, sum it up, and write its manifest.

A run takes a first look if its layout depends on the content of the table.
"""

import math
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from keyhop.clock import now
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.dynamodb.units import UNITS_PER_BLOCK
from keyhop.errors import (
    BrokenPromise,
    IndexBusy,
    IndexNotFound,
    InvalidInput,
    RunConflict,
    StaleIndex,
)
from keyhop.jobs.journal import EndedSegments, Journal, RunPlan, Totals, manifest
from keyhop.jobs.layout import (
    KEYS_PER_SEGMENT,
    SCAN_BYTES_PER_SEGMENT,
    Layout,
    Wishes,
    layout_for_scan,
    layout_for_skip,
    spread,
)
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, Task, TaskPlan, Tasks
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening, Survey
from keyhop.scan.statistics import Interval, forecast, rough_interval, rough_keys

SURVEY_UNITS = 5.0
"""The read units that a run may spend on random segments, to choose its number of segments."""

SEGMENTS_IN_DOUBT = 8
"""The minimum unless the table is certainly small: a few too many cost less than too few."""

NOTHING = Interval(0.0, 0.0, 0.0)


@dataclass(slots=True)
class Planned:
    """A run that is planned, and not begun.

    Attributes:
        plan: Its source and method. `look` may change it.
        layout, ledger: The results of `look`.
        opening: The first keys of the table, if the run continues after them.
        look_seconds: The duration of the look.
        keys: The rough number of keys, if the look has counted them.
        units: The read units that the whole run will spend, by what the look shows.
    """

    request: Request
    task: Task
    plan: TaskPlan
    reader: PageReader
    layout: Layout = field(init=False)
    ledger: Ledger = field(init=False)
    opening: Opening | None = None
    look_seconds: float = 0.0
    keys: float | None = None
    units: Interval | None = None

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

    def look(self, wishes_of: Callable[[TaskPlan], Wishes], allowance: float = math.inf) -> None:
        """Choose the layout of the run and make its ledger, after the reads that the task needs.

        If the layout depends on the content of the table, read a few small pages, and spend at most
        SURVEY_UNITS on random segments. The small pages read a small table completely, as far as
        `allowance` read units allow. If the task visits pages, the run reads the first one again.
        """
        reader = self.reader
        self.plan = self.task.look(reader, self.plan)
        wishes, beginning = wishes_of(self.plan), time.monotonic()
        self.ledger = Ledger.for_table(reader.source.mean_item_bytes)
        if self.plan.layout is not None:
            self.layout, self.units = self.plan.layout, self.plan.units or NOTHING
            return
        if self.plan.method == "skip":
            self._look_for_skip(wishes, allowance)
        else:
            self._look_for_scan(wishes)
        reader.end_first_look()
        if self.task.visits:
            self.opening = None
        self.look_seconds = time.monotonic() - beginning

    def _look_for_scan(self, wishes: Wishes) -> None:
        source = self.reader.source
        self.layout = layout_for_scan(source.size_bytes or None, wishes)
        has_wish = wishes.segments is not None or wishes.verify_share is not None
        if has_wish or source.size_bytes > SCAN_BYTES_PER_SEGMENT:
            return
        if source.size_bytes and source.whole:  # The task visits whole items: none is kept here.
            self.layout = Layout(1, 1)
            return
        first_page = Survey(self.reader, self.ledger, math.inf, random.Random()).open_scan()
        if first_page.position is None or source.size_bytes:
            self._continue_after(first_page)

    def _look_for_skip(self, wishes: Wishes, allowance: float) -> None:
        if wishes.segments is not None:
            # We assume that the caller wants segments of the size that a plan gives them.
            requests = wishes.segments * KEYS_PER_SEGMENT
            self.layout = spread(wishes, wishes.segments, requests)
            return
        reader, ledger, chance = self.reader, self.ledger, random.Random()
        opening: Opening | None = None
        if wishes.verify_share is None:
            opening = Survey(reader, ledger, allowance, chance).open()
            if opening.is_enough:
                self._continue_after(opening)
                return
        looks = Survey(reader, ledger, SURVEY_UNITS, chance).look_around()
        self.keys = rough_keys(looks, reader.source.item_count)
        collections = [collection for look in looks for collection in look.collections]
        per_key = forecast(collections, ledger.size.mean, chance)
        layout = layout_for_skip(self.keys, per_key, wishes)
        if layout.segments < SEGMENTS_IN_DOUBT and not (looks and looks[0].whole):
            layout = spread(wishes, SEGMENTS_IN_DOUBT)
        hops = rough_interval(looks, self.keys, 0).scaled(per_key.units_per_key)
        ends = UNITS_PER_BLOCK * layout.segments
        self.units = Interval(hops.mean + ends, hops.low, hops.high + ends) if looks else None
        self.opening = opening if layout.segments == 1 else None
        self.layout = layout

    def _continue_after(self, opening: Opening) -> None:
        self.layout, self.opening = Layout(1, 1), opening
        self.units = NOTHING if opening.position is None else None

    def begin(self, journal: Journal, **spread: Any) -> RunPlan:
        """Write the plan of the run, and return it; raise RunConflict if another run was quicker.

        `spread` has its groups and its format, and fields that differ from their default.
        """
        source, plan = self.reader.source, self.plan
        is_as_planned = source.ignores == plan.source.ignores
        run_plan = RunPlan(
            table=source.name,
            index=source.index,
            identity=source.identity,
            space=source.space,
            method=plan.method,
            reason=plan.reason,
            segments=self.layout.segments,
            buckets=self.layout.buckets,
            rows=plan.rows or 0,
            started=now(),
            planning_seconds=self.look_seconds,
            task=self.request.task,
            prices=self.reader.connection.prices,
            options=plan.options if is_as_planned else plan.if_seen or plan.options,
            **{"id": uuid.uuid4().hex, "planning": self.reader.usage.copy(), **spread},
        )
        if not journal.begin(run_plan):
            raise RunConflict("Another run began in the same place at the same moment.")
        journal.write_summary(manifest(run_plan, Totals(run_plan), False, now()))
        return run_plan


def resumed(
    journal: Journal,
    plan: RunPlan,
    request: Request,
    tasks: Tasks,
    table: Table,
    connection: Connection,
    place: str,
    suffix: str = "",
    may_be_finished: bool = False,
) -> tuple[Task, Source]:
    """Return the task of a run to resume, and its source; the request need not name the index.

    Args:
        place: The place of the run, for messages.
        suffix: The text after the names of settings in messages, as "=" in Python.

    Raises:
        RunConflict: The run is finished, reads another table, does another task, or was begun with
            other settings than those of the request.
        StaleIndex: The run reads a trusted index that is gone.
    """
    if plan.task not in tasks or plan.task not in ("", request.task):
        raise RunConflict(f"{place} holds a job of another kind: {plan.task or 'keys'}.")
    if request.index not in (None, plan.index):
        what = f"index {plan.index}" if plan.index else "the table itself"
        raise RunConflict(
            f"The run in {place} lists the keys of {what}, not of index {request.index}: leave "
            f"index{suffix} out."
        )
    if plan.index is not None and request.verify_share is not None:
        raise InvalidInput(
            "verifyShare does not work for an index: plain Scans read an index anyway."
        )
    task = tasks[plan.task](connection, plan.options)
    source = _source_of(task, plan, task.reads(table))
    if journal.is_finished() and not may_be_finished:
        raise RunConflict(
            f"{place} holds a finished run of {plan.title}: use its keys, or begin another run."
        )
    if (plan.identity, plan.space) != (source.identity, source.space):
        raise RunConflict(
            f"{place} holds a run of another table: {plan.title}, {plan.identity}; begin "
            f"another run for {source.title}, {source.identity}."
        )
    _check_same_settings(request, plan, task.settings(), place, suffix)
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
    request: Request, plan: RunPlan, settings: Mapping[str, Any], place: str, suffix: str
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
            how = f"without {name}{suffix}"
            if of_run[name]:
                how = f"with {name}{suffix or ' '}{of_run[name]}, not {value}"
            if name == "format" and suffix:  # users have another name for this one
                how = how.replace("jsonl", "typed-json")
            raise RunConflict(f"The run in {place} was begun {how}: leave it out.")


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
            "missing: start a new run in another place."
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
