"""What a run by a fleet would read, write and cost, by a sample: with planOnly."""

import math
from typing import Any

from keyhop.jobs.costs import FunctionSize, run_cost
from keyhop.jobs.estimate import estimate
from keyhop.jobs.groups import groups_of_layout, wishes_of_fleet, workers_at_once
from keyhop.jobs.layout import DEFAULT_UNITS
from keyhop.jobs.model import needs_memory
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task, TaskPlan
from keyhop.scan.reader import PageReader


def estimate_of_fleet(
    request: Request,
    reader: PageReader,
    plan: TaskPlan,
    worker: FunctionSize,
    most_workers: int | None,
) -> tuple[float, dict[str, Any]]:
    """How many keys there are, about, and the report. most_workers: see Planner."""
    allowance = min(DEFAULT_UNITS, request.max_read_units or DEFAULT_UNITS)
    one_worker = needs_memory(plan.method, plan.source.index)
    wishes = wishes_of_fleet(request, plan.source.size_bytes, one_worker)
    found = estimate(reader, plan.method, plan.reason, wishes, allowance)
    groups, at_once = groups_of_layout(found.layout, one_worker)
    at_once = workers_at_once(at_once, request.max_read_rate, most_workers)
    cost = found.costs[plan.method]
    return found.findings.keys.mean, {
        **found.to_json(),
        "workers": at_once,
        "groups": groups,
        "cost": run_cost(
            worker,
            cost.units.mean,
            seconds=cost.seconds * at_once,
            invocations=groups,
            groups=groups,
            commits=groups,
            prices=reader.connection.prices,
        ),
        "threads": math.ceil(found.layout.threads * at_once / found.layout.processes),
    }


def estimate_of_visits(reader: PageReader, task: Task, keys: float) -> dict[str, Any]:
    """What is then done about so many keys."""
    writes, reads = (keys * units for units in task.units_per_key(reader.source))
    prices = reader.connection.prices
    return {
        "keys": round(keys),
        "write_units": round(writes, 1),
        "read_units": round(reads, 1),
        "dollars": round(prices.dollars(reads, writes), 6),
        "prices": prices.on_demand,
        "seconds": round(writes / (task.max_write_rate or math.inf), 1),
    }
