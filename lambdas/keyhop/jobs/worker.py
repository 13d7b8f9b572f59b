"""A run, once it is laid out (start.py): begin, work slices, commit them, sum up."""

import math
import time
import uuid
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from keyhop.dynamodb.tables import Target
from keyhop.dynamodb.usage import Tally
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, NoProgress, RunConflict
from keyhop.jobs.completeness import EndedSegments
from keyhop.jobs.dedup import SeenKeys
from keyhop.jobs.first_look import Start
from keyhop.jobs.formats import Format
from keyhop.jobs.journal import PartSink, RunLog
from keyhop.jobs.layout import Choice, Method
from keyhop.jobs.model import Checkpoint, Commit, RunPlan, Totals, manifest
from keyhop.jobs.slice import Outcome, Sink, Slice, Visitor, Work
from keyhop.keys.logical import Folding, folded
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening
from keyhop.scan.segments import group_order

FIRST_SLICE_SECONDS = 0.25
LONGEST_SLICE_SECONDS = 10.0
"""A slice is committed after this long: what a crash can cost. They start short and double, so that
even a run that is killed again and again moves on."""


def plan_of(
    reader: PageReader, choice: Choice, start: Start, format_: Format, seconds: float
) -> RunPlan:
    """What a run in one process will do; `seconds`: how long `prepare` took."""
    target = reader.target
    return RunPlan(
        id=uuid.uuid4().hex,
        table=target.name,
        index=target.index,
        identity=target.identity,
        space=target.space,
        method=choice.method,
        reason=choice.reason,
        segments=start.layout.segments,
        groups=1,
        format=format_,
        started=now(),
        planning=deepcopy(reader.tally),
        planning_seconds=seconds,
        sentinel=None if target.sentinel is None else target.sentinel.to_json(),
    )


def begin(log: RunLog, plan: RunPlan) -> None:
    """Write down what the run will do; raises RunConflict."""
    if not log.begin(plan):
        raise RunConflict("Another run was begun in the same place at the same moment.")
    log.write_summary(manifest(plan, Totals.of(plan, ()), False, now()))


def check_resumable(
    log: RunLog, plan: RunPlan, target: Target, where: str, may_be_finished: bool = False
) -> None:
    """Raises RunConflict if the run in `where` is finished, or is not one of this very table."""
    if log.is_finished() and not may_be_finished:
        raise RunConflict(
            f"{where} holds a finished run of {plan.title}: use its keys, or begin another run."
        )
    if (plan.index, plan.space) != (target.index, target.space) or plan.identity != target.identity:
        raise RunConflict(
            f"{where} holds a run of another table: {plan.title}, {plan.identity}; begin another "
            f"run for {target.title}, {target.identity}."
        )


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


def stream(
    reader: PageReader,
    start: Start,
    method: Method,
    sink: Sink,
    progress: Progress,
    idle: Callable[[], None] = lambda: None,
    visitor: Visitor | None = None,
) -> bool:
    """Run without a store: keys go to `sink`, and nothing can be resumed.

    Returns whether the table was read to its end. Raises what ended the run early.
    """
    checkpoint = Checkpoint()
    if start.opening is not None and visitor is None:
        checkpoint = _after_opening(start.opening)
        progress.add(_take_in(start.opening, sink), int(start.opening.position is None))
    segments = start.layout.segments
    order = group_order(0, 1, segments, checkpoint.place)
    work = Work(method, segments, order, checkpoint)
    slice_ = Slice(work, reader, start.ledger, sink, visitor=visitor)
    progress.follow(slice_)
    outcome = slice_.work(start.layout.workers, None, idle)
    progress.add(outcome.keys, outcome.ended)
    if outcome.error is not None:
        raise outcome.error
    return outcome.checkpoint.is_end(segments)


def _after_opening(opening: Opening) -> Checkpoint:
    return Checkpoint(place=1, open={0: opening.position} if opening.position else {})


def _take_in(opening: Opening, sink: Sink) -> int:
    return sink.write(0, opening.keys) if opening.keys else 0


@dataclass(slots=True)
class GroupRun:
    """Works one group of a run, slice by slice, from wherever its commits say it stands.

    copy: gets the keys too, as they are found; they may be found again after a lost commit.
    A slice lasts `first_slice_seconds`, the next ones twice as long each, up to the longest.
    allowance: read units that the group may spend in all, commits of earlier starts included.
    worker: names this process in its commits. visitor: sees all pages, so with one a first look
    does not count. has_moved: whether the group stands elsewhere than at the start, by this process
    or by a twin.
    """

    log: RunLog
    plan: RunPlan
    group: int
    reader: PageReader
    workers: int
    progress: Progress
    idle: Callable[[], None] = lambda: None
    copy: Sink | None = None
    first_slice_seconds: float = FIRST_SLICE_SECONDS
    longest_slice_seconds: float = LONGEST_SLICE_SECONDS
    allowance: float | None = None
    worker: str = ""
    visitor: Visitor | None = None
    clock: Callable[[], float] = time.monotonic
    keys: int = 0
    commits: int = 0
    has_moved: bool = False
    _seen: SeenKeys | None = field(default=None)
    _booked: Tally = field(default_factory=Tally)
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
            if self._seen is not None:
                self._seen.close()

    def _run(self, start: Start | None, over_at: float) -> bool:
        checkpoint, number = self._replay(over_at)
        ledger = self._ledger(checkpoint, start)
        opening = start.opening if start is not None and self.visitor is None else None
        if number == 0 and opening is not None:
            checkpoint, number = self._commit_opening(opening, ledger)
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
        return Ledger.for_table(self.reader.target.mean_item_bytes)

    @property
    def _segments(self) -> int:
        return len(range(self.group, self.plan.segments, self.plan.groups))

    def _replay(self, over_at: float = math.inf) -> tuple[Checkpoint, int]:
        """Where the commits leave off, and how many there are; raises NoProgress at `over_at`."""
        checkpoint = Checkpoint()
        number = keys = ended = 0
        spent = 0.0
        if self._seen is not None:
            self._seen.close()
        self._seen = SeenKeys() if self.plan.needs_memory else None
        for commit in self.log.commits(self.group):
            number += 1
            keys += commit.keys
            ended += commit.ended
            spent += commit.tally.units
            checkpoint = commit.checkpoint
            if self._seen is not None:
                for part in commit.parts:
                    self._seen.new_among(key for _, key in self.log.keys(self.plan, part))
                if self.clock() > over_at:
                    raise NoProgress(
                        f"There was no time left after {keys:,} keys of earlier slices were "
                        f"remembered, to tell which keys of the index are new: read it with more "
                        f"time (workerTimeoutSeconds), or with keyhop keys, which has no deadline."
                    )
        self.progress.settle(keys, ended)
        if self.allowance is not None:
            unbooked = (self.reader.tally - self._booked).units
            self.reader.budget.allow_more(self.allowance - spent - unbooked)
        return checkpoint, number

    def _commit_opening(self, opening: Opening, ledger: Ledger) -> tuple[Checkpoint, int]:
        sink = self._sink(0)
        keys = _take_in(opening, _Both(sink, self.copy) if self.copy else sink)
        stands = _after_opening(opening)
        ended = int(opening.position is None)
        checkpoint = Checkpoint(stands.place, stands.open, ledger.to_json())
        return self._commit(0, sink, Outcome(keys, ended, checkpoint), Tally(), 0.0)

    def _slice(
        self, checkpoint: Checkpoint, number: int, ledger: Ledger, seconds: float
    ) -> tuple[Checkpoint, int]:
        segments = self.plan.segments
        order = group_order(self.group, self.plan.groups, segments, checkpoint.place)
        sink = self._sink(number)
        work = Work(self.plan.method, segments, order, checkpoint)
        out = _Both(sink, self.copy) if self.copy else sink
        slice_ = Slice(work, self.reader, ledger, out, visitor=self.visitor)
        self.progress.follow(slice_)
        outcome = slice_.work(self.workers, seconds, self.idle)
        read = self.reader.tally - self._booked
        stands = checkpoint, number
        # A slice of nothing but failures is not worth a commit; they are booked with a later one.
        failed_for_good = outcome.error is not None and read != Tally()
        if read.requests or outcome.ended or failed_for_good:
            stands = self._commit(number, sink, outcome, read, self.clock() - self._booked_at)
        if outcome.error is not None:
            raise outcome.error
        if not outcome.cut_short and not outcome.checkpoint.is_end(self._segments):
            raise BrokenPromise("A slice ended with work left to do: please report it.")
        return stands

    def _book(self) -> None:
        """What was read until now is in the run's files, or was not read for this group."""
        self._booked = deepcopy(self.reader.tally)
        self._booked_at = self.clock()

    def _sink(self, number: int) -> PartSink:
        sink = self.log.new_part(self.plan, self.group, number)
        sink.seen = self._seen
        return sink

    def _commit(
        self, number: int, sink: PartSink, outcome: Outcome, read: Tally, seconds: float
    ) -> tuple[Checkpoint, int]:
        """Commit a slice, or adopt what another attempt at it committed.

        Returns where the group stands, and the number of the next slice.
        """
        commit = Commit(
            group=self.group,
            slice=number,
            attempt=sink.attempt,
            parts=sink.close(),
            ended=outcome.ended,
            tally=read,
            seconds=seconds,
            checkpoint=outcome.checkpoint,
            finished=outcome.checkpoint.is_end(self._segments),
            worker=self.worker,
        )
        self.has_moved = True
        if not self.log.commit(commit):
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


def summed_up(log: RunLog, plan: RunPlan) -> tuple[Totals, dict[str, Any]]:
    """The totals and the manifest of a run; raises BrokenPromise if its files are harmed.

    A finished run is checked to be whole.
    """
    listed = log.commit_files()  # before they are read: a twin may be adding to them
    segments = EndedSegments(plan)
    totals = Totals.of(plan, segments.watch(log.commits_of(sorted(listed))))
    if listed.total() > totals.commits:
        raise BrokenPromise(
            f"Only {totals.commits} of {listed.total()} commits follow one another, so keys are "
            f"lost: run again into another place."
        )
    log.check_sizes(totals.parts)
    finished = len(totals.finished) == plan.groups
    if finished:
        segments.check_whole()
    if finished and plan.walk is None:
        check_rows(plan.method, totals.keys, totals.tally)
    return totals, manifest(plan, totals, finished, now())


def check_rows(method: Method, keys: int, tally: Tally) -> None:
    """Raises BrokenPromise if a key index had rows, but none where its sentinels should be."""
    if method == "index" and not keys and tally.index["rows_elsewhere"]:
        raise BrokenPromise(
            f"The key index has {tally.index['rows_elsewhere']:,} rows, but none with the "
            f"sentinels' sort key: it was built with another one (--sentinel, sentinelSortKey)."
        )


def recover(log: RunLog, plan: RunPlan) -> None:
    """Before an unfinished run goes on: check what is committed, sweep what is not.

    Raises BrokenPromise if a commit or a part is harmed; then nothing is swept.
    """
    parts = summed_up(log, plan)[0].parts
    log.check_content(parts)
    log.sweep(parts)


def conclude(
    log: RunLog, plan: RunPlan, folding: Folding | None = None
) -> tuple[Totals, dict[str, Any]]:
    """Write the manifest; returns the totals of reading, and the manifest.

    folding: for a run that lists logical keys. What ends the fold early leaves the run unfinished.
    """
    totals, summary = summed_up(log, plan)
    if summary["finished"]:
        log.sweep(totals.parts)
        if plan.fold is not None:
            assert folding is not None
            summary = folded(log, plan, totals.parts, folding).over(summary)
    log.write_summary(summary)
    if summary["finished"]:
        log.forget_progress()
    return totals, summary


def now() -> str:
    """This moment, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
