"""Tests of the facts of Contributor Insights."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.report.facts import TABLE, Absent, HotKey
from keyhop.report.sources.control_plane import look as control_plane
from keyhop.report.sources.insights import attributes, hot_keys, look, rules_by_kind

from testing.report_cloud import DENIED, DescribedTables, FakeCloudWatch, Run, refusal
from tests.unit.report.sources.tables import NOW, RecordedClient, full_key, orders, recorded


def facts(cloud: FakeCloudWatch, created: float = 0.0, **options: Any) -> Any:
    connection = Connection(DescribedTables(RecordedClient(), cloud, made=created))
    table, _, _ = control_plane(connection, "Orders")
    return look(cloud, connection, table, NOW, full_key, **options).facts


def test_the_busiest_minute_of_each_key():
    report = recorded("get_insight_rule_report", "cloudwatch", "GetInsightRuleReport")
    assert hot_keys(report, [("customer", "S")], full_key) == (
        HotKey("customer=customer-17", 120_000.0, 150_000.0),
        HotKey("customer=customer-8", 1200.0, 1200.0),
    )


def test_rules_are_recognized_by_their_names():
    insights = recorded("describe_contributor_insights", "dynamodb", "DescribeContributorInsights")
    rules = rules_by_kind([*insights["ContributorInsightsRuleList"], "somebody-elses-rule"])
    assert rules == {
        kind: f"DynamoDBContributorInsights-{kind}-Orders-1576629651520"
        for kind in ("PKC", "SKC", "PKT")
    }


def test_keys_have_the_types_of_their_attributes():
    table = orders()
    assert attributes(table, TABLE) == [("customer", "S"), ("placed", "S")]
    assert attributes(table, "byTotal") == [("customer", "S"), ("total", "N")]
    assert attributes(table, "byCity") == [("city", "S"), ("street", "S"), ("placed", "S")]
    keys: list[Any] = []
    points = [{"Timestamp": None, "ApproximateValue": 1.0}]
    report = {"Contributors": [{"Keys": ["x", "17"], "Datapoints": points}]}
    hot_keys(report, attributes(table, "byTotal"), lambda key: keys.append(key) or "")
    assert keys == [{"customer": {"S": "x"}, "total": {"N": "17"}}]


def test_tables_and_indexes_with_insights_are_read():
    cloud = FakeCloudWatch(NOW)
    minute = [Run(NOW - 600, NOW - 540, 100_000)]
    cloud.plant_rule("PKC", {("a",): minute}, "Orders")
    cloud.plant_rule("SKC", {("a", "2026"): minute}, "Orders")
    cloud.plant_rule("PKT", {}, "Orders")
    cloud.plant_rule("PKC", {("Bonn", "Markt"): minute}, "Orders", "byCity")
    insights = facts(cloud)
    assert insights.accessed == {
        TABLE: (HotKey("customer=a", 100_000, 100_000),),
        "byCity": (HotKey("city=Bonn street=Markt", 100_000, 100_000),),
    }
    assert insights.items == {TABLE: (HotKey("customer=a placed=2026", 100_000, 100_000),)}
    assert insights.throttled == {TABLE: ()}
    assert insights.ended - insights.began == 3 * 3600


def test_a_table_that_was_given_by_its_arn_is_described_by_it():
    client = RecordedClient()
    look(FakeCloudWatch(NOW), Connection(client), replace(orders(), by_arn=True), NOW, full_key)
    assert [request["TableName"] for _, request in client.requests] == [orders().arn]


def test_the_mode_for_throttled_keys_reports_no_access():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKT", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    insights = facts(cloud)
    assert insights.accessed == {}
    assert insights.throttled == {TABLE: (HotKey("customer=a", 7, 7),)}


def test_no_throttled_keys_are_reported_only_if_the_rule_is_older_than_the_window():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKT", {}, "Orders")
    assert facts(cloud).throttled == {TABLE: ()}
    assert facts(cloud, created=NOW - 60) == Absent(
        "Contributor Insights is on, but has no data yet", "run the report again in a few hours"
    )


def test_disabled_insights_are_absent_with_the_command_that_enables_them():
    cloud = FakeCloudWatch(NOW)
    absent = facts(cloud)
    assert isinstance(absent, Absent)
    assert absent.reason == "Contributor Insights is disabled"
    assert "update-contributor-insights --table-name Orders" in absent.remedy
    assert cloud.asked == []


def test_insights_of_unknown_state_are_not_reported_as_disabled():
    denied = Absent("dynamodb:DescribeContributorInsights is not allowed", "allow it")
    table = replace(orders(), insights=None, untold={"insights": denied})
    assert (
        look(FakeCloudWatch(NOW), Connection(RecordedClient()), table, NOW, full_key).facts
        == denied
    )


def test_a_denied_report_is_the_reason():
    cloud = FakeCloudWatch(NOW, refusals={"get_insight_rule_report": DENIED})
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    action = "cloudwatch:GetInsightRuleReport"
    assert facts(cloud) == Absent(f"{action} is not allowed", f"allow {action}")


@pytest.mark.parametrize(("hours", "seconds"), [(1, 3600), (24, 86_400), (99, 86_400)])
def test_a_report_covers_at_most_a_day(hours: float, seconds: float):
    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    insights = facts(cloud, hours=hours)
    assert insights.ended - insights.began == seconds


class ShortReports(FakeCloudWatch):
    """A CloudWatch that refuses reports of more than three hours."""

    def get_insight_rule_report(self, **request: Any) -> dict[str, Any]:
        if (request["EndTime"] - request["StartTime"]).total_seconds() > 3 * 3600:
            raise refusal("GetInsightRuleReport", "InvalidParameterValue", "too long")
        return super().get_insight_rule_report(**request)


def test_a_report_that_is_too_long_is_requested_again_for_a_shorter_window():
    cloud = ShortReports(NOW)
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    insights = facts(cloud, hours=24)
    assert insights.ended - insights.began == 3 * 3600
    assert insights.accessed == {TABLE: (HotKey("customer=a", 7, 7),)}
