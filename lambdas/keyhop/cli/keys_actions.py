"""What `keyhop keys` does: print keys or an estimate, and what the list has cost."""

import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.options import Options, flag, with_flags
from keyhop.cli.output import (
    check_summary_path,
    columns,
    folded,
    put_out,
    width_of,
    write_summary,
)
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.cli.session import Session, stop_on_signals
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError, Stopped
from keyhop.keys.request import KeysInput
from keyhop.public.key_list import Keys, estimate_keys, list_keys
from keyhop.wording import aligned, counted, duration

if TYPE_CHECKING:
    from keyhop.jobs.estimate import Estimate


def run(options: Options) -> int:
    """Run the command; return its exit status, or raise a KeyhopError."""
    if options.remote:
        from keyhop.cli.runs_actions import list_keys  # It loads boto3's transfers.

        return list_keys(options)
    _check(options)
    # Until here there is nothing to end cleanly: signals end it at once.
    command = KeysCommand(options)
    with stop_on_signals(stop=command.stop):
        return command.show_plan() if options.dry_run else command.list_keys()
    return command.stop.status


def _check(options: Options) -> None:
    """Raise CannotStart for flags that are wrong or exclude each other, by their names."""
    for name in ("output", "summary", "separator", "metadata"):
        if getattr(options, name) == "":
            raise CannotStart(f"{flag(name)} is empty: give it a value, or leave the flag out.")
    if sys.stdout is None and not options.output:
        raise CannotStart("Standard output is closed: open it, or write to files with --output.")
    some = next((name for name in ("limit", "count") if getattr(options, name)), None)
    for name in ("count", "output", "verify", "dry_run"):
        if some is not None and name != some and getattr(options, name):
            raise CannotStart(f"--{some} does not work with {flag(name)}: leave one of them out.")
    if options.dry_run and (options.output or options.verify or options.summary):
        raise CannotStart("--dry-run only estimates: leave --output, --summary and --verify out.")
    flags = ("table", "index", "method", "accept", "logical", "separator", "metadata", "dry_run")
    values = {name: getattr(options, name) for name in flags}
    for sentence in KeysInput(**values, verify_share=options.verify).contradictions(flag):
        raise CannotStart(f"{sentence}.")
    check_summary_path(options.summary)


class KeysCommand(Session):
    """The keys of a table, listed to standard output or to files, or an estimate."""

    def __init__(self, options: Options) -> None:
        super().__init__(options, threads=options.threads or 0)

    def _arguments(self, *names: str) -> dict[str, Any]:
        """Return the flags with these names, and those of each call, as arguments."""
        options = self.options
        names = ("stack", "index", "segments", "threads", "max_read_rate", "max_read_units", *names)
        return {
            **{name: getattr(options, name) for name in names},
            "patience": options.give_up_after,
            "stop": self.stop.event,
        }

    def show_plan(self) -> int:
        """Print an estimate, by a sample."""
        try:
            plan = estimate_keys(self.opened, **self._arguments())
        except Stopped:
            return self.stop.status
        report = plan.to_json()
        methods = [
            {"table": report["table"], "index": report["index"], "method": name, **cost}
            for name, cost in report["methods"].items()
        ]
        lines = partial(plan_lines, plan.estimate, plan.not_index, width_of(sys.stdout))
        put_out(self.options.format, report, lambda: "\n".join(lines()), methods)
        return DONE

    def list_keys(self) -> int:
        """List the keys, and return the exit status."""
        options = self.options
        names = ("method", "accept", "logical", "separator", "metadata", "max_cost")
        with StatusLine(options.quiet) as status:
            job_progress = JobProgress(status)
            with list_keys(
                self.opened,
                **self._arguments(*names, "output", "resume", "verify"),
                limit=options.limit,
                processes=options.processes or (1 if options.limit else None),
                format=options.format,
                progress=job_progress.update,
                approve=lambda predicted_units, maximum: self.ask_about_cost(
                    keys.title, maximum, predicted_units
                ),
                say=lambda text: print(f"keyhop: {text}", file=sys.stderr),
            ) as keys:
                return self._tell_it_is_finished(keys) if keys.was_finished else self._run(keys)

    def _tell_it_is_finished(self, keys: Keys) -> int:
        """Check and report the finished run of a directory."""
        keys.run()
        report, directory = keys.summary.to_json(), self.options.output
        write_summary(self.options.summary, {**report, "error": None})
        self.say(
            f"{directory} holds a finished run of {report['table']}: "
            f"{counted(report['keys'], 'key')}. "
            f"There is nothing more to do."
        )
        return DONE

    def _run(self, keys: Keys) -> int:
        """Do the work, then report it, whatever happened; return the exit status."""
        options, status, message = self.options, DONE, None
        try:
            if options.output or options.count:
                keys.run()
            else:
                keys.write_to(sys.stdout.buffer)
        except KeyhopError as error:
            report = keys.summary.to_json()
            has_read = keys.began_anew or (report["requests"] and report["segments"])
            if isinstance(error, CannotStart) and not has_read:
                raise
            message = with_flags(str(error))
            status = BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
            hint = "" if isinstance(error, BrokenPromise) else self._resume_hint(report)
            print(f"keyhop: {message} {hint}".rstrip(), file=sys.stderr)
        report = keys.summary.to_json()
        is_checked = not options.verify or "verify" in report
        if self.stop.event.is_set() and not (report["finished"] and is_checked):
            status, message = self.stop.status, "interrupted"
            print(f"keyhop: Interrupted. {self._resume_hint(report)}", file=sys.stderr)
        report["error"] = message
        if status == DONE and report.get("verify", {}).get("missing"):
            status = KEYS_MISSING
        if options.count and report["finished"]:
            put_out(options.format, {"keys": report["keys"]}, lambda: f"{report['keys']}")
        if not options.quiet and (status == DONE or report["requests"]):
            text = "\n".join(summary_lines(report))
            print(folded(text, width_of(sys.stderr)), file=sys.stderr)
        write_summary(options.summary, report)
        return status

    def _resume_hint(self, report: Mapping[str, Any]) -> str:
        if report["finished"]:
            is_checked = not self.options.verify or "verify" in report
            return "" if is_checked else "All keys were found, but they are not checked."
        if self.options.output:
            return f"Continue with --resume {shlex.quote(self.options.output)}."
        return "Without --output a run cannot be continued."


def plan_lines(estimate: "Estimate", not_index: str | None, width: int) -> Iterator[str]:
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


def _rows(estimate: "Estimate") -> Iterator[tuple[str, ...]]:
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


def _headline(estimate: "Estimate") -> str:
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
    """Return the --summary of `keyhop keys` for a person."""
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
        return f"every key that ends in {suffix} counts as a shard"
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
