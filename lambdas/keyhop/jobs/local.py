"""A job on this machine: the same plan, work and finish as those of a fleet, over local files.

It runs in this process or, if that is faster, in several (processes.py), each of which reads a
group of the run. It always runs in one process if keys can occur twice (needs_memory), or if the
task acts on each page.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import BudgetSpent, RunConflict, StaleIndex, Stopped, UnfinishedRun
from keyhop.jobs.estimate import PredictUnits, of_the_rest, predicted_units
from keyhop.jobs.journal import Commit, Journal, Part, RunPlan, Totals, needs_memory
from keyhop.jobs.layout import Wishes, learnt_for_each, most_processes, workers_at_once
from keyhop.jobs.lifecycle import Planned, conclude, recover, resumed
from keyhop.jobs.processes import GroupProcesses, StartProcess, cores
from keyhop.jobs.request import Request
from keyhop.jobs.task import Summary, Task, TaskPlan, Tasks, note_examples
from keyhop.jobs.worker import CALM_SLICES, GroupWorker, Output
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening
from keyhop.storage.local import LIST, Directory
from keyhop.storage.store import Memory


@dataclass(slots=True)
class LocalJob:
    """A run on this machine: a new one, or the unfinished one in the journal.

    It has a task and a reader after `prepare`, and a plan and a group after `begin`.

    Attributes:
        place: The place of the run, for messages.
        expected: The approximate number of keys; None if it is unknown.
        limit: The number of keys after which the reader stops; None if it wants all.
        approve: Is called with the job, and what it will read (see estimate.predicted_units),
            before the job writes anything, also when the run begins again. An exception that it
            raises ends it.
        start_process: Starts a process; None for a job that runs in this process only.
        wanted_processes: The number of processes; None for as many as make the run faster.
        temporary: Returns a place for the files of a run that keeps none: several processes
            exchange commits as files.
    """

    request: Request
    tasks: Tasks
    connection: Connection
    journal: Journal
    stop: Event = field(default_factory=Event)
    patience: float = DEFAULT_PATIENCE_SECONDS
    place: str = "this process"
    usage: Usage = field(default_factory=Usage)
    expected: float | None = None
    limit: int | None = None
    approve: Callable[["LocalJob", PredictUnits], None] = lambda *_: None
    start_process: StartProcess | None = None
    wanted_processes: int | None = None
    temporary: Callable[[], Journal] = lambda: Journal(Memory())
    task: Task = field(init=False)
    reader: PageReader = field(init=False)
    plan: RunPlan = field(init=False)
    group: GroupWorker | GroupProcesses = field(init=False)
    _planned: Planned = field(init=False)
    _begun: RunPlan | None = None
    _began: float = 0.0
    _opening: Opening | None = None

    def prepare(
        self, table: Table | None = None, may_be_finished: bool = False, why: str = ""
    ) -> None:
        """Find the run to resume, or plan the task of a new one, without reading items.

        Raise CannotStart if the run cannot be done or resumed. For `why`, see Planned.of.
        """
        stored_plan = self.journal.plan()
        table = table or look_up(self.connection, self.request.table, self.patience)
        more: dict[str, Any] = {"patience": self.patience, "stop": self.stop, "usage": self.usage}
        if stored_plan is not None:
            try:
                self.task, source = resumed(
                    self.journal,
                    stored_plan,
                    self.request,
                    self.tasks,
                    table,
                    self.connection,
                    self.place,
                    "=",
                    may_be_finished,
                )
            except StaleIndex as error:
                stored_plan, why = None, str(error)
                self.journal.forget_run()
                self.request = replace(self.request, method="skip")
            else:
                budget = Budget(self.request.max_read_rate, self.request.max_read_units)
                self.reader = PageReader(self.connection, source, budget, **more)
        if stored_plan is None:
            self.task = self.tasks[self.request.task](self.connection, self.request.options)
            table = self.task.reads(table)
            self._planned = Planned.of(self.task, self.request, self.connection, table, why, **more)
            self.reader = self._planned.reader
        self._begun = stored_plan

    def anew(self, why: str) -> "LocalJob":
        """Return a job in the same place that finds the keys by skip-scan instead of the key index.

        The reads of this job count in the usage and in the budget of that one.
        """
        self.journal.forget_run()
        maximum = self.request.max_read_units
        remaining = None if maximum is None else maximum - self.usage.read_units
        if remaining is not None and remaining <= 0:
            raise BudgetSpent(f"{why} No read units remain to find the keys without it.")
        request = replace(self.request, method="skip", max_read_units=remaining)
        job = replace(self, request=request)
        job.prepare(why=why)
        return job

    @property
    def how(self) -> tuple[str, str]:
        """The method, and the reason for it."""
        plan = self._begun or self._planned.plan
        return plan.method, plan.reason

    def begin(self) -> None:
        """Take the first look and write the plan, or check the files of an unfinished run."""
        request, reader, self._began = self.request, self.reader, time.monotonic()
        wishes = Wishes(
            request.segments, request.threads, request.max_read_rate, request.verify_share
        )
        ledger = None
        if self._begun is None:
            planned = self._planned
            planned.look(partial(self._in_processes, wishes))
            method, units = planned.plan.method, planned.units
            if self.limit and planned.keys and units is not None:
                units = units.scaled(min(1.0, self.limit / planned.keys))
            predict = partial(predicted_units, reader, method, wishes, units, 1.0, limit=self.limit)
            self.approve(self, predict)
            layout = planned.layout
            groups = 1 if self.task.visits else min(layout.processes, layout.segments)
            if groups > 1 and self.start_process and isinstance(self.journal.store, Memory):
                self.journal = self.temporary()
            self.plan = planned.begin(
                self.journal,
                groups=groups,
                at_once=groups,
                format=request.format or "text",
                ledger=None if groups == 1 else learnt_for_each(planned.ledger),
            )
            ledger, self._opening = planned.ledger, planned.opening
            self.expected = self.expected or planned.keys or self.plan.rows or None
        else:
            rest = of_the_rest(self._begun, recover(self.journal, self._begun))
            self.approve(self, partial(predicted_units, reader, self._begun.method, wishes, *rest))
            self.plan = self._begun
        if self.start_process is not None and self.plan.groups > 1:
            at_once = min(self.wanted_processes or cores(), self.plan.groups)
            self.group = GroupProcesses(
                self.journal, self.plan, reader, self.start_process, at_once, wishes.most_in_flight
            )
        else:
            pages = self.task.pages(self.journal, self.plan, reader, ledger)
            self.group = GroupWorker(self.journal, self.plan, 0, pages, wishes.most_in_flight)
        self.task.start(reader)

    @property
    def processes(self) -> int:
        return 1 if isinstance(self.group, GroupWorker) else self.group.at_once

    def _in_processes(self, wishes: Wishes, plan: TaskPlan) -> Wishes:
        """Return the wishes with the number of processes, if the run may have several."""
        request = self.request
        needs_one = self.task.visits or needs_memory(plan.method, plan.source.index)
        if needs_one or self.start_process is None:
            return wishes
        if (processes := self.wanted_processes) is not None:
            processes = workers_at_once(processes, request.max_read_rate, None)
            return replace(wishes, processes=processes)
        maximum = most_processes(cores(), request.max_read_rate, request.max_read_units)
        return replace(wishes, most_processes=maximum)

    def work(
        self,
        idle: Callable[[], None] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
        output: Output | None = None,
        committed: Callable[[Commit], None] = lambda commit: None,
    ) -> bool:
        """Read until the run is complete or the job is stopped; return whether it is complete.

        Args:
            say: Is called with messages for the user (see GroupProcesses).
            output: Receives the keys (see GroupWorker), if there is one process.
        """
        group = self.group
        group.idle, group.committed = idle, committed
        if not isinstance(group, GroupWorker):
            group.say = say
            return group.run()
        group.output = output
        if isinstance(self.journal.store, Memory):
            # No commit can be resumed from, so there is one slice. Its keys take no memory.
            group.slices = math.inf, math.inf
            group.output = output or Dropped()
        elif self.task.visits:
            # A visit may wait. The end of a slice can interrupt it. Then it is repeated, without
            # counting the corrections that it made before again.
            group.slices = CALM_SLICES
        try:
            return group.run(self._opening)
        finally:
            note_examples(self.journal, self.task, "g0")

    def finish(self) -> tuple[Totals, Summary]:
        """Sum up the run (`conclude`); raise Stopped if the job was stopped."""
        totals, summary = conclude(
            self.journal, self.plan, self.task, stop=self.stop, figures=self._figures
        )
        if summary is None:
            raise Stopped
        return totals, summary

    def _figures(self, totals: Totals) -> dict[str, Any]:
        """Return the duration of a run in several processes: it is not the sum of its slices."""
        if self.processes == 1:
            return {}
        seconds = time.monotonic() - self._began
        if self._begun is not None:
            before = self.plan.planning_seconds
            seconds = before + (totals.seconds - before) / self.processes
        return {"seconds": round(seconds, 3)}


class Dropped:
    """An output (worker.Output) that counts the keys and drops them."""

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        return len(keys)

    def close(self) -> tuple[Part, ...]:
        return ()


def check_is_begun(path: Path) -> None:
    """Raise RunConflict if no run was begun in a directory, which may have a lock file."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        raise RunConflict(
            f"{path} holds no run that could be resumed: check the name of the directory, or begin "
            "a run in it with output=."
        )


def check_is_new(path: Path) -> None:
    """Raise RunConflict if a directory holds a run, or the list of keys that was begun for one."""
    plan = _plan_in(path) or _plan_in(path / LIST)
    if plan is None:
        return
    if not Journal(Directory(path)).is_finished():
        raise _unfinished(path, plan)
    raise RunConflict(f"{path} holds a finished run of {plan.title}: choose another directory.")


def opened(path: Path, resume: bool) -> Journal:
    """Open the directory of a run, which may be unfinished if `resume` is true, and lock it.

    Raises:
        RunConflict: The path is a file, or the directory has other files.
        UnfinishedRun: The directory has an unfinished run.
        CannotStart: Another process has locked the directory.
    """
    plan, directory = _plan_in(path), Directory(path)
    journal = Journal(directory)
    if plan is None:
        directory.make()
    elif not journal.is_finished() and not resume:
        raise _unfinished(path, plan)
    directory.lock()
    return journal


def _plan_in(path: Path) -> RunPlan | None:
    """Return the plan of the run in a directory, None if it is empty; raise RunConflict."""
    if path.exists() and not path.is_dir():
        raise RunConflict(f"{path} is a file: give a directory.")
    directory = Directory(path)
    plan = Journal(directory).plan()
    if plan is None and not directory.is_empty():
        raise RunConflict(f"{path} holds other files: give an empty directory.")
    return plan


def _unfinished(path: Path, plan: RunPlan) -> UnfinishedRun:
    return UnfinishedRun(
        f"{path} holds an unfinished run of {plan.title}: resume it, or choose another directory.",
        str(path),
    )
