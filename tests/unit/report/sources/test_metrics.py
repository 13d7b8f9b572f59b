"""Tests of the facts of CloudWatch's metrics, also where datapoints are missing."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.report.facts import TABLE, Absent, MetricFacts, Throttles
from keyhop.report.sources.metrics import Own, look

from testing.report_cloud import DENIED, THROTTLED, FakeCloudWatch
from tests.unit.report.sources.tables import DAY, NOW, orders

ORDERS = orders()
CITY = {"TableName": "Orders", "GlobalSecondaryIndexName": "byCity"}
WRITES = "ConsumedWriteCapacityUnits"
HOT = "WriteKeyRangeThroughputThrottleEvents"


def active_cloud(**options: Any) -> FakeCloudWatch:
    cloud = FakeCloudWatch(NOW, **options)
    cloud.plant_life("Orders", ["byCity"])
    return cloud


def facts_of(
    cloud: FakeCloudWatch, since: float = 14 * DAY, ours: tuple[Own, ...] = ()
) -> MetricFacts:
    facts = look(cloud, ORDERS, NOW, since, ours).facts
    assert isinstance(facts, MetricFacts)
    return facts


def test_fourteen_days_of_a_table_with_an_index_cost_two_requests_and_under_a_tenth_of_a_cent():
    cloud = active_cloud()
    spent = look(cloud, ORDERS, NOW, 14 * DAY).spent
    assert [name for name, _ in cloud.asked] == ["get_metric_data"] * spent.requests
    assert spent.requests == 2
    assert spent.dollars < 0.001


def test_consumption_and_its_busiest_minute():
    cloud = active_cloud()
    cloud.plant(WRITES, 600, NOW - 7200, NOW - 3600, TableName="Orders")
    cloud.plant(WRITES, 6000, NOW - 3600, TableName="Orders")
    facts = facts_of(cloud)
    assert facts.consumed["write", TABLE] == 60 * 600 + 6000
    assert facts.peak["write", TABLE] == 100.0
    assert facts.minutes[-1] == (NOW - 3600, 6000.0)
    assert len(facts.minutes) == 61
    assert (facts.ended, facts.period) == (NOW, 60)
    assert facts.seconds == pytest.approx(14 * DAY, abs=3600)


def test_missing_throttle_datapoints_mean_no_throttles_if_the_table_has_other_metrics():
    facts = facts_of(active_cloud())
    assert facts.throttles["write", "key range", TABLE] == Throttles(0.0, None)
    assert facts.throttles["read", "account", "byCity"] == Throttles(0.0, None)
    assert facts.calls["Scan"] == 0.0


def test_without_any_datapoint_the_metrics_are_absent():
    facts = look(FakeCloudWatch(NOW), ORDERS, NOW, 14 * DAY).facts
    assert isinstance(facts, Absent)
    assert "no datapoints of the table in 14 days" in facts.reason


def test_an_index_without_consumption_has_no_figures_but_its_throttles_count():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders")
    cloud.plant(HOT, 3, NOW - 600, **CITY)
    facts = facts_of(cloud)
    assert ("write", "byCity") not in facts.consumed
    assert ("read", "key range", "byCity") not in facts.throttles
    assert facts.throttles["write", "key range", "byCity"] == Throttles(3.0, NOW - 540)
    assert facts.read_days["byCity"] is None


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, "key range"),
        (
            {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}},
            "provisioned",
        ),
    ],
)
def test_throttles_of_unknown_cause_are_attributed_to_provisioned_units(changes, cause):
    """Throttles of an index are not counted for its table again."""
    cloud = active_cloud()
    for events, where in ((9, CITY), (12, {"TableName": "Orders"})):
        cloud.plant("WriteThrottleEvents", events, NOW - 600, **where)
    cloud.plant(HOT, 2, NOW - 600, TableName="Orders")
    table = orders()
    index = replace(table.indexes[0], throughput=(5, 5) if changes else None)
    table = replace(table, throughput=index.throughput, indexes=(index,))
    facts = look(cloud, table, NOW, 14 * DAY).facts
    assert facts.throttles["write", cause, "byCity"] == Throttles(9.0, NOW - 540)
    of_key_range = 2.0 if cause == "key range" else 0.0
    assert facts.throttles["write", cause, TABLE] == Throttles(1.0 + of_key_range, NOW - 540)


def test_the_time_of_the_last_throttle_is_the_end_of_its_minute():
    cloud = active_cloud()
    cloud.plant(HOT, 5, NOW - 9000, NOW - 8880, TableName="Orders")
    assert facts_of(cloud).throttles["write", "key range", TABLE] == Throttles(10.0, NOW - 8880)


def test_account_throttles_of_writes_to_an_index_are_unknown_as_aws_has_no_such_metric():
    assert ("write", "account", "byCity") not in facts_of(active_cloud()).throttles


def test_calls_by_operation_exclude_those_of_the_report():
    cloud = active_cloud()
    where = {"TableName": "Orders", "Operation": "Scan"}
    cloud.plant("SuccessfulRequestLatency", 30, NOW - 600, **where)
    cloud.plant("ReturnedItemCount", 3000, NOW - 600, **where)
    ours = Own(NOW - 900, NOW - 300, {"Scan": 10})
    facts = facts_of(cloud, ours=(ours,))
    assert facts.calls["Scan"] == 20
    assert facts.returned["Scan"] == 3000
    many = Own(NOW - 900, NOW - 300, {"Scan": 99})
    assert facts_of(cloud, ours=(many,)).calls["Scan"] == 0
    earlier = Own(NOW - 30 * DAY, NOW - 29 * DAY, {"Scan": 10})
    assert facts_of(cloud, ours=(earlier,)).calls["Scan"] == 30


def test_the_scans_of_an_earlier_report_are_not_counted():
    cloud = active_cloud()
    where = {"TableName": "Orders", "Operation": "Scan"}
    cloud.plant("SuccessfulRequestLatency", 300, NOW - 7 * DAY, **where)
    report = {"at": NOW - 7 * DAY, "spent": {"requests": 310, "seconds": 60.0, "rru": 400.0}}
    assert facts_of(cloud).calls["Scan"] == 300
    assert facts_of(cloud, ours=(Own.of_report(report),)).calls["Scan"] == 0


def test_days_on_which_an_index_was_read():
    cloud = active_cloud()
    reads = "ConsumedReadCapacityUnits"
    cloud.plant(reads, 10, NOW - 20 * DAY, **CITY)
    cloud.plant(reads, 10, NOW - 2 * DAY, **CITY)
    assert facts_of(cloud).read_days == {"byCity": 2}


@pytest.mark.parametrize(("units", "days"), [(400, 0), (401, 1)])
def test_a_day_on_which_only_an_earlier_report_read_an_index_does_not_count(units, days):
    cloud = active_cloud()
    began = NOW - 3 * DAY
    cloud.plant("ConsumedReadCapacityUnits", units, began, **CITY)
    spent = {"requests": 300, "seconds": 60.0, "rru": 400.0}
    assert facts_of(cloud).read_days == {"byCity": 1}
    same_day = Own.of_report({"at": began, "spent": spent})
    assert facts_of(cloud, ours=(same_day,)).read_days == {"byCity": days}
    another_day = Own.of_report({"at": began - 2 * DAY, "spent": spent})
    assert facts_of(cloud, ours=(another_day,)).read_days == {"byCity": 1}


def test_an_index_unread_in_30_days_is_distinguished_from_a_younger_one():
    assert facts_of(active_cloud()).read_days == {"byCity": 0}
    young = FakeCloudWatch(NOW)
    young.plant_life("Orders", days=31)
    young.plant(WRITES, 1, NOW - 5 * DAY, NOW, **CITY)
    assert facts_of(young).read_days == {"byCity": None}


@pytest.mark.parametrize(
    ("since", "period"), [(3600, 60), (14 * DAY, 60), (16 * DAY, 300), (70 * DAY, 3600)]
)
def test_the_period_is_the_shortest_that_cloudwatch_stores_for_the_window(
    since: float, period: int
):
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders", days=80, each=60)
    facts = facts_of(cloud, since)
    assert facts.period == period
    assert facts.consumed["write", TABLE] == pytest.approx(since, rel=0.05)
    assert facts.peak["write", TABLE] == 1.0


def test_a_table_younger_than_the_window_is_judged_by_its_age():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders", days=2, each=60)
    young = replace(ORDERS, created=NOW - 2 * DAY)
    facts = look(cloud, young, NOW, 14 * DAY).facts
    assert facts.seconds == 2 * DAY
    new = look(cloud, replace(ORDERS, created=NOW + 5), NOW, 14 * DAY).facts
    assert new.seconds == 60


def test_the_metrics_of_a_table_that_was_given_by_its_arn_are_read_from_its_account():
    for by_arn, accounts in ((False, {None}), (True, {"111122223333"})):
        cloud = active_cloud()
        look(cloud, replace(ORDERS, by_arn=by_arn), NOW, DAY)
        queries = [query for _, request in cloud.asked for query in request["MetricDataQueries"]]
        assert {query.get("AccountId") for query in queries} == accounts


def test_requests_have_at_most_500_metrics():
    indexes = [
        {
            "IndexName": f"by{number:03}",
            "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
        for number in range(60)
    ]
    cloud = active_cloud()
    look(cloud, orders(GlobalSecondaryIndexes=indexes), NOW, 14 * DAY)
    query_counts = [len(request["MetricDataQueries"]) for _, request in cloud.asked]
    assert query_counts == [500, 188, 120]


def test_the_pages_of_a_response_are_combined():
    cloud = active_cloud(page=10_000)
    cloud.plant(WRITES, 6, NOW - 14 * DAY, NOW, TableName="Orders")
    result = look(cloud, ORDERS, NOW, 14 * DAY)
    assert result.facts.consumed["write", TABLE] == pytest.approx(6 * 14 * 1440, abs=6 * 60)
    assert result.spent.requests > 5


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (DENIED, "cloudwatch:GetMetricData is not allowed", "allow cloudwatch:GetMetricData"),
        (THROTTLED, "CloudWatch throttled the request", "try again in a minute"),
        ("InternalServiceError", "CloudWatch refused GetMetricData (InternalServiceError)", ""),
    ],
)
def test_a_refused_request_is_the_reason(code: str, reason: str, remedy: str):
    cloud = active_cloud(refusals={"get_metric_data": code})
    result = look(cloud, ORDERS, NOW, 14 * DAY)
    assert result.facts == Absent(reason, remedy)
    assert result.spent.requests == 1


class OneQueryFails(FakeCloudWatch):
    """A CloudWatch that responds, but fails for one query."""

    def get_metric_data(self, **request: Any) -> dict[str, Any]:
        response = super().get_metric_data(**request)
        for query, result in zip(
            request["MetricDataQueries"], response["MetricDataResults"], strict=True
        ):
            if query["MetricStat"]["Metric"]["MetricName"] == HOT:
                result |= {"StatusCode": "InternalError", "Values": [], "Timestamps": []}
        return response


def test_a_metric_that_failed_is_unknown():
    cloud = OneQueryFails(NOW)
    cloud.plant_life("Orders", ["byCity"])
    facts = facts_of(cloud)
    assert ("write", "key range", TABLE) not in facts.throttles
    assert ("read", "key range", TABLE) in facts.throttles
