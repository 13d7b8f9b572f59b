"""A task: the part of a job that a capability defines.

Every job has the same skeleton: plan, workers, finish. The skeleton does checkpoints, commits,
budgets, rates, completeness, costs and progress. The task decides which pages are read, what
happens to a page, and how the result is made. After a crash, any method of a task may be called
again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from threading import Event, Lock
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.jobs.journal import Journal, RunPlan, Totals
from keyhop.jobs.layout import Layout, Method
from keyhop.jobs.pages import Pages, RowsOf, TablePages
from keyhop.jobs.request import Request
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page
from keyhop.scan.statistics import Interval

TaskOptions = Mapping[str, Any]
"""The settings of a task, as plain JSON. The plan of the run has them; only the task reads them."""

Summary = Mapping[str, Any]
"""A manifest, or a part of one (journal.py)."""

Examples = dict[str, list[Any]]
"""A few examples of each kind of result, for the report of a task. They may contain keys."""

NOTES = "notes"
MOST_EXAMPLES = 1000
"""The maximum number of examples of each kind. A report shows a few of them."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The source of a run, and the method that reads it.

    Attributes:
        if_seen: The settings instead, if the first look has seen what the source suspects.
        layout: The layout, if the source determines it. Then there is no first look.
        rows: The number of rows, if the layout is given.
        units: The read units of a run with this layout; None if it reads nothing.
    """

    source: Source
    method: Method
    reason: str
    options: TaskOptions = field(default_factory=dict)
    if_seen: TaskOptions | None = None
    layout: Layout | None = None
    rows: int | None = None
    units: Interval | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A run whose segments have all been read.

    Attributes:
        summary: Its manifest so far.
        over_at: The time, on the monotonic clock, at which `Task.finish` must return.
        stop: When it is set, `Task.finish` must return.
    """

    journal: Journal
    plan: RunPlan
    totals: Totals
    summary: Summary
    over_at: float
    stop: Event


class Task(ABC):
    """A kind of job. The methods of this class are those of a job that only reads.

    Attributes:
        visits: Whether the task acts on each page. Then no page may be skipped.
        outputs: Further fields of the manifest that the output of an execution contains, with
            their names there.
        first: The suffix of the name of the run that must finish first (see `before`).
        max_write_rate: The write units a second of all workers; None for no limit.
        items_at_once: The maximum number of items of a page; None for 1 MB.
        rows_of: Makes the rows to store from the keys that a page reports; None to store the keys.
    """

    visits = False
    first = "keys"
    outputs: Mapping[str, str] = {}
    max_write_rate: float | None = None
    items_at_once: int | None = None
    rows_of: RowsOf | None = None

    def __init__(self) -> None:
        self.examples: Examples = {}
        self._examples_lock = Lock()

    def note_example(self, kind: str, example: Any, limit: int) -> None:
        """Keep an example of a kind, unless it is kept already or there are `limit`.

        Any number of threads may call this.
        """
        with self._examples_lock:
            examples = self.examples.setdefault(kind, [])
            if len(examples) < limit and example not in examples:
                examples.append(example)

    def before(self, table: Table, request: Request) -> Request | None:
        """Return the request of a run that must finish first, in the same execution.

        A task that works on the result of another run has one, unless the request names that run.
        Raise CannotStart if the task cannot be done to this table.
        """
        return None

    def after(self, request: Request, run: str) -> Request:
        """Return the request after the run that had to finish first."""
        return request

    def units_per_key(self, source: Source) -> tuple[float, float]:
        """Estimate the write units and the read units that acting on one key takes."""
        return 0.0, 0.0

    def undo(self, plan: RunPlan) -> Mapping[str, Any] | None:
        """Return the input of an execution that undoes a run; None if a run cannot be undone."""
        return None

    def reads(self, table: Table) -> Table:
        """Return the table that a run reads, for the table that a request names."""
        return table

    @abstractmethod
    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Decide what a run reads and how; raise CannotStart before anything is read."""

    def look(self, reader: PageReader, plan: TaskPlan) -> TaskPlan:
        """Return the plan after the reads that a task needs before it can plan a run."""
        return plan

    def view(self, source: Source) -> Source:
        """Return the source of a run that was begun, with the attributes that the task needs."""
        return source

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of a run, by the names of `Request.wanted`; None if one is unset."""
        return {}

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        """Return the pages of a run, whose first look has made the ledger."""
        if ledger is None and plan.ledger is not None:
            ledger = Ledger.from_json(dict(plan.ledger))
        return TablePages(
            reader,
            plan.method == "skip",
            plan.segments,
            visit=self.visit,
            ledger=ledger,
            most_items=self.items_at_once,
            rows_of=self.rows_of,
        )

    def start(self, reader: PageReader) -> None:
        """Prepare to visit pages in this process; called once, before the threads begin."""
        return

    def visit(self, page: Page, over: Event) -> Page:
        """Act on the collections of a page, and return the page with the keys that count.

        Many threads call this. A page whose visit fails is read again, so the action must be
        idempotent. When `over` is set, the visit may raise Stopped.
        """
        return page

    def limit_writes(self, max_rate: float) -> None:
        """Limit the writes of this process to `max_rate` write units a second from now on."""
        return

    def allow_writes(self, units: float | None) -> None:
        """Let this process spend this number of write units from now on; None for no limit."""
        return

    def finish(self, ended: Ended) -> Summary | None:
        """Return the manifest, whose `parts` hold the result.

        If the time is over, or the run is stopped, return None. Then the next call continues.
        """
        return ended.summary


Tasks = Mapping[str, Callable[[Connection, TaskOptions], Task]]
"""A factory of each kind of task that a process knows, by the name of the kind."""


def note_examples(journal: Journal, task: Task, by: str) -> None:
    """Add the examples that this process has found to the files of the run."""
    if task.examples:
        name = f"{NOTES}/{by}.json"
        journal.keep(name, _merged(journal.load(name) or {}, task.examples))


def noted_examples(journal: Journal) -> Examples:
    """Return the examples that all processes of a run have found."""
    names = sorted(journal.store.sizes(NOTES))
    return reduce(_merged, (journal.load(name) or {} for name in names), {})


def _merged(first: Examples, second: Examples) -> Examples:
    both = {kind: list(examples) for kind, examples in first.items()}
    for kind, examples in second.items():
        named = both.setdefault(kind, [])
        named += [each for each in examples if each not in named][: MOST_EXAMPLES - len(named)]
    return both
