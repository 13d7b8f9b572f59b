"""State ScanSegments: work a group of segments for as long as the function's time allows."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from keyhop.dynamodb.usage import Usage
from keyhop.errors import BudgetSpent, Disbelieved, NoProgress
from keyhop.jobs.fleet_rate import FleetRate, MapLevels
from keyhop.jobs.journal import DISBELIEVED, Journal
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.model import Commit, RunPlan
from keyhop.jobs.runs import Deployment
from keyhop.jobs.task import Task, Tasks, note_examples
from keyhop.jobs.worker import CALM_SLICES, GroupWorker
from keyhop.scan.in_flight import MOST
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.store import Store
from keyhop.wording import counted

LONGEST_PATIENCE_SECONDS = 600.0
MARGIN = 0.15
LEAST_MARGIN_SECONDS = 5.0
LONGEST_MARGIN_SECONDS = 60.0
"""Before a function's deadline: for pages under way, and to commit."""


def working_seconds(remaining: float) -> float:
    """How long to work if the function ends after `remaining` seconds."""
    margin = min(LONGEST_MARGIN_SECONDS, max(LEAST_MARGIN_SECONDS, MARGIN * remaining))
    return max(0.0, remaining - margin)


def patience_within(seconds: float) -> float:
    """How long a function with so much time bears failures."""
    return min(LONGEST_PATIENCE_SECONDS, 0.7 * seconds)


def scan_segments(
    state: Mapping[str, Any],
    deployment: Deployment,
    tasks: Tasks,
    remaining_seconds: float,
    worker: str,
    usage: Usage,
    levels_of: Callable[[str, str, Store], MapLevels] = MapLevels,
    report: Callable[[RunPlan, Commit | None], None] = lambda plan, commit: None,
) -> dict[str, Any]:
    """Go on with a group from its commits; worker: a name for this process.

    state: what the map's ItemSelector made. Returns the small checkpoint that Step Functions keeps,
    while the real one is in the last commit: whether there is nothing left that the group may do,
    and how many keys were found and slices committed by this invocation.

    usage: gets all that is read, also if it ends with an error. report: is told each commit, and at
    the end that there is none any more.
    Raises what reading can raise; GaveUp if nothing has succeeded for most of the time; NoProgress
    if the time did not suffice for anything.
    """
    over_at = time.monotonic() + working_seconds(remaining_seconds)
    number, may_read = state["item"]["group"], state["item"]["mayRead"]
    max_read_rate = state["maxReadRate"]
    journal, plan = deployment.runs.begun(state["run"])
    connection = deployment.connect(plan.table, MOST)
    try:
        task, source = begun_task(tasks, plan, connection)
    except Disbelieved as error:
        return _disbelieved(journal, error)
    reader = PageReader(
        connection,
        source,
        Budget(),
        patience=patience_within(over_at - time.monotonic()),
        usage=usage,
    )
    task.start(reader)

    def spent(units: float) -> None:
        left = None if may_read is None else may_read - units
        if plan.method == "listed":
            task.allow_writes(left)
        elif left is not None:
            reader.budget.allow_more(left)

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
        done = group.run(over_at=over_at)
    except BudgetSpent:
        done = True  # for now: FinishRun shares out again what other groups leave over
    except Disbelieved as error:
        return _disbelieved(journal, error)
    finally:
        report(plan, None)
        note_examples(journal, task, f"g{number}-{worker}")
    if not done and not group.has_moved and seconds > 0.5 * working_seconds(remaining_seconds):
        raise NoProgress(_nothing_done(number, max_read_rate, seconds))
    return {"done": done, "keys": group.new_keys, "commits": group.commits}


def _disbelieved(journal: Journal, error: Disbelieved) -> dict[str, Any]:
    """Note why the index cannot be read, and end the group: FinishRun has the run planned anew."""
    journal.keep(DISBELIEVED, {"why": str(error)})
    return {"done": True, "keys": 0, "commits": 0}


def _limits(reader: PageReader, max_read_rate: float | None, task: Task) -> Callable[[float], None]:
    """What a share of the fleet's rates means to this worker."""

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
