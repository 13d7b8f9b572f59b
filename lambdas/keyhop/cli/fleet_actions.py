"""What `keyhop run` and `keyhop runs` do: start, follow, show, copy and stop executions."""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from keyhop.cli.options import Options, flag
from keyhop.cli.output import aligned, columns, cost_facts, is_text, printable, put_out
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
from keyhop.jobs.journal import Journal, RunPlan, Totals
from keyhop.jobs.request import RUN_ID, table_name
from keyhop.keys.request import KeysInput
from keyhop.public.sinks import ByteSink
from keyhop.wording import counted, duration

LOOKED_THROUGH = 200
"""Executions of each state machine among which those of one table are looked for."""

STATES = {
    "RUNNING": "running",
    "PENDING_REDRIVE": "to be gone on with",
    "SUCCEEDED": "finished",
    "FAILED": "failed",
    "TIMED_OUT": "timed out",
    "ABORTED": "stopped",
}
FLAGS = {"dryRun": "--dry-run", "verifyShare": "--verify", "fileFormat": "--file-format"}
"""The flags whose names differ from those of the fields of an input."""

CONSOLES = {"aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}
AGAIN = re.compile(r"\bstart\b[^{]* with (?=\{)")
"""The text before the input to start again with, in the cause of a failure."""


def run(options: Options) -> int:
    """Run one of the commands, and return its exit status."""
    endpoint = Endpoint(options.region, options.profile, None, options.role_arn)
    actions = {"run": start, "list_runs": list_runs, "show": show, "fetch": fetch, "stop": stop}
    return actions[options.action](options, lambda: find_stack(options.stack, endpoint))


def start(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop run`: start an execution of EnumerateKeys."""
    values = _input(options)
    stack = find()
    executions = stack.executions(ENUMERATE_KEYS)
    arn = executions.start(values, options.name or new_name(options.table))
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
    """`keyhop runs list`: list the latest executions."""
    stack = find()
    maximum = options.limit if options.table is None else max(LOOKED_THROUGH, options.limit)
    latest = (
        execution
        for executions in stack.all_executions()
        for execution in executions.latest(maximum)
    )
    table = None if options.table is None else table_name(options.table)
    chosen = nlargest(
        options.limit,
        (execution for execution in latest if table in (None, table_name(execution.table))),
        key=lambda execution: execution.started,
    )
    rows = [run_row(execution) for execution in chosen]
    put_out(options.format, rows, lambda: "\n".join(rows_lines(rows, datetime.now(UTC))))
    return DONE


def show(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop runs show`: show an execution."""
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
    """`keyhop runs fetch`: copy or print the keys of a run."""
    stack = find()
    remote = _finished(stack, options.run)
    with stop_on_signals("Start the same command again: it goes on.") as stop:
        if options.directory == "-":
            return _print_keys(remote, options.format, stop)
        path = Path(options.directory)
        with StatusLine(options.quiet) as status:

            def look(copied: int, total: int) -> None:
                text = f"fetching, {copied / 1e6:,.1f} of {total / 1e6:,.1f} MB"
                status.now("fetching", text, copied / max(1, total))

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


def stop(options: Options, find: Callable[[], Stack]) -> int:
    """`keyhop runs stop`: stop an execution, and show it with the command that continues it."""
    stack = find()
    executions, execution = stack.find(options.run)
    stopped = executions.stop(execution)
    run = _run_json(stack, stopped)
    put_out(options.format, run, lambda: "\n".join(run_lines(run)))
    return DONE


def _finished(stack: Stack, name: str) -> Journal:
    """Return the files of a run by its name, or by that of an execution that worked on it."""
    if RUN_ID.fullmatch(name) and stack.runs.journal(name).is_finished():
        return stack.runs.journal(name)
    journal = stack.runs.journal(stack.find(name)[1].run)
    if not journal.is_finished():
        raise RunConflict(f"The run {name!r} is not finished: see keyhop runs show {name}.")
    return journal


def _print_keys(remote: Journal, format_: str | None, stop: Stop) -> int:
    plan = remote.plan()
    assert plan is not None
    format_ = "jsonl" if format_ == "typed-json" else format_ or "text"
    printed = ByteSink(sys.stdout.buffer, Encoder(cast("Format", format_), plan.space))
    printed.begin()
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
    flags = vars(options) | {"verify_share": options.verify, "accept": [*options.accept]}
    values = {
        camel(field.name): flags[field.name]
        for field in fields(KeysInput)
        if flags.get(field.name, field.default) not in (field.default, [])
    }
    read(KeysInput, values, KeysInput.LIKE).request(flag, values)
    return values


def console_url(arn: str) -> str:
    """Return the page of an execution in the AWS console."""
    _, partition, _, region, *_ = arn.split(":")
    host = CONSOLES.get(partition, f"{region}.console.aws.amazon.com")
    return f"https://{host}/states/home?region={region}#/v2/executions/details/{arn}"


def command_of(values: Mapping[str, Any], stack: str = "") -> str:
    """Return the `keyhop run` for an execution's input; `stack` is "" for the default stack."""
    words = ["keyhop", "run", str(values.get("table", ""))]
    for name, value in values.items():
        if name in ("table", "scheduled") or value in (None, False):
            continue
        flag = FLAGS.get(name) or "--" + "".join(
            f"-{c.lower()}" if c.isupper() else c for c in name
        )
        if value is True:
            words.append(flag)
            continue
        for item in value if isinstance(value, list) else [value]:
            words += [flag, f"{item:.15g}" if isinstance(item, (int, float)) else str(item)]
    return shlex.join([*words, *(("--stack", stack) if stack else ())])


def advised(cause: str) -> Mapping[str, Any] | None:
    """Return the input to continue with from a failed run's cause; None if there is none."""
    match = AGAIN.search(cause)
    try:
        values = json.JSONDecoder().raw_decode(cause, match.end())[0] if match else None
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def progress_json(plan: RunPlan, totals: Totals) -> dict[str, Any]:
    """Return the progress of a run."""
    usage = totals.usage
    return {
        "segments": plan.segments,
        "ended": totals.ended,
        "share": round(totals.ended / plan.segments, 4),
        "keys": totals.keys,
        "requests": usage.requests,
        "read_units": round(usage.read_units, 3),
        "throttles": dict(sorted(usage.throttles.items())),
        "dollars": round(plan.prices.dollars(usage.read_units), 9),
        "prices": plan.prices.on_demand,
    }


def run_json(
    execution: Execution, files: str, progress: Mapping[str, Any] | None, stack: str = ""
) -> dict[str, Any]:
    """Return a run; `files` is the place of its files, `progress` that of an unfinished run."""
    return {
        "run": execution.run,
        "execution": execution.arn,
        "machine": execution.kind,
        "status": execution.status,
        "table": execution.table,
        "started": _moment(execution.started),
        "ended": _moment(execution.ended),
        "seconds": round(execution.seconds, 1),
        "input": execution.given,
        "progress": progress and {**progress, **_pace(execution, progress)},
        "result": execution.output,
        "error": execution.error or None,
        "cause": execution.cause or None,
        "go_on": _how_to_go_on(execution, progress, stack),
        "files": files,
        "console": console_url(execution.arn),
    }


def _pace(execution: Execution, progress: Mapping[str, Any]) -> dict[str, float]:
    """Return the rate and the remaining seconds, while the run of this very execution works."""
    if execution.is_over or execution.run != execution.name or not progress["ended"]:
        return {}
    remaining = progress["segments"] - progress["ended"]
    return {
        "read_units_per_second": round(progress["read_units"] / max(1.0, execution.seconds), 3),
        "seconds_left": round(execution.seconds * remaining / progress["ended"], 1),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")


def _how_to_go_on(execution: Execution, progress: Any, stack: str) -> list[str]:
    """Return commands, of which one suffices. Only EnumerateKeys has a command of Keyhop's own."""
    if not execution.is_over or execution.has_succeeded or not execution.table:
        return []
    values = advised(execution.cause)
    if values is None and not execution.cause and progress is not None:  # it was stopped
        values = {"table": execution.table, "resume": execution.run}
    commands = []
    if values and execution.machine.endswith(f"-{ENUMERATE_KEYS}"):
        commands.append(command_of(values, stack))
    elif values:
        start = "aws stepfunctions start-execution --state-machine-arn"
        machine = execution.arn.rpartition(":")[0].replace(":execution:", ":stateMachine:")
        commands.append(f"{start} {machine} --input {shlex.quote(json.dumps(values))}")
    if execution.redrivable and values:
        redrive = "aws stepfunctions redrive-execution --execution-arn"
        commands.append(f"{redrive} {execution.arn}")
    return commands


def run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Return a run, as run_json has it, for people."""
    state = STATES.get(run["status"], run["status"])
    name = run["execution"].rpartition(":")[2]
    how_long = f"{'after' if run['ended'] else 'for'} {duration(run['seconds'])}"
    yield f"{printable(name)}: {run['machine']} of {printable(run['table'])}, {state} {how_long}"
    if run["run"] != name:
        yield from _lines(("run", printable(run["run"])))
    result, progress = run["result"], run["progress"]
    if isinstance(result, Mapping) and "keys" in result and "manifest" in result:
        yield from _lines(*_result_facts(result))
    elif result is not None:
        yield json.dumps(result, indent=2)
    elif progress is not None:
        yield from _lines(*_progress_facts(progress))
    if run["cause"] or run["error"]:
        yield f"  {printable(run['error'] or 'error')}: {printable(run['cause'] or '')}"
    yield from _lines(
        *zip(("go on by", "or"), map(printable, run["go_on"]), strict=False),
        ("files", run["files"]),
        ("console", run["console"]),
    )


def _lines(*facts: tuple[str, str]) -> Iterator[str]:
    return aligned(facts, "  ", 9)


def _progress_facts(progress: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    segments = counted(progress["segments"], "segment")
    ended = f"{progress['share']:.0%}: {progress['ended']:,} of {segments}"
    yield "done", f"{ended}, {counted(progress['keys'], 'key')}"
    requests = counted(progress["requests"], "request")
    cost = f"${progress['dollars']:.6f} ({progress['prices']})"
    yield "read", f"{progress['read_units']:,.1f} RRU in {requests}: {cost}"
    if "seconds_left" in progress:
        remaining = duration(progress["seconds_left"])
        yield "rate", f"{progress['read_units_per_second']:,.1f} RRU/s, about {remaining} left"


def _result_facts(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the output of EnumerateKeys, for people."""
    segments = result["segments"]
    yield "keys", f"{result['keys']:,}"
    yield "method", result["method"]
    requests = counted(result["requests"], "request")
    yield "read", f"{result['read_units']:,.1f} RRU in {requests}"
    yield from cost_facts(result["cost"])
    yield (
        "segments",
        f"{segments['total']:,}, of {segments['mean_keys']:,.1f} keys, "
        f"{segments['most_keys']:,} in the largest",
    )
    yield "manifest", result["manifest"]
    if "verify" in result:
        check = result["verify"]
        checked = f"{counted(check['segments'], 'segment')} with {counted(check['keys'], 'key')}"
        yield (
            "checked",
            f"{checked}: missing {check['missing']:,}, surplus {check['surplus']:,}; "
            f"{check['read_units']:,.1f} RRU",
        )


def plan_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    """Return the output of EnumerateKeys with dryRun, for people."""
    keys, spent = plan["keys"], plan["spent"]
    name = f"{plan['table']}/{plan['index']}" if plan["index"] else plan["table"]
    high = "" if keys["high"] is None else f" to {keys['high']:,}"
    yield (
        f"{name} has about {counted(keys['estimate'], 'distinct partition key')} "
        f"(95% interval {keys['low']:,}{high})."
    )
    yield from _lines(*_plan_facts(plan))
    yield f"  this plan read {spent['read_units']:,.1f} RRU: ${spent['dollars']:.6f}"


def _plan_facts(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "method", f"{plan['method']}: {plan['reason']}"
    spread = f"{counted(plan['segments'], 'segment')} in {counted(plan['groups'], 'group')}"
    yield "spread", f"{spread}, {counted(plan['workers'], 'worker')} at once"
    if (way := plan["methods"].get(plan["method"])) is not None:
        yield (
            "would be",
            f"{way['read_units']['estimate']:,.1f} RRU in "
            f"{counted(way['requests'], 'request')}, in about {duration(way['seconds'])}",
        )
    yield from cost_facts(plan["cost"])


def run_row(execution: Execution) -> dict[str, Any]:
    """Return one row of `keyhop runs list`."""
    output = execution.output if isinstance(execution.output, Mapping) else {}
    cost = output.get("cost")
    keys = output.get("keys")
    return {
        "run": execution.name,
        "machine": execution.kind,
        "table": execution.table,
        "status": execution.status,
        "keys": keys if isinstance(keys, int) else None,
        "dollars": cost.get("total") if isinstance(cost, Mapping) else None,
        "started": _moment(execution.started),
        "seconds": round(execution.seconds, 1),
        "error": execution.error or None,
    }


def rows_lines(rows: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[str]:
    """Return the rows of `keyhop runs list` for people."""
    table = [("run", "what", "table", "state", "keys", "cost", "began", "took")]
    for row in rows:
        age = now - datetime.fromisoformat(row["started"])
        state = STATES.get(row["status"], row["status"])
        table.append(
            (
                printable(row["run"]),
                row["machine"],
                printable(row["table"]),
                f"{state}: {printable(row['error'])}" if row["error"] else state,
                "" if row["keys"] is None else f"{row['keys']:,}",
                "" if row["dollars"] is None else f"${row['dollars']:.4f}",
                f"{duration(age.total_seconds())} ago",
                duration(row["seconds"]),
            )
        )
    return columns(table)
