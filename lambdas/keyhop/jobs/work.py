"""State ScanSegments: work a group of segments for as long as the function's time allows."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Source, look_up
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BrokenPromise, BudgetSpent, NoProgress
from keyhop.jobs.fleet_rate import FleetRate, Levels, MapLevels
from keyhop.jobs.layout import MOST_THREADS
from keyhop.jobs.model import RunPlan
from keyhop.jobs.runs import Deployment
from keyhop.jobs.task import Task, Tasks
from keyhop.jobs.worker import GroupWorker, Progress
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.store import Store

FIRST_SLICE_SECONDS = 15.0
LONGEST_SLICE_SECONDS = 120.0
"""What a worker that is killed can cost: the reads of so many seconds."""

LONGEST_PATIENCE_SECONDS = 600.0
NOTES = "notes"
"""Folder of a run for what its workers have met."""

MARGIN = 0.15
LEAST_MARGIN_SECONDS = 5.0
LONGEST_MARGIN_SECONDS = 60.0
"""Before a function's deadline: for pages under way, and to commit."""

LevelsOf = Callable[[str, str, Store], Levels]
"""From an execution, a map's name and the run's store to what is known of the map's level."""


@dataclass(frozen=True, slots=True)
class GroupWork:
    """The input of ScanSegments.

    execution: the run's execution, whose map this group is an item of. map: tells that map from
    others of the run. may_read: read units that the group may spend in all.
    """

    run: str
    execution: str
    map: str
    group: int
    may_read: float | None
    max_read_rate: float | None

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "GroupWork":
        """From the state that the map's ItemSelector made."""
        return cls(
            run=state["run"],
            execution=state["execution"],
            map=state["map"],
            group=state["item"]["group"],
            may_read=state["item"]["mayRead"],
            max_read_rate=state["maxReadRate"],
        )


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What an invocation came to. done: whether there is nothing left that the group may do.

    keys, commits: of this invocation only.
    """

    done: bool
    keys: int
    commits: int

    def to_state(self) -> dict[str, Any]:
        """The small checkpoint that Step Functions keeps; the real one is in the last commit."""
        return {"done": self.done, "keys": self.keys, "commits": self.commits}


def working_seconds(remaining: float) -> float:
    """How long to work if the function ends after `remaining` seconds."""
    margin = min(LONGEST_MARGIN_SECONDS, max(LEAST_MARGIN_SECONDS, MARGIN * remaining))
    return max(0.0, remaining - margin)


def patience_within(seconds: float) -> float:
    """How long a function with so much time bears failures."""
    return min(LONGEST_PATIENCE_SECONDS, 0.7 * seconds)


def begun_task(tasks: Tasks, plan: RunPlan, connection: Connection) -> tuple[Task, Source]:
    """The task of a run, and what it reads; raises BrokenPromise if the table was replaced."""
    task = tasks[plan.task](connection, plan.options)
    source = task.view(look_up(connection, plan.table).source(plan.index))
    if (plan.identity, plan.space) != (source.identity, source.space):
        raise BrokenPromise(
            f"{plan.title} is not the table that the run was begun with, {plan.identity}, but "
            f"{source.identity}: start a new run."
        )
    return task, source


def scan_segments(
    work: GroupWork,
    deployment: Deployment,
    tasks: Tasks,
    remaining_seconds: float,
    worker: str,
    usage: Usage,
    clock: Callable[[], float] = time.monotonic,
    levels_of: LevelsOf = MapLevels,
) -> SliceResult:
    """Go on with a group from its commits; worker: a name for this process.

    usage: gets all that is read, also if it ends with an error.
    Raises what reading can raise; GaveUp if nothing has succeeded for most of the time; NoProgress
    if the time did not suffice for anything.
    """
    over_at = clock() + working_seconds(remaining_seconds)
    journal, plan = deployment.runs.begun(work.run)
    connection = deployment.connect(plan.table, MOST_THREADS)
    task, source = begun_task(tasks, plan, connection)
    reader = PageReader(
        connection, source, Budget(), patience=patience_within(over_at - clock()), usage=usage
    )
    task.start(reader)
    group = GroupWorker(
        journal,
        plan,
        work.group,
        reader,
        task,
        MOST_THREADS,
        Progress(plan.segments),
        first_slice_seconds=FIRST_SLICE_SECONDS,
        longest_slice_seconds=LONGEST_SLICE_SECONDS,
        allowance=work.may_read,
        worker=worker,
    )
    if work.max_read_rate is not None or task.max_write_rate is not None:
        levels = levels_of(work.execution, work.map, journal.store)
        limit = _limits(reader, work.max_read_rate, task)
        rate = FleetRate(levels, limit, reader.stop.wait, time.time)
        if not rate.open(time.time() + over_at - clock()):
            return SliceResult(done=False, keys=0, commits=0)
        group.idle = rate.tick
    seconds = over_at - clock()
    try:
        done = group.run(seconds=seconds)
    except BudgetSpent:
        done = True  # for now: FinishRun shares out again what other groups leave over
    finally:
        if task.examples:
            journal.keep(f"{NOTES}/g{work.group}-{worker}.json", task.examples)
    if not done and not group.has_moved and seconds > 0.5 * working_seconds(remaining_seconds):
        raise NoProgress(_nothing_done(work, seconds))
    return SliceResult(done, group.keys, group.commits)


def _limits(reader: PageReader, max_read_rate: float | None, task: Task) -> Callable[[float], None]:
    """What a share of the fleet's rates means to this worker."""

    def limit(share: float) -> None:
        if max_read_rate is not None:
            reader.limit_rate(share * max_read_rate)
        if task.max_write_rate is not None:
            task.limit_writes(share * task.max_write_rate)

    return limit


def _nothing_done(work: GroupWork, seconds: float) -> str:
    if work.max_read_rate is not None:
        advice = (
            "a worker's share of maxReadRate does not pay for a page in that time, so raise "
            "maxReadRate, or lower the map's concurrency"
        )
    else:
        advice = "give workers more time (workerTimeoutSeconds), or read with keyhop keys"
    return f"Group {work.group} could do nothing in {seconds:.0f} seconds: {advice}."
