"""CloudWatch's metrics of a table (M): what it consumes, its throttles, and the calls.

Names, dimensions and statistics: "DynamoDB metrics and dimensions". Periods: API Reference,
GetMetricData: minutes are kept for 15 days, five minutes for 63, hours for 455.

CloudWatch has no datapoints for events that did not happen: a throttle metric without datapoints
may mean that nothing was throttled, or that CloudWatch does not show the metrics of this table. The
consumed units decide, because an idle table emits them too (SampleCount of
ConsumedReadCapacityUnits). If these metrics have datapoints, the absence of others means 0; if not,
nothing is known.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Literal, cast

from keyhop.report.facts import TABLE, Absent, Cause, MetricFacts, TableFacts, Throttles
from keyhop.report.findings import Spent
from keyhop.report.sources.absence import ANY, FAILURES, Looked, why_absent
from keyhop.wording import duration

ACTIONS: Mapping[str, tuple[str, ...]] = {"cloudwatch:GetMetricData": (ANY,)}

DOLLARS_PER_METRIC = 0.01 / 1000
"""The price of each requested metric (CloudWatch pricing, us-east-1, 2026-08)."""
MAX_QUERIES = 500
"""The maximum number of queries of a GetMetricData (API Reference)."""
MINUTE, HOUR, DAY = 60, 3600, 86_400
KEPT_DAYS = ((15, MINUTE), (63, 5 * MINUTE), (455, HOUR))
READ_DAYS = 30
DENIED, FAILED = "Forbidden", "InternalError"

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
"""The operations that have ReturnedItemCount."""

What = tuple[str, ...]
"""consumed, direction, target; throttles, direction, cause, target; all throttles, direction,
target; calls, operation; returned, operation; days, direction, index."""
Points = Sequence[tuple[float, float]]
"""Pairs of the first second of a period and its value, in any order."""


@dataclass(frozen=True, slots=True)
class Own:
    """Keyhop itself read the table between two moments in epoch seconds; that does not count.

    Attributes:
        calls: The number of calls by operation, as "Scan".
        read_units: The read units of the table and its indexes.
    """

    began: float
    ended: float
    calls: Mapping[str, float] = field(default_factory=dict)
    read_units: float = 0.0

    @classmethod
    def of_report(cls, document: Mapping[str, Any]) -> "Own":
        """Return what an earlier report of the table did, from its JSON, whose `at` is its start.

        Without it, its reads would count as those of a user. All of its requests are counted as
        Scans, as nearly all are.
        """
        at, spent = float(document["at"]), document["spent"]
        scans = {"Scan": float(spent["requests"])}
        return cls(at, at + float(spent["seconds"]), scans, float(spent["rru"]))

    def within(self, began: float, ended: float, operation: str) -> float:
        """Return the calls of an operation in a window, as if they were spread evenly."""
        if self.ended <= self.began:
            share = float(began <= self.began < ended)
        else:
            overlap = min(self.ended, ended) - max(self.began, began)
            share = max(0.0, overlap) / (self.ended - self.began)
        return share * self.calls.get(operation, 0.0)


def look(
    client: Any | Absent,
    table: TableFacts,
    now: float,
    since: float,
    ours: Sequence[Own] = (),
) -> Looked[MetricFacts]:
    """Return the metrics of the last `since` seconds, and the days on which GSIs were read.

    Args:
        client: The client of boto3 for CloudWatch.
        table: The table.
        now: The time in epoch seconds.
        since: The seconds to look back: at least an hour, which the guard needs (absence.py). The
            maximum is the time for which CloudWatch keeps data.
        ours: The calls of Keyhop itself.
    """
    if isinstance(client, Absent):
        return Looked(client)
    longest, _ = KEPT_DAYS[-1]
    seconds = min(max(since, HOUR), longest * DAY)
    period = next(period for days, period in KEPT_DAYS if seconds <= days * DAY)
    coarse = HOUR if seconds >= DAY else period
    ended = int(now // MINUTE * MINUTE)
    # Up, not down: of a window of the maximum length, the oldest datapoints are deleted already.
    began = math.ceil((ended - seconds) / coarse) * coarse
    first_day = int(now // DAY * DAY) - (READ_DAYS - 1) * DAY
    indexes = [index.name for index in table.indexes if index.kind == "GSI"]
    queries = [*_capacity(TABLE, period), *_calls(coarse)]
    for index in indexes:
        queries += _capacity(index, period)
    answers = _Answers()
    try:
        answers.ask(client, table, began, ended, queries)
        answers.ask(client, table, first_day, ended, [*_days(indexes)])
    except FAILURES as error:
        absent = why_absent(error, "CloudWatch", "cloudwatch:GetMetricData")
        return Looked(absent, answers.spent)
    return Looked(_facts(table, began, ended, period, answers, ours), answers.spent)


@dataclass(frozen=True, slots=True)
class _Query:
    """A metric; `dimensions` are those besides the table's name."""

    what: What
    metric: str
    period: int
    dimensions: tuple[tuple[str, str], ...] = ()
    statistic: str = "Sum"

    def in_request(self, id_: str, table: TableFacts) -> dict[str, Any]:
        """Return the query for a request.

        A table that was named by its ARN gets its account: this one may have a table of that name.
        """
        dimensions = [("TableName", table.name), *self.dimensions]
        account = {"AccountId": table.arn.split(":")[4]} if table.by_arn else {}
        return {
            "Id": id_,
            **account,
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/DynamoDB",
                    "MetricName": self.metric,
                    "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions],
                },
                "Period": self.period,
                "Stat": self.statistic,
            },
        }


def _capacity(target: str, period: int) -> Iterator[_Query]:
    """Yield the consumed units of a table or a GSI, and its throttles, also by cause."""
    for direction in DIRECTIONS:
        title, where = direction.title(), _where(target)
        consumed = f"Consumed{title}CapacityUnits"
        yield _Query(("consumed", direction, target), consumed, period, where)
        every = f"{title}ThrottleEvents"
        yield _Query(("all throttles", direction, target), every, period, where)
        for cause, name in CAUSES.items():
            if (direction, cause) == ("write", "account") and target != TABLE:
                continue  # that metric has no dimension for an index
            what = ("throttles", direction, cause, target)
            yield _Query(what, f"{title}{name}ThrottleEvents", period, where)


def _calls(period: int) -> Iterator[_Query]:
    for operation in OPERATIONS:
        where = (("Operation", operation),)
        latency = "SuccessfulRequestLatency"
        yield _Query(("calls", operation), latency, period, where, "SampleCount")
        if operation in RETURNING:
            yield _Query(("returned", operation), "ReturnedItemCount", period, where)


def _days(indexes: Sequence[str]) -> Iterator[_Query]:
    for index in indexes:
        for direction in DIRECTIONS:
            name = f"Consumed{direction.title()}CapacityUnits"
            yield _Query(("days", direction, index), name, DAY, _where(index))


def _where(target: str) -> tuple[tuple[str, str], ...]:
    return () if target == TABLE else (("GlobalSecondaryIndexName", target),)


@dataclass(slots=True)
class _Answers:
    """The queries and their answers.

    Attributes:
        failed: The queries that CloudWatch could not answer.
    """

    points: dict[What, list[tuple[float, float]]] = field(default_factory=dict)
    failed: set[What] = field(default_factory=set)
    statuses: set[str] = field(default_factory=set)
    queries: list[What] = field(default_factory=list)
    requests: int = 0
    metrics: int = 0

    def ask(
        self, client: Any, table: TableFacts, began: int, ended: int, queries: Sequence[_Query]
    ) -> None:
        """Send queries about [began, ended), with all pages; raise what the client raises."""
        self.queries += (query.what for query in queries)
        for first in range(0, len(queries), MAX_QUERIES):
            by_id = {
                f"q{at}": query for at, query in enumerate(queries[first : first + MAX_QUERIES])
            }
            token: str | None = None
            while True:
                self.requests += 1
                self.metrics += len(by_id)
                answer = client.get_metric_data(
                    MetricDataQueries=[
                        query.in_request(id_, table) for id_, query in by_id.items()
                    ],
                    StartTime=datetime.fromtimestamp(began, UTC),
                    EndTime=datetime.fromtimestamp(ended, UTC),
                    **({"NextToken": token} if token else {}),
                )
                for result in answer.get("MetricDataResults", ()):  # an emulator may have none
                    self._take(by_id[result["Id"]].what, result)
                token = answer.get("NextToken")
                if not token:
                    break

    def _take(self, what: What, result: Mapping[str, Any]) -> None:
        status = result.get("StatusCode", "Complete")
        self.statuses.add(status)
        if status in (DENIED, FAILED):
            self.failed.add(what)
        times = (moment.timestamp() for moment in result["Timestamps"])
        self.points.setdefault(what, []).extend(zip(times, result["Values"], strict=True))

    @property
    def spent(self) -> Spent:
        """Return the cost, where a page costs as much as its request."""
        return Spent(0.0, self.requests, self.metrics * DOLLARS_PER_METRIC, 0.0)

    def of(self, *what: str) -> Points:
        return self.points.get(what, ())

    def total(self, *what: str) -> float:
        return float(sum(value for _, value in self.of(*what)))

    def is_alive(self, target: str) -> bool:
        """Return whether CloudWatch shows the metrics of the table or a GSI."""
        return any(self.of("consumed", direction, target) for direction in DIRECTIONS)


def _facts(
    table: TableFacts, began: int, ended: int, period: int, answers: _Answers, ours: Sequence[Own]
) -> MetricFacts | Absent:
    if answers.statuses == {DENIED}:
        return Absent(
            "CloudWatch shows no metric of the table here", "run the report in the table's account"
        )
    if not answers.is_alive(TABLE):
        return Absent(
            f"CloudWatch has no datapoints of the table in {duration(ended - began)}, "
            "although even an idle table has some",
            "give a --since in which the table existed, and the table's account and region",
        )
    indexes = [index.name for index in table.indexes if index.kind == "GSI"]
    targets = [TABLE, *(name for name in indexes if answers.is_alive(name))]

    def own_calls(operation: str) -> float:
        return sum(traffic.within(began, ended, operation) for traffic in ours)

    return MetricFacts(
        began=max(began, min(table.created, ended - period)),
        ended=ended,
        consumed=_consumed(answers, targets, answers.total),
        peak=_consumed(
            answers,
            targets,
            lambda *what: max((units for _, units in answers.of(*what)), default=0.0) / period,
        ),
        throttles=_throttles(answers, table, targets, period),
        calls={
            operation: max(0.0, total - own_calls(operation))
            for operation, total in _by_operation(answers, "calls")
        },
        returned=dict(_by_operation(answers, "returned")),
        read_days={name: _read_days(answers, name, ours) for name in indexes},
        minutes=tuple(
            (at, units * MINUTE / period)
            for at, units in sorted(answers.of("consumed", "write", TABLE))
            if units
        ),
        period=period,
        hours={
            operation: sum(count > 0 for _, count in answers.of("calls", operation))
            for operation in OPERATIONS
            if ended - began >= DAY
        },
    )


def _consumed(
    answers: _Answers, targets: Sequence[str], value_of: Callable[..., float]
) -> dict[tuple[str, str], float]:
    return {
        (direction, target): value_of("consumed", direction, target)
        for target in targets
        for direction in DIRECTIONS
        if ("consumed", direction, target) not in answers.failed
    }


def _throttles(
    answers: _Answers, table: TableFacts, targets: Sequence[str], period: int
) -> dict[tuple[str, Cause, str], Throttles]:
    """Return the throttles; for an index without metrics only those with events.

    The metrics by cause are younger than those of all throttles. Throttles of unknown cause count
    as those of provisioned units, and on demand as those of a key range. A table's throttles may
    include those of its indexes.
    """
    throttles: dict[tuple[str, Cause, str], Throttles] = {}
    for what in answers.queries:
        if what[0] != "throttles" or what in answers.failed:
            continue
        _, direction, cause, target = what
        ends = [at + period for at, events in answers.of(*what) if events]
        if ends or target in targets:
            key = direction, cast(Cause, cause), target
            throttles[key] = Throttles(answers.total(*what), max(ends, default=None))
    for target in targets:
        is_on_demand = (table.index(target) or table).throughput is None
        likely: Cause = "key range" if is_on_demand else "provisioned"
        for direction in DIRECTIONS:
            counted = throttles.get((direction, likely, target))
            points = _unexplained(answers, direction, target, targets)
            if counted is not None and points:
                last = max(counted.last or 0.0, max(points) + period)
                events = counted.events + sum(points.values())
                throttles[direction, likely, target] = Throttles(events, last)
    return throttles


def _unexplained(
    answers: _Answers, direction: str, target: str, targets: Sequence[str]
) -> Mapping[float, float]:
    """Return the throttles whose cause CloudWatch does not show, by time."""
    explained = [answers.of("throttles", direction, cause, target) for cause in CAUSES]
    if target == TABLE:
        explained += [answers.of("all throttles", direction, index) for index in targets if index]
    unexplained = dict(answers.of("all throttles", direction, target))
    for at, events in chain(*explained):
        unexplained[at] = unexplained.get(at, 0.0) - events
    return {at: events for at, events in unexplained.items() if events > 0}


def _by_operation(answers: _Answers, kind: str) -> Iterator[tuple[str, float]]:
    for what in answers.queries:
        if what[0] == kind and what not in answers.failed:
            yield what[1], answers.total(*what)


def _read_days(answers: _Answers, index: str, ours: Sequence[Own]) -> int | None:
    """Return on how many of the last days an index was read, by others than Keyhop.

    Without reads it is 0 if each day has datapoints, of reads or writes, and otherwise None.
    """
    count = sum(
        units > sum(own.read_units for own in ours if own.began < at + DAY and own.ended >= at)
        for at, units in dict(answers.of("days", "read", index)).items()
    )
    days = {at for direction in DIRECTIONS for at, _ in answers.of("days", direction, index)}
    return count if count or len(days) >= READ_DAYS else None
