"""Reading the groups of a run by several processes of this machine, like a fleet.

The process that began the run (`GroupProcesses`) reads nothing itself. It starts a process for each
group, distributes the rate and the read units among them, and adds their usage to its own. The
processes share only the files of the run. A process that is killed loses what it has not committed,
and another process continues after the last commit of the group.

A process that was started (`work`) reads one group, as a worker of a fleet does. Its *link* to the
first process brings the assignment, and then new rates. It takes back news (`News`), and finally
the error that ended it, or None. When the link is closed, or the new rate is None, the process
commits its slice and ends. So no process outlives the one that started it.
"""

import math
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, Any, cast

import keyhop
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BudgetSpent, GaveUp, KeyhopError
from keyhop.jobs.journal import Commit, Journal, RunPlan, usage_json, usage_of
from keyhop.jobs.layout import shared_again
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.task import Tasks
from keyhop.jobs.worker import GroupWorker
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory

if TYPE_CHECKING:  # multiprocessing is imported where it is used: small runs need none of it
    from multiprocessing.connection import Connection as Link

NEWS_SECONDS = 0.2
LAST_SECONDS = 4.0
"""The seconds after the link was closed until the process exits. A slice waits for its pages for
half of that time (jobs/worker.py)."""

TICK_SECONDS = 0.1
STOP_SECONDS = 3.5
"""The time that processes have to stop before they are killed."""

MOST_DEATHS = 3
"""The maximum number of processes of one group that may die in a row without a commit."""

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")

StartProcess = Callable[["Link", Sequence[int]], "subprocess.Popen[bytes]"]
"""Starts a process with an end of a link, which is closed here, and with further descriptors."""

News = tuple[int, int, int, int, Mapping[str, Any]]
"""The progress of a group: its keys and its finished segments, with those of earlier processes; the
threads and the commits of this process; and its usage since the last news (`usage_json`)."""


def cores() -> int:
    """Return how many processors this process may use: by its affinity, and by its CPU quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = CPU_QUOTA.read_text().split()
        count = min(count, math.ceil(int(quota) / int(period)))  # "max" raises ValueError
    return max(1, count)


def starting(program: str) -> StartProcess:
    """Return a function that runs a module of this library with its link's descriptor."""

    def start(link: "Link", descriptors: Sequence[int]) -> "subprocess.Popen[bytes]":
        number = link.fileno()
        places = [str(Path(keyhop.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        # Ctrl-C goes to all processes of a terminal. The new process inherits the blocked signals,
        # and this one receives them afterwards.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            with link:
                return subprocess.Popen(
                    [sys.executable, "-P", "-m", program, str(number)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(number, *descriptors),
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    return start


@dataclass(slots=True)
class GroupProcesses:
    """The processes of a run, of which `at_once` read at the same time.

    Attributes:
        reader: Its budget is the budget of all processes.
        last_seconds: How long processes have to stop.
    """

    journal: Journal
    plan: RunPlan
    reader: PageReader
    start: StartProcess
    at_once: int
    each: int
    idle: Callable[[], None] = lambda: None
    committed: Callable[[Commit], None] = lambda commit: None
    say: Callable[[str], None] = lambda text: None
    clock: Callable[[], float] = time.monotonic
    last_seconds: float = STOP_SECONDS
    _groups: "list[_Group]" = field(init=False)
    _at_work: "dict[Link, _Group]" = field(default_factory=dict)
    _max_rate: float | None = None
    _error: Exception | None = None
    _over_at: float = math.inf

    def __post_init__(self) -> None:
        self._max_rate = self.reader.budget.max_rate
        self._groups = [_Group(number) for number in range(self.plan.groups)]
        for group in self._groups:
            self._see_commits(group)

    @property
    def threads(self) -> int:
        return sum(sorted(group.threads for group in self._groups)[-self.at_once :])

    @property
    def keys(self) -> int:
        return sum(group.shown[0] for group in self._groups)

    @property
    def ended(self) -> int:
        return sum(group.shown[1] for group in self._groups)

    def run(self) -> bool:
        """Read until the run is complete or this process is stopped; return whether it is complete.

        An error of one process is raised after the others have committed.

        Raises:
            BudgetSpent: The read units do not suffice.
            GaveUp: Processes of a group died repeatedly.
        """
        budget, served, spent = self.reader.budget, 0, -math.inf
        least_share = self.plan.least_share
        shares: dict[int, float | None]
        try:
            while (waiting := self._unfinished) and not self._is_over:
                if budget.max_units is None:
                    shares = dict.fromkeys(waiting)
                else:
                    is_stuck = budget.spent <= spent
                    limits, least_share = shared_again(
                        budget.remaining, {}, waiting, least_share, is_stuck, served
                    )
                    if not limits:
                        raise budget.exhausted()
                    shares = {**limits}
                served, spent = len(shares), budget.spent
                self._work(shares)
        finally:
            for link in list(self._at_work):
                self._end(link)
        if self._error is not None:
            raise self._error
        return not waiting

    @property
    def _unfinished(self) -> list[int]:
        return [group.number for group in self._groups if not group.is_finished]

    @property
    def _is_over(self) -> bool:
        return self._error is not None or self.reader.stop.is_set()

    def _work(self, shares: dict[int, float | None]) -> None:
        """Read the groups in `shares`, each with its read units, and remove them from `shares`."""
        from multiprocessing.connection import wait

        while (shares and not self._is_over) or self._at_work:
            if self._is_over and math.isinf(self._over_at):
                self._over_at = self.clock() + self.last_seconds
                for link in self._at_work:
                    _send(link, None)
            if self.clock() >= self._over_at:
                return
            while shares and not self._is_over and len(self._at_work) < self.at_once:
                number = next(iter(shares))
                rate = self._rate(len(self._at_work) + len(shares))
                self._start(self._groups[number], rate, shares.pop(number))
            rate = self._rate(len(self._at_work))
            for link, group in self._at_work.items():
                if group.rate != rate:
                    group.rate = rate
                    _send(link, rate)
            for link in cast("list[Link]", wait(list(self._at_work), TICK_SECONDS)):
                shares |= self._hear(link)
            self.idle()

    def _rate(self, processes: int) -> float | None:
        """Return the share of the rate for each of this number of processes."""
        if self._max_rate is None:
            return None
        return self._max_rate / max(1, min(processes, self.at_once))

    def _start(self, group: "_Group", rate: float | None, may_read: float | None) -> None:
        from multiprocessing.connection import Pipe

        store, reader = self.journal.store, self.reader
        assert isinstance(store, Directory)
        ours, theirs = Pipe()
        # The process inherits the lock: nobody can resume the run until the last process has ended.
        group.process = self.start(theirs, store.locked_by)
        group.rate, group.may_read, group.used = rate, may_read, 0.0
        group.commits_before = group.commits
        self._at_work[ours] = group
        endpoint, patience = reader.connection.endpoint, reader.patience
        # The fields of _Assigned after its link, in their order.
        _send(ours, (store.path, endpoint, group.number, self.each, patience, rate, may_read))

    def _hear(self, link: "Link") -> dict[int, float | None]:
        """Receive a message. If the process has died, return its group and the units left to it."""
        try:
            message = link.recv()
        except (EOFError, OSError):
            message = None
        group = self._at_work[link]
        if isinstance(message, tuple):
            keys, ended, group.threads, commits, used_json = message
            used = usage_of(used_json)
            group.used += used.read_units
            self.reader.usage.add(used)
            self.reader.book(used.read_units)
            if commits > group.commits - group.commits_before:
                self._see_commits(group)
            group.shown = keys, ended
            return {}
        status = self._end(link)
        if message is not None:
            if not isinstance(message, BudgetSpent):
                self._error = self._error or message
            return {}
        if group.is_finished or self._is_over:
            return {}
        group.deaths = 1 if group.commits > group.commits_before else group.deaths + 1
        if group.deaths > MOST_DEATHS:
            self._error = GaveUp(
                f"{group.deaths} processes in a row ended ({_how(status)}) before they could "
                "commit anything: memory may be short, so try fewer processes or threads."
            )
            return {}
        self.say(f"A process ended ({_how(status)}): another one goes on from its last commit.")
        remaining = group.may_read
        return {group.number: None if remaining is None else max(0.0, remaining - group.used)}

    def _end(self, link: "Link") -> int:
        group = self._at_work.pop(link)
        group.process.kill()
        status = group.process.wait()
        link.close()
        self._see_commits(group)
        return status

    def _see_commits(self, group: "_Group") -> None:
        while not group.is_finished:
            commit = self.journal.commit_of(group.number, group.commits)
            if commit is None:
                break
            keys, ended = group.committed
            group.committed = keys + commit.keys, ended + commit.ended
            group.commits += 1
            group.is_finished = commit.finished
            self.committed(commit)
        group.shown = group.committed


def _send(link: "Link", what: object) -> None:
    """Send a message. If the process is dead, `_hear` will notice."""
    with suppress(OSError):
        link.send(what)


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"status {status}"


@dataclass(slots=True)
class _Group:
    """A group, and the process that reads it now.

    Attributes:
        committed: Its committed keys and finished segments.
        shown: Its keys and finished segments by the last news.
        deaths: How many processes in a row have died without a commit.
        rate: The read rate of the process; None for no limit.
        may_read: The read units that the process may spend; None for no limit.
        used: The read units that it has spent.
        commits_before: The commits of the group before the process began.
    """

    number: int
    commits: int = 0
    committed: tuple[int, int] = (0, 0)
    shown: tuple[int, int] = (0, 0)
    threads: int = 0
    is_finished: bool = False
    deaths: int = 0
    process: "subprocess.Popen[bytes]" = field(init=False)
    rate: float | None = None
    may_read: float | None = None
    used: float = 0.0
    commits_before: int = 0


def work(link: "Link", tasks: Tasks, connect: Callable[..., Connection]) -> None:
    """Read the group that the link assigns, and send news, and at last the error or None.

    `connect` connects as dynamodb.client.connect does.
    """
    assigned = _Assigned(link, *link.recv())
    Thread(target=assigned.listen, daemon=True).start()
    error = None
    try:
        assigned.run(tasks, connect)
    except Exception as ended:
        error = _picklable(ended)
    assigned.send_news()
    link.send(error)


@dataclass(slots=True)
class _Assigned:
    """A group to read, with its shares of the read rate and of the read units; None: no limit."""

    link: "Link"
    path: Path
    endpoint: Endpoint
    group: int
    threads: int
    patience: float
    max_read_rate: float | None
    may_read: float | None
    stop: Event = field(default_factory=Event)
    usage: Usage = field(default_factory=Usage)
    _sent: Usage = field(default_factory=Usage)
    _sent_at: float = 0.0
    _reader: PageReader | None = None
    _worker: GroupWorker | None = None

    def listen(self) -> None:
        """Apply new rates until the link is closed; then stop."""
        try:
            while (rate := self.link.recv()) is not None:
                self.max_read_rate = rate
                if self._reader is not None:
                    self._reader.limit_rate(rate)
        except (EOFError, OSError):
            pass
        self.stop.set()
        late = Timer(LAST_SECONDS, os._exit, (1,))
        late.daemon = True
        late.start()

    def run(self, tasks: Tasks, connect: Callable[..., Connection]) -> None:
        journal = Journal(Directory(self.path))
        plan = journal.plan()
        assert plan is not None
        connection = connect(self.endpoint, self.threads, give_up_after=self.patience)
        task, source = begun_task(tasks, plan, connection)
        budget = Budget(self.max_read_rate, self.may_read)
        self._reader = reader = PageReader(
            connection, source, budget, patience=self.patience, stop=self.stop, usage=self.usage
        )
        rate = self.max_read_rate
        if rate is not None and rate != budget.max_rate:  # it was changed in the meantime
            reader.limit_rate(rate)
        task.start(reader)
        self._worker = GroupWorker(
            journal,
            plan,
            self.group,
            task.pages(journal, plan, reader),
            self.threads,
            idle=self._now_and_then,
            committed=lambda _: self.send_news(),
        )
        self._worker.run()

    def send_news(self) -> None:
        worker, usage = self._worker, self.usage.copy()
        if worker is not None:
            used = usage_json(usage - self._sent)
            news: News = worker.keys, worker.ended, worker.threads, worker.commits, used
            self.link.send(news)
        self._sent, self._sent_at = usage, time.monotonic()

    def _now_and_then(self) -> None:
        if time.monotonic() - self._sent_at >= NEWS_SECONDS:
            self.send_news()


def _picklable(error: Exception) -> Exception:
    """Return an error that the other process can raise: pickling loses other classes."""
    if isinstance(error, KeyhopError | OSError):
        return error
    if os.environ.get("KEYHOP_DEBUG"):
        traceback.print_exception(error)
    return RuntimeError(f"{type(error).__name__}: {error}")
