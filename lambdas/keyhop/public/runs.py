"""Runs of this process: where their files are, and how far they are."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.units import US_EAST_1, Prices
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BudgetSpent, Stopped
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.jobs.processes import starting
from keyhop.jobs.request import Request
from keyhop.jobs.task import Tasks
from keyhop.storage.local import Directory
from keyhop.storage.store import Memory

PROGRAM = "keyhop.public.process"
"""The program of a further process, which works a group of a run."""

PREFIX = "keyhop-"
"""The prefix of temporary directories."""

LOOK_SECONDS = 0.1
"""How often a wait looks at the caller's event."""

POLL_SECONDS = 2.0
LOCAL_POLL_SECONDS = 0.05


class OwnStop(Event):
    """The event that stops one call. It is set by `set`, and when the caller's event is set.

    It never sets the caller's event, which may belong to several calls. It is also set when the
    jobs of the call have spent their dollars.

    Attributes:
        usages: The usage of each job of the call.
    """

    def __init__(
        self, of_caller: Event | None, prices: Prices = US_EAST_1, max_cost: float | None = None
    ) -> None:
        super().__init__()
        self._of_caller = of_caller
        self._prices = prices
        self._max_cost = max_cost
        self.usages: list[Usage] = []

    def is_set(self) -> bool:
        if super().is_set() or (self._of_caller is not None and self._of_caller.is_set()):
            return True
        return self._max_cost is not None and self._dollars() >= self._max_cost

    def check_spent(self) -> None:
        """Raise BudgetSpent if the jobs have spent the maximum."""
        if self._max_cost is not None and (spent := self._dollars()) >= self._max_cost:
            raise BudgetSpent(
                f"${spent:,.6f} is spent, and the maximum is ${self._max_cost:g}. All committed "
                "work is kept."
            )

    def _dollars(self) -> float:
        return sum(self._prices.dollars(each.read_units, each.write_units) for each in self.usages)

    def wait(self, timeout: float | None = None) -> bool:
        if self._of_caller is None:
            return super().wait(timeout)
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not self.is_set() and (seconds := until - time.monotonic()) > 0:
            super().wait(min(seconds, LOOK_SECONDS))
        return self.is_set()


def check_estimate(low: float, max_cost: float | None) -> None:
    """Raise BudgetSpent if even the least estimate, in dollars, is more than the maximum."""
    if max_cost is not None and low > max_cost:
        raise BudgetSpent(
            f"This costs at least ${low:,.6f}, more than the maximum of ${max_cost:g}, so nothing "
            "was started."
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        keys: The keys that were found so far, or the keys or items that were worked on.
        expected: The approximate number of keys; None if it is unknown.
        share: The share of the run that is done, from 0 to 1, as an estimate.
        segments, segments_done: The parts of the run, and how many of them have ended.
        read_units, write_units: The costs so far.
        throttles: How often the service throttled.
        sentinels: How many sentinels of a key index were put or deleted.
        activity: What the run does, in a word; the phase of a drain.
        moved: How many items a drain has moved.
        seconds: How long a drain waits until its next step.
        is_over: Whether this is the last report of the run, whatever became of it.
    """

    keys: int
    expected: float | None
    share: float
    segments: int
    segments_done: int
    read_units: float
    write_units: float
    throttles: int
    sentinels: int = 0
    is_over: bool = False
    activity: str = "reading"
    moved: int = 0
    seconds: float = 0.0


def progress_of(job: LocalJob, is_over: bool = False, activity: str = "reading") -> Progress:
    """Return how far a job is that has begun; any thread may call it."""
    group, usage = job.group, job.reader.usage
    sentinels = int(usage.counters["put"] + usage.counters["deleted"])
    segments, ended = job.plan.segments, group.ended
    share = share_done(ended, segments, group.threads, max(group.keys, sentinels), job.expected)
    return Progress(
        group.keys,
        job.expected,
        share,
        segments,
        ended,
        usage.read_units,
        usage.write_units,
        usage.throttles.total(),
        sentinels,
        is_over,
        activity,
    )


def share_done(ended: int, segments: int, threads: int, keys: int, expected: float | None) -> float:
    """Estimate the share of a job that is done, from 0 to 1.

    Segments alone say too little: they may take long, and none may have ended yet. The count of
    keys, where about so many are expected, may say too much; but no more is done than was begun.
    """
    by_segments = ended / segments
    started = min(segments, ended + threads) / segments
    by_keys = keys / expected if expected else 0.0
    # With more keys than expected, the expectation was wrong, and says nothing more.
    return max(by_segments, min(by_keys, started) if by_keys < 1 else by_segments)


def complete(
    job: LocalJob,
    activity: str,
    progress: Callable[[Progress], None],
    say: Callable[[str], None],
    expected: float | None = None,
) -> None:
    """Work on a prepared job to its end, unless it is finished already. Raise Stopped.

    Args:
        expected: The approximate number of keys or items.
    """
    if job.journal.is_finished():
        return
    job.expected = expected
    job.begin()
    current = partial(progress_of, job, activity=activity)
    progress(current())
    try:
        if not job.work(lambda: progress(current()), say):
            raise Stopped
    finally:
        progress(current(is_over=True))
    job.finish()


def waiting(stop: Event, say: Callable[[str], None], is_local: bool) -> Callable[[str], None]:
    """Return a function that says the reason of a wait once, and waits until the next look.

    It raises Stopped if the event is set.
    """
    last = ""

    def wait(why: str) -> None:
        nonlocal last
        if why != last:
            say(f"{why} ...")
            last = why
        if stop.wait(LOCAL_POLL_SECONDS if is_local else POLL_SECONDS):
            raise Stopped

    return wait


@contextmanager
def opened_job(
    connection: Connection,
    request: Request,
    tasks: Tasks,
    path: Path | None,
    *,
    resume: bool,
    stop: OwnStop,
    patience: float,
    processes: int | None = 1,
) -> Iterator[LocalJob]:
    """Open a job whose files are in a locked directory.

    Without a path the files are nowhere, or, if several processes do the work, in a temporary
    directory.

    Args:
        resume: Whether the directory may hold an unfinished run.
        processes: None for as many as make the run faster.
    """
    with ExitStack() as cleaning:

        def opened_until_then(path: Path) -> Journal:
            journal = opened(path, resume)
            if isinstance(journal.store, Directory):
                cleaning.callback(journal.store.unlock)
            return journal

        def temporary() -> Journal:
            directory = TemporaryDirectory(prefix=PREFIX)
            return opened_until_then(Path(cleaning.enter_context(directory)))

        job = LocalJob(
            request,
            tasks,
            connection,
            opened_until_then(path) if path else Journal(Memory()),
            stop,
            patience,
            str(path) if path else "this process",
            start_process=starting(PROGRAM),
            wanted_processes=processes,
            temporary=temporary,
        )
        stop.usages.append(job.usage)
        yield job
