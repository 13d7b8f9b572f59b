"""One run of `keyhop keys`: where its keys go, how it ends, what is said of it."""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.logical import Folds, asked, parser
from keyhop.cli.progress import Display
from keyhop.cli.session import Stop
from keyhop.cli.summary import Summary, write_report
from keyhop.dynamodb.values import Key
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError, RunConflict
from keyhop.jobs.dedup import SeenKeys
from keyhop.jobs.first_look import prepare
from keyhop.jobs.formats import Encoder, Format
from keyhop.jobs.journal import RunLog
from keyhop.jobs.layout import Choice, Wishes, choose_workers
from keyhop.jobs.model import RunPlan
from keyhop.jobs.worker import (
    GroupRun,
    Progress,
    begin,
    check_resumable,
    check_rows,
    conclude,
    plan_of,
    recover,
    stream,
)
from keyhop.keys.logical import Fold, Folding, by_suffix, keys_of, listed
from keyhop.keys.verify import verify
from keyhop.scan.reader import PageReader, Stopped
from keyhop.storage.local import Directory


class StdoutSink:
    """Keys to standard output, a page at a time."""

    def __init__(
        self, encoder: Encoder, seen: SeenKeys | None = None, fold: Fold | None = None
    ) -> None:
        self.physical = 0
        self.folded = 0
        self._encoder = encoder
        self._seen = seen
        self._fold = fold
        self._out = sys.stdout.buffer
        self._out.write(encoder.header())

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Print those keys that were not printed before; raises BrokenPipeError."""
        if self._fold is not None:
            listed = self._fold(keys)
            self.physical += len(keys)
            self.folded += sum(key != other for key, other in zip(keys, listed, strict=True))
            keys = listed
        if self._seen is not None:
            keys = self._seen.new_among(keys)
        self._out.write(self._encoder.encode(keys))
        self._out.flush()
        return len(keys)


class Job:
    """One run of the command, from the first look to the exit status."""

    def __init__(
        self,
        options: argparse.Namespace,
        reader: PageReader,
        choice: Choice,
        wishes: Wishes,
        stop: Stop,
        folds: Folds,
    ) -> None:
        self.options = options
        self.reader = reader
        self.choice = choice
        self.wishes = wishes
        self.stop = stop
        self.folds = folds
        self.began = time.monotonic()
        target = reader.target
        self.summary = Summary(
            target.name, target.index, choice, tally=reader.tally, logical=asked(options)
        )

    def run(self, work: Callable[[], None]) -> int:
        """Do the work, then sum up, whatever happened; returns the exit status."""
        status = DONE
        try:
            work()
        except Stopped:
            pass
        except KeyhopError as error:
            if isinstance(error, CannotStart) and not self.reader.tally.requests:
                raise
            self.summary.error = str(error)
            status = BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
            hint = "" if isinstance(error, BrokenPromise) else self._resume_hint()
            print(f"keyhop: {error} {hint}".rstrip(), file=sys.stderr)
        unchecked = self.options.verify and self.summary.verdict is None
        if self.stop.event.is_set() and (unchecked or not self.summary.finished):
            status = self.stop.status
            self.summary.error = "interrupted"
            print(f"keyhop: Interrupted. {self._resume_hint()}", file=sys.stderr)
        verdict = self.summary.verdict
        if status == DONE and verdict is not None and verdict.missing:
            status = KEYS_MISSING
        if not self.options.quiet and (status == DONE or self.reader.tally.requests):
            print(self.summary.text(), file=sys.stderr)
        if self.options.report:
            write_report(self.options.report, self.summary.to_json())
        return status

    def to_stdout(self) -> None:
        """Keys to standard output; nothing is kept."""
        target = self.reader.target
        wanted = asked(self.options)
        is_twice = wanted is not None or (target.index and self.choice.method != "index")
        sink = StdoutSink(
            Encoder(self.options.format or "text", target.space),
            SeenKeys() if is_twice else None,
            None if wanted is None else by_suffix(target.space, parser(target.space, wanted)),
        )
        start = prepare(self.reader, self.choice.method, self.wishes)
        progress = self._progress(start.layout.segments, start.layout.workers)
        display = Display(self.reader, progress, self.options.quiet)
        try:
            self.summary.finished = stream(
                self.reader, start, self.choice.method, sink, progress, display.update
            )
            if self.summary.finished:
                check_rows(self.choice.method, progress.keys, self.reader.tally)
        finally:
            display.close()
            self.summary.keys = progress.keys
            self.summary.seconds = time.monotonic() - self.began
            if wanted is not None:
                counts = {"physical_keys": sink.physical, "folded": sink.folded}
                self.summary.logical = {**wanted, **counts}

    def to_directory(self, path: Path, copy: bool = False) -> None:
        """Keys to part files, committed slice by slice; `copy`: to standard output as well."""
        directory = Directory(path)
        try:
            self._enumerate_into(directory, copy)
        finally:
            directory.unlock()

    def _enumerate_into(self, directory: Directory, copy: bool) -> None:
        log = RunLog(directory)
        plan = self._held_by(directory, log)
        start = None
        if plan is None:
            start = prepare(self.reader, self.choice.method, self.wishes)
            seconds = time.monotonic() - self.began
            format_: Format = self.options.format or "text"
            plan = plan_of(self.reader, self.choice, start, format_, seconds)
            plan = replace(plan, fold=asked(self.options))
            begin(log, plan)
        self.summary.choice = Choice(plan.method, plan.reason)
        workers = start.layout.workers if start else choose_workers(self.wishes, plan.segments)
        progress = self._progress(plan.segments, workers)
        display = Display(self.reader, progress, self.options.quiet)
        group = GroupRun(log, plan, 0, self.reader, workers, progress, display.update)
        if not copy:
            self.summary.output = str(directory.path)
        elif plan.fold is None:
            group.copy = StdoutSink(Encoder(plan.format, plan.space))
        try:
            group.run(start)
        finally:
            display.close()
            self.summary.keys = progress.keys
            self._sum_up(log, plan)
        if copy and plan.fold is not None and self.summary.finished:
            self._print(log, plan)
        if self.summary.finished and self.options.verify:
            self._verify(log, plan, workers)

    def _held_by(self, directory: Directory, log: RunLog) -> RunPlan | None:
        """The plan of the unfinished run to continue; None if a new one can begin."""
        where = str(directory.path)
        if directory.path.exists() and not directory.path.is_dir():
            raise RunConflict(f"{where} is a file: give --output a directory.")
        empty = directory.is_empty()
        plan = None if empty else log.plan()
        if plan is None:
            if not empty:
                raise RunConflict(f"{where} holds other files: give --output an empty directory.")
            directory.make()
            directory.lock()
            return None
        check_resumable(log, plan, self.reader.target, where)
        if not self.options.resume:
            raise RunConflict(
                f"{where} holds an unfinished run of {plan.title}: add --resume to continue it."
            )
        flags: dict[str, tuple[object, object]] = {
            "--format": (self.options.format or plan.format, plan.format),
            "--segments": (self.wishes.segments or plan.segments, plan.segments),
            "--method": (
                plan.method if self.options.method == "auto" else self.options.method,
                plan.method,
            ),
        }
        if self.options.logical and plan.fold is None:
            raise RunConflict(f"The run in {where} was begun without --logical: leave it out.")
        if plan.fold is not None:
            for name, begun in plan.fold.items():
                flags[f"--{name}"] = (getattr(self.options, name) or begun, begun)
        for flag, (wanted, begun) in flags.items():
            if wanted != begun:
                so = f"without {flag}" if begun is None else f"with {flag} {begun}, not {wanted}"
                raise RunConflict(f"The run in {where} was begun {so}: leave it out.")
        if plan.fold is not None:
            self.folds.check(plan.space, plan.fold)
        directory.lock()
        recover(log, plan)
        return plan

    def _sum_up(self, log: RunLog, plan: RunPlan) -> None:
        totals, summary = conclude(log, plan, Folding(self.folds.of, self._check_not_stopped))
        self.summary.finished = summary["finished"]
        self.summary.keys = summary["keys"]
        self.summary.logical = summary.get("logical")
        self.summary.tally = totals.tally
        self.summary.seconds = totals.seconds

    def _check_not_stopped(self, _done: int) -> None:
        if self.stop.event.is_set():
            raise Stopped

    def _print(self, log: RunLog, plan: RunPlan) -> None:
        """The logical keys of a finished run, to standard output."""
        self.summary.finished = False
        sink = StdoutSink(Encoder(plan.format, plan.space))
        for keys in keys_of(log, plan, listed(log)):
            self._check_not_stopped(0)
            sink.write(0, keys)
        self.summary.finished = True

    def _verify(self, log: RunLog, plan: RunPlan, workers: int) -> None:
        before = deepcopy(self.reader.tally)
        try:
            self.summary.verdict = verify(
                log, plan, self.reader, self.options.verify, workers, random.Random()
            )
        finally:
            self.summary.checking = self.reader.tally - before

    def _progress(self, segments: int, workers: int) -> Progress:
        self.summary.segments = segments
        self.summary.workers = workers
        return Progress(segments)

    def _resume_hint(self) -> str:
        if self.summary.finished:
            unchecked = self.options.verify and self.summary.verdict is None
            return "All keys were found, but they are not checked." if unchecked else ""
        if self.options.output:
            return f"Continue with --output {self.options.output} --resume."
        return "Without --output a run cannot be continued."
