"""The read units, the time and the price of a run. Pure.

Formulas: Lambda = seconds x GB x price, and a price for each invocation; Step Functions = state
transitions x price; S3 = requests x price. A run has about ten transitions, and each group adds its
start, its end and two for each invocation (ScanSegments, IsGroupDone). Retries add transitions that
these formulas do not include.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.units import (
    BLOCK_BYTES,
    FULL_PAGE_UNITS,
    PAGE_BYTES,
    UNITS_PER_BLOCK,
    US_EAST_1,
    Prices,
)
from keyhop.errors import TooExpensive
from keyhop.jobs.layout import HOPPING, READING, SCAN_SECONDS_PER_BYTE, Layout, Method
from keyhop.scan.statistics import Findings, Interval

DOLLARS_PER_GB_SECOND = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
DOLLARS_PER_INVOCATION = 0.20 / 1_000_000
DOLLARS_PER_TRANSITION = 0.025 / 1_000
DOLLARS_PER_PUT = 0.005 / 1_000
DOLLARS_PER_GET = 0.0004 / 1_000

OTHER_SERVICES = f"; Lambda, Step Functions and S3 as in {US_EAST_1.whose}"

OWN_TRANSITIONS = 10
TRANSITIONS_PER_GROUP = 2
TRANSITIONS_PER_INVOCATION = 2

ROOM = 1.2
"""The factor by which a repeated estimate, with another sample, may be higher than this one."""


@dataclass(frozen=True, slots=True)
class FunctionSize:
    """The memory and the architecture ("arm64" or "x86_64") of a worker function."""

    memory_mb: int
    architecture: str

    def dollars(self, seconds: float) -> float:
        """Return the price of `seconds` seconds, without the invocations."""
        return seconds * self.memory_mb / 1024 * DOLLARS_PER_GB_SECOND[self.architecture]


@dataclass(frozen=True, slots=True)
class Cost:
    """The predicted cost of a method, which is a lower limit if `at_least` is true."""

    units: Interval
    requests: float
    seconds: float
    at_least: bool = False


def price(read_units: float, prices: Prices) -> dict[str, Any]:
    """Return the on-demand cost of read units, with the date of the price."""
    return {
        "dollars": round(prices.dollars(read_units), 9),
        "price": f"on-demand reads, {prices.whose}",
    }


def skip_cost(findings: Findings, layout: Layout, max_rate: float | None) -> Cost:
    """Predict the cost of a skip-scan."""
    ends = UNITS_PER_BLOCK * (layout.segments - 1)
    units = findings.keys.scaled(findings.skip.units_per_key)
    units = Interval(units.mean + ends, units.low, units.high + ends)
    requests = findings.keys.mean * findings.skip.requests_per_key + layout.segments
    return _cost(units, requests, findings, layout, max_rate)


def published_cost(findings: Findings, max_rate: float | None) -> Cost:
    """Return the cost of the published way, which reads one item in each of its serial requests."""
    units = findings.keys.scaled(findings.published_units_per_key)
    return _cost(units, findings.keys.mean, findings, Layout(1, 1), max_rate)


def scan_cost(findings: Findings, size_bytes: int, layout: Layout, max_rate: float | None) -> Cost:
    """Return the cost of reading everything, based on the reported size.

    That can be six hours old. If the sample proves that the table is larger, it is a lower limit.
    """
    proven = findings.keys.low * findings.skip.units_per_key / UNITS_PER_BLOCK * BLOCK_BYTES
    at_least = size_bytes < proven
    size = max(float(size_bytes), findings.keys.mean * findings.item_bytes if at_least else 0.0)
    units = UNITS_PER_BLOCK * (size / BLOCK_BYTES + (layout.segments - 1))
    interval = Interval(units, units, units)
    requests = size / PAGE_BYTES + layout.segments
    return replace(_cost(interval, requests, findings, layout, max_rate, size), at_least=at_least)


def index_cost(
    findings: Findings, row_bytes: float, layout: Layout, max_rate: float | None
) -> Cost:
    """Return the cost of reading an index that has one row for each key."""
    size = findings.keys.scaled(row_bytes)
    units = size.scaled(UNITS_PER_BLOCK / BLOCK_BYTES)
    ends = UNITS_PER_BLOCK * layout.segments
    units = Interval(units.mean + ends, units.low + ends, units.high + ends)
    requests = size.mean / PAGE_BYTES + layout.segments
    return _cost(units, requests, findings, layout, max_rate, size.mean)


def _cost(
    units: Interval,
    requests: float,
    findings: Findings,
    layout: Layout,
    max_rate: float | None,
    bytes_read: float = 0.0,
) -> Cost:
    """Return a cost with the time that it takes; hops count as requests, and not by their bytes."""
    busy = (requests * findings.latency + bytes_read * SCAN_SECONDS_PER_BYTE) / layout.threads
    return Cost(units, requests, max(busy, units.mean / max_rate) if max_rate else busy)


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
    """Return the dollars of a run on AWS by service, as plain JSON.

    Args:
        seconds: The sum of the seconds of all workers.
        prices: The prices of DynamoDB. Those of the other services are us-east-1's.
    """
    transitions = (
        OWN_TRANSITIONS + TRANSITIONS_PER_GROUP * groups + TRANSITIONS_PER_INVOCATION * invocations
    )
    parts = {
        "dynamodb": prices.dollars(read_units, write_units),
        "lambda": worker.dollars(seconds) + invocations * DOLLARS_PER_INVOCATION,
        "step_functions": transitions * DOLLARS_PER_TRANSITION,
        # The run writes a commit and its part once, and reads them to sum up. Each invocation
        # reads the plan and looks for commits.
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
    prices: Prices,
) -> float:
    """Predict the dollars for reading `units` read units, including the workers' time.

    The other costs of a run are a few percent. A worker is paid for while it waits for a rate, so
    the result depends on `at_once`, the number of workers.
    """
    if not math.isfinite(units):
        return math.inf
    pages = units / (UNITS_PER_BLOCK if method == "skip" else FULL_PAGE_UNITS)
    seconds = pages * (HOPPING if method == "skip" else READING).cpu_seconds
    if max_rate:
        seconds = max(seconds, units / max_rate * at_once)
    return prices.dollars(units) + worker.dollars(seconds)


def cost_of_check(
    worker: FunctionSize,
    read_units: float,
    seconds: float,
    invocations: int,
    prices: Prices = US_EAST_1,
) -> float:
    """Return the dollars of a sampled check, for all services."""
    per_invocation = DOLLARS_PER_INVOCATION + TRANSITIONS_PER_INVOCATION * DOLLARS_PER_TRANSITION
    dollars = prices.dollars(read_units) + worker.dollars(seconds) + invocations * per_invocation
    return round(dollars, 9)


def with_check(
    summary: Mapping[str, Any], verdict: Mapping[str, Any], dollars: float
) -> dict[str, Any]:
    """Return a manifest or a result with the verdict and the dollars of a check of the run."""
    cost = dict(summary["cost"])
    run_alone = cost["total"] - cost.pop("verify", 0.0)
    cost |= {"verify": dollars, "total": round(run_alone + dollars, 9)}
    return {**summary, "verify": dict(verdict), "cost": cost}


def refuse_above(
    dollars: Callable[[float], float],
    units: Interval,
    limit: float,
    job_input: Mapping[str, Any],
    is_own: bool,
) -> None:
    """Raise TooExpensive if the upper end of the estimate is more than `limit` dollars.

    Args:
        dollars: Returns the price of a number of units, of whatever kind.
        is_own: Whether `job_input` contains `limit`.
    """
    high = dollars(units.high)
    if high <= limit:
        return
    amount = "more than can be estimated" if math.isinf(high) else f"up to ${high:,.2f}"
    needed = (
        math.ceil(ROOM * (high + dollars(units.high - units.low)))
        if math.isfinite(high)
        else math.ceil(2 * limit)
    )
    whose = "as its input says" if is_own else "as this deployment is set (keyhop.json)"
    raise TooExpensive(
        f"This may cost {amount}, about ${dollars(units.mean):,.2f} by a sample, and maxCost is "
        f"${limit:g}, {whose}. This run has read nothing but a sample. To do it, start, under "
        f"another name, with {json.dumps({**job_input, 'maxCost': needed})}"
    )
