"""Which metrics of a table a report asks CloudWatch for, and in which requests. Pure.

Names, dimensions and statistics: "DynamoDB metrics and dimensions". Periods: API Reference,
GetMetricData: minutes are kept for 15 days, five minutes for 63, hours for 455.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from keyhop.report.facts import TABLE, Cause, TableFacts

NAMESPACE = "AWS/DynamoDB"
MOST_QUERIES = 500
"""Of one GetMetricData (API Reference)."""
MINUTE, HOUR, DAY = 60, 3600, 86_400
KEPT_DAYS = ((15, MINUTE), (63, 5 * MINUTE), (455, HOUR))
READ_DAYS = 30

DIRECTIONS: tuple[Literal["read", "write"], ...] = ("read", "write")
CAUSES: dict[Cause, str] = {
    "key range": "KeyRangeThroughput",
    "provisioned": "ProvisionedThroughput",
    "maximum": "MaxOnDemandThroughput",
    "account": "AccountLimit",
}
OPERATIONS = (
    *("GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"),
    *("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"),
    *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
)
RETURNING = ("Query", "Scan", "ExecuteStatement")
"""Operations that have ReturnedItemCount."""

What = tuple[str, ...]
"""consumed, direction, target; throttles, direction, cause, target; calls, operation; returned,
operation; days, direction, index."""


@dataclass(frozen=True, slots=True)
class Query:
    """One metric. dimensions: beside the table's name."""

    what: What
    metric: str
    period: int
    dimensions: tuple[tuple[str, str], ...] = ()
    statistic: str = "Sum"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, or several pages of it: queries over [began, ended), epoch seconds."""

    began: int
    ended: int
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """period: seconds of a datapoint of what is consumed and throttled in [began, ended)."""

    began: int
    ended: int
    period: int
    requests: tuple[Asked, ...]

    def asked(self, kind: str) -> Iterator[What]:
        """The queries of a kind, as "throttles"."""
        for request in self.requests:
            yield from (one.what for one in request.queries if one.what[0] == kind)

    @property
    def metrics(self) -> int:
        """How many are asked for, for the price."""
        return sum(len(one.queries) for one in self.requests)


def plan(table: TableFacts, now: float, since: float) -> Plan:
    """What to ask about the last `since` seconds, and about the last 30 days of each GSI.

    since: an hour at least, for the guard, and no longer than data are kept.
    """
    longest, _ = KEPT_DAYS[-1]
    seconds = min(max(since, HOUR), longest * DAY)
    period = next(period for days, period in KEPT_DAYS if seconds <= days * DAY)
    coarse = HOUR if seconds >= DAY else period
    ended = int(now // MINUTE * MINUTE)
    # Up, not down: the oldest datapoints of a window as long as they are kept are gone.
    began = math.ceil((ended - seconds) / coarse) * coarse
    indexes = [one.name for one in table.indexes if one.kind == "GSI"]
    window = _split(began, ended, [*_table(period, coarse), *_indexes(indexes, period)])
    today = int(now // DAY * DAY)
    month = _split(today - (READ_DAYS - 1) * DAY, ended, [*_days(indexes)])
    return Plan(began, ended, period, (*window, *month))


def _split(began: int, ended: int, queries: Sequence[Query]) -> list[Asked]:
    firsts = range(0, len(queries), MOST_QUERIES)
    return [Asked(began, ended, tuple(queries[at : at + MOST_QUERIES])) for at in firsts]


def _table(period: int, coarse: int) -> Iterator[Query]:
    yield from _capacity(TABLE, period)
    for operation in OPERATIONS:
        where = (("Operation", operation),)
        name = "SuccessfulRequestLatency"
        yield Query(("calls", operation), name, coarse, where, "SampleCount")
        if operation in RETURNING:
            yield Query(("returned", operation), "ReturnedItemCount", coarse, where)


def _indexes(indexes: Sequence[str], period: int) -> Iterator[Query]:
    for index in indexes:
        yield from _capacity(index, period)


def _capacity(target: str, period: int) -> Iterator[Query]:
    """What a table or a GSI consumes, and its throttles by cause."""
    where = _where(target)
    for direction in DIRECTIONS:
        title = direction.title()
        consumed = f"Consumed{title}CapacityUnits"
        yield Query(("consumed", direction, target), consumed, period, where)
        for cause, name in CAUSES.items():
            if (direction, cause) == ("write", "account") and target != TABLE:
                continue  # that metric has no dimension for an index
            what = ("throttles", direction, cause, target)
            yield Query(what, f"{title}{name}ThrottleEvents", period, where)


def _days(indexes: Sequence[str]) -> Iterator[Query]:
    for index in indexes:
        for direction in DIRECTIONS:
            name = f"Consumed{direction.title()}CapacityUnits"
            yield Query(("days", direction, index), name, DAY, _where(index))


def _where(target: str) -> tuple[tuple[str, str], ...]:
    return () if target == TABLE else (("GlobalSecondaryIndexName", target),)
