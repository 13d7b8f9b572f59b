"""A job of the command line: progress while it is at work, then what it came to and a status."""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.progress import Display
from keyhop.cli.session import Stop
from keyhop.cli.summary import Summary, write_report
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError
from keyhop.jobs.dedup import KnownKeys
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, nowhere, opened
from keyhop.jobs.model import Part
from keyhop.jobs.plan import Place
from keyhop.jobs.request import Request
from keyhop.keys.logical import Fold, keys_of, listed
from keyhop.keys.task import Believe
from keyhop.keys.verify import verify
from keyhop.sharding.logical_keys import fold_of
from keyhop.storage.local import Directory
from keyhop.tasks import tasks_of


class Printed:
    """Keys on standard output, a page at a time (jobs.worker.Output)."""

    attempt = ""

    def __init__(self, encoder: Encoder, fold: Fold | None = None) -> None:
        self.physical = 0
        self.folded = 0
        self.memory: KnownKeys | None = None
        self._encoder = encoder
        self._fold = fold
        self._printed = KnownKeys() if fold is not None else None
        self._out = sys.stdout.buffer
        self._out.write(encoder.header())

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Print those keys that were not printed before; raises BrokenPipeError."""
        if self._fold is not None:
            listed = self._fold(keys)
            self.physical += len(keys)
            self.folded += sum(key != other for key, other in zip(keys, listed, strict=True))
            keys = listed
        memory = self._printed or self.memory
        if memory is not None:
            keys = memory.new_among(keys)
        self._out.write(self._encoder.encode(keys))
        self._out.flush()
        return len(keys)

    def close(self) -> tuple[Part, ...]:
        """There are no parts."""
        return ()


class KeysRun:
    """One run of `keyhop keys`, from the first look to the exit status."""

    def __init__(
        self,
        options: argparse.Namespace,
        request: Request,
        connection: Connection,
        table: Table,
        stop: Stop,
        believe: Believe,
    ) -> None:
        self.options = options
        self.request = request
        self.connection = connection
        self.table = table
        self.stop = stop
        self.believe = believe
        self.began = time.monotonic()
        self.summary = Summary(table.name, request.index, fold=request.options.get("fold"))

    def to_stdout(self) -> int:
        """Keys to standard output; nothing is kept."""
        job = self._job(nowhere(), folds=False)
        job.prepare(self.table)
        return self._run(job, lambda: self._print(job))

    def into(self, path: Path, copy: bool = False) -> int:
        """Keys to part files, committed slice by slice; `copy`: to standard output as well."""
        journal = opened(path, self.options.resume)
        assert isinstance(journal.store, Directory)
        try:
            place = Place(str(path), f"The run in {path}", "--")
            job = self._job(journal, place=place)
            job.prepare(self.table)
            return self._run(job, lambda: self._write(job, None if copy else path))
        finally:
            journal.store.unlock()

    def _job(self, journal: Journal, folds: bool = True, place: Place | None = None) -> LocalJob:
        job = LocalJob(
            self.request,
            tasks_of(self.believe, folds=folds),
            self.connection,
            journal,
            self.stop.event,
            self.options.give_up_after,
        )
        if place is not None:
            job.place = place
        return job

    def _run(self, job: LocalJob, work: Callable[[], None]) -> int:
        """Do the work, then sum up, whatever happened; returns the exit status."""
        summary = self.summary
        summary.follow(job)
        status = DONE
        try:
            work()
        except Stopped:
            pass
        except KeyhopError as error:
            if isinstance(error, CannotStart) and not job.reader.usage.requests:
                raise
            summary.error = str(error)
            status = BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
            hint = "" if isinstance(error, BrokenPromise) else self._resume_hint()
            print(f"keyhop: {error} {hint}".rstrip(), file=sys.stderr)
        unchecked = self.options.verify and summary.verdict is None
        if self.stop.event.is_set() and (unchecked or not summary.finished):
            status = self.stop.status
            summary.error = "interrupted"
            print(f"keyhop: Interrupted. {self._resume_hint()}", file=sys.stderr)
        verdict = summary.verdict
        if status == DONE and verdict is not None and verdict.missing:
            status = KEYS_MISSING
        if not self.options.quiet and (status == DONE or job.reader.usage.requests):
            print(summary.text(), file=sys.stderr)
        if self.options.report:
            write_report(self.options.report, summary.to_json())
        return status

    def _print(self, job: LocalJob) -> None:
        fold = self.summary.fold
        source = job.reader.source
        output = Printed(
            Encoder(self.options.format or "text", source.space),
            None if fold is None else fold_of(job.connection, source.space, fold, ""),
        )
        try:
            job.begin()
            self.summary.follow(job)
            with Display(job.reader, job.progress, self.options.quiet) as display:
                # Nothing is committed that anybody could go on from: one slice is enough.
                job.work(display.update, output=output, longest_slice_seconds=float("inf"))
            self.summary.finished = job.finish()[1].summary["finished"]
        finally:
            self.summary.follow(job)
            self.summary.seconds = time.monotonic() - self.began
            if fold is not None:
                counts = {"physical_keys": output.physical, "folded": output.folded}
                self.summary.logical = {**fold, **counts}

    def _write(self, job: LocalJob, shown: Path | None) -> None:
        """shown: the directory to tell of; None if keys go to standard output as well."""
        job.begin()
        self.summary.follow(job)
        copy = None
        folds = "fold" in job.plan.options
        if shown is not None:
            self.summary.output = str(shown)
        elif not folds:
            copy = Printed(Encoder(job.plan.format, job.plan.space))
        try:
            with Display(job.reader, job.progress, self.options.quiet) as display:
                job.work(display.update, copy=copy)
        finally:
            self.summary.follow(job)
            self._sum_up(job)
        if shown is None and folds and self.summary.finished:
            self._print_logical(job)
        if self.summary.finished and self.options.verify:
            self._verify(job)

    def _sum_up(self, job: LocalJob) -> None:
        totals, result = job.finish()
        self.summary.finished = result.summary["finished"]
        self.summary.keys = result.summary["keys"]
        self.summary.logical = result.summary.get("logical")
        self.summary.usage = totals.usage
        self.summary.seconds = totals.seconds

    def _print_logical(self, job: LocalJob) -> None:
        """The logical keys of a finished run, to standard output."""
        self.summary.finished = False
        output = Printed(Encoder(job.plan.format, job.plan.space))
        for keys in keys_of(job.journal, job.plan, listed(job.journal)):
            if self.stop.event.is_set():
                raise Stopped
            output.write(0, keys)
        self.summary.finished = True

    def _verify(self, job: LocalJob) -> None:
        before = job.reader.usage.copy()
        try:
            self.summary.verdict = verify(
                job.journal,
                job.plan,
                job.reader,
                self.options.verify,
                job.threads,
                random.Random(),
            )
        finally:
            self.summary.checking = job.reader.usage - before

    def _resume_hint(self) -> str:
        if self.summary.finished:
            unchecked = self.options.verify and self.summary.verdict is None
            return "All keys were found, but they are not checked." if unchecked else ""
        if self.options.output:
            return f"Continue with --output {self.options.output} --resume."
        return "Without --output a run cannot be continued."
