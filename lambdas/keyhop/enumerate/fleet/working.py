"""State ScanSegments: work a group of segments for as long as the function's time allows."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.enumerate.budget import Budget
from keyhop.enumerate.fleet.runs import Runs, dynamodb_for
from keyhop.enumerate.fleet.valve import MapLevels, Valve
from keyhop.enumerate.pages import PageReader
from keyhop.enumerate.plan import MOST_WORKERS
from keyhop.enumerate.record import RunPlan
from keyhop.enumerate.run import GroupRun, Progress
from keyhop.enumerate.table import Target, describe
from keyhop.enumerate.tally import Tally
from keyhop.errors import BrokenPromise, BudgetSpent, NoProgress

FIRST_SLICE_SECONDS = 15.0
LONGEST_SLICE_SECONDS = 120.0
"""What a worker that is killed can cost: the reads of so many seconds."""

LONGEST_PATIENCE_SECONDS = 600.0
MARGIN = 0.15
LEAST_MARGIN_SECONDS = 5.0
LONGEST_MARGIN_SECONDS = 60.0
"""Before a function's deadline: for pages under way, and to commit."""


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
class Worked:
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


def scan_segments(
    work: GroupWork,
    runs: Runs,
    tables: list[str],
    remaining_seconds: float,
    worker: str,
    tally: Tally,
    clock: Callable[[], float] = time.monotonic,
) -> Worked:
    """Go on with a group from its commits; worker: a name for this process.

    tally: gets all that is read, also if it ends with an error.
    Raises what reading can raise; GaveUp if nothing has succeeded for most of the time; NoProgress
    if the time did not suffice for anything.
    """
    over_at = clock() + working_seconds(remaining_seconds)
    log, plan = runs.begun(work.run)
    client, endpoint = dynamodb_for(plan.table, tables, MOST_WORKERS)
    target = describe(client, endpoint, plan.table, plan.index)
    check_same_table(plan, target)
    patience = min(LONGEST_PATIENCE_SECONDS, 0.7 * (over_at - clock()))
    reader = PageReader(client, target, Budget(), endpoint=endpoint, patience=patience)
    reader.tally = tally
    group = GroupRun(
        log,
        plan,
        work.group,
        reader,
        MOST_WORKERS,
        Progress(plan.segments),
        first_slice_seconds=FIRST_SLICE_SECONDS,
        longest_slice_seconds=LONGEST_SLICE_SECONDS,
        allowance=work.may_read,
        worker=worker,
    )
    if work.max_read_rate is not None:
        levels = MapLevels(work.execution, work.map, runs.store(work.run))
        valve = Valve(work.max_read_rate, levels, reader.limit_rate, reader.stop.wait, time.time)
        if not valve.open(time.time() + over_at - clock()):
            return Worked(done=False, keys=0, commits=0)
        group.idle = valve.tick
    seconds = over_at - clock()
    try:
        done = group.run(seconds=seconds)
    except BudgetSpent:
        done = True  # for now: FinishRun shares out again what other groups leave over
    if not done and not group.has_moved and seconds > 0.5 * working_seconds(remaining_seconds):
        raise NoProgress(_nothing_done(work, seconds))
    return Worked(done, group.keys, group.commits)


def _nothing_done(work: GroupWork, seconds: float) -> str:
    if work.max_read_rate is not None:
        advice = (
            "a worker's share of maxReadRate does not pay for a page in that time, so raise "
            "maxReadRate, or lower the map's concurrency"
        )
    else:
        advice = "give workers more time (workerTimeoutSeconds), or read with keyhop keys"
    return f"Group {work.group} could do nothing in {seconds:.0f} seconds: {advice}."


def check_same_table(plan: RunPlan, target: Target) -> None:
    """Raises BrokenPromise if the table was replaced since the run began."""
    if (plan.identity, plan.space) != (target.identity, target.space):
        raise BrokenPromise(
            f"{plan.title} is not the table that the run was begun with, {plan.identity}, but "
            f"{target.identity}: start a new run."
        )
