"""State ScanSegments: work a group of segments for as long as the function's time allows."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import Target, describe
from keyhop.dynamodb.usage import Tally
from keyhop.errors import BrokenPromise, BudgetSpent, NoProgress
from keyhop.jobs.fleet_rate import MapLevels, Valve
from keyhop.jobs.layout import MOST_WORKERS
from keyhop.jobs.model import RunPlan
from keyhop.jobs.runs import Runs, dynamodb_for
from keyhop.jobs.slice import Visitor
from keyhop.jobs.worker import GroupRun, Progress
from keyhop.key_index.sentinel import Sentinel
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

FIRST_SLICE_SECONDS = 15.0
LONGEST_SLICE_SECONDS = 120.0
"""What a worker that is killed can cost: the reads of so many seconds."""

LONGEST_PATIENCE_SECONDS = 600.0
EXAMPLES = "drift"
"""Folder of a run for examples of what a walk has found."""

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


class Walk(Visitor, Protocol):
    """The visitor of a run for the key index (key_index/walk.py)."""

    max_write_rate: float | None
    """Write units a second of all workers; None for no limit."""

    examples: dict[str, list[Any]]
    """A few keys of each kind of drift."""

    def limit_writes(self, max_rate: float) -> None:
        """From now on, hold this worker's writes under `max_rate` write units a second."""


Walks = Callable[[RunPlan, PageReader, DynamoDB, Endpoint, float], Walk]
"""From the plan, the reader, the client and the patience in seconds to the visitor."""


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
    walks: Walks | None = None,
) -> Worked:
    """Go on with a group from its commits; worker: a name for this process.

    walks: makes the visitor of a run for the key index.

    tally: gets all that is read, also if it ends with an error.
    Raises what reading can raise; GaveUp if nothing has succeeded for most of the time; NoProgress
    if the time did not suffice for anything.
    """
    over_at = clock() + working_seconds(remaining_seconds)
    log, plan = runs.begun(work.run)
    client, endpoint = dynamodb_for(plan.table, tables, MOST_WORKERS)
    target = sought(plan, describe(client, endpoint, plan.table, plan.index))
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
    walk: Walk | None = None
    if plan.walk is not None:
        assert walks is not None
        walk = walks(plan, reader, client, endpoint, patience)
        group.visitor = walk
    if work.max_read_rate is not None or (walk is not None and walk.max_write_rate is not None):
        levels = MapLevels(work.execution, work.map, runs.store(work.run))
        shares = _Shares(reader, work.max_read_rate, walk)
        valve = Valve(1.0, levels, shares.limit, reader.stop.wait, time.time)
        if not valve.open(time.time() + over_at - clock()):
            return Worked(done=False, keys=0, commits=0)
        group.idle = valve.tick
    seconds = over_at - clock()
    try:
        done = group.run(seconds=seconds)
    except BudgetSpent:
        done = True  # for now: FinishRun shares out again what other groups leave over
    finally:
        if walk is not None and walk.examples:
            examples = json.dumps(walk.examples).encode()
            runs.store(work.run).replace(f"{EXAMPLES}/g{work.group}-{worker}.json", examples)
    if not done and not group.has_moved and seconds > 0.5 * working_seconds(remaining_seconds):
        raise NoProgress(_nothing_done(work, seconds))
    return Worked(done, group.keys, group.commits)


@dataclass(frozen=True, slots=True)
class _Shares:
    """What a share of the fleet means to this worker."""

    reader: PageReader
    max_read_rate: float | None
    walk: Walk | None

    def limit(self, share: float) -> None:
        if self.max_read_rate is not None:
            self.reader.limit_rate(share * self.max_read_rate)
        if self.walk is not None and self.walk.max_write_rate is not None:
            self.walk.limit_writes(share * self.walk.max_write_rate)


def sought(plan: RunPlan, target: Target) -> Target:
    """The target, with the sentinels that the run looks for."""
    if plan.sentinel is None:
        return target
    return replace(target, sentinel=Sentinel.from_json(plan.sentinel))


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
