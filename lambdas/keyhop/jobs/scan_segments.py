"""State ScanSegments: read a group of segments until the function's time is over."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BudgetSpent, NoProgress, StaleIndex
from keyhop.jobs.fleet_rate import FleetRate, MapLevels
from keyhop.jobs.journal import STALE_INDEX, Journal
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.model import Commit, RunPlan
from keyhop.jobs.runs import DeploymentSettings
from keyhop.jobs.task import Task, Tasks, note_examples
from keyhop.jobs.worker import CALM_SLICES, GroupWorker
from keyhop.scan.in_flight import MOST
from keyhop.scan.reader import PageReader
from keyhop.storage.store import Store
from keyhop.wording import counted

LONGEST_PATIENCE_SECONDS = 600.0
MARGIN = 0.15
LEAST_MARGIN_SECONDS = 5.0
LONGEST_MARGIN_SECONDS = 60.0
"""The seconds before the deadline of a function that remain for pages in flight and the commit."""


def working_seconds(remaining: float) -> float:
    """Return how long to read if the function ends after `remaining` seconds."""
    margin = min(LONGEST_MARGIN_SECONDS, max(LEAST_MARGIN_SECONDS, MARGIN * remaining))
    return max(0.0, remaining - margin)


def patience_within(seconds: float) -> float:
    """Return for how long a function with so much time retries requests that fail."""
    return min(LONGEST_PATIENCE_SECONDS, 0.7 * seconds)


def scan_segments(
    state: Mapping[str, Any],
    deployment: DeploymentSettings,
    tasks: Tasks,
    remaining_seconds: float,
    worker: str,
    usage: Usage,
    levels_of: Callable[[str, str, Store], MapLevels] = MapLevels,
    report: Callable[[RunPlan, Commit | None], None] = lambda plan, commit: None,
) -> dict[str, Any]:
    """Continue a group after its last commit.

    Args:
        state: The input, as the ItemSelector of the map makes it.
        deployment: The runs and tables of the deployment.
        tasks: The kinds of job.
        remaining_seconds: The seconds until the function's deadline.
        worker: A name for this process.
        usage: Counts everything that is read, even if this function raises.
        levels_of: Returns the levels of the map run, by which workers share the rates.
        report: Is called with each commit, and at the end with None.

    Returns:
        A small checkpoint for Step Functions (the real one is in the last commit): whether the
        group is done, how many keys this invocation found, and how many slices it committed.

    Raises:
        GaveUp: No request succeeded for most of the time.
        NoProgress: There was no time to commit anything.
    """
    over_at = time.monotonic() + working_seconds(remaining_seconds)
    number, may_read = state["item"]["group"], state["item"]["mayRead"]
    max_read_rate = state["maxReadRate"]
    journal, plan = deployment.runs.open_run(state["run"])
    connection = deployment.connect(plan.table, MOST)
    try:
        task, source = begun_task(tasks, plan, connection)
    except StaleIndex as error:
        return _stale_index(journal, error)
    reader = PageReader(
        connection,
        source,
        Budget(),
        patience=patience_within(over_at - time.monotonic()),
        usage=usage,
    )
    task.start(reader)

    def spent(units: float) -> None:
        remaining = None if may_read is None else may_read - units
        if plan.method == "listed":
            task.allow_writes(remaining)
        elif remaining is not None:
            reader.budget.allow_more(remaining)

    group = GroupWorker(
        journal,
        plan,
        number,
        task.pages(journal, plan, reader),
        MOST,
        slices=CALM_SLICES,
        spent=spent,
        committed=lambda commit: report(plan, commit),
        worker=worker,
    )
    if max_read_rate is not None or task.max_write_rate is not None:
        levels = levels_of(state["execution"], state["map"], journal.store)
        rate = FleetRate(levels, _limits(reader, max_read_rate, task), reader.stop.wait, time.time)
        if not rate.open(time.time() + over_at - time.monotonic()):
            return {"done": False, "keys": 0, "commits": 0}
        group.idle = rate.tick
    seconds = over_at - time.monotonic()
    try:
        is_done = group.run(over_at=over_at)
    except BudgetSpent:
        is_done = True  # FinishRun may assign it units that other groups did not need
    except StaleIndex as error:
        return _stale_index(journal, error)
    finally:
        report(plan, None)
        note_examples(journal, task, f"g{number}-{worker}")
    if not is_done and not group.has_moved and seconds > 0.5 * working_seconds(remaining_seconds):
        raise NoProgress(_nothing_done(number, max_read_rate, seconds))
    return {"done": is_done, "keys": group.new_keys, "commits": group.commits}


def _stale_index(journal: Journal, error: StaleIndex) -> dict[str, Any]:
    """Record why the index cannot be read, and end the group. FinishRun then starts a new run."""
    journal.keep(STALE_INDEX, {"why": str(error)})
    return {"done": True, "keys": 0, "commits": 0}


def _limits(reader: PageReader, max_read_rate: float | None, task: Task) -> Callable[[float], None]:
    """Return a function that limits this worker to a share of the fleet's rates."""

    def limit(share: float) -> None:
        if max_read_rate is not None:
            reader.limit_rate(share * max_read_rate)
        if task.max_write_rate is not None:
            task.limit_writes(share * task.max_write_rate)

    return limit


def _nothing_done(group: int, max_read_rate: float | None, seconds: float) -> str:
    if max_read_rate is not None:
        advice = (
            "a worker's share of maxReadRate does not pay for a page in that time, so raise "
            "maxReadRate, or lower the map's concurrency"
        )
    else:
        advice = "give workers more time (workerTimeoutSeconds), or read with keyhop keys"
    return f"Group {group} could do nothing in {counted(seconds, 'second')}: {advice}."
