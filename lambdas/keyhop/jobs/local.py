"""A job in this process: the same plan, work and finish as a fleet's, over files of one's own."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.values import Key
from keyhop.errors import RunConflict
from keyhop.jobs import work
from keyhop.jobs.dedup import KnownKeys
from keyhop.jobs.finish import conclude, recover
from keyhop.jobs.first_look import Start
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import choose_threads
from keyhop.jobs.model import Part, RunPlan, Totals
from keyhop.jobs.plan import OneProcess, Place, begin, chosen, resumed
from keyhop.jobs.request import Request
from keyhop.jobs.slice import Sink
from keyhop.jobs.task import Result, Task, TaskPlan, Tasks
from keyhop.jobs.worker import GroupWorker, Output, Progress
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory
from keyhop.storage.memory import Memory

SPREAD = OneProcess()


@dataclass(slots=True)
class LocalJob:
    """One run: a new one, or that which the journal holds.

    patience: seconds of nothing but failures. reader, plan, threads, progress: once it is planned.
    """

    request: Request
    tasks: Tasks
    connection: Connection
    journal: Journal
    stop: Event = field(default_factory=Event)
    patience: float = DEFAULT_PATIENCE_SECONDS
    place: Place = field(default_factory=lambda: Place("this process", "The run"))
    task: Task = field(init=False)
    reader: PageReader = field(init=False)
    plan: RunPlan = field(init=False)
    threads: int = field(init=False)
    progress: Progress = field(init=False)
    _task_plan: TaskPlan = field(init=False)
    _begun: RunPlan | None = None
    _start: Start | None = None

    def prepare(self, table: Table | None = None, may_be_finished: bool = False) -> None:
        """Find the run to go on with, or plan a new one as far as its task; reads nothing yet.

        may_be_finished: then there is nothing to go on with. Raises CannotStart and its kin.
        """
        begun = self.journal.plan()
        table = table or look_up(self.connection, self.request.table, self.patience)
        if begun is None:
            self.task, self._task_plan = chosen(self.tasks, self.request, table, self.connection)
            source = self._task_plan.source
        else:
            self.task, source = resumed(
                self.journal,
                begun,
                self.request,
                self.tasks,
                table,
                self.connection,
                self.place,
                may_be_finished,
            )
        budget = Budget(self.request.max_read_rate, self.request.max_read_units)
        self.reader = PageReader(
            self.connection, source, budget, patience=self.patience, stop=self.stop
        )
        self._begun = begun

    @property
    def how(self) -> tuple[str, str]:
        """The method, and why."""
        plan = self._begun or self._task_plan
        return plan.method, plan.reason

    @property
    def is_begun(self) -> bool:
        """Whether the plan is written down."""
        return hasattr(self, "plan")

    def begin(self) -> None:
        """Take a first look and write the plan down; or check what an unfinished run has left."""
        if self._begun is None:
            self.plan, start = begin(
                self.journal, self.request, self.reader, self.task, self._task_plan, SPREAD
            )
            self._start = start
            self.threads = start.layout.threads
        else:
            recover(self.journal, self._begun)
            self.plan = self._begun
            wishes = SPREAD.wishes(self.request, 0, False)
            self.threads = choose_threads(wishes, self.plan.segments)
        self.progress = Progress(self.plan.segments)
        self.task.start(self.reader)

    def work(
        self,
        idle: Callable[[], None] = lambda: None,
        copy: Sink | None = None,
        output: Output | None = None,
    ) -> bool:
        """Go on until all is read, or the job is told to stop; returns whether all is read.

        idle: called a few times a second. copy, output: see GroupWorker.
        """
        group = GroupWorker(
            self.journal,
            self.plan,
            0,
            self.reader,
            self.task,
            self.threads,
            self.progress,
            idle,
            copy,
            output,
        )
        if isinstance(self.journal.store, Memory):
            # Nothing is committed that anybody could go on from: one slice is enough, and no memory
            # is spent on keys.
            group.first_slice_seconds = group.longest_slice_seconds = math.inf
            group.output = output or Dropped()
        elif self.task.visits:
            # As a fleet's: a visit may wait, and one that the end of a slice cuts off is made
            # again, but what it has put right by then is not counted again.
            group.first_slice_seconds = work.FIRST_SLICE_SECONDS
            group.longest_slice_seconds = work.LONGEST_SLICE_SECONDS
        try:
            return group.run(self._start)
        finally:
            if self.task.examples:
                self.journal.keep(f"{work.NOTES}/g0.json", self.task.examples)

    def finish(self) -> tuple[Totals, Result]:
        """Sum up, and write the manifest if all is read; raises BrokenPromise, Stopped."""
        return conclude(self.journal, self.plan, self.task, self._check_not_stopped)

    def _check_not_stopped(self, done: int) -> None:
        if self.stop.is_set():
            raise Stopped


@dataclass(slots=True)
class Dropped:
    """Keys that nobody takes (worker.Output)."""

    attempt: str = ""
    memory: KnownKeys | None = None

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        return len(keys if self.memory is None else self.memory.new_among(keys))

    def close(self) -> tuple[Part, ...]:
        return ()


def nowhere() -> Journal:
    """The files of a run that cannot be resumed."""
    return Journal(Memory())


def opened(path: Path, resume: bool) -> Journal:
    """The files of a run in a directory of its own, locked; raises RunConflict, CannotStart.

    A directory that holds an unfinished run is opened only to `resume` it.
    """
    directory = Directory(path)
    if path.exists() and not path.is_dir():
        raise RunConflict(f"{path} is a file: give --output a directory.")
    journal = Journal(directory)
    if directory.is_empty():
        directory.make()
        directory.lock()
        return journal
    plan = journal.plan()
    if plan is None:
        raise RunConflict(f"{path} holds other files: give --output an empty directory.")
    if not journal.is_finished() and not resume:
        raise RunConflict(
            f"{path} holds an unfinished run of {plan.title}: add --resume to continue it."
        )
    directory.lock()
    return journal
