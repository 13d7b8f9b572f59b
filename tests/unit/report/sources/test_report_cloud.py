"""Tests that the fake of CloudWatch and Contributor Insights behaves as AWS documents them."""

import datetime

import pytest
from botocore.exceptions import ClientError

from testing.report_cloud import DENIED, DescribedTables, FakeCloudWatch, Run

NOW = 1_790_000_040.0 // 60 * 60
DAY = 86_400.0


def at(moment: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC)


def query(id_: str, metric: str, period: int = 60, stat: str = "Sum", **where: str) -> dict:
    dimensions = [{"Name": name, "Value": value} for name, value in where.items()]
    name = {"Namespace": "AWS/DynamoDB", "MetricName": metric, "Dimensions": dimensions}
    return {"Id": id_, "MetricStat": {"Metric": name, "Period": period, "Stat": stat}}


def test_a_metric_is_summed_by_period_and_is_empty_without_datapoints():
    cloud = FakeCloudWatch(NOW)
    cloud.plant("ConsumedWriteCapacityUnits", 5, NOW - 600, NOW, TableName="Orders")
    response = cloud.get_metric_data(
        MetricDataQueries=[
            query("a", "ConsumedWriteCapacityUnits", 300, TableName="Orders"),
            query("b", "ThrottledRequests", TableName="Orders"),
        ],
        StartTime=at(NOW - DAY),
        EndTime=at(NOW),
    )
    first, second = response["MetricDataResults"]
    assert sum(first["Values"]) == 50
    assert first["Timestamps"] == sorted(first["Timestamps"], reverse=True)
    assert second["Values"] == []


def test_minutes_are_stored_for_15_days_only():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders", days=20, each=1)
    request = {"StartTime": at(NOW - 20 * DAY), "EndTime": at(NOW)}
    counts = {}
    for period in (60, 300):
        request["MetricDataQueries"] = [
            query("a", "ConsumedReadCapacityUnits", period, TableName="Orders")
        ]
        counts[period] = sum(cloud.get_metric_data(**request)["MetricDataResults"][0]["Values"])
    assert counts[60] == 15 * 1440
    assert counts[300] == 20 * 1440


def test_all_datapoints_are_returned_in_pages():
    cloud = FakeCloudWatch(NOW, page=7)
    cloud.plant_life("Orders", days=10 / 1440, each=1)
    request = {
        "MetricDataQueries": [
            query("r", "ConsumedReadCapacityUnits", TableName="Orders"),
            query("w", "ConsumedWriteCapacityUnits", TableName="Orders"),
        ],
        "StartTime": at(NOW - 3600),
        "EndTime": at(NOW),
    }
    values_by_id: dict[str, list[float]] = {"r": [], "w": []}
    token: str | None = None
    pages = 0
    while pages == 0 or token:
        response = cloud.get_metric_data(**request, **({"NextToken": token} if token else {}))
        for result in response["MetricDataResults"]:
            values_by_id[result["Id"]] += result["Values"]
        token = response.get("NextToken")
        pages += 1
    assert pages == 3
    assert {name: len(values) for name, values in values_by_id.items()} == {"r": 10, "w": 10}


def test_requests_that_the_services_refuse_are_refused():
    cloud = FakeCloudWatch(NOW, refusals={"get_metric_data": DENIED})
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 60, NOW, 9)]}, "Orders")
    (rule,) = cloud.rules_of("Orders")
    request = {"RuleName": rule, "StartTime": at(NOW - 600), "EndTime": at(NOW), "Period": 60}
    with pytest.raises(ClientError, match="AccessDenied"):
        cloud.get_metric_data(MetricDataQueries=[], StartTime=at(0), EndTime=at(NOW))
    with pytest.raises(ClientError, match="25 contributors"):
        cloud.get_insight_rule_report(**request, MaxContributorCount=100)
    with pytest.raises(AssertionError, match="Unknown parameter"):
        cloud.get_insight_rule_report(**request, Typo=1)
    report = cloud.get_insight_rule_report(**request, MaxContributorCount=25)
    assert report["Contributors"][0]["Keys"] == ["a"]


def test_descriptions_of_local_tables_get_the_missing_fields():
    class Local:
        def call(self, operation: str, **parameters: str) -> dict:
            index = {"IndexName": "byCity", "ItemCount": 1}
            return {"Table": {"TableName": "Orders", "GlobalSecondaryIndexes": [index]}}

    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKT", {}, "Orders")
    tables = DescribedTables(Local(), cloud, {"ItemCount": 7}, {"byCity": {"ItemCount": 5}})
    description = tables.call("describe_table", TableName="Orders")["Table"]
    assert description["ItemCount"] == 7
    assert description["GlobalSecondaryIndexes"][0]["ItemCount"] == 5
    insights = tables.call("describe_contributor_insights", TableName="Orders")
    assert insights["ContributorInsightsMode"] == "THROTTLED_KEYS"
    of_index = tables.call("describe_contributor_insights", TableName="Orders", IndexName="byCity")
    assert of_index["ContributorInsightsStatus"] == "DISABLED"
