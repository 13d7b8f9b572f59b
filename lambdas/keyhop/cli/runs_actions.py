"""What `keyhop runs` and `keyhop keys --remote` do: call keyhop.Deployment, and print."""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from keyhop.checks import camel, read
from keyhop.cli.exit_status import (
    BUDGET_SPENT,
    DONE,
    DRIFT_FOUND,
    FAILED,
    INTERRUPTED,
    KEYS_MISSING,
)
from keyhop.cli.options import Options, flag
from keyhop.cli.output import columns, printable, put_out
from keyhop.cli.progress import StatusLine, progress_text
from keyhop.cli.session import Facts, Stop, confirm, stop_on_signals
from keyhop.cli.settings import sources_text
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart, KeyhopError
from keyhop.jobs.request import JobInput, RunInput
from keyhop.keys.request import KeysInput
from keyhop.public.deployment import (
    ENUMERATE_KEYS,
    NOT_STOPPED,
    Deployment,
    FetchedKeys,
    OpenStack,
    Run,
    RunProgress,
    open_stack,
)
from keyhop.public.fetch import check_is_free
from keyhop.public.limits import DEFAULT_STACK
from keyhop.public.runs import Progress
from keyhop.wording import aligned, cost_facts, counted, duration

STATES = {
    "RUNNING": "running",
    "PENDING_REDRIVE": "waiting for a redrive",
    "SUCCEEDED": "finished",
    "FAILED": "failed",
    "TIMED_OUT": "timed out",
    "ABORTED": "stopped",
}
STATUSES = {"BudgetSpent": BUDGET_SPENT, "TooExpensive": BUDGET_SPENT, "KeysMissing": KEYS_MISSING}
"""Exit statuses of failed runs, by their errors."""

WORDS = {
    ENUMERATE_KEYS: ("planning", "reading", "reading", "key"),
    "ForEachKey": ("planning", "working", "working", "key"),
    "RekeyBackfill": ("planning", "copying", "copying", "item"),
    "RekeyVerify": (
        "planning; within 12 s of a copy it waits for the end of its writes",
        "comparing",
        "looking at the differences",
        "item",
    ),
}
"""Of the state machines whose runs are in the bucket: what they are doing before a run is planned,
while it reads, and when everything is read; and the noun for what they count.
"""

Beside = Callable[[], tuple[str, Sequence[str]]]
"""Returns more to show of a run: its kind (another kind is shown at once), and parts."""


def run(options: Options) -> int:
    """Run one of the commands, and return its exit status."""
    actions = {"list_runs": list_runs, "show": show, "fetch": fetch, "stop": stop}
    return actions[options.action](options, lambda: _open_stack(options))


def _open_stack(options: Options) -> OpenStack:
    endpoint = Endpoint(options.region, options.profile, None, options.role_arn)
    return open_stack(options.stack or DEFAULT_STACK, endpoint)


def list_keys(options: Options) -> int:
    """`keyhop keys --remote`: start a run; with --follow or --output, print or copy its keys."""
    if options.dry_run and options.output:
        raise CannotStart("--dry-run only estimates: leave --output out.")
    if options.follow and not options.output and sys.stdout is None:
        raise CannotStart("Standard output is closed: open it, or write to files with --output.")
    values = input_of(KeysInput, options, verify_share=options.verify)
    if options.output:
        check_is_free(Path(options.output))
    stack = _open_stack(options)
    return _start(options, stack, ENUMERATE_KEYS, values, partial(_put_out_keys, options, stack))


def start(options: Options, machine: str, values: Mapping[str, Any], act: str = "") -> int:
    """Start a run for a command with --remote; with --follow or --dry-run, show it when it ends.

    Args:
        act: What the run does, such as "build the key index of Orders". If it is given, the command
            asks before.
    """
    stack = _open_stack(options)

    def facts() -> Facts:
        _, _, _, region, account, *_ = Deployment(stack).executions(machine).machine.split(":")
        yield from (("account", account), ("region", region), ("stack", stack.name))

    def end(run: Run) -> int:
        _put_out_run(options, stack, run)
        return exit_status_of(run)

    if act and not options.dry_run:
        confirm(act, facts, options.yes, Event())
    return _start(options, stack, machine, values, end)


def _start(
    options: Options,
    stack: OpenStack,
    machine: str,
    values: Mapping[str, Any],
    end: Callable[[Run], int],
) -> int:
    """Start a run; if the flags say so, wait for its end, and return the exit status of `end`."""
    if options.settings:
        StatusLine(options.quiet).say(sources_text(options.settings))
    run = Deployment(stack).start(values, machine=machine, name=options.name)
    output = getattr(options, "output", None)
    if not (options.follow or options.dry_run or output):
        put_out_start(options, stack, run)
        return DONE
    StatusLine(options.quiet).say(f"keyhop: Started the run {run.name}.")
    has_keys = machine == ENUMERATE_KEYS and not options.dry_run
    fetch = command(stack.name, "fetch", run.name, output or "-") if has_keys else ""
    ended = follow(stack, run, options.quiet, fetch=fetch)
    return INTERRUPTED if ended is None else end(ended)


def _put_out_keys(options: Options, stack: OpenStack, run: Run) -> int:
    """Print or copy the keys of a run, or print its estimate; then show the run."""
    if options.dry_run and run.has_succeeded:
        put_out(options.format, run.output, lambda: "\n".join(plan_lines(run.output)))
        return DONE
    if run.has_succeeded or run.error == "KeysMissing":  # then there are keys all the same
        directory = options.output or "-"
        later = command(stack.name, "fetch", run.name, directory)
        with stop_on_signals(f"To fetch the keys: {later}") as stop:
            _fetch(options, stack, run, directory, stop)
        if stop.event.is_set():
            return stop.status
    if not options.quiet or not run.has_succeeded:
        print(*run_lines(run_json(run, stack.name)), sep="\n", file=sys.stderr)
    return exit_status_of(run)


def list_runs(options: Options, opened: Callable[[], OpenStack]) -> int:
    """`keyhop runs list`: list the latest runs."""
    rows = [run_row(run) for run in Deployment(opened()).list(options.table, options.limit)]
    put_out(options.format, rows, lambda: "\n".join(rows_lines(rows, datetime.now(UTC))))
    return DONE


def show(options: Options, opened: Callable[[], OpenStack]) -> int:
    """`keyhop runs show`: show a run."""
    stack = opened()
    run: Run | None = Deployment(stack).show(options.run)
    if run is not None and options.follow and not run.is_over:
        run = follow(stack, run, options.quiet)
    if run is None:
        return INTERRUPTED
    _put_out_run(options, stack, run)
    return exit_status_of(run) if options.follow else DONE


def fetch(options: Options, opened: Callable[[], OpenStack]) -> int:
    """`keyhop runs fetch`: copy or print the keys of a run."""
    stack = opened()
    with stop_on_signals("Start the same command again: it goes on.") as stop:
        fetched = _fetch(options, stack, options.run, options.directory, stop)
        if options.directory != "-":
            report = {
                "run": fetched.run,
                "directory": options.directory,
                "keys": fetched.keys,
                "parts": fetched.parts,
                "bytes": fetched.bytes,
            }
            keys, parts = counted(fetched.keys, "key"), counted(fetched.parts, "part")
            text = f"{keys} of {printable(fetched.table)} in {options.directory}, {parts}"
            put_out(options.format, report, lambda: text)
        return DONE
    return stop.status


def _fetch(
    options: Options, stack: OpenStack, run: str | Run, directory: str, stop: Stop
) -> FetchedKeys:
    """Copy the keys of a run into a directory, or print them if it is "-". Raise Stopped."""
    with StatusLine(options.quiet) as status:

        def look(progress: Progress) -> None:
            parts = counted(progress.segments, "part")
            text = f"fetching, {progress.segments_done:,} of {parts}"
            status.now("fetching", text, progress.share)

        deployment = Deployment(stack, progress=look, stop=stop.event)
        output = sys.stdout.buffer if directory == "-" else directory
        return deployment.fetch(run, output, format=options.format or "text")


def stop(options: Options, opened: Callable[[], OpenStack]) -> int:
    """`keyhop runs stop`: stop a run, and show it with the command that continues it."""
    stack = opened()
    _put_out_run(options, stack, Deployment(stack).stop(options.run))
    return DONE


def follow(
    stack: OpenStack, run: Run, quiet: bool, beside: Beside = lambda: ("", ()), fetch: str = ""
) -> Run | None:
    """Show the progress of a run until it ends; None if Ctrl-C has ended the showing.

    Args:
        fetch: The command that fetches its result later.

    Raises:
        KeyhopError: For example, the network is gone. The run goes on all the same.
    """
    try:
        with StatusLine(quiet) as status:
            look = partial(_show_progress, status, run.machine, beside)
            return Deployment(stack, progress=look).follow(run)
    except KeyboardInterrupt:
        ways = [("To come back", _return_command(stack, run))]
        if fetch:
            ways.append(("To fetch its keys at the end", fetch))
        if run.machine not in NOT_STOPPED:
            ways.append(("To stop it", command(stack.name, "stop", run.name)))
        advice = ". ".join(f"{what}: {how}" for what, how in ways)
        print(f"keyhop: The run goes on without you. {advice}", file=sys.stderr)
        return None
    except KeyhopError as error:
        raise type(error)(f"{error} The run goes on: {_return_command(stack, run)}") from error


def _show_progress(status: StatusLine, machine: str, beside: Beside, progress: Progress) -> None:
    kind: str = ""
    more: Sequence[str] = ()
    with suppress(KeyhopError):  # The run does not depend on its display.
        kind, more = beside()
    if machine not in WORDS or not isinstance(progress, RunProgress):
        status.now(kind or progress.activity, more or f"{machine}: running")
        return
    planning, reading, ending, what = WORDS[machine]
    if not progress.segments:
        status.now("planning", planning, 0.0)
        return
    parts = progress_text(
        progress.keys,
        progress.read_units,
        progress.read_rate or 0.0,
        (progress.segments_done, progress.segments),
        progress.seconds_left,
        progress.throttles,
        state=reading if progress.activity == "reading" else ending,
        writes=progress.write_units,
        write_rate=progress.write_rate or 0.0,
        what=what,
    )
    status.now("", [*parts[:2], *more, *parts[2:]], progress.share)


def exit_status_of(run: Run) -> int:
    """Return the exit status of a command that has waited for the end of a run."""
    if not run.has_succeeded:
        return STATUSES.get(run.error, FAILED)
    result = run.output if isinstance(run.output, Mapping) else {}
    outcomes, verification = result.get("outcomes") or {}, result.get("verification") or {}
    is_good = not (outcomes.get("failed") or outcomes.get("changed") or verification.get("drift"))
    return DONE if is_good else DRIFT_FOUND


def put_out_start(options: Options, stack: OpenStack, run: Run) -> None:
    """Print the name of a run that has started."""
    put_out(options.format, {"run": run.run_id, "execution": run.execution}, lambda: run.name)
    sys.stdout.flush()
    if not options.quiet:
        print(f"keyhop: Started. To follow it: {_return_command(stack, run)}", file=sys.stderr)


def _return_command(stack: OpenStack, run: Run) -> str:
    return command(stack.name, "show", run.name, "--follow")


def command(stack: str, action: str, *words: str) -> str:
    """Return a command about a run, with its stack unless that is the default."""
    return shlex.join(["keyhop", "runs", action, *words, *_stack_flag(stack)])


def _stack_flag(stack: str) -> Sequence[str]:
    return () if stack == DEFAULT_STACK else ("--stack", stack)


def _put_out_run(options: Options, stack: OpenStack, run: Run) -> None:
    values = run_json(run, stack.name)
    put_out(options.format, values, lambda: "\n".join(run_lines(values)))


def run_json(run: Run, stack: str = DEFAULT_STACK) -> dict[str, Any]:
    """Return a run, with the commands that continue it."""
    return {**run.to_json(), "go_on": _how_to_go_on(run, stack)}


def input_of(shape: type[JobInput], options: Options, **others: Any) -> dict[str, Any]:
    """Return the input of a state machine for the flags; raise InvalidInput if it is wrong.

    Args:
        others: The values of fields whose flags have other names or forms.
    """
    flags = vars(options) | others
    values = {
        camel(field.name): [*value] if isinstance(value, tuple) else value
        for field in fields(shape)
        if (value := flags.get(field.name, field.default)) not in (field.default, ())
    }
    job_input = read(shape, values, shape.LIKE)
    if isinstance(job_input, RunInput):
        job_input.request(flag, values)
    return values


def command_of(values: Mapping[str, Any], stack: str = DEFAULT_STACK) -> str:
    """Return the `keyhop keys --remote` for an execution's input."""
    words = ["keyhop", "keys", str(values.get("table", "")), "--remote"]
    for name, value in values.items():
        if name in ("table", "scheduled") or value in (None, False):
            continue
        option = flag(re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name))
        if value is True:
            words.append(option)
            continue
        for item in value if isinstance(value, list) else [value]:
            words += [option, f"{item:.15g}" if isinstance(item, (int, float)) else str(item)]
    return shlex.join([*words, *_stack_flag(stack)])


def _how_to_go_on(run: Run, stack: str) -> list[str]:
    """Return commands, of which one suffices. Only EnumerateKeys has a command of Keyhop's own."""
    values = run.next_input
    if values is None:
        return []
    commands = []
    if run.machine == ENUMERATE_KEYS:
        commands.append(command_of(values, stack))
    else:
        start = "aws stepfunctions start-execution --state-machine-arn"
        machine = run.execution.rpartition(":")[0].replace(":execution:", ":stateMachine:")
        commands.append(f"{start} {machine} --input {shlex.quote(json.dumps(values))}")
    if run.redrivable:
        redrive = "aws stepfunctions redrive-execution --execution-arn"
        commands.append(f"{redrive} {run.execution}")
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
    if progress["seconds_left"] is not None:
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


def run_row(run: Run) -> dict[str, Any]:
    """Return one row of `keyhop runs list`."""
    output = run.output if isinstance(run.output, Mapping) else {}
    cost = output.get("cost")
    keys = output.get("keys")
    values = run.to_json()
    return {
        "run": run.name,
        **{name: values[name] for name in ("machine", "table", "status")},
        "keys": keys if isinstance(keys, int) else None,
        "dollars": cost.get("total") if isinstance(cost, Mapping) else None,
        **{name: values[name] for name in ("started", "seconds", "error")},
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
