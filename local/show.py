"""What people see of an execution: a line while it runs, figures when it has ended."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar

from local.follow import Ended, Executions, Progress


def follow(console: Console, executions: Executions, execution: str, seconds: float) -> Ended:
    """Wait for an execution, with a progress line; raises TimeoutError."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("groups"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("PlanRun", total=None)

        def look(progress: Progress | None) -> None:
            if progress is None:
                return
            state = "FinishRun" if progress.done == progress.total else "ScanGroups"
            described = f"{state}, {progress.running} at once"
            bar.update(task, description=described, completed=progress.done, total=progress.total)

        return executions.follow(execution, seconds, look)


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
