"""What a process does of a run that several work on one machine: one group of its segments.

It is a worker as in a fleet. The process that began the run (processes.py) has started it, and has
a *link* to it: by this come an Assignment, and then orders, each of them the rate from now on; and
by this go News, and at last an End. Once the link is closed, or the order is None, the process
commits what it has and ends: so it is not left behind, whatever becomes of the other one.
"""

import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Link
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

from keyhop.dynamodb.client import Connection, Endpoint
from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeyhopError
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.model import usage_json
from keyhop.jobs.task import Tasks
from keyhop.jobs.worker import GroupWorker
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory

NEWS_SECONDS = 0.2
LAST_SECONDS = 4.0
"""After the link was closed: a slice waits for its pages for half of it (jobs/worker.py)."""

Connect = Callable[[Endpoint, int], Connection]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A group to be worked. path: of the run's files. max_read_rate, may_read: its shares."""

    path: Path
    endpoint: Endpoint
    group: int
    threads: int
    patience: float
    max_read_rate: float | None
    may_read: float | None


@dataclass(frozen=True, slots=True)
class News:
    """How far a group is. keys, ended: of all that was done about it. commits: of this process.
    used: since the last news, as `usage_json` has it.
    """

    keys: int
    ended: int
    threads: int
    commits: int
    used: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """The last of a process. error: why the group is not finished, if it was not told to stop."""

    error: Exception | None


def work(link: Link, tasks: Tasks, connect: Connect) -> None:
    """Do what comes by the link; the process is to end after it."""
    assignment: Assignment = link.recv()
    assigned = _Assigned(link, assignment)
    Thread(target=assigned.listen, daemon=True).start()
    error = None
    try:
        assigned.run(tasks, connect)
    except Exception as ended:
        error = _told(ended)
    assigned.tell()
    link.send(End(error))


@dataclass(slots=True)
class _Assigned:
    link: Link
    assignment: Assignment
    stop: Event = field(default_factory=Event)
    usage: Usage = field(default_factory=Usage)
    _told: Usage = field(default_factory=Usage)
    _told_at: float = 0.0
    _rate: float | None = None
    _reader: PageReader | None = None
    _worker: GroupWorker | None = None

    def listen(self) -> None:
        """Obey, until there is nothing more to be obeyed."""
        try:
            while (rate := self.link.recv()) is not None:
                self._rate = rate
                if self._reader is not None:
                    self._reader.limit_rate(rate)
        except (EOFError, OSError):
            pass
        self.stop.set()
        late = Timer(LAST_SECONDS, os._exit, (1,))
        late.daemon = True
        late.start()

    def run(self, tasks: Tasks, connect: Connect) -> None:
        given = self.assignment
        journal = Journal(Directory(given.path))
        plan = journal.plan()
        assert plan is not None
        connection = connect(given.endpoint, given.threads)
        task, source = begun_task(tasks, plan, connection)
        budget = Budget(given.max_read_rate, given.may_read)
        self._reader = reader = PageReader(
            connection,
            source,
            budget,
            patience=given.patience,
            stop=self.stop,
            usage=self.usage,
        )
        if self._rate is not None:
            reader.limit_rate(self._rate)
        task.start(reader)
        self._worker = GroupWorker(
            journal,
            plan,
            given.group,
            task.pages(journal, plan, reader),
            given.threads,
            idle=self._now_and_then,
            committed=lambda _: self.tell(),
        )
        self._worker.run()

    def tell(self) -> None:
        worker, usage = self._worker, self.usage.copy()
        if worker is not None:
            used = usage_json(usage - self._told)
            self.link.send(News(worker.keys, worker.ended, worker.threads, worker.commits, used))
        self._told, self._told_at = usage, time.monotonic()

    def _now_and_then(self) -> None:
        if time.monotonic() - self._told_at >= NEWS_SECONDS:
            self.tell()


def _told(error: Exception) -> Exception:
    """What the other process can raise: those errors that people are told of."""
    if isinstance(error, KeyhopError | OSError):
        return error
    if os.environ.get("KEYHOP_DEBUG"):
        traceback.print_exception(error)
    return RuntimeError(f"{type(error).__name__}: {error}")
