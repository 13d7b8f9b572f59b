"""A worker: works one group of a run, slice by slice, from wherever its commits say it stands."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, NoProgress
from keyhop.jobs.dedup import KnownKeys
from keyhop.jobs.first_look import Start
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import Checkpoint, Commit, Part, RunPlan
from keyhop.jobs.slice import Outcome, Sink, Slice, Work
from keyhop.jobs.task import Task
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening
from keyhop.scan.segments import group_order

FIRST_SLICE_SECONDS = 0.25
LONGEST_SLICE_SECONDS = 10.0
"""A slice is committed after this long: what a crash can cost. They start short and double, so that
even a run that is killed again and again moves on."""


class Output(Sink, Protocol):
    """Where the keys of one attempt at a slice go. memory: of keys met before, if there is one."""

    attempt: str
    memory: KnownKeys | None

    def close(self) -> tuple[Part, ...]:
        """The parts that were written, safely; none if the keys went elsewhere."""


@dataclass(slots=True)
class Progress:
    """How far a run is; another thread may look at any time."""

    segments: int
    _keys: int = 0
    _ended: int = 0
    _slice: Slice | None = None

    @property
    def keys(self) -> int:
        """Distinct keys so far."""
        return self._keys + (self._slice.keys if self._slice else 0)

    @property
    def ended(self) -> int:
        """Segments that are finished."""
        return self._ended + (self._slice.ended if self._slice else 0)

    def settle(self, keys: int, ended: int) -> None:
        """Between slices: what counts so far."""
        self._slice = None
        self._keys = keys
        self._ended = ended

    def add(self, keys: int, ended: int) -> None:
        """What a slice came to counts from now on."""
        self.settle(self._keys + keys, self._ended + ended)

    def follow(self, slice_: Slice) -> None:
        """A slice begins."""
        self._slice = slice_


@dataclass(slots=True)
class GroupWorker:
    """Works one group.

    copy: gets the keys too, as they are found; they may be found again after a lost commit.
    output: where keys go, if not into parts of the journal's store.
    A slice lasts `first_slice_seconds`, the next ones twice as long each, up to the longest.
    allowance: read units that the group may spend in all, commits of earlier starts included.
    worker: names this process in its commits. has_moved: whether the group stands elsewhere than at
    the start, by this process or by a twin.
    """

    journal: Journal
    plan: RunPlan
    group: int
    reader: PageReader
    task: Task
    threads: int
    progress: Progress
    idle: Callable[[], None] = lambda: None
    copy: Sink | None = None
    output: Output | None = None
    first_slice_seconds: float = FIRST_SLICE_SECONDS
    longest_slice_seconds: float = LONGEST_SLICE_SECONDS
    allowance: float | None = None
    worker: str = ""
    clock: Callable[[], float] = time.monotonic
    keys: int = 0
    commits: int = 0
    has_moved: bool = False
    _memory: KnownKeys | None = None
    _booked: Usage = field(default_factory=Usage)
    _booked_at: float = 0.0

    def run(self, start: Start | None = None, seconds: float = math.inf) -> bool:
        """Go on until the group is finished, `seconds` are over, or the reader is told to stop.

        Returns whether the group is finished. Raises what ended a slice, after committing what the
        slice had done. start: for a new run.
        """
        over_at = self.clock() + seconds
        self._book()
        try:
            return self._run(start, over_at)
        finally:
            if self._memory is not None:
                self._memory.close()

    def _run(self, start: Start | None, over_at: float) -> bool:
        checkpoint, number = self._replay(over_at)
        ledger = self._ledger(checkpoint, start)
        if number == 0 and start is not None and start.opening is not None:
            checkpoint, number = self._commit_opening(start.opening, ledger)
        slice_seconds = self.first_slice_seconds
        while not checkpoint.is_end(self._segments) and not self.reader.stop.is_set():
            left = over_at - self.clock()
            if left <= 0:
                break
            checkpoint, number = self._slice(checkpoint, number, ledger, min(slice_seconds, left))
            slice_seconds = min(self.longest_slice_seconds, 2 * slice_seconds)
        return checkpoint.is_end(self._segments)

    def _ledger(self, checkpoint: Checkpoint, start: Start | None) -> Ledger:
        """What is known of the table: by the group's last slice, the first look, or its size."""
        learnt = checkpoint.ledger or self.plan.ledger
        if start is not None and checkpoint.ledger is None:
            return start.ledger
        if learnt is not None:
            return Ledger.from_json(dict(learnt))
        return Ledger.for_table(self.reader.source.mean_item_bytes)

    @property
    def _segments(self) -> int:
        return self.plan.group_size(self.group)

    def _replay(self, over_at: float = math.inf) -> tuple[Checkpoint, int]:
        """Where the commits leave off, and how many there are; raises NoProgress at `over_at`."""
        checkpoint = Checkpoint()
        number = keys = ended = 0
        spent = 0.0
        if self._memory is not None:
            self._memory.close()
        self._memory = KnownKeys() if self.plan.needs_memory else None
        for commit in self.journal.commits(self.group):
            number += 1
            keys += commit.keys
            ended += commit.ended
            spent += commit.usage.read_units
            checkpoint = commit.checkpoint
            if self._memory is not None:
                for part in commit.parts:
                    self._memory.new_among(key for _, key in self.journal.keys(self.plan, part))
                if self.clock() > over_at:
                    raise NoProgress(
                        f"There was no time left after {keys:,} keys of earlier slices were "
                        f"remembered, to tell which keys of the index are new: read it with more "
                        f"time (workerTimeoutSeconds), or with keyhop keys, which has no deadline."
                    )
        self.progress.settle(keys, ended)
        if self.allowance is not None:
            unbooked = (self.reader.usage - self._booked).read_units
            self.reader.budget.allow_more(self.allowance - spent - unbooked)
        return checkpoint, number

    def _commit_opening(self, opening: Opening, ledger: Ledger) -> tuple[Checkpoint, int]:
        output = self._output(0)
        keys = self._into(output).write(0, opening.keys) if opening.keys else 0
        open_ = {0: opening.position} if opening.position else {}
        checkpoint = Checkpoint(1, open_, ledger.to_json())
        ended = int(opening.position is None)
        return self._commit(0, output, Outcome(keys, ended, checkpoint), Usage(), 0.0)

    def _slice(
        self, checkpoint: Checkpoint, number: int, ledger: Ledger, seconds: float
    ) -> tuple[Checkpoint, int]:
        segments = self.plan.segments
        order = group_order(self.group, self.plan.groups, segments, checkpoint.place)
        output = self._output(number)
        work = Work(self.plan.method, segments, order, checkpoint, self.task.visit)
        slice_ = Slice(work, self.reader, ledger, self._into(output))
        self.progress.follow(slice_)
        outcome = slice_.work(self.threads, seconds, self.idle)
        used = self.reader.usage - self._booked
        position = checkpoint, number
        # A slice of nothing but failures is not worth a commit; they are booked with a later one.
        failed_for_good = outcome.error is not None and used != Usage()
        if used.requests or outcome.ended or failed_for_good:
            took = self.clock() - self._booked_at
            position = self._commit(number, output, outcome, used, took)
        if outcome.error is not None:
            raise outcome.error
        if not outcome.cut_short and not outcome.checkpoint.is_end(self._segments):
            raise BrokenPromise("A slice ended with work left to do: please report it.")
        return position

    def _book(self) -> None:
        """What was read until now is in the run's files, or was not read for this group."""
        self._booked = self.reader.usage.copy()
        self._booked_at = self.clock()

    def _output(self, number: int) -> Output:
        output = self.output or self.journal.new_part(self.plan, self.group, number)
        output.memory = self._memory
        return output

    def _into(self, output: Output) -> Sink:
        return output if self.copy is None else _Both(output, self.copy)

    def _commit(
        self, number: int, output: Output, outcome: Outcome, used: Usage, seconds: float
    ) -> tuple[Checkpoint, int]:
        """Commit a slice, or adopt what another attempt at it committed.

        Returns where the group stands, and the number of the next slice.
        """
        commit = Commit(
            group=self.group,
            slice=number,
            attempt=output.attempt,
            parts=output.close(),
            ended=outcome.ended,
            usage=used,
            seconds=seconds,
            checkpoint=outcome.checkpoint,
            finished=outcome.checkpoint.is_end(self._segments),
            worker=self.worker,
        )
        self.has_moved = True
        if not self.journal.commit(commit):
            # What was read stays unbooked: the next commit of this process names it.
            return self._replay()
        self._book()
        self.keys += commit.keys
        self.commits += 1
        self.progress.add(outcome.keys, outcome.ended)
        return outcome.checkpoint, number + 1


@dataclass(slots=True)
class _Both:
    """Two sinks as one; the first one counts."""

    first: Sink
    second: Sink

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        self.second.write(segment, keys)
        return self.first.write(segment, keys)
