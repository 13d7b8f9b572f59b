"""CloudWatch and Contributor Insights of planted series, for tests of the report without a cloud.

Requests and answers are held to botocore's own models of the services, and to the limits that AWS
documents: queries of a request, datapoints of a page, how long minutes are kept, contributors of a
report. What the real service answers beyond that, only `make live` can show.
"""

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import botocore.session
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from keyhop.dynamodb.requester import send

NAMESPACE = "AWS/DynamoDB"
MOST_QUERIES = 500
MOST_DATAPOINTS = 100_800
MOST_CONTRIBUTORS = 25
"""Of a rule that DynamoDB has made ("Contributor Insights: How it works"); of others it is 100."""
KEPT = ((15, 60), (63, 300), (455, 3600))
"""Days, and the period of the data that are kept so long (API Reference, GetMetricData)."""
RULE_MADE = 1_700_000_000_000
DENIED = "AccessDenied"
THROTTLED = "Throttling"

Dimensions = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Run:
    """The same value in each minute of [began, ended), epoch seconds."""

    began: float
    ended: float
    each: float


@dataclass
class FakeCloudWatch:
    """boto3's client `cloudwatch`, as far as a report asks it. now: the service's clock.

    refusals: by boto3's name of an operation, the error code with which it is refused.
    asked: the parameters of each request, in order.
    """

    now: float
    refusals: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    page: int = MOST_DATAPOINTS
    _series: dict[tuple[str, Dimensions], list[Run]] = field(default_factory=dict)
    _rules: dict[str, dict[tuple[str, ...], list[Run]]] = field(default_factory=dict)

    def plant(
        self, metric: str, each: float, began: float, ended: float | None = None, **dimensions: str
    ) -> None:
        """A metric with the same value in each minute from `began` to `ended`, or in one minute.

        As "Sum", or for SuccessfulRequestLatency as "SampleCount".
        dimensions: as TableName="Orders", GlobalSecondaryIndexName="byCity", Operation="Scan".
        """
        key = (metric, frozenset(dimensions.items()))
        until = began + 60 if ended is None else ended
        self._series.setdefault(key, []).append(Run(began, until, each))

    def plant_life(
        self, table: str, indexes: Iterable[str] = (), days: float = 31, each: float = 0.0
    ) -> None:
        """Capacity metrics of a table and of GSIs, as the service emits them of idle ones too."""
        for index in (None, *indexes):
            where = {"TableName": table}
            if index is not None:
                where["GlobalSecondaryIndexName"] = index
            for kind in ("Read", "Write"):
                began = self.now - days * 86_400
                self.plant(f"Consumed{kind}CapacityUnits", each, began, self.now, **where)

    def plant_rule(
        self,
        kind: str,
        contributors: Mapping[tuple[str, ...], Sequence[Run]],
        table: str,
        index: str = "",
    ) -> str:
        """A rule of Contributor Insights, kind PKC, SKC, PKT or SKT; returns its name.

        contributors: by their keys, as ("a",) or ("a", "2026-11-22"), what each minute has.
        """
        resource = f"{table}-{index}" if index else table
        name = f"DynamoDBContributorInsights-{kind}-{resource}-{RULE_MADE}"
        self._rules[name] = {keys: list(runs) for keys, runs in contributors.items()}
        return name

    def rules_of(self, table: str, index: str = "") -> list[str]:
        """Their names, as DescribeContributorInsights has them."""
        resource = f"{table}-{index}" if index else table
        return [name for name in self._rules if name.split("-", 2)[2] == f"{resource}-{RULE_MADE}"]

    def get_metric_data(self, **asked: Any) -> dict[str, Any]:
        self._note("get_metric_data", asked)
        queries = asked["MetricDataQueries"]
        if len(queries) > MOST_QUERIES or len({one["Id"] for one in queries}) < len(queries):
            raise refusal("GetMetricData", "ValidationError", "Too many queries, or equal ids.")
        skipped = int(asked.get("NextToken") or 0)
        room = min(self.page, asked.get("MaxDatapoints", MOST_DATAPOINTS))
        results = []
        passed = 0
        for query in queries:
            points = self._points(query["MetricStat"], asked["StartTime"], asked["EndTime"])
            if asked.get("ScanBy") != "TimestampAscending":
                points.reverse()
            first = max(0, skipped - passed)
            shown = points[first : first + max(0, room)]
            room -= len(shown)
            passed += len(points)
            left = first + len(shown) < len(points)
            results.append(
                {
                    "Id": query["Id"],
                    "Label": query.get("Label", query["MetricStat"]["Metric"]["MetricName"]),
                    "Timestamps": [_moment(at) for at, _ in shown],
                    "Values": [value for _, value in shown],
                    "StatusCode": "PartialData" if left else "Complete",
                }
            )
        answer: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
        given = skipped + sum(len(one["Values"]) for one in results)
        if given < passed:
            answer["NextToken"] = str(given)
        points = ("Timestamps", "Values")
        ends = [one | {name: one[name][:2] for name in points} for one in results]
        _checked("cloudwatch", "GetMetricData", answer | {"MetricDataResults": ends})
        return answer

    def get_insight_rule_report(self, **asked: Any) -> dict[str, Any]:
        self._note("get_insight_rule_report", asked)
        operation = "GetInsightRuleReport"
        most = asked.get("MaxContributorCount", 10)
        if most > MOST_CONTRIBUTORS:
            raise refusal(operation, "InvalidParameterValue", "At most 25 contributors.")
        if asked["RuleName"] not in self._rules:
            raise refusal(operation, "ResourceNotFoundException", "There is no such rule.")
        by = max if asked.get("OrderBy") == "Maximum" else sum
        found = []
        for keys, runs in self._rules[asked["RuleName"]].items():
            points = _buckets(runs, asked["StartTime"], asked["EndTime"], asked["Period"])
            if points:
                found.append(
                    {
                        "Keys": list(keys),
                        "ApproximateAggregateValue": float(by(value for _, value in points)),
                        "Datapoints": [
                            {"Timestamp": _moment(at), "ApproximateValue": value}
                            for at, value in points
                        ],
                    }
                )
        found.sort(key=lambda one: -one["ApproximateAggregateValue"])
        labels = ["PartitionKey", "SortKey"] if "-SK" in asked["RuleName"] else ["PartitionKey"]
        answer = {
            "KeyLabels": labels,
            "AggregationStatistic": "Sum",
            "AggregateValue": float(sum(one["ApproximateAggregateValue"] for one in found)),
            "ApproximateUniqueCount": len(found),
            "Contributors": found[:most],
            "MetricDatapoints": [],
        }
        return _checked("cloudwatch", operation, answer)

    def _note(self, operation: str, asked: dict[str, Any]) -> None:
        names = {"get_metric_data": "GetMetricData"}
        title = names.get(operation, "GetInsightRuleReport")
        shape = _model("cloudwatch").operation_model(title).input_shape
        problems = ParamValidator().validate(asked, shape)
        assert not problems.has_errors(), problems.generate_report()
        self.asked.append((operation, asked))
        if code := self.refusals.get(operation):
            raise refusal(title, code)

    def _points(self, stat: Mapping[str, Any], start: Any, end: Any) -> list[tuple[float, float]]:
        metric = stat["Metric"]
        assert metric["Namespace"] == NAMESPACE, metric
        counts = metric["MetricName"] == "SuccessfulRequestLatency"
        assert stat["Stat"] == ("SampleCount" if counts else "Sum"), stat
        named = frozenset((one["Name"], one["Value"]) for one in metric["Dimensions"])
        runs = self._series.get((metric["MetricName"], named), ())
        oldest = next(
            (self.now - days * 86_400 for days, period in KEPT if stat["Period"] <= period),
            self.now - KEPT[-1][0] * 86_400,
        )
        return _buckets(runs, start, end, stat["Period"], oldest)


def _buckets(
    runs: Iterable[Run], start: Any, end: Any, period: int, oldest: float = 0.0
) -> list[tuple[float, float]]:
    """Sums by period, the oldest first; a minute counts where it begins."""
    found: dict[float, float] = {}
    since, until = max(start.timestamp(), oldest), end.timestamp()
    for run in runs:
        first = int(-(-max(since // 60 * 60, run.began) // 60) * 60)
        last = int(min(until, run.ended))
        for at in range(first // period * period, last, period):
            minutes = -(-(min(last, at + period) - max(first, at)) // 60)
            if minutes > 0:
                found[at] = found.get(at, 0.0) + minutes * run.each
    return sorted(found.items())


@dataclass
class DescribedTables:
    """A DynamoDB client whose tables are described beyond what a local database knows.

    client: Keyhop's or boto3's. table: put over DescribeTable's `Table`, as WarmThroughput;
    indexes: by name, put over an index's entry. cloudwatch: whose rules are told of.
    refusals: as of FakeCloudWatch.
    """

    client: Any
    cloudwatch: FakeCloudWatch | None = None
    table: Mapping[str, Any] = field(default_factory=dict)
    indexes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ttl: str | None = None
    made: float = 1_700_000_000.0
    refusals: dict[str, str] = field(default_factory=dict)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if code := self.refusals.get(operation):
            raise refusal("".join(part.title() for part in operation.split("_")), code)
        if operation == "describe_time_to_live" and self.ttl is not None:
            told = {"TimeToLiveStatus": "ENABLED", "AttributeName": self.ttl}
            answer = {"TimeToLiveDescription": told}
            return _checked("dynamodb", "DescribeTimeToLive", answer)
        if operation == "describe_contributor_insights":
            return self._insights(parameters["TableName"], parameters.get("IndexName", ""))
        answer = send(self.client, operation, parameters)
        return self._described(answer) if operation == "describe_table" else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def _described(self, answer: dict[str, Any]) -> dict[str, Any]:
        told = {**answer["Table"], **self.table}
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            if kind in told:
                own = self.indexes
                told[kind] = [{**one, **own.get(one["IndexName"], {})} for one in told[kind]]
        return {**answer, "Table": told}

    def _insights(self, table: str, index: str) -> dict[str, Any]:
        rules = self.cloudwatch.rules_of(table, index) if self.cloudwatch else []
        answer: dict[str, Any] = {
            "TableName": table,
            "ContributorInsightsStatus": "ENABLED" if rules else "DISABLED",
        }
        if index:
            answer["IndexName"] = index
        if rules:
            everything = any("-PKC-" in name for name in rules)
            answer |= {
                "ContributorInsightsRuleList": rules,
                "LastUpdateDateTime": _moment(self.made),
                "ContributorInsightsMode": "ACCESSED_AND_THROTTLED_KEYS"
                if everything
                else "THROTTLED_KEYS",
            }
        return _checked("dynamodb", "DescribeContributorInsights", answer)


def clients_of(cloudwatch: FakeCloudWatch, streams: Any = None) -> Callable[[str], Any]:
    """What the sources make their clients with."""
    return {"cloudwatch": cloudwatch, "dynamodbstreams": streams}.__getitem__


def refusal(operation: str, code: str, message: str = "") -> ClientError:
    """The error with which a service refuses a request, as boto3 raises it."""
    status = 400
    if code in (DENIED, "AccessDeniedException"):
        status = 403
        message = message or (
            "User: arn:aws:sts::111122223333:assumed-role/Reader/me is not authorized to perform: "
            f"cloudwatch:{operation} because no identity-based policy allows the "
            f"cloudwatch:{operation} action"
        )
    told = {"Code": code, "Message": message or "Rate exceeded"}
    return ClientError(
        {"Error": told, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        operation,
    )


def _moment(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC)


def _checked(service: str, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer, held to the service's model."""
    problems = ParamValidator().validate(
        answer, _model(service).operation_model(operation).output_shape
    )
    assert not problems.has_errors(), problems.generate_report()
    return answer


def as_recorded(text: str, service: str, operation: str) -> dict[str, Any]:
    """An answer that was written down as JSON, as boto3 would give it: times are times."""
    shape = _model(service).operation_model(operation).output_shape
    answer: dict[str, Any] = _timed(json.loads(text), shape)
    return _checked(service, operation, answer)


def _timed(value: Any, shape: Any) -> Any:
    if shape.type_name == "timestamp":
        return datetime.datetime.fromisoformat(value)
    if shape.type_name == "structure":
        return {name: _timed(one, shape.members[name]) for name, one in value.items()}
    if shape.type_name == "list":
        return [_timed(one, shape.member) for one in value]
    return value


@cache
def _model(service: str) -> Any:
    return botocore.session.Session().get_service_model(service)
