"""What `keyhop keys` does: keys to standard output or to files, a check, a report; an estimate."""

import math
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from keyhop import __version__
from keyhop.cli.confirm import ASK_ABOVE, Facts, confirm, place
from keyhop.cli.deployment import KeyIndexAccess
from keyhop.cli.display import (
    StatusLine,
    check_report_path,
    plan_lines,
    summary_lines,
    write_report,
)
from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.options import Options, flag
from keyhop.cli.output import folded, put_out, width_of
from keyhop.cli.printed import Printed
from keyhop.cli.session import (
    PREFIX,
    Stop,
    connection_of,
    job_in,
    stop_on_signals,
    suggesting,
    work,
)
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table, look_up
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError, StaleIndex
from keyhop.jobs.estimate import Ahead, by_index, estimate
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import Commit, Journal, usage_json
from keyhop.jobs.layout import DEFAULT_UNITS, Wishes
from keyhop.jobs.local import LocalJob, check_is_begun
from keyhop.jobs.price import price
from keyhop.jobs.request import Request
from keyhop.keys.request import KeysInput
from keyhop.keys.task import choose_method, listed, without_sentinels
from keyhop.keys.verify import Verdict, verify
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory
from keyhop.storage.store import Memory
from keyhop.tasks import fold_of, tasks_of
from keyhop.wording import counted

MOST_HELD_BYTES = 8 << 20
"""In memory; more is held on disk."""

OF_MANIFEST = ("run", "format", "segments", "started", "ended", "parts")
"""What a manifest tells, and a report does not, or says of this process."""


def run(options: Options) -> int:
    """The command; returns its exit status, or raises a KeyhopError."""
    request = _request(options)
    # Until here there is nothing to end cleanly: signals end it at once.
    connection = connection_of(options, options.threads or 0)
    if options.max_cost is not None:
        most = connection.prices.units_for(options.max_cost)
        request = replace(request, max_read_units=min(request.max_read_units or most, most))
    with suggesting(connection, options.table):
        table = look_up(connection, options.table, options.give_up_after)
    with stop_on_signals() as stop, ExitStack() as cleaning:
        deployment = KeyIndexAccess(options, connection)
        if options.dry_run:
            return _show_plan(options, connection, table, deployment, stop)
        path = options.output
        if path is None and (options.verify or options.metadata):
            path = cleaning.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX))
        is_kept = path is not None
        tasks = tasks_of(
            deployment.decide_trust, folds=is_kept, sentinels_of=deployment.sentinels_of
        )
        place = Path(path) if is_kept else None
        if options.resume:
            check_is_begun(Path(options.output))
        with job_in(place, request, tasks, connection, options, stop, options.processes) as job:
            job.prepare(table, may_be_finished=options.resume and not options.verify)
            if job.journal.is_finished():
                return _tell_it_is_finished(options, job)
            answered = options.yes or options.max_cost is not None
            job.approve = partial(approve, job, stop, answered)
            fold = request.options.get("fold")
            return _Run(job, options, stop, fold, is_kept and fold is not None).run()
    return stop.status


def _request(options: Options) -> Request:
    """The flags as a job; raises CannotStart for those that do not go together."""
    for name in ("output", "report", "separator", "metadata"):
        if getattr(options, name) == "":
            raise CannotStart(f"{flag(name)} is empty: give it a value, or leave the flag out.")
    if sys.stdout is None and not options.output:
        raise CannotStart("Standard output is closed: open it, or write to files with --output.")
    if options.resume and not options.output:
        raise CannotStart("--resume needs --output DIR: only a run in a directory can be resumed.")
    if options.dry_run and (options.output or options.verify or options.report):
        raise CannotStart(
            "--dry-run only estimates: it goes without --output, --report and --verify."
        )
    asked = KeysInput(
        table=options.table,
        index=options.index,
        method=options.method,
        segments=options.segments,
        max_read_rate=options.max_read_rate,
        max_read_units=options.max_read_units,
        accept=options.accept,
        logical=options.logical,
        separator=options.separator,
        metadata=options.metadata,
        dry_run=options.dry_run,
        verify_share=options.verify,
    )
    for sentence in asked.contradictions(flag):
        raise CannotStart(f"{sentence}.")
    check_report_path(options.report)
    format_: Any = "jsonl" if options.format == "typed-json" else options.format
    return replace(asked.request(flag, {}), threads=options.threads, format=format_)


def _tell_it_is_finished(options: Options, job: LocalJob) -> int:
    """Nothing is left to be done in a directory; the report is that of the run."""
    manifest = job.journal.manifest() or {}
    figures = {name: manifest[name] for name in manifest if name not in OF_MANIFEST}
    write_report(options.report, {**figures, "output": options.output, "error": None})
    StatusLine(options.quiet).say(
        f"{options.output} holds a finished run of {manifest['table']}: "
        f"{counted(manifest['keys'], 'key')}. "
        f"Nothing is left to do."
    )
    return DONE


def approve(job: LocalJob, stop: Stop, answered: bool, ahead: Ahead) -> None:
    """Ask, if reading may cost more than ASK_ABOVE; who gives --max-cost has answered."""
    prices, capped = job.connection.prices, job.request.max_read_units
    limit = prices.units_for(ASK_ABOVE)
    if answered or (capped is not None and capped <= limit):
        return
    units = ahead(lambda units: units.high <= limit)
    if units.high <= limit:
        return

    def told() -> Facts:
        yield from place(job.reader.source.arn, job.connection.endpoint)
        most = "with no upper limit that is known"
        if math.isfinite(units.high):
            most = f"at most {units.high:,.0f}: ${prices.dollars(units.high):,.2f}"
        yield "reads", f"about {units.mean:,.0f} RRU, {most}"
        yield "cost", f"about ${prices.dollars(units.mean):,.2f} ({prices.on_demand})"

    act = f"read {job.reader.source.title} for more than ${ASK_ABOVE:g}"
    confirm(act, told, False, stop.event)


def _show_plan(
    options: Options, connection: Connection, table: Table, deployment: KeyIndexAccess, stop: Stop
) -> int:
    source = table.source(options.index)
    sentinels = None if options.index is not None else deployment.sentinels_of(table)
    if sentinels is not None:
        source = without_sentinels(source, sentinels)
    reader = PageReader(
        connection,
        source,
        Budget(options.max_read_rate),
        patience=options.give_up_after,
        stop=stop.event,
    )
    method, reason = choose_method(source.space, source.index, "auto")
    wishes = Wishes(options.segments, options.threads, options.max_read_rate)
    try:
        found = estimate(reader, method, reason, wishes, options.max_read_units or DEFAULT_UNITS)
    except Stopped:
        return stop.status
    trust = None if options.index is not None else deployment.decide_trust(table, "auto", False)
    if trust is not None and trust.source is not None:
        found = by_index(found, trust.source, trust.why, wishes)
    told = found.to_json()
    not_index = None
    if trust is not None:
        not_index = None if trust.source else trust.why or "the table has none"
        told["key_index"] = {"read": not_index is None, "why": not_index or trust.why}
    methods = [
        {"table": told["table"], "index": told["index"], "method": name, **cost}
        for name, cost in told["methods"].items()
    ]
    lines = partial(plan_lines, found, not_index, width_of(sys.stdout))
    put_out(options.format, told, lambda: "\n".join(lines()), methods)
    return DONE


@dataclass(slots=True)
class _Run:
    """A prepared job, from its beginning to the exit status.

    fold: how logical keys are recognised. folds_at_end: when all keys are read; otherwise as they
    are printed.
    """

    job: LocalJob
    options: Options
    stop: Stop
    fold: Mapping[str, Any] | None
    folds_at_end: bool
    began: float = field(default_factory=time.monotonic)
    is_finished: bool = False
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def is_checked(self) -> bool:
        return not self.options.verify or "verify" in self.figures

    def run(self) -> int:
        """Do the work, then say what it came to, whatever happened; returns the exit status."""
        options, usage = self.options, self.job.reader.usage
        status, message = DONE, None
        try:
            try:
                self._read()
            except StaleIndex as error:
                print(f"keyhop: {error} The keys are found without it.", file=sys.stderr)
                self.job = self.job.anew(str(error))
                self._read()
        except Stopped:
            pass
        except KeyhopError as error:
            is_begun = hasattr(self.job, "plan")
            if isinstance(error, CannotStart) and not (usage.requests and is_begun):
                raise
            message = str(error)
            status = BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
            hint = "" if isinstance(error, BrokenPromise) else self._resume_hint()
            print(f"keyhop: {message} {hint}".rstrip(), file=sys.stderr)
        if self.stop.event.is_set() and not (self.is_finished and self.is_checked):
            status, message = self.stop.status, "interrupted"
            print(f"keyhop: Interrupted. {self._resume_hint()}", file=sys.stderr)
        report = self._report(message)
        if status == DONE and report.get("verify", {}).get("missing"):
            status = KEYS_MISSING
        if not options.quiet and (status == DONE or usage.requests):
            text = "\n".join(summary_lines(report))
            print(folded(text, width_of(sys.stderr)), file=sys.stderr)
        write_report(options.report, report)
        return status

    def _read(self) -> None:
        self.job.begin()
        if isinstance(self.job.journal.store, Memory):
            self._print()
        else:
            self._keep()

    def _print(self) -> None:
        """Keys go to standard output alone, page by page."""
        # The keys of an index are held back until the index is known to have been up to date.
        with SpooledTemporaryFile(MOST_HELD_BYTES) as held:
            holds = self.job.plan.method == "index"
            output = self._printed(held if holds else None)
            try:
                work(self.job, self.options, output=output)
                manifest = self.job.finish()[1]
                self.is_finished = manifest["finished"]
            finally:
                self._count_folded(output)
            if "doubt" in manifest:
                self.figures["doubt"] = manifest["doubt"]
            if holds and self.is_finished:
                held.seek(0)
                shutil.copyfileobj(held, sys.stdout.buffer)
                sys.stdout.buffer.flush()

    def _keep(self) -> None:
        """Keys go to files; if these are not the user's, from there to standard output as well,
        slice by slice, as they are committed.
        """
        job, options = self.job, self.options
        prints, holds = not options.output, job.plan.method == "index"
        output = self._printed() if prints and not self.folds_at_end and not holds else None

        def show(commit: Commit) -> None:
            if output is not None:
                output.show(job.journal, job.plan, commit.parts)

        try:
            work(job, options, committed=show)
        finally:
            totals, manifest = job.finish()
            self.figures = {name: manifest[name] for name in manifest if name not in OF_MANIFEST}
            self.is_finished = manifest["finished"]
            self._count_folded(output)
        if self.is_finished and prints and self.folds_at_end:
            self._print_logical()
        elif self.is_finished and prints and holds:
            output = self._printed()
            output.show(job.journal, job.plan, totals.parts)
            self._count_folded(output)
        if self.is_finished and options.verify:
            before = job.reader.usage.copy()
            verdict = Verdict.of_none(job.plan, options.verify)
            with tempfile.TemporaryDirectory(prefix=PREFIX) as path:
                within = Journal(Directory(Path(path)))
                verify(job.journal, job.plan, within, job.reader, verdict, job.group.threads)
            if not verdict.is_whole:
                raise Stopped
            used = job.reader.usage - before
            checking = {**usage_json(used), **price(used.read_units, job.plan.prices)}
            self.figures["verify"] = {**verdict.to_json(), **checking}

    def _printed(self, out: IO[bytes] | None = None) -> Printed:
        job, fold = self.job, None if self.folds_at_end else self.fold
        space = job.plan.space
        folds = None if fold is None else fold_of(job.connection, space, fold, "")
        return Printed(Encoder(job.plan.format, space), folds, out)

    def _count_folded(self, output: Printed | None) -> None:
        if output is not None and self.fold is not None and not self.folds_at_end:
            counts = {"physical_keys": output.physical, "folded": output.folded}
            self.figures |= {"keys": output.printed, "logical": {**self.fold, **counts}}

    def _print_logical(self) -> None:
        """The logical keys of a run that is read, to standard output."""
        output = self._printed()
        self.is_finished = False
        for keys in listed(self.job.journal, self.job.plan):
            if self.stop.event.is_set():
                raise Stopped
            output.write(0, keys)
        self.is_finished = True

    def _report(self, error: str | None) -> dict[str, Any]:
        """The --report: what this process knows of the run, unless its figures are known."""
        job, fold, usage = self.job, self.fold, self.job.reader.usage
        method, reason = job.how
        is_begun = hasattr(job, "plan")
        path = self.options.output if is_begun else None
        return {
            "table": job.reader.source.name,
            "index": job.reader.source.index,
            "method": method,
            "reason": reason,
            "segments": job.plan.segments if is_begun else 0,
            "processes": job.processes if is_begun else 1,
            "workers": job.group.threads if is_begun else 0,
            "keys": job.group.keys if is_begun else 0,
            **usage_json(usage),
            **price(usage.read_units, job.connection.prices),
            "seconds": round(time.monotonic() - self.began, 3),
            "output": path and str(Path(path)),
            "software_version": __version__,
            **({} if fold is None else {"logical": fold}),
            **self.figures,
            "finished": self.is_finished,
            "error": error,
        }

    def _resume_hint(self) -> str:
        if self.is_finished:
            return "" if self.is_checked else "All keys were found, but they are not checked."
        if self.options.output:
            return f"Continue with --output {self.options.output} --resume."
        return "Without --output a run cannot be continued."
