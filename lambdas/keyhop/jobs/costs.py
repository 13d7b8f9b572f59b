"""What a run on AWS costs, besides its reads. Pure.

Formulas: Lambda = seconds x GB x price, and a price for each invocation; Step Functions = state
transitions x price; S3 = requests x price. A run's transitions: about ten of its own, and for each
group its start, its end and two for each invocation (ScanSegments, IsGroupDone); retries count too,
and are not seen here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.capacity import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.prices import US_EAST_1, Prices
from keyhop.jobs.layout import HOPPING, READING, Method

DOLLARS_PER_GB_SECOND = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
DOLLARS_PER_INVOCATION = 0.20 / 1_000_000
DOLLARS_PER_TRANSITION = 0.025 / 1_000
DOLLARS_PER_PUT = 0.005 / 1_000
DOLLARS_PER_GET = 0.0004 / 1_000

FULL_PAGE_UNITS = UNITS_PER_BLOCK * PAGE_BYTES / BLOCK_BYTES
OTHER_SERVICES = f"; Lambda, Step Functions and S3 as in {US_EAST_1.whose}"

OWN_TRANSITIONS = 10
TRANSITIONS_PER_GROUP = 2
TRANSITIONS_PER_INVOCATION = 2


@dataclass(frozen=True, slots=True)
class FunctionSize:
    """The size of a worker function. architecture: arm64 or x86_64."""

    memory_mb: int
    architecture: str


def run_cost(
    worker: FunctionSize,
    read_units: float,
    seconds: float,
    invocations: int,
    groups: int,
    commits: int,
    write_units: float = 0.0,
    prices: Prices = US_EAST_1,
) -> dict[str, Any]:
    """Dollars by service, as plain JSON. seconds: of all workers together. prices: DynamoDB's;
    those of the other services are us-east-1's.
    """
    gigabytes = worker.memory_mb / 1024
    transitions = (
        OWN_TRANSITIONS + TRANSITIONS_PER_GROUP * groups + TRANSITIONS_PER_INVOCATION * invocations
    )
    parts = {
        "dynamodb": prices.dollars(read_units, write_units),
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
        "prices": prices.on_demand + ("" if prices == US_EAST_1 else OTHER_SERVICES),
    }


def dollars_of_reading(
    worker: FunctionSize,
    units: float,
    method: Method,
    at_once: int,
    max_rate: float | None,
    prices: Prices = US_EAST_1,
) -> float:
    """Dollars of a run that reads so many units, DynamoDB and the workers' time, before it is made.

    A process sends as many requests as in a plan (layout.CPU_SECONDS). at_once: workers, paid for
    while they wait for a rate too. What else a run costs is a few hundredths.
    """
    if not math.isfinite(units):
        return math.inf
    pages = units / (UNITS_PER_BLOCK if method == "skip" else FULL_PAGE_UNITS)
    seconds = pages * (HOPPING if method == "skip" else READING).cpu_seconds
    if max_rate:
        seconds = max(seconds, units / max_rate * at_once)
    gigabytes = worker.memory_mb / 1024
    return prices.dollars(units) + seconds * gigabytes * DOLLARS_PER_GB_SECOND[worker.architecture]


def check_cost(
    worker: FunctionSize,
    read_units: float,
    seconds: float,
    invocations: int,
    prices: Prices = US_EAST_1,
) -> float:
    """Dollars of the sampled check, all services together; `worker`: the function that reads."""
    gigabytes = worker.memory_mb / 1024
    dollars = (
        prices.dollars(read_units)
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
