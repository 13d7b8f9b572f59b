"""What a run on AWS costs, besides its reads. Pure.

Formulas: Lambda = seconds x GB x price, and a price for each invocation; Step Functions = state
transitions x price; S3 = requests x price. A run's transitions: about ten of its own, and for each
group its start, its end and two for each invocation (ScanSegments, IsGroupDone); retries count too,
and are not seen here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.capacity import ON_DEMAND, read_dollars, write_dollars

DOLLARS_PER_GB_SECOND = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
DOLLARS_PER_INVOCATION = 0.20 / 1_000_000
DOLLARS_PER_TRANSITION = 0.025 / 1_000
DOLLARS_PER_PUT = 0.005 / 1_000
DOLLARS_PER_GET = 0.0004 / 1_000

OWN_TRANSITIONS = 10
TRANSITIONS_PER_GROUP = 2
TRANSITIONS_PER_INVOCATION = 2


@dataclass(frozen=True, slots=True)
class Worker:
    """The size of a worker function. architecture: arm64 or x86_64."""

    memory_mb: int
    architecture: str


def run_cost(
    worker: Worker,
    read_units: float,
    seconds: float,
    invocations: int,
    groups: int,
    commits: int,
    write_units: float = 0.0,
) -> dict[str, Any]:
    """Dollars by service, as plain JSON. seconds: of all workers together."""
    gigabytes = worker.memory_mb / 1024
    transitions = (
        OWN_TRANSITIONS + TRANSITIONS_PER_GROUP * groups + TRANSITIONS_PER_INVOCATION * invocations
    )
    parts = {
        "dynamodb": read_dollars(read_units) + write_dollars(write_units),
        "lambda": seconds * gigabytes * DOLLARS_PER_GB_SECOND[worker.architecture]
        + invocations * DOLLARS_PER_INVOCATION,
        "step_functions": transitions * DOLLARS_PER_TRANSITION,
        # A commit and its part are written once, and read when the run is summed up; each
        # invocation reads the plan, and looks for commits.
        "s3": 2 * commits * DOLLARS_PER_PUT + (2 * commits + 2 * invocations) * DOLLARS_PER_GET,
    }
    return {
        **{name: round(dollars, 9) for name, dollars in parts.items()},
        "total": round(sum(parts.values()), 9),
        "prices": ON_DEMAND,
    }


def check_cost(worker: Worker, read_units: float, seconds: float, invocations: int) -> float:
    """Dollars of the sampled check, all services together; `worker`: the function that reads."""
    gigabytes = worker.memory_mb / 1024
    dollars = (
        read_dollars(read_units)
        + seconds * gigabytes * DOLLARS_PER_GB_SECOND[worker.architecture]
        + invocations
        * (DOLLARS_PER_INVOCATION + TRANSITIONS_PER_INVOCATION * DOLLARS_PER_TRANSITION)
    )
    return round(dollars, 9)


def with_check(
    summary: Mapping[str, Any], verdict: Mapping[str, Any], dollars: float
) -> dict[str, Any]:
    """A manifest or a result, with what a check of the run has found and cost."""
    cost = dict(summary["cost"])
    run_alone = cost["total"] - cost.pop("verify", 0.0)
    cost |= {"verify": dollars, "total": round(run_alone + dollars, 9)}
    return {**summary, "verify": dict(verdict), "cost": cost}
