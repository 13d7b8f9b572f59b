"""A worker, which reads one group of a run slice by slice, and continues after its last commit.

In a slice, threads read the segments of the group until the time of the slice is over. The number
of threads follows what pays (scan/in_flight.py): a thread too many puts its segment back. The
threads share one source of pages and one output. One step under one lock does all the bookkeeping
of a page: it hands out the keys and moves the segment forward. So the keys that were handed out and
the checkpoint agree whenever the threads have ended, for whatever reason.
"""

import hashlib
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread, current_thread
from typing import Any, Protocol

from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, key_text
from keyhop.errors import BrokenPromise, NoProgress, Stopped
from keyhop.jobs.journal import Checkpoint, Commit, Journal, Part, RunPlan, Totals, new_attempt
from keyhop.jobs.lifecycle import sum_up
from keyhop.jobs.pages import Pages
from keyhop.scan.sampling import Opening
from keyhop.scan.segments import group_order
from keyhop.scan.skip_scan import BEGINNING, Position
from keyhop.wording import counted

Slices = tuple[float, float]
"""The seconds of the first slice and of the longest one.

A slice is committed at its end, so its length is what a crash can cost. Slices start short and
double their length, so even a run that is killed repeatedly makes progress.
"""

QUICK_SLICES: Slices = (0.25, 10.0)
CALM_SLICES: Slices = (15.0, 60.0)
"""The slices where a commit is expensive: in S3, and if the task visits pages.

A fleet reports its progress with its commits, so every minute.
"""

TICK_SECONDS = 0.05
"""The interval in which a slice checks the number of its threads."""

LAST_SECONDS = 2.0
"""The time for which a stopped slice waits for responses; it drops later pages."""

LONGEST_PATIENCE_SECONDS = 600.0
MARGIN = 0.15
LEAST_MARGIN_SECONDS = 5.0
LONGEST_MARGIN_SECONDS = 60.0
"""The seconds before the deadline of a function that remain for pages in flight and the commit."""

CACHE_KIB = 32 * 1024


def working_seconds(remaining: float) -> float:
    """Return how long to read if the function ends after `remaining` seconds."""
    margin = min(LONGEST_MARGIN_SECONDS, max(LEAST_MARGIN_SECONDS, MARGIN * remaining))
    return max(0.0, remaining - margin)


def patience_within(seconds: float) -> float:
    """Return for how long a function with so much time retries requests that fail."""
    return min(LONGEST_PATIENCE_SECONDS, 0.7 * seconds)


Write = Callable[[int, Sequence[Key]], int]
"""Takes keys of a segment, and returns how many were new. Only one thread calls it at a time."""


class Output(Protocol):
    """The receiver of the keys of a group, which may write them into parts."""

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Take keys (see Write)."""

    def close(self) -> tuple[Part, ...]:
        """Return the parts, which are durable now; empty if the keys went elsewhere."""


class KnownKeys:
    """A set of keys in bounded memory, for indexes whose segments may share keys.

    SQLite keeps digests of the keys in a temporary file; the size of its page cache is the bound. A
    digest has 128 bits: among ten billion keys, the chance that any two are equal is below 1e-18.
    Only one thread may use it at a time.
    """

    def __init__(self) -> None:
        # An empty name is a private file that the system removes with the connection.
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE known (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        # One transaction suffices: nobody else sees the file, and nothing is rolled back.
        self._db.execute("BEGIN")

    def new_among(self, keys: Iterable[Key]) -> list[Key]:
        """Add keys, and return the new ones."""
        return [key for key in keys if self._add(key)]

    def _add(self, key: Key) -> bool:
        digest = hashlib.blake2b(key_text(key).encode(), digest_size=16).digest()
        added = self._db.execute("INSERT OR IGNORE INTO known VALUES (?)", (digest,))
        return added.rowcount == 1

    def close(self) -> None:
        self._db.close()


class Slice:
    """One slice of a group, which starts at a checkpoint; `work` runs it.

    Other threads may read `keys`, `ended` and `counts` while the slice runs. `error` is None if the
    slice ended because its time was over, or because all segments are finished.

    Args:
        order: The segments of the group that have not begun, in the order of the group.
    """

    def __init__(
        self,
        pages: Pages,
        order: Iterator[int],
        checkpoint: Checkpoint,
        write: Write,
        last_seconds: float = LAST_SECONDS,
    ) -> None:
        self.keys = 0
        self.ended = 0
        self.counts: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._pages = pages
        self._order = order
        self._write = write
        self._last_seconds = last_seconds
        self._waiting = list(checkpoint.open.items())
        self._open: dict[int, Position] = dict(checkpoint.open)
        self._place = checkpoint.place
        self._wanted = 1
        self._lanes: set[Thread] = set()
        self._is_tail = False
        self._over = Event()
        self._ended = Event()
        self._closed = False
        self._lock = Lock()

    def work(
        self, maximum: int, seconds: float, idle: Callable[[], None] = lambda: None
    ) -> Checkpoint:
        """Read for about `seconds`, with as many threads as pay, up to `maximum`."""
        deadline = time.monotonic() + seconds
        until = math.inf
        self._wanted = self._pages.in_flight.begin(time.monotonic(), maximum)
        while self._keep_going() and time.monotonic() < until:
            self._ended.wait(TICK_SECONDS)
            idle()
            if time.monotonic() >= deadline:
                self._over.set()
            if math.isinf(until) and self._pages.stop.is_set():
                until = time.monotonic() + self._last_seconds
        with self._lock:
            self._closed = True
        return Checkpoint(self._place, dict(self._open), self._pages.learnt())

    def _keep_going(self) -> bool:
        """Start missing threads, and return whether any thread is running."""
        with self._lock:
            more: list[Thread] = []
            if not self._is_tail and not self.was_cut_short:
                missing = self._wanted - len(self._lanes)
                more = [Thread(target=self._run, daemon=True) for _ in range(missing)]
                self._lanes.update(more)
        for lane in more:
            lane.start()
        return not self._ended.is_set()

    @property
    def was_cut_short(self) -> bool:
        return self._over.is_set() or self._pages.stop.is_set()

    def _run(self) -> None:
        try:
            while (task := self._take()) is not None:
                self._walk(*task)
        except Stopped:
            self._over.set()
        except BaseException as error:  # The calling thread raises it, whatever it is.
            with self._lock:
                self.error = self.error or error
            self._over.set()
        finally:
            with self._lock:
                self._leave()

    def _look(self, began: float, ended: float) -> None:
        """Adjust the number of threads after a page."""
        self._pages.in_flight.page(began, ended)
        if len(self._lanes) == self._wanted and not self._is_tail:
            self._wanted = self._pages.in_flight.look(ended)

    def _leave(self) -> None:
        self._lanes.discard(current_thread())
        if not self._lanes:
            self._ended.set()

    def _take(self) -> tuple[int, Position] | None:
        with self._lock:
            if self.was_cut_short or current_thread() not in self._lanes:
                return None
            if self._waiting:
                return self._waiting.pop()
            segment = next(self._order, None)
            if segment is None:
                self._is_tail = True
                return None
            self._place += 1
            self._open[segment] = BEGINNING
            return segment, BEGINNING

    def _walk(self, segment: int, position: Position) -> None:
        """Read a segment until it ends, the slice is over, or there is a thread too many.

        The last thread is never too many, so a segment that is put back is always taken again.
        """
        following: Position | None = position
        while following is not None and not self._over.is_set():
            began = time.monotonic()
            step = self._pages.step(segment, following, self._over)
            following = step.position
            with self._lock:
                if self._closed:
                    return
                if step.keys:
                    self.keys += self._write(segment, step.keys)
                if step.counts:
                    self.counts.update(step.counts)
                if following is None:
                    del self._open[segment]
                    self.ended += 1
                else:
                    self._open[segment] = following
                self._look(began, time.monotonic())
                if following is not None and len(self._lanes) > self._wanted:
                    self._waiting.append((segment, following))
                    self._leave()
                    return


def too_slow(plan: RunPlan, keys: int) -> str:
    """Return the message for a run whose many keys leave no time to read or to fold more."""
    if plan.method == "parts":
        return (
            f"The time ended after {keys:,} physical keys were folded, by one process: list the "
            f"keys without logical, or on your machine, which has no deadline."
        )
    return (
        f"The time ended after {counted(keys, 'key')} of earlier slices were loaded, which are "
        "needed to recognize new keys of the index: read it with more time (workerTimeoutSeconds), "
        "or on your machine, which has no deadline."
    )


@dataclass(slots=True)
class GroupWorker:
    """The worker of one group.

    Attributes:
        output: The receiver of the keys; None for parts in the journal's store.
        spent: A function that gets the units (RunPlan.spent) that count for the group, including
            those of earlier starts.
        new_keys: The number of keys that this process has committed.
        has_moved: Whether this process, or a twin of it, has moved the group forward.
    """

    journal: Journal
    plan: RunPlan
    group: int
    pages: Pages
    most_threads: int
    idle: Callable[[], None] = lambda: None
    output: Output | None = None
    slices: Slices = QUICK_SLICES
    spent: Callable[[float], None] = lambda units: None
    committed: Callable[[Commit], None] = lambda commit: None
    worker: str = ""
    new_keys: int = field(default=0, init=False)
    commits: int = field(default=0, init=False)
    has_moved: bool = field(default=False, init=False)
    _keys: int = 0
    _ended: int = 0
    _slice: Slice | None = None
    _memory: KnownKeys | None = None
    _attempt: str = ""
    _booked: Usage = field(default_factory=Usage)
    _booked_at: float = 0.0

    @property
    def threads(self) -> int:
        """Return the number of threads that pays, by the measurements so far."""
        return min(self.most_threads, self._segments, self.pages.in_flight.wanted)

    @property
    def keys(self) -> int:
        """Return the distinct keys of the group so far, or the outcomes that a task has counted
        instead. Any thread may call it, as `ended`.
        """
        return self._keys + (self._slice.keys or self._slice.counts.total() if self._slice else 0)

    @property
    def ended(self) -> int:
        return self._ended + (self._slice.ended if self._slice else 0)

    def run(self, opening: Opening | None = None, over_at: float = math.inf) -> bool:
        """Read until the group is finished or must stop; return whether it is finished.

        An error that ends a slice is raised after a commit of what the slice has read. An `opening`
        has the keys that the first look of a new run has read of segment 0.
        """
        self._book()
        try:
            checkpoint, number = self._replay(over_at)
            if number == 0 and opening is not None:
                checkpoint, number = self._commit_opening(opening)
            slice_seconds, longest = self.slices
            while not checkpoint.is_end(self._segments) and not self.pages.stop.is_set():
                remaining = over_at - time.monotonic()
                if remaining <= 0:
                    break
                checkpoint, number = self._work(checkpoint, number, min(slice_seconds, remaining))
                slice_seconds = min(longest, 2 * slice_seconds)
            return checkpoint.is_end(self._segments)
        finally:
            if self._memory is not None:
                self._memory.close()

    @property
    def _segments(self) -> int:
        return self.plan.group_size(self.group)

    def _replay(self, over_at: float = math.inf) -> tuple[Checkpoint, int]:
        """Return the checkpoint and the number of the next slice, according to the commits.

        Raises NoProgress if it takes longer than until `over_at` to remember the committed keys.
        """
        checkpoint = Checkpoint()
        number = keys = ended = 0
        spent = 0.0
        if self._memory is not None:
            self._memory.close()
        self._memory = KnownKeys() if self.plan.needs_memory else None
        for commit in self.journal.commits(self.group):
            number += 1
            keys += commit.keys or commit.counts.total()
            ended += commit.ended
            spent += self.plan.spent(commit.usage)
            checkpoint = commit.checkpoint
            if self._memory is not None:
                for part in commit.parts:
                    self._memory.new_among(key for _, key in self.journal.keys(self.plan, part))
                if time.monotonic() > over_at:
                    raise NoProgress(too_slow(self.plan, keys))
        self._settle(keys, ended)
        self.spent(spent + self.plan.spent(self.pages.usage - self._booked))
        self.pages.go_on(checkpoint.ledger)
        return checkpoint, number

    def _commit_opening(self, opening: Opening) -> tuple[Checkpoint, int]:
        """Commit the keys of the first look; the plan contains its usage."""
        output = self._new_output(0)
        keys = self._writing(output)(0, opening.keys) if opening.keys else 0
        open_ = {0: opening.position} if opening.position else {}
        checkpoint = Checkpoint(1, open_, self.pages.learnt())
        used = Usage()
        used.count(left_out=opening.left_out)
        self.pages.usage.add(used)
        return self._commit(0, output, checkpoint, keys, 1 - len(open_), used, 0.0)

    def _work(self, checkpoint: Checkpoint, number: int, seconds: float) -> tuple[Checkpoint, int]:
        order = group_order(self.group, self.plan.groups, self.plan.segments, checkpoint.place)
        output = self._new_output(number)
        self._slice = slice_ = Slice(self.pages, order, checkpoint, self._writing(output))
        remaining = self._segments - checkpoint.place + len(checkpoint.open)
        reached = slice_.work(min(self.most_threads, remaining), seconds, self.idle)
        used = self.pages.usage - self._booked
        position = checkpoint, number
        # A slice of failures alone is not worth a commit; a later commit contains its usage.
        has_failed = slice_.error is not None and used != Usage()
        has_found = slice_.keys or slice_.counts or slice_.ended
        if used.requests or used.items or has_found or has_failed:
            duration = time.monotonic() - self._booked_at
            position = self._commit(
                number, output, reached, slice_.keys, slice_.ended, used, duration, slice_.counts
            )
        if slice_.error is not None:
            raise slice_.error
        if not slice_.was_cut_short and not reached.is_end(self._segments):
            raise BrokenPromise(
                "A slice ended before its work was done. This is an error in "
                "Keyhop: please report it."
            )
        return position

    def _settle(self, keys: int, ended: int) -> None:
        """End a slice, and set the numbers of keys and finished segments of the group."""
        self._slice, self._keys, self._ended = None, keys, ended

    def _book(self) -> None:
        """Record that all usage so far is in the run's files, or does not concern this group."""
        self._booked = self.pages.usage.copy()
        self._booked_at = time.monotonic()

    def _new_output(self, number: int) -> Output:
        """Begin an attempt at a slice, and return the receiver of its keys."""
        self._attempt = new_attempt()
        return self.output or self.journal.new_part(self.plan, self.group, number, self._attempt)

    def _writing(self, output: Output) -> Write:
        """Return what passes keys on: only new ones, if a key can occur twice."""
        memory = self._memory
        if memory is None:
            return output.write
        return lambda segment, keys: output.write(segment, memory.new_among(keys))

    def _commit(
        self,
        number: int,
        output: Output,
        checkpoint: Checkpoint,
        keys: int,
        ended: int,
        used: Usage,
        seconds: float,
        counts: Mapping[str, int] = {},
    ) -> tuple[Checkpoint, int]:
        """Commit a slice, or adopt the commit of another attempt; return as `_replay` does."""
        commit = Commit(
            group=self.group,
            slice=number,
            attempt=self._attempt,
            parts=output.close(),
            ended=ended,
            usage=used,
            seconds=seconds,
            checkpoint=checkpoint,
            finished=checkpoint.is_end(self._segments),
            worker=self.worker,
            counts=Counter(counts),
        )
        self.has_moved = True
        if not self.journal.commit(commit):
            # The usage of the lost slice is part of this process's next commit.
            return self._replay()
        self._book()
        self.new_keys += commit.keys
        self.commits += 1
        self._settle(self._keys + (keys or commit.counts.total()), self._ended + ended)
        self.committed(commit)
        return checkpoint, number + 1


def begun_within(journal: Journal, plan: RunPlan, **changes: Any) -> RunPlan:
    """Return the plan of a run within the files of the run of `plan`; write it if there is none.

    Such a run has one group, and the process that finishes or checks the outer run reads it. Its
    commits make it as safe as any run: it may be killed, run twice at once, and take several calls.
    Its task, method, reason, segments and options differ.
    """
    journal.begin(
        replace(
            plan,
            groups=1,
            at_once=1,
            planning=Usage(),
            planning_seconds=0.0,
            ledger=None,
            buckets=0,
            **changes,
        )
    )
    stored = journal.plan()
    assert stored is not None
    return stored


def work_within(
    journal: Journal,
    plan: RunPlan,
    pages_of: Callable[[], Pages],
    threads: int,
    over_at: float = math.inf,
) -> tuple[Totals, bool]:
    """Continue a run within another one (begun_within); `pages_of` is called if that is necessary.

    Returns:
        The totals of the run, and whether this call has moved it forward.

    Raises:
        Exception: The error that ended a slice, or BrokenPromise for a damaged file.
    """
    totals, _ = sum_up(journal, plan)
    if totals.finished:
        return totals, False
    group = GroupWorker(journal, plan, 0, pages_of(), threads, slices=CALM_SLICES)
    group.run(over_at=over_at)
    return sum_up(journal, plan)[0], group.has_moved
