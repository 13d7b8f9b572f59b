"""What a job does: the one thing that a capability brings to the skeleton.

A job is plan -> workers -> finish around a task. Checkpoints, commits, budgets, rates,
completeness, costs and progress are the skeleton's; what is read, what is done with a page and what
becomes of the whole are the task's. All of a task's methods may be called again after a crash.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, Table
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Method
from keyhop.jobs.model import Part, RunPlan, Totals
from keyhop.jobs.request import Request
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import Page

Options = Mapping[str, Any]
"""A task's own settings, as plain JSON: they are in the run's plan, and opaque to the skeleton."""

Examples = dict[str, list[Any]]
"""A few things of each kind that a task has met, for its report; they may hold keys."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a run reads, and how. reason: why so, in words."""

    source: Source
    method: Method
    reason: str
    options: Options = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a finished run came to. summary: the manifest. parts: those that hold its keys."""

    summary: Mapping[str, Any]
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Ended:
    """A run whose segments are all read. check: called now and then with how much is done; it may
    raise what ends the finish before its time.
    """

    journal: Journal
    plan: RunPlan
    totals: Totals
    summary: Mapping[str, Any]
    check: Callable[[int], None] = lambda done: None


class Task(Protocol):
    """One kind of job.

    visits: whether something is done about each page, so that none may be skipped.
    outputs: what of the manifest is in an execution's output, beside the usual, and its name there.
    max_write_rate: write units a second of all workers; None for no limit. examples: what this
    process has met.
    """

    visits: bool
    outputs: Mapping[str, str]
    max_write_rate: float | None
    examples: Examples

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """What to read, and how; raises CannotStart and its kin before anything is read."""

    def view(self, source: Source) -> Source:
        """The source of a run that was begun, with what of its items the task needs."""

    def settings(self) -> Mapping[str, Any]:
        """What a run was begun with, by the names of `Request.wanted`; None for what it was not."""

    def start(self, reader: PageReader) -> None:
        """Prepare to visit pages in this process; called once, before the threads begin."""

    def visit(self, page: Page, over: Event) -> Page:
        """Do something about the collections of a page, before it counts; many threads at once.

        Returns the page with the keys that count. What is done must bear being done twice: a page
        whose visit fails is read again. over: when it is set, the page may be left (Stopped).
        """

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold this process's writes under `max_rate` write units a second."""

    def finish(self, ended: Ended) -> Result:
        """From all that was read to the result."""

    def too_slow(self, done: int) -> str:
        """What to tell a person if the time did not suffice to finish, after so much was done."""


class ReadingTask:
    """A task that only reads: pages count as they are, and the result is what was read."""

    visits = False
    outputs: Mapping[str, str] = {}
    max_write_rate: float | None = None

    def __init__(self) -> None:
        self.examples: Examples = {}

    def view(self, source: Source) -> Source:
        """Task.view: the keys alone."""
        return source

    def settings(self) -> Mapping[str, Any]:
        return {}

    def start(self, reader: PageReader) -> None: ...

    def visit(self, page: Page, over: Event) -> Page:
        return page

    def limit_writes(self, max_rate: float) -> None: ...

    def finish(self, ended: Ended) -> Result:
        return Result(ended.summary, ended.totals.parts)

    def too_slow(self, done: int) -> str:
        return "There was no time left to finish the run."


Tasks = Mapping[str, Callable[[Connection, Options], Task]]
"""By name, what makes a task for a connection: the kinds of job that a process knows."""


def merged(one: Examples, other: Examples, most: int = 10) -> Examples:
    """The examples of both, each once, at most so many of a kind."""
    both = {kind: list(examples) for kind, examples in one.items()}
    for kind, examples in other.items():
        named = both.setdefault(kind, [])
        named += [each for each in examples if each not in named][: most - len(named)]
    return both
