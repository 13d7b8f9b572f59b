"""What `keyhop keys` does: list keys to standard output or to files, verify them, estimate."""

import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from keyhop import __version__
from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.options import Options, flag
from keyhop.cli.output import (
    Printed,
    aligned,
    check_report_path,
    columns,
    folded,
    put_out,
    width_of,
    write_report,
)
from keyhop.cli.session import (
    PREFIX,
    Session,
    stop_on_signals,
)
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import look_up
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError, StaleIndex
from keyhop.jobs.estimate import Estimate, by_index, estimate
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
from keyhop.wording import counted, duration

MOST_HELD_BYTES = 8 << 20
"""In memory; more is held on disk."""

OF_MANIFEST = ("run", "format", "segments", "started", "ended", "parts")
"""The fields of a manifest that a report omits, or whose values are those of this process."""


def run(options: Options) -> int:
    """Run the command; return its exit status, or raise a KeyhopError."""
    request = _request(options)
    # Until here there is nothing to end cleanly: signals end it at once.
    command = KeysCommand(options, request)
    with stop_on_signals(stop=command.stop):
        return command.show_plan() if options.dry_run else command.list_keys()
    return command.stop.status


def _request(options: Options) -> Request:
    """Return the flags as a job; raise CannotStart for flags that exclude each other."""
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
    values = KeysInput(
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
    for sentence in values.contradictions(flag):
        raise CannotStart(f"{sentence}.")
    check_report_path(options.report)
    format_: Any = "jsonl" if options.format == "typed-json" else options.format
    return replace(values.request(flag, {}), threads=options.threads, format=format_)


class KeysCommand(Session):
    """The keys of a table, listed to standard output or to files, or an estimate."""

    job: LocalJob

    def __init__(self, options: Options, request: Request) -> None:
        look = partial(look_up, patience=options.give_up_after)
        super().__init__(options, table_of=look, threads=options.threads or 0)
        if options.max_cost is not None:
            maximum = self.connection.prices.units_for(options.max_cost)
            request = replace(
                request, max_read_units=min(request.max_read_units or maximum, maximum)
            )
        self._request = request
        self._fold: Mapping[str, Any] | None = request.options.get("fold")
        # Without files, logical keys are folded as they are printed.
        self._keeps = bool(options.output or options.verify or options.metadata)
        self._folds_at_end = self._keeps and self._fold is not None
        self._is_finished = False
        self._figures: dict[str, Any] = {}

    def show_plan(self) -> int:
        """Print an estimate, by a sample."""
        options, indexes = self.options, self.key_index
        source = self.table.source(options.index)
        sentinels = None if options.index is not None else indexes.sentinels_of(self.table)
        if sentinels is not None:
            source = without_sentinels(source, sentinels)
        reader = PageReader(
            self.connection,
            source,
            Budget(options.max_read_rate),
            patience=options.give_up_after,
            stop=self.stop.event,
        )
        method, reason = choose_method(source.space, source.index, "auto")
        wishes = Wishes(options.segments, options.threads, options.max_read_rate)
        units = options.max_read_units or DEFAULT_UNITS
        try:
            plan = estimate(reader, method, reason, wishes, units)
        except Stopped:
            return self.stop.status
        trust = (
            None if options.index is not None else indexes.decide_trust(self.table, "auto", False)
        )
        if trust is not None and trust.source is not None:
            plan = by_index(plan, trust.source, trust.why, wishes)
        report = plan.to_json()
        not_index = None
        if trust is not None:
            not_index = None if trust.source else trust.why or "the table has none"
            report["key_index"] = {"read": not_index is None, "why": not_index or trust.why}
        methods = [
            {"table": report["table"], "index": report["index"], "method": name, **cost}
            for name, cost in report["methods"].items()
        ]
        lines = partial(plan_lines, plan, not_index, width_of(sys.stdout))
        put_out(options.format, report, lambda: "\n".join(lines()), methods)
        return DONE

    def list_keys(self) -> int:
        """List the keys, and return the exit status."""
        options, indexes = self.options, self.key_index
        with ExitStack() as cleaning:
            path = options.output
            if path is None and self._keeps:
                path = cleaning.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX))
            tasks = tasks_of(
                indexes.decide_trust, folds=self._keeps, sentinels_of=indexes.sentinels_of
            )
            if options.resume:
                check_is_begun(Path(options.output))
            self.job = job = cleaning.enter_context(
                self.job_in(Path(path) if path else None, self._request, tasks, options.processes)
            )
            job.prepare(self.table, may_be_finished=options.resume and not options.verify)
            if job.journal.is_finished():
                return self._tell_it_is_finished()
            job.approve = self.approve
            return self._run()

    def _tell_it_is_finished(self) -> int:
        """Report the finished run of a directory."""
        manifest = self.job.journal.manifest() or {}
        figures = {name: manifest[name] for name in manifest if name not in OF_MANIFEST}
        directory = self.options.output
        write_report(self.options.report, {**figures, "output": directory, "error": None})
        self.say(
            f"{directory} holds a finished run of {manifest['table']}: "
            f"{counted(manifest['keys'], 'key')}. "
            f"Nothing is left to do."
        )
        return DONE

    @property
    def _is_checked(self) -> bool:
        return not self.options.verify or "verify" in self._figures

    def _run(self) -> int:
        """Do the work, then report it, whatever happened; return the exit status."""
        options, usage, began = self.options, self.job.reader.usage, time.monotonic()
        status, message, begins_anew = DONE, None, False
        try:
            try:
                self._read()
            except StaleIndex as error:
                begins_anew = True
                print(f"keyhop: {error} The keys are found without it.", file=sys.stderr)
                self.job = self.job.anew(str(error))
                self._read()
        except Stopped:
            pass
        except KeyhopError as error:
            has_read = begins_anew or (usage.requests and hasattr(self.job, "plan"))
            if isinstance(error, CannotStart) and not has_read:
                raise
            message = str(error)
            status = BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
            hint = "" if isinstance(error, BrokenPromise) else self._resume_hint()
            print(f"keyhop: {message} {hint}".rstrip(), file=sys.stderr)
        if self.stop.event.is_set() and not (self._is_finished and self._is_checked):
            status, message = self.stop.status, "interrupted"
            print(f"keyhop: Interrupted. {self._resume_hint()}", file=sys.stderr)
        report = self._report(message, time.monotonic() - began)
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
        """Print the keys page by page, and keep no files."""
        # The keys of an index are held back until the index is known to have been up to date.
        with SpooledTemporaryFile(MOST_HELD_BYTES) as buffer:
            holds = self.job.plan.method == "index"
            output = self._printed(buffer if holds else None)
            try:
                self.work(self.job, output=output)
                manifest = self.job.finish()[1]
                self._is_finished = manifest["finished"]
            finally:
                self._count_folded(output)
            if "doubt" in manifest:
                self._figures["doubt"] = manifest["doubt"]
            if holds and self._is_finished:
                buffer.seek(0)
                shutil.copyfileobj(buffer, sys.stdout.buffer)
                sys.stdout.buffer.flush()

    def _keep(self) -> None:
        """Write the keys to files, and print them from temporary files as they are committed."""
        job, options = self.job, self.options
        prints, holds = not options.output, job.plan.method == "index"
        output = self._printed() if prints and not self._folds_at_end and not holds else None

        def show(commit: Commit) -> None:
            if output is not None:
                output.show(job.journal, job.plan, commit.parts)

        try:
            self.work(job, committed=show)
        finally:
            totals, manifest = job.finish()
            self._figures = {name: manifest[name] for name in manifest if name not in OF_MANIFEST}
            self._is_finished = manifest["finished"]
            self._count_folded(output)
        if self._is_finished and prints and self._folds_at_end:
            self._print_logical()
        elif self._is_finished and prints and holds:
            output = self._printed()
            output.show(job.journal, job.plan, totals.parts)
            self._count_folded(output)
        if self._is_finished and options.verify:
            before = job.reader.usage.copy()
            verdict = Verdict.of_none(job.plan, options.verify)
            with tempfile.TemporaryDirectory(prefix=PREFIX) as path:
                within = Journal(Directory(Path(path)))
                verify(job.journal, job.plan, within, job.reader, verdict, job.group.threads)
            if not verdict.is_whole:
                raise Stopped
            used = job.reader.usage - before
            checking = {**usage_json(used), **price(used.read_units, job.plan.prices)}
            self._figures["verify"] = {**verdict.to_json(), **checking}

    def _printed(self, out: IO[bytes] | None = None) -> Printed:
        job, fold = self.job, None if self._folds_at_end else self._fold
        space = job.plan.space
        folds = None if fold is None else fold_of(job.connection, space, fold, "")
        return Printed(Encoder(job.plan.format, space), folds, out)

    def _count_folded(self, output: Printed | None) -> None:
        if output is not None and self._fold is not None and not self._folds_at_end:
            counts = {"physical_keys": output.physical, "folded": output.folded}
            self._figures |= {"keys": output.printed, "logical": {**self._fold, **counts}}

    def _print_logical(self) -> None:
        """Print the logical keys of a complete run."""
        output = self._printed()
        self._is_finished = False
        for keys in listed(self.job.journal, self.job.plan):
            if self.stop.event.is_set():
                raise Stopped
            output.write(0, keys)
        self._is_finished = True

    def _report(self, error: str | None, seconds: float) -> dict[str, Any]:
        """Return the --report: the figures of the run, or else those of this process."""
        job, fold, usage = self.job, self._fold, self.job.reader.usage
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
            "seconds": round(seconds, 3),
            "output": path and str(Path(path)),
            "software_version": __version__,
            **({} if fold is None else {"logical": fold}),
            **self._figures,
            "finished": self._is_finished,
            "error": error,
        }

    def _resume_hint(self) -> str:
        if self._is_finished:
            return "" if self._is_checked else "All keys were found, but they are not checked."
        if self.options.output:
            return f"Continue with --output {self.options.output} --resume."
        return "Without --output a run cannot be continued."


def plan_lines(estimate: Estimate, not_index: str | None, width: int) -> Iterator[str]:
    """Return the estimate for a terminal with so many columns.

    `not_index` says why the key index is not read; None if it is, or if an index is listed.
    """
    yield _headline(estimate)
    yield ""
    rows = [*_rows(estimate)]
    if not_index is not None:
        rows.insert(-1 if "published" in estimate.costs else len(rows), ("index", *["-"] * 5))
    titles = ("method", "RRU", "95% interval", "dollars", "requests", "time")
    table = [*columns([titles, *rows], leftmost=1)]
    if max(map(len, table)) > width:
        table = [*columns([*map(_brief, [titles, *rows])], leftmost=1)]
    yield from table
    yield ""
    layout = estimate.layout
    yield f"{estimate.method}: {estimate.reason}; {counted(layout.segments, 'segment')}."
    if not_index is not None:
        yield f"index: not read, {not_index}."
    if "published" in estimate.costs:
        yield "Limit=1: one item a request, one request at a time; for comparison."
    yield (
        f"This plan read {estimate.spent_units:,.1f} RRU in "
        f"{counted(estimate.spent_requests, 'request')}. "
        f"Prices: {estimate.prices.on_demand}."
    )


def _brief(row: tuple[str, ...]) -> tuple[str, ...]:
    """Omit the interval."""
    return (*row[:2], *row[3:])


def _rows(estimate: Estimate) -> Iterator[tuple[str, ...]]:
    for name, cost in estimate.costs.items():
        units, more = cost.units, ">= " if cost.at_least else ""
        is_exact = units.low == units.high
        yield (
            "Limit=1" if name == "published" else name + " <- auto" * (name == estimate.method),
            more + (f"{units.mean:,.1f}" if is_exact else f"{units.mean:,.0f}"),
            "" if is_exact else f"{units.low:,.0f} to {units.high:,.0f}",
            f"{more}${estimate.prices.dollars(units.mean):,.6f}",
            f"{more}{cost.requests:,.0f}",
            more + duration(cost.seconds),
        )


def _headline(estimate: Estimate) -> str:
    keys = estimate.findings.keys
    name = f"{estimate.table}/{estimate.index}" if estimate.index else estimate.table
    if estimate.findings.exact:
        return f"{name} has {counted(keys.mean, 'distinct partition key')} (read whole)."
    if not estimate.sampled:
        maximum = "" if math.isinf(keys.high) else f", at most {keys.high:,.0f} by its item count"
        return (
            f"{name} has at least {counted(keys.low, 'distinct partition key')}{maximum}: the "
            f"allowance was too small for a sample; give more with --max-read-units."
        )
    return (
        f"{name} has about {counted(keys.mean, 'distinct partition key')} "
        f"(95% interval {keys.low:,.0f} to {keys.high:,.0f})."
    )


def summary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Return the --report of `keyhop keys` for a person."""
    name = f"{report['table']}/{report['index']}" if report["index"] else report["table"]
    so_far = "" if report["finished"] else " so far"
    seconds = report["seconds"]
    lasted = f"{seconds:.1f} s" if seconds < 90 else duration(seconds)
    fold = report.get("logical", {})
    # Until a run that lists logical keys has folded some, its keys are physical ones.
    is_folded = "folded" in fold
    kind = "logical " if is_folded else "physical " if fold else ""
    yield f"{counted(report['keys'], f'{kind}key')} of {name}{so_far}, in {lasted}"
    yield from aligned(_summary_facts(report, is_folded), "  ", 9)


def _summary_facts(report: Mapping[str, Any], is_folded: bool) -> Iterator[tuple[str, str]]:
    yield "method", f"{report['method']}: {report['reason']}"
    yield "read", _read_text(report)
    processes = report.get("processes", 1)
    spread = f"{counted(report['segments'], 'segment')}, {report['workers']} at once"
    yield "spread", spread + f", in {processes} processes" * (processes > 1)
    if is_folded:
        fold = report["logical"]
        folded = f"{fold['folded']:,} of {fold['physical_keys']:,}"
        yield "folded", f"{folded} physical keys: {_fold_text(fold)}"
    if left_out := report.get("left_out"):
        collections = counted(left_out, "collection")
        yield "left out", f"{collections} with no item but a sentinel of the key index"
    if report["throttles"]:
        reasons = sorted(report["throttles"].items(), key=lambda entry: -entry[1])
        yield "throttled", ", ".join(f"{count:,} x {why}" for why, count in reasons)
    if report["no_progress_hops"]:
        yield "hops without progress:", f"{report['no_progress_hops']:,}"
    if report["output"]:
        yield "keys in", report["output"]
    if "verify" in report:
        yield from _verdict_facts(report["verify"])


def _fold_text(fold: Mapping[str, Any]) -> str:
    suffix = f"{fold['separator']}1 to {fold['separator']}1000"
    if fold["metadata"] is None:
        return f"every key that ends in {suffix} is taken for a shard"
    return f"those that end in {suffix} and that {fold['metadata']} knows as shards"


def _read_text(usage: Mapping[str, Any]) -> str:
    return (
        f"{usage['read_units']:,.1f} RRU in {counted(usage['requests'], 'request')}: "
        f"${usage['dollars']:,.6f} (on demand, {usage['price'].partition(', ')[2]})"
    )


def _verdict_facts(verdict: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    keys = f"{counted(verdict['segments'], 'segment')}, {counted(verdict['keys'], 'key')}"
    share = f"{verdict['share']:.1%} of the hash space ({keys})"
    yield "checked", f"{share}, for {_read_text(verdict)}"
    yield "", f"missing {verdict['missing']:,}, surplus {verdict['surplus']:,}"
    if appeared := verdict["appeared"]:
        yield "", f"{appeared:,} more appeared since the run: a second skip-scan finds them"
    for kind, examples in verdict["examples"].items():
        yield "", f"{kind}: {'; '.join(map(json.dumps, examples))}"
