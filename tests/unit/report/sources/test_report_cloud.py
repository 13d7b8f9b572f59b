"""The stand-in of CloudWatch and Contributor Insights behaves as AWS documents the services."""

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
    named = {"Namespace": "AWS/DynamoDB", "MetricName": metric, "Dimensions": dimensions}
    return {"Id": id_, "MetricStat": {"Metric": named, "Period": period, "Stat": stat}}


def test_sums_a_metric_by_period_and_omits_what_has_no_datapoint():
    cloud = FakeCloudWatch(NOW)
    cloud.plant("ConsumedWriteCapacityUnits", 5, NOW - 600, NOW, TableName="Orders")
    answer = cloud.get_metric_data(
        MetricDataQueries=[
            query("a", "ConsumedWriteCapacityUnits", 300, TableName="Orders"),
            query("b", "ThrottledRequests", TableName="Orders"),
        ],
        StartTime=at(NOW - DAY),
        EndTime=at(NOW),
    )
    first, second = answer["MetricDataResults"]
    assert sum(first["Values"]) == 50
    assert first["Timestamps"] == sorted(first["Timestamps"], reverse=True)
    assert second["Values"] == []


def test_minutes_are_kept_for_15_days_only():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders", days=20, each=1)
    asked = {"StartTime": at(NOW - 20 * DAY), "EndTime": at(NOW)}
    counts = {}
    for period in (60, 300):
        asked["MetricDataQueries"] = [
            query("a", "ConsumedReadCapacityUnits", period, TableName="Orders")
        ]
        counts[period] = sum(cloud.get_metric_data(**asked)["MetricDataResults"][0]["Values"])
    assert counts[60] == 15 * 1440
    assert counts[300] == 20 * 1440


def test_pages_follow_each_other_until_all_datapoints_are_given():
    cloud = FakeCloudWatch(NOW, page=7)
    cloud.plant_life("Orders", days=10 / 1440, each=1)
    asked = {
        "MetricDataQueries": [
            query("r", "ConsumedReadCapacityUnits", TableName="Orders"),
            query("w", "ConsumedWriteCapacityUnits", TableName="Orders"),
        ],
        "StartTime": at(NOW - 3600),
        "EndTime": at(NOW),
    }
    got: dict[str, list[float]] = {"r": [], "w": []}
    token: str | None = None
    pages = 0
    while pages == 0 or token:
        answer = cloud.get_metric_data(**asked, **({"NextToken": token} if token else {}))
        for one in answer["MetricDataResults"]:
            got[one["Id"]] += one["Values"]
        token = answer.get("NextToken")
        pages += 1
    assert pages == 3
    assert {name: len(values) for name, values in got.items()} == {"r": 10, "w": 10}


def test_refuses_what_the_services_would():
    cloud = FakeCloudWatch(NOW, refusals={"get_metric_data": DENIED})
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 60, NOW, 9)]}, "Orders")
    (rule,) = cloud.rules_of("Orders")
    asked = {"RuleName": rule, "StartTime": at(NOW - 600), "EndTime": at(NOW), "Period": 60}
    with pytest.raises(ClientError, match="AccessDenied"):
        cloud.get_metric_data(MetricDataQueries=[], StartTime=at(0), EndTime=at(NOW))
    with pytest.raises(ClientError, match="25 contributors"):
        cloud.get_insight_rule_report(**asked, MaxContributorCount=100)
    with pytest.raises(AssertionError, match="Unknown parameter"):
        cloud.get_insight_rule_report(**asked, Typo=1)
    report = cloud.get_insight_rule_report(**asked, MaxContributorCount=25)
    assert report["Contributors"][0]["Keys"] == ["a"]


def test_tables_are_described_with_what_a_local_database_does_not_know():
    class Local:
        def call(self, operation: str, **parameters: str) -> dict:
            index = {"IndexName": "byCity", "ItemCount": 1}
            return {"Table": {"TableName": "Orders", "GlobalSecondaryIndexes": [index]}}

    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKT", {}, "Orders")
    tables = DescribedTables(Local(), cloud, {"ItemCount": 7}, {"byCity": {"ItemCount": 5}})
    told = tables.call("describe_table", TableName="Orders")["Table"]
    assert told["ItemCount"] == 7
    assert told["GlobalSecondaryIndexes"][0]["ItemCount"] == 5
    insights = tables.call("describe_contributor_insights", TableName="Orders")
    assert insights["ContributorInsightsMode"] == "THROTTLED_KEYS"
    other = tables.call("describe_contributor_insights", TableName="Orders", IndexName="byCity")
    assert other["ContributorInsightsStatus"] == "DISABLED"
