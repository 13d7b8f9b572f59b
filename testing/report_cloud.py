"""CloudWatch and Contributor Insights with planted series, for tests of the report without a cloud.

Requests and answers are validated against botocore's models of the services, and the limits in
AWS's documentation: queries of a request, datapoints of a page, retention, contributors of a
report. Only `make live` can show any other behaviour of the real services.
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
"""The limit of DynamoDB's rules ("Contributor Insights: How it works"); of others it is 100."""
KEPT = ((15, 60), (63, 300), (455, 3600))
"""The retention in days of data by their period in seconds (API Reference, GetMetricData)."""
RULE_MADE = 1_700_000_000_000
DENIED = "AccessDenied"
THROTTLED = "Throttling"

Dimensions = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Run:
    """A series with the same value in each minute of [began, ended), in epoch seconds."""

    began: float
    ended: float
    each: float


@dataclass
class FakeCloudWatch:
    """The operations of boto3's client `cloudwatch` that a report uses.

    Attributes:
        now: The service's time.
        refusals: The error codes of refused operations, by boto3's names of the operations.
        asked: Each request in order, with its operation and parameters.
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
        """Plant a metric with one value in each minute from `began` to `ended`, or in one minute.

        The value is the "Sum", or the "SampleCount" of SuccessfulRequestLatency. Dimensions are,
        for example, TableName="Orders", GlobalSecondaryIndexName="byCity", Operation="Scan".
        """
        key = (metric, frozenset(dimensions.items()))
        until = began + 60 if ended is None else ended
        self._series.setdefault(key, []).append(Run(began, until, each))

    def plant_life(
        self, table: str, indexes: Iterable[str] = (), days: float = 31, each: float = 0.0
    ) -> None:
        """Plant the capacity metrics of a table and its GSIs, which idle ones have, too."""
        for index in (None, *indexes):
            dimensions = {"TableName": table}
            if index is not None:
                dimensions["GlobalSecondaryIndexName"] = index
            for kind in ("Read", "Write"):
                began = self.now - days * 86_400
                self.plant(f"Consumed{kind}CapacityUnits", each, began, self.now, **dimensions)

    def plant_rule(
        self,
        kind: str,
        contributors: Mapping[tuple[str, ...], Sequence[Run]],
        table: str,
        index: str = "",
    ) -> str:
        """Plant a rule of Contributor Insights of kind PKC, SKC, PKT or SKT, and return its name.

        contributors: The series by key, such as ("a",) or ("a", "2026-11-22").
        """
        resource = f"{table}-{index}" if index else table
        name = f"DynamoDBContributorInsights-{kind}-{resource}-{RULE_MADE}"
        self._rules[name] = {keys: list(runs) for keys, runs in contributors.items()}
        return name

    def rules_of(self, table: str, index: str = "") -> list[str]:
        """Return the names of a table's or an index's rules."""
        resource = f"{table}-{index}" if index else table
        return [name for name in self._rules if name.split("-", 2)[2] == f"{resource}-{RULE_MADE}"]

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        self._admit("get_metric_data", request)
        queries = request["MetricDataQueries"]
        if len(queries) > MOST_QUERIES or len({query["Id"] for query in queries}) < len(queries):
            raise refusal("GetMetricData", "ValidationError", "Too many queries, or equal ids.")
        skipped = int(request.get("NextToken") or 0)
        room = min(self.page, request.get("MaxDatapoints", MOST_DATAPOINTS))
        results = []
        passed = 0
        for query in queries:
            points = self._points(query["MetricStat"], request["StartTime"], request["EndTime"])
            if request.get("ScanBy") != "TimestampAscending":
                points.reverse()
            first = max(0, skipped - passed)
            page = points[first : first + max(0, room)]
            room -= len(page)
            passed += len(points)
            is_partial = first + len(page) < len(points)
            results.append(
                {
                    "Id": query["Id"],
                    "Label": query.get("Label", query["MetricStat"]["Metric"]["MetricName"]),
                    "Timestamps": [_moment(at) for at, _ in page],
                    "Values": [value for _, value in page],
                    "StatusCode": "PartialData" if is_partial else "Complete",
                }
            )
        answer: dict[str, Any] = {"MetricDataResults": results, "Messages": []}
        returned = skipped + sum(len(result["Values"]) for result in results)
        if returned < passed:
            answer["NextToken"] = str(returned)
        points = ("Timestamps", "Values")
        shortened = [result | {name: result[name][:2] for name in points} for result in results]
        _checked("cloudwatch", "GetMetricData", answer | {"MetricDataResults": shortened})
        return answer

    def get_insight_rule_report(self, **request: Any) -> dict[str, Any]:
        self._admit("get_insight_rule_report", request)
        operation = "GetInsightRuleReport"
        maximum = request.get("MaxContributorCount", 10)
        if maximum > MOST_CONTRIBUTORS:
            raise refusal(operation, "InvalidParameterValue", "At most 25 contributors.")
        if request["RuleName"] not in self._rules:
            raise refusal(operation, "ResourceNotFoundException", "There is no such rule.")
        aggregate = max if request.get("OrderBy") == "Maximum" else sum
        contributors = []
        for keys, runs in self._rules[request["RuleName"]].items():
            points = _buckets(runs, request["StartTime"], request["EndTime"], request["Period"])
            if points:
                contributors.append(
                    {
                        "Keys": list(keys),
                        "ApproximateAggregateValue": float(aggregate(value for _, value in points)),
                        "Datapoints": [
                            {"Timestamp": _moment(at), "ApproximateValue": value}
                            for at, value in points
                        ],
                    }
                )
        contributors.sort(key=lambda contributor: -contributor["ApproximateAggregateValue"])
        labels = ["PartitionKey", "SortKey"] if "-SK" in request["RuleName"] else ["PartitionKey"]
        answer = {
            "KeyLabels": labels,
            "AggregationStatistic": "Sum",
            "AggregateValue": float(
                sum(each["ApproximateAggregateValue"] for each in contributors)
            ),
            "ApproximateUniqueCount": len(contributors),
            "Contributors": contributors[:maximum],
            "MetricDatapoints": [],
        }
        return _checked("cloudwatch", operation, answer)

    def _admit(self, operation: str, request: dict[str, Any]) -> None:
        """Validate and record a request. Raise an error if the operation is refused."""
        names = {"get_metric_data": "GetMetricData"}
        title = names.get(operation, "GetInsightRuleReport")
        shape = _model("cloudwatch").operation_model(title).input_shape
        problems = ParamValidator().validate(request, shape)
        assert not problems.has_errors(), problems.generate_report()
        self.asked.append((operation, request))
        if code := self.refusals.get(operation):
            raise refusal(title, code)

    def _points(self, stat: Mapping[str, Any], start: Any, end: Any) -> list[tuple[float, float]]:
        metric = stat["Metric"]
        assert metric["Namespace"] == NAMESPACE, metric
        counts = metric["MetricName"] == "SuccessfulRequestLatency"
        assert stat["Stat"] == ("SampleCount" if counts else "Sum"), stat
        dimensions = frozenset((each["Name"], each["Value"]) for each in metric["Dimensions"])
        runs = self._series.get((metric["MetricName"], dimensions), ())
        oldest = next(
            (self.now - days * 86_400 for days, period in KEPT if stat["Period"] <= period),
            self.now - KEPT[-1][0] * 86_400,
        )
        return _buckets(runs, start, end, stat["Period"], oldest)


def _buckets(
    runs: Iterable[Run], start: Any, end: Any, period: int, oldest: float = 0.0
) -> list[tuple[float, float]]:
    """Return the sums by period, the oldest first. A minute counts where it begins."""
    sums: dict[float, float] = {}
    since, until = max(start.timestamp(), oldest), end.timestamp()
    for run in runs:
        first = int(-(-max(since // 60 * 60, run.began) // 60) * 60)
        last = int(min(until, run.ended))
        for at in range(first // period * period, last, period):
            minutes = -(-(min(last, at + period) - max(first, at)) // 60)
            if minutes > 0:
                sums[at] = sums.get(at, 0.0) + minutes * run.each
    return sorted(sums.items())


@dataclass
class DescribedTables:
    """A DynamoDB client that extends the descriptions of a local database's tables.

    Attributes:
        client: A client of Keyhop or boto3.
        cloudwatch: The service whose rules DescribeContributorInsights reports.
        table: Fields to add to the `Table` of DescribeTable, such as WarmThroughput.
        indexes: Fields to add to the entries of indexes, by name.
        refusals: The refused operations, like those of FakeCloudWatch.
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
            description = {"TimeToLiveStatus": "ENABLED", "AttributeName": self.ttl}
            answer = {"TimeToLiveDescription": description}
            return _checked("dynamodb", "DescribeTimeToLive", answer)
        if operation == "describe_contributor_insights":
            return self._insights(parameters["TableName"], parameters.get("IndexName", ""))
        answer = send(self.client, operation, parameters)
        return self._described(answer) if operation == "describe_table" else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def _described(self, answer: dict[str, Any]) -> dict[str, Any]:
        table = {**answer["Table"], **self.table}
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            if kind in table:
                fields = self.indexes
                table[kind] = [
                    {**each, **fields.get(each["IndexName"], {})} for each in table[kind]
                ]
        return {**answer, "Table": table}

    def _insights(self, table: str, index: str) -> dict[str, Any]:
        rules = self.cloudwatch.rules_of(table, index) if self.cloudwatch else []
        answer: dict[str, Any] = {
            "TableName": table,
            "ContributorInsightsStatus": "ENABLED" if rules else "DISABLED",
        }
        if index:
            answer["IndexName"] = index
        if rules:
            shows_accessed = any("-PKC-" in name for name in rules)
            answer |= {
                "ContributorInsightsRuleList": rules,
                "LastUpdateDateTime": _moment(self.made),
                "ContributorInsightsMode": "ACCESSED_AND_THROTTLED_KEYS"
                if shows_accessed
                else "THROTTLED_KEYS",
            }
        return _checked("dynamodb", "DescribeContributorInsights", answer)


def clients_of(cloudwatch: FakeCloudWatch, streams: Any = None) -> Callable[[str], Any]:
    """Return the function with which the sources create their clients."""
    return {"cloudwatch": cloudwatch, "dynamodbstreams": streams}.__getitem__


def refusal(operation: str, code: str, message: str = "") -> ClientError:
    """Return the error of boto3 for a request that a service refuses."""
    status = 400
    if code in (DENIED, "AccessDeniedException"):
        status = 403
        message = message or (
            "User: arn:aws:sts::111122223333:assumed-role/Reader/me is not authorized to perform: "
            f"cloudwatch:{operation} because no identity-based policy allows the "
            f"cloudwatch:{operation} action"
        )
    error = {"Code": code, "Message": message or "Rate exceeded"}
    return ClientError(
        {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        operation,
    )


def _moment(at: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.UTC)


def _checked(service: str, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer after its validation against the service's model."""
    problems = ParamValidator().validate(
        answer, _model(service).operation_model(operation).output_shape
    )
    assert not problems.has_errors(), problems.generate_report()
    return answer


def as_recorded(text: str, service: str, operation: str) -> dict[str, Any]:
    """Return a recorded answer (JSON) in the form of boto3, with timestamps as datetimes."""
    shape = _model(service).operation_model(operation).output_shape
    answer: dict[str, Any] = _timed(json.loads(text), shape)
    return _checked(service, operation, answer)


def _timed(value: Any, shape: Any) -> Any:
    if shape.type_name == "timestamp":
        return datetime.datetime.fromisoformat(value)
    if shape.type_name == "structure":
        return {name: _timed(member, shape.members[name]) for name, member in value.items()}
    if shape.type_name == "list":
        return [_timed(member, shape.member) for member in value]
    return value


@cache
def _model(service: str) -> Any:
    return botocore.session.Session().get_service_model(service)
