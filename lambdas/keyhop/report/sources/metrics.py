"""CloudWatch's metrics of a table (M): what it consumes, which throttles it has, who calls it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from keyhop.report.facts import Absent, MetricFacts, TableFacts
from keyhop.report.findings import Spent
from keyhop.report.sources.absence import ANY, FAILURES, Looked, why_absent
from keyhop.report.sources.metric_facts import Own, Series, facts_of
from keyhop.report.sources.metric_plan import NAMESPACE, Asked, Plan, Query, What, plan

ACTIONS: Mapping[str, tuple[str, ...]] = {"cloudwatch:GetMetricData": (ANY,)}

DOLLARS_PER_METRIC = 0.01 / 1000
"""Of those requested, from the first on (CloudWatch pricing, us-east-1, 2026-08)."""
DENIED = "Forbidden"
FAILED = "InternalError"


def look(
    client: Any | Absent,
    table: TableFacts,
    now: float,
    since: float,
    ours: Sequence[Own] = (),
) -> Looked[MetricFacts]:
    """Of the last `since` seconds; of GSIs also on which of the last 30 days they were read.

    client: boto3's of CloudWatch. ours: what Keyhop itself did to the table. A refusal is Absent.
    """
    if isinstance(client, Absent):
        return Looked(client)
    wanted = plan(table, now, since)
    answers = _Answers()
    try:
        for request in wanted.requests:
            answers.ask(client, table, request)
    except FAILURES as error:
        absent = why_absent(error, "CloudWatch", "cloudwatch:GetMetricData")
        return Looked(absent, answers.spent)
    if answers.is_denied:
        told = Absent("CloudWatch shows no metric of the table here", "look in its own account")
        return Looked(told, answers.spent)
    return Looked(_facts(wanted, answers, table, ours), answers.spent)


def _facts(
    wanted: Plan, answers: "_Answers", table: TableFacts, ours: Sequence[Own]
) -> MetricFacts | Absent:
    return facts_of(wanted, Series(answers.points, frozenset(answers.failed)), table, ours)


@dataclass(slots=True)
class _Answers:
    """What has been answered so far, over the pages of all requests."""

    points: dict[What, list[tuple[float, float]]] = field(default_factory=dict)
    failed: set[What] = field(default_factory=set)
    statuses: set[str] = field(default_factory=set)
    requests: int = 0
    metrics: int = 0

    def ask(self, client: Any, table: TableFacts, asked: Asked) -> None:
        """One request and its pages; raises what the client raises."""
        by_id = {f"q{at}": query for at, query in enumerate(asked.queries)}
        token: str | None = None
        while True:
            self.requests += 1
            self.metrics += len(by_id)
            answer = client.get_metric_data(
                MetricDataQueries=[_in_request(id_, query, table) for id_, query in by_id.items()],
                StartTime=datetime.fromtimestamp(asked.began, UTC),
                EndTime=datetime.fromtimestamp(asked.ended, UTC),
                **({"NextToken": token} if token else {}),
            )
            for one in answer.get("MetricDataResults", ()):  # an emulator may have none
                self._take(by_id[one["Id"]].what, one)
            token = answer.get("NextToken")
            if not token:
                return

    def _take(self, what: What, told: Mapping[str, Any]) -> None:
        status = told.get("StatusCode", "Complete")
        self.statuses.add(status)
        if status in (DENIED, FAILED):
            self.failed.add(what)
        times = (moment.timestamp() for moment in told["Timestamps"])
        self.points.setdefault(what, []).extend(zip(times, told["Values"], strict=True))

    @property
    def is_denied(self) -> bool:
        return self.statuses == {DENIED}

    @property
    def spent(self) -> Spent:
        """A page is taken to cost what its request does."""
        return Spent(0.0, self.requests, self.metrics * DOLLARS_PER_METRIC, 0.0)


def _in_request(id_: str, query: Query, table: TableFacts) -> dict[str, Any]:
    """With the account of a table that may be another's: its name may be that of one here."""
    dimensions = [("TableName", table.name), *query.dimensions]
    account = {"AccountId": table.arn.split(":")[4]} if table.by_arn else {}
    return {
        "Id": id_,
        **account,
        "MetricStat": {
            "Metric": {
                "Namespace": NAMESPACE,
                "MetricName": query.metric,
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions],
            },
            "Period": query.period,
            "Stat": query.statistic,
        },
    }
