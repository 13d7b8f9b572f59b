"""A process that reads one group of a run, when several processes of a machine share a run.

It is a worker like those of a fleet. The process that began the run (processes.py) starts it and
has a *link* to it. The link brings an Assignment, and then new rates. It takes back News, and
finally an End. When the link is closed, or the new rate is None, the process commits its slice and
ends. So no process outlives the one that started it.
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

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.usage import Usage
from keyhop.errors import KeyhopError
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.model import usage_json
from keyhop.jobs.task import Tasks
from keyhop.jobs.worker import GroupWorker
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory

NEWS_SECONDS = 0.2
LAST_SECONDS = 4.0
"""The seconds after the link was closed until the process exits. A slice waits for its pages for
half of that time (jobs/worker.py)."""

Connect = Callable[[Endpoint, int], Connection]


@dataclass(frozen=True, slots=True)
class Assignment:
    """A group to read.

    Attributes:
        path: The directory of the run.
        endpoint: The table's address.
        group: The number of the group.
        threads: The maximum number of threads.
        patience: For how many seconds to retry while every request fails.
        max_read_rate: The group's share of the read rate; None for no limit.
        may_read: The group's share of the read units; None for no limit.
    """

    path: Path
    endpoint: Endpoint
    group: int
    threads: int
    patience: float
    max_read_rate: float | None
    may_read: float | None


@dataclass(frozen=True, slots=True)
class News:
    """The progress of a group.

    Attributes:
        keys: The keys of the group, those of earlier processes among them.
        ended: The finished segments, those of earlier processes among them.
        threads: The number of threads that read now.
        commits: The commits of this process.
        used: The usage since the last news, as `usage_json` returns it.
    """

    keys: int
    ended: int
    threads: int
    commits: int
    used: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """The last message of a process.

    Attributes:
        error: The error that ended it; None if the group is finished or the process was stopped.
    """

    error: Exception | None


def work(link: Link, tasks: Tasks, connect: Connect) -> None:
    """Read the group that the link assigns, and send an End."""
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
        """Apply new rates until the link is closed; then stop."""
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
        assignment = self.assignment
        journal = Journal(Directory(assignment.path))
        plan = journal.plan()
        assert plan is not None
        connection = connect(assignment.endpoint, assignment.threads)
        task, source = begun_task(tasks, plan, connection)
        budget = Budget(assignment.max_read_rate, assignment.may_read)
        self._reader = reader = PageReader(
            connection,
            source,
            budget,
            patience=assignment.patience,
            stop=self.stop,
            usage=self.usage,
        )
        if self._rate is not None:
            reader.limit_rate(self._rate)
        task.start(reader)
        self._worker = GroupWorker(
            journal,
            plan,
            assignment.group,
            task.pages(journal, plan, reader),
            assignment.threads,
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
    """Return an error that the other process can raise: pickling loses other classes."""
    if isinstance(error, KeyhopError | OSError):
        return error
    if os.environ.get("KEYHOP_DEBUG"):
        traceback.print_exception(error)
    return RuntimeError(f"{type(error).__name__}: {error}")
