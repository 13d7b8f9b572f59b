"""What a job does: the one thing that a capability brings to the skeleton.

A job is plan -> workers -> finish around a task. Checkpoints, commits, budgets, rates,
completeness, costs and progress are the skeleton's; what is read, what is done with a page and what
becomes of the whole are the task's. All of a task's methods may be called again after a crash.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Layout, Method
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.pages import Pages, TablePages
from keyhop.jobs.request import Request
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page
from keyhop.scan.statistics import Interval

Options = Mapping[str, Any]
"""A task's own settings, as plain JSON: they are in the run's plan, and opaque to the skeleton."""

Summary = Mapping[str, Any]
"""A manifest, or a part of one (model.py)."""

Examples = dict[str, list[Any]]
"""A few things of each kind that a task has met, for its report; they may hold keys."""


NOTES = "notes"
MOST_EXAMPLES = 1000
"""Of each kind; a report shows a few."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a run reads, and how. reason: why so, in words. if_seen: the options, if the first look
    has seen what the source suspects. layout: if it is given by what is read, and rows, how many
    there are; then there is no first look. units: what a run so laid out will read; None for
    nothing.
    """

    source: Source
    method: Method
    reason: str
    options: Options = field(default_factory=dict)
    if_seen: Options | None = None
    layout: Layout | None = None
    rows: int | None = None
    units: Interval | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A run whose segments are all read.

    summary: what its manifest is by now. over_at, stop: a finish that reaches this time, or is to
    stop, returns None, and goes on when it is called again.
    """

    journal: Journal
    plan: RunPlan
    totals: Totals
    summary: Summary
    over_at: float
    stop: Event


class Task(ABC):
    """One kind of job; one that only reads, unless it says otherwise.

    visits: whether something is done about each page, so that none may be skipped.
    outputs: what of the manifest is in an execution's output, beside the usual, and its name there.
    first: how the run is called that has to be made first (`before`): after the execution, and so.
    max_write_rate: write units a second of all workers; None for no limit. examples: what this
    process has met.
    """

    visits = False
    first = "keys"
    outputs: Mapping[str, str] = {}
    max_write_rate: float | None = None

    def __init__(self) -> None:
        self.examples: Examples = {}

    def before(self, table: Table, request: Request) -> Request | None:
        """The run that has to be made first, in the same execution, if this one works on what
        another has found and none is named. Raises CannotStart for what cannot be done to the table
        anyway.
        """
        return None

    def after(self, request: Request, run: str) -> Request:
        """The request, when the run that had to be made first is finished."""
        return request

    def units_per_key(self, source: Source) -> tuple[float, float]:
        """Write units and read units that it takes to do something about a key, about."""
        return 0.0, 0.0

    def undo(self, plan: RunPlan) -> Mapping[str, Any] | None:
        """The input of an execution that takes back what a run has done; None if none does."""
        return None

    def reads(self, asked: Table) -> Table:
        """The table that a run reads, by the one that a request names; raises CannotStart."""
        return asked

    @abstractmethod
    def plan(self, table: Table, request: Request) -> TaskPlan:
        """What to read, and how; raises CannotStart and its kin before anything is read."""

    def look(self, reader: PageReader, plan: TaskPlan) -> TaskPlan:
        """The plan, with what a task has to read before it can say what the run reads."""
        return plan

    def view(self, source: Source) -> Source:
        """The source of a run that was begun, with what of its items the task needs."""
        return source

    def settings(self) -> Mapping[str, Any]:
        """What a run was begun with, by the names of `Request.wanted`; None for what it was not."""
        return {}

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        """Where the pages of a run come from; ledger: what its first look has taught."""
        return TablePages.of(plan, reader, self.visit, ledger)

    def start(self, reader: PageReader) -> None:
        """Prepare to visit pages in this process; called once, before the threads begin."""
        return

    def visit(self, page: Page, over: Event) -> Page:
        """Do something about the collections of a page, before it counts; many threads at once.

        Returns the page with the keys that count. What is done must bear being done twice: a page
        whose visit fails is read again. over: when it is set, the page may be left (Stopped).
        """
        return page

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold this process's writes under `max_rate` write units a second."""
        return

    def allow_writes(self, units: float | None) -> None:
        """From now on, let this process spend so many more write units; None: any number."""
        return

    def finish(self, ended: Ended) -> Summary | None:
        """From all that was read to the manifest; its `parts` are those that hold the result."""
        return ended.summary


Tasks = Mapping[str, Callable[[Connection, Options], Task]]
"""By name, what makes a task for a connection: the kinds of job that a process knows."""


def note_examples(journal: Journal, task: Task, by: str) -> None:
    """Keep what this process has met with the run's files, beside what others have."""
    if task.examples:
        name = f"{NOTES}/{by}.json"
        journal.keep(name, _merged(journal.load(name) or {}, task.examples))


def noted_examples(journal: Journal) -> Examples:
    """What all processes of a run have met."""
    names = sorted(journal.store.sizes(NOTES))
    return reduce(_merged, (journal.load(name) or {} for name in names), {})


def _merged(one: Examples, other: Examples) -> Examples:
    both = {kind: list(examples) for kind, examples in one.items()}
    for kind, examples in other.items():
        named = both.setdefault(kind, [])
        named += [each for each in examples if each not in named][: MOST_EXAMPLES - len(named)]
    return both
