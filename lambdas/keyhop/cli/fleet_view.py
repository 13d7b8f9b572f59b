"""A deployment's runs as JSON, and as text for people. Pure."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from keyhop.cli.output import aligned, columns, cost_facts, printable
from keyhop.cli.stack import ENUMERATE_KEYS, Execution
from keyhop.jobs.model import RunPlan, Totals
from keyhop.wording import counted, duration

STATES = {
    "RUNNING": "running",
    "PENDING_REDRIVE": "to be gone on with",
    "SUCCEEDED": "finished",
    "FAILED": "failed",
    "TIMED_OUT": "timed out",
    "ABORTED": "stopped",
}
FLAGS = {"dryRun": "--dry-run", "verifyShare": "--verify", "fileFormat": "--file-format"}
"""Fields of an input whose flag is not called so."""

CONSOLES = {"aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}
AGAIN = re.compile(r"\bstart\b[^{]* with (?=\{)")
"""What stands before the input to start again with, in the cause of a failure."""


def console_url(arn: str) -> str:
    """The page of an execution in AWS's console."""
    _, partition, _, region, *_ = arn.split(":")
    host = CONSOLES.get(partition, f"{region}.console.aws.amazon.com")
    return f"https://{host}/states/home?region={region}#/v2/executions/details/{arn}"


def command_of(given: Mapping[str, Any], stack: str = "") -> str:
    """The `keyhop run` of an execution's input; stack: its name, unless it is the usual one."""
    words = ["keyhop", "run", str(given.get("table", ""))]
    for name, value in given.items():
        if name in ("table", "scheduled") or value in (None, False):
            continue
        flag = FLAGS.get(name) or "--" + "".join(
            f"-{c.lower()}" if c.isupper() else c for c in name
        )
        if value is True:
            words.append(flag)
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [flag, f"{one:.15g}" if isinstance(one, (int, float)) else str(one)]
    return shlex.join([*words, *(("--stack", stack) if stack else ())])


def advised(cause: str) -> Mapping[str, Any] | None:
    """The input that a failed run's cause gives to go on with; None if there is none."""
    found = AGAIN.search(cause)
    try:
        given = json.JSONDecoder().raw_decode(cause, found.end())[0] if found else None
    except ValueError:
        return None
    return given if isinstance(given, dict) else None


def progress_json(plan: RunPlan, totals: Totals) -> dict[str, Any]:
    """How far a run is."""
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
    """One run. files: where its files are. progress: of one that has not succeeded."""
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
    """Read units a second, and seconds left, while the run works that this very execution began."""
    if execution.is_over or execution.run != execution.name or not progress["ended"]:
        return {}
    left = progress["segments"] - progress["ended"]
    return {
        "read_units_per_second": round(progress["read_units"] / max(1.0, execution.seconds), 3),
        "seconds_left": round(execution.seconds * left / progress["ended"], 1),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")


def _how_to_go_on(execution: Execution, progress: Any, stack: str) -> list[str]:
    """Return commands, of which one suffices. Only EnumerateKeys has a command of Keyhop's own."""
    if not execution.is_over or execution.has_succeeded or not execution.table:
        return []
    told = advised(execution.cause)
    if told is None and not execution.cause and progress is not None:  # it was stopped
        told = {"table": execution.table, "resume": execution.run}
    commands = []
    if told and execution.machine.endswith(f"-{ENUMERATE_KEYS}"):
        commands.append(command_of(told, stack))
    elif told:
        start = "aws stepfunctions start-execution --state-machine-arn"
        machine = execution.arn.rpartition(":")[0].replace(":execution:", ":stateMachine:")
        commands.append(f"{start} {machine} --input {shlex.quote(json.dumps(told))}")
    if execution.redrivable and told:
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
    done = f"{progress['share']:.0%}: {progress['ended']:,} of {segments}"
    yield "done", f"{done}, {counted(progress['keys'], 'key')}"
    requests = counted(progress["requests"], "request")
    cost = f"${progress['dollars']:.6f} ({progress['prices']})"
    yield "read", f"{progress['read_units']:,.1f} RRU in {requests}: {cost}"
    if "seconds_left" in progress:
        left = duration(progress["seconds_left"])
        yield "rate", f"{progress['read_units_per_second']:,.1f} RRU/s, about {left} left"


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
    """One line of `keyhop runs`."""
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
    """What `keyhop runs` shows to people."""
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
