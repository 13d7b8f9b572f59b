"""What people see of an execution: a line while it runs, figures when it has ended."""

from collections.abc import Iterable, Mapping
from typing import Any

from keyhop.dynamodb.capacity import read_dollars
from rich.console import Console
from rich.table import Table

from local.follow import Executions, Progress


def run(
    console: Console, executions: Executions, given: Any, seconds: float, name: str | None = None
) -> Any:
    """Start an execution, wait for its end; its output, or None after saying why it failed.

    Raises TimeoutError.
    """
    execution = executions.start(given, name)
    return follow(console, executions, execution, seconds)


def follow(console: Console, executions: Executions, execution: str, seconds: float) -> Any:
    """The output of an execution that was started, as `run` returns it."""
    with console.status("PlanRun") as status:

        def look(progress: Progress | None) -> None:
            if progress is not None:
                state = "FinishRun" if progress.done == progress.total else "ScanGroups"
                groups = f"{progress.done} of {progress.total} groups"
                status.update(f"{state}: {groups}, {progress.running} at once")

        ended = executions.follow(execution, seconds, look)
    if ended.status == "SUCCEEDED":
        return ended.output
    console.print(f"{ended.status}: {ended.error}: {ended.cause}", markup=False)
    return None


def print_ways(console: Console, rows: Iterable[tuple[str, int, int, float]]) -> None:
    """Ways to the same keys. rows: way, keys, requests, RRU."""
    table = Table(box=None, pad_edge=False)
    table.add_column("way")
    for heading in ("keys", "requests", "RRU", "dollars"):
        table.add_column(heading, justify="right")
    for way, keys, requests, units in rows:
        dollars = f"${read_dollars(units):.6f}"
        table.add_row(way, f"{keys:,}", f"{requests:,}", f"{units:,.1f}", dollars)
    console.print(table)


def result_text(result: Mapping[str, Any]) -> str:
    """The output of an execution that has succeeded, for a person."""
    cost = result["cost"]
    segments = result["segments"]
    services = ("dynamodb", "lambda", "step_functions", "s3")
    dollars = ", ".join(f"{name.replace('_', ' ')} ${cost[name]:.6f}" for name in services)
    if "verify" in cost:
        dollars += f", check ${cost['verify']:.6f}"
    lines = [
        f"{result['keys']:,} keys of {result['table']}, in {result['seconds']:.1f} s",
        f"  method    {result['method']}",
        f"  read      {result['read_units']:,.1f} RRU in {result['requests']:,} requests",
        f"  cost      ${cost['total']:.6f}: {dollars}",
        f"            ({cost['prices']})",
        f"  segments  {segments['total']:,}, of {segments['mean_keys']:,.1f} keys, "
        f"{segments['most_keys']:,} in the largest",
        f"  manifest  {result['manifest']}",
    ]
    if "verify" in result:
        found = result["verify"]
        lines.append(
            f"  checked   {found['segments']:,} segments with {found['keys']:,} keys: missing "
            f"{found['missing']:,}, surplus {found['surplus']:,}; {found['read_units']:,.1f} RRU"
        )
    return "\n".join(lines)
