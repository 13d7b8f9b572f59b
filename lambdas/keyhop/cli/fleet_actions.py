"""What `keyhop run`, `runs`, `show` and `fetch` do: executions started, followed, shown, copied."""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from heapq import nlargest
from pathlib import Path
from typing import Any, cast

from keyhop.checks import camel, read
from keyhop.cli.exit_status import DONE, INTERRUPTED
from keyhop.cli.fetch import fetch as copy_run
from keyhop.cli.fetch import keys_of
from keyhop.cli.fleet_view import (
    plan_lines,
    progress_json,
    rows_lines,
    run_json,
    run_lines,
    run_row,
)
from keyhop.cli.options import Options, flag
from keyhop.cli.output import Printed, is_text, printable, put_out
from keyhop.cli.progress import StatusLine
from keyhop.cli.session import Stop, stop_on_signals
from keyhop.cli.stack import (
    ENUMERATE_KEYS,
    FOR_EACH_KEY,
    Execution,
    Stack,
    WatchedRun,
    find_stack,
    new_name,
)
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.requester import Stopped
from keyhop.errors import KeyhopError, RunConflict
from keyhop.jobs.formats import Encoder, Format
from keyhop.jobs.journal import Journal
from keyhop.jobs.request import RUN_ID, table_name
from keyhop.keys.request import KeysInput
from keyhop.wording import counted

LOOKED_THROUGH = 200
"""Executions of each state machine among which those of one table are looked for."""


def run(options: Options) -> int:
    """One of the commands; returns its exit status."""
    endpoint = Endpoint(options.region, options.profile, None, options.role_arn)
    command = {"run": start, "runs": list_runs, "show": show, "fetch": fetch}[options.action]
    return command(options, lambda: find_stack(options.stack, endpoint))


def start(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop run`: start an execution of EnumerateKeys."""
    given = _input(options)
    stack = find()
    executions = stack.executions(ENUMERATE_KEYS)
    arn = executions.start(given, options.name or new_name(options.table))
    if not (options.follow or options.dry_run):
        stack.put_out_start(options, arn, options.resume or "")
        return DONE
    if not options.dry_run and is_text(options.format):
        print(arn.rpartition(":")[2], flush=True)
    ended = stack.follow(executions, arn, options.quiet)
    if ended is None:
        return INTERRUPTED
    if options.dry_run and ended.has_succeeded:
        put_out(options.format, ended.output, lambda: "\n".join(plan_lines(ended.output)))
        return DONE
    run = _run_json(stack, ended)
    if not is_text(options.format):
        put_out(options.format, run, str)
    elif not options.quiet or not ended.has_succeeded:
        print(*run_lines(run), sep="\n", file=sys.stderr)
    return ended.exit_status


def list_runs(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop runs`."""
    stack = find()
    most = options.limit if options.table is None else max(LOOKED_THROUGH, options.limit)
    latest = (one for executions in stack.all_executions() for one in executions.latest(most))
    wanted = None if options.table is None else table_name(options.table)
    found = nlargest(
        options.limit,
        (one for one in latest if wanted in (None, table_name(one.table))),
        key=lambda one: one.started,
    )
    rows = [run_row(one) for one in found]
    put_out(options.format, rows, lambda: "\n".join(rows_lines(rows, datetime.now(UTC))))
    return DONE


def show(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop show`."""
    stack = find()
    executions, execution = stack.find(options.run)
    if options.follow and not execution.is_over:
        ended = stack.follow(executions, execution.arn, options.quiet)
        if ended is None:
            return INTERRUPTED
        execution = ended
    run = _run_json(stack, execution)
    put_out(options.format, run, lambda: "\n".join(run_lines(run)))
    return execution.exit_status if options.follow else DONE


def fetch(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop fetch`."""
    stack = find()
    remote = _finished(stack, options.run)
    with stop_on_signals("Start the same command again: it goes on.") as stop:
        if options.directory == "-":
            return _print_keys(remote, options.format, stop)
        path = Path(options.directory)
        with StatusLine(options.quiet) as status:

            def look(done: int, total: int) -> None:
                text = f"fetching, {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
                status.now("fetching", text, done / max(1, total))

            manifest = copy_run(remote, path, stop.event, look)
        report = {
            "run": manifest["run"],
            "directory": str(path),
            "keys": manifest["keys"],
            "parts": len(manifest["parts"]),
            "bytes": sum(part["size"] for part in manifest["parts"]),
        }
        keys, parts = counted(report["keys"], "key"), counted(report["parts"], "part")
        table = printable(manifest["table"])
        put_out(options.format, report, lambda: f"{keys} of {table} in {path}, {parts}")
        return DONE
    return stop.status


def _finished(stack: Stack, name: str) -> Journal:
    """The files of a run by its name, or by that of an execution that worked on it."""
    if RUN_ID.fullmatch(name) and stack.runs.journal(name).is_finished():
        return stack.runs.journal(name)
    journal = stack.runs.journal(stack.find(name)[1].run)
    if not journal.is_finished():
        raise RunConflict(f"The run {name!r} is not finished: see keyhop show {name}.")
    return journal


def _print_keys(remote: Journal, format_: str | None, stop: Stop) -> int:
    plan = remote.plan()
    assert plan is not None
    format_ = "jsonl" if format_ == "typed-json" else format_ or "text"
    printed = Printed(Encoder(cast("Format", format_), plan.space))
    for batch in keys_of(remote, plan):
        if stop.event.is_set():
            raise Stopped
        printed.write(0, batch)
    return DONE


def _run_json(stack: Stack, execution: Execution) -> dict[str, Any]:
    progress = None
    if not execution.has_succeeded and execution.kind in (ENUMERATE_KEYS, FOR_EACH_KEY):
        run = WatchedRun(stack.runs, execution.run)
        with suppress(KeyhopError):
            totals = run.look()
            if totals is not None and run.plan is not None:
                progress = progress_json(run.plan, totals)
    files = stack.runs.store(execution.run).url("")
    return run_json(execution, files, progress, stack.unusual_name)


def _input(options: Options) -> dict[str, Any]:
    """Return the input of EnumerateKeys for the flags; raise InvalidInput if it is wrong."""
    said = vars(options) | {"verify_share": options.verify, "accept": [*options.accept]}
    given = {
        camel(field.name): said[field.name]
        for field in fields(KeysInput)
        if said.get(field.name, field.default) not in (field.default, [])
    }
    read(KeysInput, given, KeysInput.LIKE).request(flag, given)
    return given
