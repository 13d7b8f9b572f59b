"""`keyhop keys TABLE`: every distinct partition key of a table, once."""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from keyhop.cli.plan_view import plan_text
from keyhop.cli.progress import Display
from keyhop.cli.session import Limits, Stop, connect, reader_of, stop_on_signals
from keyhop.cli.status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.summary import Summary, check_report_path, write_report
from keyhop.client import Endpoint
from keyhop.enumerate.estimate import DEFAULT_UNITS, estimate
from keyhop.enumerate.log import RunLog
from keyhop.enumerate.output import FORMATS, Encoder
from keyhop.enumerate.pages import PageReader, Stopped
from keyhop.enumerate.plan import (
    MOST_SEGMENTS,
    MOST_WORKERS,
    Choice,
    Wishes,
    choose_method,
    choose_workers,
)
from keyhop.enumerate.record import RunPlan
from keyhop.enumerate.run import (
    GroupRun,
    Progress,
    begin,
    check_resumable,
    prepare,
    stream,
    summed_up,
)
from keyhop.enumerate.seen import SeenKeys
from keyhop.enumerate.store import Directory
from keyhop.enumerate.table import DEFAULT_PATIENCE_SECONDS
from keyhop.enumerate.verify import verify
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError, RunConflict
from keyhop.keyspace import Key

LEAST_RATE = 0.01
"""One page of 0.5 read units every 50 seconds."""

EPILOG = """\
examples:
  keyhop keys Orders                              print the keys
  keyhop keys Orders --plan                       first see what it would cost
  keyhop keys Orders --output keys --format jsonl into files; add --resume to continue
  keyhop keys Orders --max-read-rate 500          spare production
  keyhop keys Orders --index by-day               the keys of an index
  keyhop keys Orders --output keys --verify 0.01  check 1 % of the result by a plain Scan

exit status: 0 done, 2 error, 3 --verify found missing keys, 4 --max-read-units reached,
130 interrupted, 143 terminated.
Set KEYHOP_DEBUG=1 for stack traces. Standard output carries keys only; the rest goes to standard
error, and holds no keys but the examples that --verify names.
"""


def add_command(commands: Any) -> None:
    """Add `keys` to the command line."""
    command = commands.add_parser(
        "keys",
        help="list the distinct partition keys of a table",
        description="Print every distinct partition key of a table, or of an index, once.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    command.add_argument("table", metavar="TABLE", help="name or ARN of the table")
    command.add_argument("--index", metavar="NAME", help="list the keys of this index instead")

    reading = command.add_argument_group("reading")
    reading.add_argument(
        "--method",
        choices=("auto", "skip", "scan"),
        default="auto",
        help="skip: hop from key to key; scan: read everything; auto (default): choose, say why",
    )
    reading.add_argument(
        "--segments",
        type=_whole(1, MOST_SEGMENTS),
        metavar="N",
        help="parts of the hash space to read independently (default: planned from the table)",
    )
    reading.add_argument(
        "--workers",
        type=_whole(1, 256),
        metavar="N",
        help=f"segments read at once (default: up to {MOST_WORKERS})",
    )
    reading.add_argument(
        "--max-read-rate",
        type=_rate,
        metavar="RRU_PER_SECOND",
        help="hold the whole run under this many read units a second",
    )
    reading.add_argument(
        "--max-read-units",
        type=_positive,
        metavar="RRU",
        help="stop before spending more than this (exit status 4); counts from zero at each start. "
        f"With --plan: what the sample may cost (default {DEFAULT_UNITS:g})",
    )
    reading.add_argument(
        "--give-up-after",
        type=_positive,
        default=DEFAULT_PATIENCE_SECONDS,
        metavar="SECONDS",
        help="end the run when nothing but throttling and failures came for this long (default "
        f"{DEFAULT_PATIENCE_SECONDS:g})",
    )
    reading.add_argument(
        "--plan",
        action="store_true",
        help="read a small sample only, and print what each method would cost",
    )

    output = command.add_argument_group("output")
    output.add_argument(
        "--format",
        choices=(*FORMATS, "json"),
        help="text (default): a key a line, binary as base64, a string with control characters as "
        'a JSON string; jsonl: {"pk": {"S": "a"}}; csv: with a header; json: for --plan only',
    )
    output.add_argument(
        "--output",
        metavar="DIR",
        help="write the keys to DIR/parts and a DIR/manifest.json; such a run can be resumed",
    )
    output.add_argument("--resume", action="store_true", help="continue the unfinished run in DIR")
    output.add_argument("--report", metavar="FILE", help="write the summary to FILE as JSON")
    output.add_argument(
        "--verify",
        type=_share,
        metavar="SHARE",
        help="afterwards read this share of the table (0 to 1) by plain Scans, and compare",
    )
    output.add_argument("--quiet", action="store_true", help="no progress, no summary")

    place = command.add_argument_group("where the table is")
    place.add_argument("--region", help="AWS region (default: from your AWS configuration)")
    place.add_argument("--profile", help="AWS profile")
    place.add_argument(
        "--endpoint-url",
        metavar="URL",
        help="another endpoint, such as DynamoDB Local; on this machine it needs no credentials",
    )


def run(options: argparse.Namespace) -> int:
    """The command; returns its exit status, or raises a KeyhopError."""
    _check(options)
    endpoint = Endpoint(options.region, options.profile, options.endpoint_url)
    limits = Limits(options.max_read_rate, options.max_read_units, options.give_up_after)
    wishes = Wishes(options.segments, options.workers, options.max_read_rate, options.verify)
    # Until here there is nothing to end cleanly: signals end it at once.
    client, target, endpoint = connect(
        endpoint, options.table, options.index, options.workers or 0, options.give_up_after
    )
    choice = choose_method(target.space, target.index, options.method)
    with stop_on_signals() as stop:
        if options.plan:
            unlimited = Limits(limits.max_rate, None, limits.patience)
            reader = reader_of(client, target, endpoint, unlimited, stop)
            try:
                by_itself = choose_method(target.space, target.index, "auto")
                return _show_plan(options, reader, by_itself, wishes)
            except Stopped:
                return stop.status
        reader = reader_of(client, target, endpoint, limits, stop)
        job = _Job(options, reader, choice, wishes, stop)
        if options.output:
            return job.run(lambda: job.to_directory(Path(options.output)))
        if options.verify:
            with tempfile.TemporaryDirectory(prefix="keyhop-") as folder:
                return job.run(lambda: job.to_directory(Path(folder), copy=True))
        return job.run(job.to_stdout)


def _check(options: argparse.Namespace) -> None:
    """Flags that do not go together; raises CannotStart."""
    for flag in ("output", "report"):
        if getattr(options, flag) == "":
            raise CannotStart(f"--{flag} is empty: name a place, or leave the flag out.")
    if sys.stdout is None and not options.output:
        raise CannotStart("Standard output is closed: open it, or write to files with --output.")
    if options.resume and not options.output:
        raise CannotStart("--resume needs --output DIR: only a run in a directory can be resumed.")
    if options.format == "json" and not options.plan:
        raise CannotStart("--format json is for --plan; keys can be text, jsonl or csv.")
    if options.plan and options.format not in (None, "text", "json"):
        raise CannotStart("--plan prints text, or --format json.")
    if options.plan and (options.output or options.verify or options.report):
        raise CannotStart("--plan only estimates: it goes without --output, --report and --verify.")
    if options.verify and options.index:
        raise CannotStart(
            "--verify does not work with --index: an index is read through by plain Scans anyway."
        )
    if options.report:
        check_report_path(options.report)


def _show_plan(
    options: argparse.Namespace, reader: PageReader, choice: Choice, wishes: Wishes
) -> int:
    found = estimate(reader, choice, wishes, options.max_read_units or DEFAULT_UNITS)
    if options.format == "json":
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        print(plan_text(found), end="")
    return DONE


class StdoutSink:
    """Keys to standard output, a page at a time."""

    def __init__(self, encoder: Encoder, seen: SeenKeys | None) -> None:
        self._encoder = encoder
        self._seen = seen
        self._out = sys.stdout.buffer
        self._out.write(encoder.header())

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Print those keys that were not printed before; raises BrokenPipeError."""
        if self._seen is not None:
            keys = self._seen.new_among(keys)
        self._out.write(self._encoder.encode(keys))
        self._out.flush()
        return len(keys)


class _Job:
    """One run of the command, from the first look to the exit status."""

    def __init__(
        self,
        options: argparse.Namespace,
        reader: PageReader,
        choice: Choice,
        wishes: Wishes,
        stop: Stop,
    ) -> None:
        self.options = options
        self.reader = reader
        self.choice = choice
        self.wishes = wishes
        self.stop = stop
        self.began = time.monotonic()
        target = reader.target
        self.summary = Summary(target.name, target.index, choice, tally=reader.tally)

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
        sink = StdoutSink(
            Encoder(self.options.format or "text", target.space),
            SeenKeys() if target.index else None,
        )
        start = prepare(self.reader, self.choice.method, self.wishes)
        progress = self._progress(start.layout.segments, start.layout.workers)
        display = Display(self.reader, progress, self.options.quiet)
        try:
            self.summary.finished = stream(
                self.reader, start, self.choice.method, sink, progress, display.update
            )
        finally:
            display.close()
            self.summary.keys = progress.keys
            self.summary.seconds = time.monotonic() - self.began

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
            plan = begin(
                log,
                self.reader,
                self.choice,
                start,
                self.options.format or "text",
                time.monotonic() - self.began,
            )
        self.summary.choice = Choice(plan.method, plan.reason)
        workers = start.layout.workers if start else choose_workers(self.wishes, plan.segments)
        progress = self._progress(plan.segments, workers)
        display = Display(self.reader, progress, self.options.quiet)
        group = GroupRun(log, plan, 0, self.reader, workers, progress, display.update)
        if copy:
            group.copy = StdoutSink(Encoder(plan.format, plan.space), None)
        else:
            self.summary.output = str(directory.path)
        try:
            group.run(start)
        finally:
            display.close()
            self._sum_up(log, plan)
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
        asked = {
            "--format": (self.options.format or plan.format, plan.format),
            "--segments": (self.wishes.segments or plan.segments, plan.segments),
            "--method": (
                plan.method if self.options.method == "auto" else self.options.method,
                plan.method,
            ),
        }
        for flag, (wanted, begun) in asked.items():
            if wanted != begun:
                raise RunConflict(
                    f"The run in {where} was begun with {flag} {begun}, not {wanted}: leave it out."
                )
        directory.lock()
        parts = summed_up(log, plan)[0].parts
        log.check_content(parts)
        log.sweep(parts)
        return plan

    def _sum_up(self, log: RunLog, plan: RunPlan) -> None:
        totals, manifest = summed_up(log, plan)
        if manifest["finished"]:
            log.sweep(totals.parts)
        log.write_manifest(manifest)
        self.summary.finished = manifest["finished"]
        self.summary.keys = totals.keys
        self.summary.tally = totals.tally
        self.summary.seconds = totals.seconds

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


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least:,} to {most:,}"
            )
        return number

    return parse


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _rate(text: str) -> float:
    rate = _positive(text)
    if rate < LEAST_RATE:
        raise argparse.ArgumentTypeError(
            f"{text!r} is less than {LEAST_RATE:g} read units a second"
        )
    return rate


def _share(text: str) -> float:
    share = _positive(text)
    if share > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share above 0 and up to 1")
    return share
