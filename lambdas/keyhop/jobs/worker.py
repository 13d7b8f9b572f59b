"""A worker: works one group of a run, slice by slice, from wherever its commits say it stands."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from keyhop.dynamodb.usage import Usage
from keyhop.errors import BrokenPromise, NoProgress
from keyhop.jobs.dedup import KnownKeys
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import Checkpoint, Commit, Part, RunPlan
from keyhop.jobs.pages import Pages
from keyhop.jobs.slice import Sink, Slice
from keyhop.scan.sampling import Opening
from keyhop.scan.segments import group_order
from keyhop.wording import counted

Slices = tuple[float, float]
"""Seconds of the first slice and of the longest: then it is committed, so that is what a crash can
cost. They start short and double: even a run that is killed again and again moves on."""

QUICK_SLICES: Slices = (0.25, 10.0)
CALM_SLICES: Slices = (15.0, 60.0)
"""Where a slice costs more than its keys: in S3, and with visits. A fleet reports with its commits,
so every minute."""


class Output(Sink, Protocol):
    """Where the keys of one attempt at a slice go. memory: of keys met before, if there is one."""

    attempt: str
    memory: KnownKeys | None

    def close(self) -> tuple[Part, ...]:
        """The parts that were written, safely; none if the keys went elsewhere."""


def too_slow(keys: int) -> str:
    """What to tell a person if an index has so many keys that there is no time to read on."""
    return (
        f"There was no time left after {counted(keys, 'key')} of earlier slices were "
        f"remembered, to tell "
        f"which keys of the index are new: read it with more time (workerTimeoutSeconds), or with "
        f"keyhop keys, which has no deadline."
    )


@dataclass(slots=True)
class GroupWorker:
    """Works one group.

    idle: called a few times a second.
    output: where keys go, if not into parts of the journal's store.
    spent: is told the units (RunPlan.spent) that count for the group, of earlier starts too.
    committed: is told each commit of this process.
    worker: names this process in its commits. found, commits: of this process. has_moved: whether
    the group stands elsewhere than at the start, by this process or by a twin.
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
    too_slow: Callable[[int], str] = too_slow
    worker: str = ""
    found: int = 0
    commits: int = 0
    has_moved: bool = False
    _keys: int = 0
    _ended: int = 0
    _slice: Slice | None = None
    _memory: KnownKeys | None = None
    _booked: Usage = field(default_factory=Usage)
    _booked_at: float = 0.0

    @property
    def threads(self) -> int:
        """As many as have been found to pay."""
        return min(self.most_threads, self._segments, self.pages.in_flight.wanted)

    @property
    def keys(self) -> int:
        """Distinct keys of the group so far; another thread may look at any time, as at `ended`."""
        return self._keys + (self._slice.keys if self._slice else 0)

    @property
    def ended(self) -> int:
        """Segments of the group that are finished."""
        return self._ended + (self._slice.ended if self._slice else 0)

    def run(self, opening: Opening | None = None, over_at: float = math.inf) -> bool:
        """Go on until the group is finished, the source is told to stop, or `over_at`.

        Returns whether the group is finished. Raises what ended a slice, after committing what the
        slice had done. opening: what a first look has found of segment 0 of a new run.
        """
        self._book()
        try:
            checkpoint, number = self._replay(over_at)
            if number == 0 and opening is not None:
                checkpoint, number = self._keep(opening)
            slice_seconds, longest = self.slices
            while not checkpoint.is_end(self._segments) and not self.pages.stop.is_set():
                left = over_at - time.monotonic()
                if left <= 0:
                    break
                checkpoint, number = self._work(checkpoint, number, min(slice_seconds, left))
                slice_seconds = min(longest, 2 * slice_seconds)
            return checkpoint.is_end(self._segments)
        finally:
            if self._memory is not None:
                self._memory.close()

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
            spent += self.plan.spent(commit.usage)
            checkpoint = commit.checkpoint
            if self._memory is not None:
                for part in commit.parts:
                    self._memory.new_among(key for _, key in self.journal.keys(self.plan, part))
                if time.monotonic() > over_at:
                    raise NoProgress(self.too_slow(keys))
        self._settle(keys, ended)
        self.spent(spent + self.plan.spent(self.pages.usage - self._booked))
        self.pages.go_on(checkpoint.ledger)
        return checkpoint, number

    def _keep(self, opening: Opening) -> tuple[Checkpoint, int]:
        """Commit what was found before; what that has cost is the plan's."""
        output = self._output(0)
        keys = output.write(0, opening.keys) if opening.keys else 0
        open_ = {0: opening.position} if opening.position else {}
        checkpoint = Checkpoint(1, open_, self.pages.learnt())
        used = Usage()
        used.count(left_out=opening.left_out)
        self.pages.usage.add(used)
        return self._commit(0, output, checkpoint, keys, 1 - len(open_), used, 0.0)

    def _work(self, checkpoint: Checkpoint, number: int, seconds: float) -> tuple[Checkpoint, int]:
        order = group_order(self.group, self.plan.groups, self.plan.segments, checkpoint.place)
        output = self._output(number)
        self._slice = slice_ = Slice(self.pages, order, checkpoint, output)
        left = self._segments - checkpoint.place + len(checkpoint.open)
        stands = slice_.work(min(self.most_threads, left), seconds, self.idle)
        used = self.pages.usage - self._booked
        position = checkpoint, number
        # A slice of nothing but failures is not worth a commit; they are booked with a later one.
        failed_for_good = slice_.error is not None and used != Usage()
        has_found = slice_.keys or slice_.counts or slice_.ended
        if used.requests or used.items or has_found or failed_for_good:
            took = time.monotonic() - self._booked_at
            position = self._commit(
                number, output, stands, slice_.keys, slice_.ended, used, took, slice_.counts
            )
        if slice_.error is not None:
            raise slice_.error
        if not slice_.was_cut_short and not stands.is_end(self._segments):
            raise BrokenPromise("A slice ended with work left to do: please report it.")
        return position

    def _settle(self, keys: int, ended: int) -> None:
        """Between slices: what counts so far."""
        self._slice = None
        self._keys = keys
        self._ended = ended

    def _book(self) -> None:
        """What was read until now is in the run's files, or was not read for this group."""
        self._booked = self.pages.usage.copy()
        self._booked_at = time.monotonic()

    def _output(self, number: int) -> Output:
        output = self.output or self.journal.new_part(self.plan, self.group, number)
        output.memory = self._memory
        return output

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
        """Commit a slice, or adopt what another attempt at it committed.

        Returns where the group stands, and the number of the next slice.
        """
        commit = Commit(
            group=self.group,
            slice=number,
            attempt=output.attempt,
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
            # What was read stays unbooked: the next commit of this process names it.
            return self._replay()
        self._book()
        self.found += commit.keys
        self.commits += 1
        self._settle(self._keys + keys, self._ended + ended)
        self.committed(commit)
        return checkpoint, number + 1
