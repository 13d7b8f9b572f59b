"""Contributor Insights: read where it is on, and never taken for more than it says."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.report.facts import TABLE, Absent, HotKey
from keyhop.report.sources.control_plane import look as control_plane
from keyhop.report.sources.insights import attributes, hot_keys, look, rules_by_kind

from testing.report_cloud import DENIED, DescribedTables, FakeCloudWatch, Run, refusal
from tests.unit.report.sources.tables import NOW, Answers, orders, recorded, whole


def facts(cloud: FakeCloudWatch, made: float = 0.0, **options: Any) -> Any:
    client = DescribedTables(Answers(), cloud, made=made)
    connection = Connection(client)
    table, _, _ = control_plane(connection, "Orders")
    return look(cloud, connection, table, NOW, whole, **options).facts


def test_the_busiest_minute_of_each_key():
    report = recorded("get_insight_rule_report", "cloudwatch", "GetInsightRuleReport")
    assert hot_keys(report, [("customer", "S")], whole) == (
        HotKey("customer=customer-17", 120_000.0, 150_000.0),
        HotKey("customer=customer-8", 1200.0, 1200.0),
    )


def test_rules_are_known_by_their_names():
    told = recorded("describe_contributor_insights", "dynamodb", "DescribeContributorInsights")
    rules = rules_by_kind([*told["ContributorInsightsRuleList"], "somebody-elses-rule"])
    assert rules == {
        kind: f"DynamoDBContributorInsights-{kind}-Orders-1576629651520"
        for kind in ("PKC", "SKC", "PKT")
    }


def test_keys_have_the_types_of_their_attributes():
    table = orders()
    assert attributes(table, TABLE) == [("customer", "S"), ("placed", "S")]
    assert attributes(table, "byTotal") == [("customer", "S"), ("total", "N")]
    assert attributes(table, "byCity") == [("city", "S"), ("street", "S"), ("placed", "S")]
    shown: list[Any] = []
    points = [{"Timestamp": None, "ApproximateValue": 1.0}]
    report = {"Contributors": [{"Keys": ["x", "17"], "Datapoints": points}]}
    hot_keys(report, attributes(table, "byTotal"), lambda key: shown.append(key) or "")
    assert shown == [{"customer": {"S": "x"}, "total": {"N": "17"}}]


def test_tables_and_indexes_are_read_where_insights_are_on():
    cloud = FakeCloudWatch(NOW)
    minute = [Run(NOW - 600, NOW - 540, 100_000)]
    cloud.plant_rule("PKC", {("a",): minute}, "Orders")
    cloud.plant_rule("SKC", {("a", "2026"): minute}, "Orders")
    cloud.plant_rule("PKT", {}, "Orders")
    cloud.plant_rule("PKC", {("Bonn", "Markt"): minute}, "Orders", "byCity")
    found = facts(cloud)
    assert found.accessed == {
        TABLE: (HotKey("customer=a", 100_000, 100_000),),
        "byCity": (HotKey("city=Bonn street=Markt", 100_000, 100_000),),
    }
    assert found.items == {TABLE: (HotKey("customer=a placed=2026", 100_000, 100_000),)}
    assert found.throttled == {TABLE: ()}
    assert found.ended - found.began == 3 * 3600


def test_a_table_that_was_named_by_its_arn_is_described_by_it():
    answers = Answers()
    look(FakeCloudWatch(NOW), Connection(answers), replace(orders(), by_arn=True), NOW, whole)
    assert [asked["TableName"] for _, asked in answers.asked] == [orders().arn]


def test_the_mode_for_throttled_keys_says_nothing_of_access():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKT", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    found = facts(cloud)
    assert found.accessed == {}
    assert found.throttled == {TABLE: (HotKey("customer=a", 7, 7),)}


def test_nothing_throttled_is_known_only_if_the_rule_is_older_than_the_window():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKT", {}, "Orders")
    assert facts(cloud).throttled == {TABLE: ()}
    young = facts(cloud, made=NOW - 60)
    assert young == Absent(
        "Contributor Insights is on, but has no data yet", "run the report again in a few hours"
    )


def test_where_it_is_off_the_way_to_turn_it_on_is_told_and_not_gone():
    cloud = FakeCloudWatch(NOW)
    found = facts(cloud)
    assert isinstance(found, Absent)
    assert found.reason == "Contributor Insights is disabled"
    assert "update-contributor-insights --table-name Orders" in found.remedy
    assert cloud.asked == []


def test_what_is_not_known_to_be_on_is_not_said_to_be_off():
    denied = Absent("dynamodb:DescribeContributorInsights is not allowed", "allow it")
    table = replace(orders(), insights=None, untold={"insights": denied})
    assert look(FakeCloudWatch(NOW), Connection(Answers()), table, NOW, whole).facts == denied


def test_a_refused_report_is_a_reason_and_the_keys_of_other_targets_stay():
    cloud = FakeCloudWatch(NOW, refusals={"get_insight_rule_report": DENIED})
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    action = "cloudwatch:GetInsightRuleReport"
    assert facts(cloud) == Absent(f"{action} is not allowed", f"allow {action}")


@pytest.mark.parametrize(("hours", "seconds"), [(1, 3600), (24, 86_400), (99, 86_400)])
def test_a_report_covers_a_day_at_most(hours: float, seconds: float):
    cloud = FakeCloudWatch(NOW)
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    found = facts(cloud, hours=hours)
    assert found.ended - found.began == seconds


class ShortReports(FakeCloudWatch):
    """CloudWatch, if it made no reports of a day."""

    def get_insight_rule_report(self, **asked: Any) -> dict[str, Any]:
        if (asked["EndTime"] - asked["StartTime"]).total_seconds() > 3 * 3600:
            raise refusal("GetInsightRuleReport", "InvalidParameterValue", "too long")
        return super().get_insight_rule_report(**asked)


def test_a_report_that_is_refused_for_its_length_is_asked_shorter():
    cloud = ShortReports(NOW)
    cloud.plant_rule("PKC", {("a",): [Run(NOW - 120, NOW - 60, 7)]}, "Orders")
    found = facts(cloud, hours=24)
    assert found.ended - found.began == 3 * 3600
    assert found.accessed == {TABLE: (HotKey("customer=a", 7, 7),)}
