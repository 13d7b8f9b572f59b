"""CloudWatch's metrics: what is asked for, what the absence of datapoints means."""

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


def alive(**changed: Any) -> FakeCloudWatch:
    cloud = FakeCloudWatch(NOW, **changed)
    cloud.plant_life("Orders", ["byCity"])
    return cloud


def seen(cloud: FakeCloudWatch, since: float = 14 * DAY, ours: tuple[Own, ...] = ()) -> MetricFacts:
    facts = look(cloud, ORDERS, NOW, since, ours).facts
    assert isinstance(facts, MetricFacts)
    return facts


def test_fourteen_days_of_a_table_with_an_index_take_two_requests_and_a_tenth_of_a_cent():
    cloud = alive()
    spent = look(cloud, ORDERS, NOW, 14 * DAY).spent
    assert [name for name, _ in cloud.asked] == ["get_metric_data"] * spent.requests
    assert spent.requests == 2
    assert spent.dollars < 0.001


def test_consumption_and_its_busiest_minute():
    cloud = alive()
    cloud.plant(WRITES, 600, NOW - 7200, NOW - 3600, TableName="Orders")
    cloud.plant(WRITES, 6000, NOW - 3600, TableName="Orders")
    facts = seen(cloud)
    assert facts.consumed["write", TABLE] == 60 * 600 + 6000
    assert facts.peak["write", TABLE] == 100.0
    assert facts.minutes[-1] == (NOW - 3600, 6000.0)
    assert len(facts.minutes) == 61
    assert (facts.ended, facts.period) == (NOW, 60)
    assert facts.seconds == pytest.approx(14 * DAY, abs=3600)


def test_no_throttle_datapoints_mean_none_where_the_metrics_are_in_sight():
    facts = seen(alive())
    assert facts.throttles["write", "key range", TABLE] == Throttles(0.0, None)
    assert facts.throttles["read", "account", "byCity"] == Throttles(0.0, None)
    assert facts.calls["Scan"] == 0.0


def test_without_any_datapoint_nothing_is_known():
    facts = look(FakeCloudWatch(NOW), ORDERS, NOW, 14 * DAY).facts
    assert isinstance(facts, Absent)
    assert "no datapoints of the table in 14 days" in facts.reason


def test_an_index_out_of_sight_has_no_figures_and_its_throttles_still_count():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders")
    cloud.plant(HOT, 3, NOW - 600, **CITY)
    facts = seen(cloud)
    assert ("write", "byCity") not in facts.consumed
    assert ("read", "key range", "byCity") not in facts.throttles
    assert facts.throttles["write", "key range", "byCity"] == Throttles(3.0, NOW - 540)
    assert facts.read_days["byCity"] is None


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "key range"),
        (
            {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}},
            "provisioned",
        ),
    ],
)
def test_throttles_of_unknown_cause_are_of_provisioned_units_if_there_are_any(changed, cause):
    """Those of an index are no others of its table."""
    cloud = alive()
    for events, where in ((9, CITY), (12, {"TableName": "Orders"})):
        cloud.plant("WriteThrottleEvents", events, NOW - 600, **where)
    cloud.plant(HOT, 2, NOW - 600, TableName="Orders")
    table = orders()
    index = replace(table.indexes[0], throughput=(5, 5) if changed else None)
    table = replace(table, throughput=index.throughput, indexes=(index,))
    facts = look(cloud, table, NOW, 14 * DAY).facts
    assert facts.throttles["write", cause, "byCity"] == Throttles(9.0, NOW - 540)
    known = 2.0 if cause == "key range" else 0.0
    assert facts.throttles["write", cause, TABLE] == Throttles(1.0 + known, NOW - 540)


def test_the_last_throttle_is_told_by_the_end_of_its_minute():
    cloud = alive()
    cloud.plant(HOT, 5, NOW - 9000, NOW - 8880, TableName="Orders")
    assert seen(cloud).throttles["write", "key range", TABLE] == Throttles(10.0, NOW - 8880)


def test_account_throttles_of_an_indexs_writes_are_not_known_as_aws_has_no_such_metric():
    assert ("write", "account", "byCity") not in seen(alive()).throttles


def test_calls_by_operation_without_our_own_and_returned_items():
    cloud = alive()
    where = {"TableName": "Orders", "Operation": "Scan"}
    cloud.plant("SuccessfulRequestLatency", 30, NOW - 600, **where)
    cloud.plant("ReturnedItemCount", 3000, NOW - 600, **where)
    ours = Own(NOW - 900, NOW - 300, {"Scan": 10})
    facts = seen(cloud, ours=(ours,))
    assert facts.calls["Scan"] == 20
    assert facts.returned["Scan"] == 3000
    many = Own(NOW - 900, NOW - 300, {"Scan": 99})
    assert seen(cloud, ours=(many,)).calls["Scan"] == 0
    before = Own(NOW - 30 * DAY, NOW - 29 * DAY, {"Scan": 10})
    assert seen(cloud, ours=(before,)).calls["Scan"] == 30


def test_the_scans_of_an_earlier_report_are_nobodys():
    cloud = alive()
    where = {"TableName": "Orders", "Operation": "Scan"}
    cloud.plant("SuccessfulRequestLatency", 300, NOW - 7 * DAY, **where)
    report = {"at": NOW - 7 * DAY, "spent": {"requests": 310, "seconds": 60.0, "rru": 400.0}}
    assert seen(cloud).calls["Scan"] == 300
    assert seen(cloud, ours=(Own.of_report(report),)).calls["Scan"] == 0


def test_days_on_which_an_index_was_read():
    cloud = alive()
    reads = "ConsumedReadCapacityUnits"
    cloud.plant(reads, 10, NOW - 20 * DAY, **CITY)
    cloud.plant(reads, 10, NOW - 2 * DAY, **CITY)
    assert seen(cloud).read_days == {"byCity": 2}


@pytest.mark.parametrize(("units", "days"), [(400, 0), (401, 1)])
def test_a_day_on_which_only_an_earlier_report_read_an_index_does_not_count(units, days):
    cloud = alive()
    began = NOW - 3 * DAY
    cloud.plant("ConsumedReadCapacityUnits", units, began, **CITY)
    spent = {"requests": 300, "seconds": 60.0, "rru": 400.0}
    assert seen(cloud).read_days == {"byCity": 1}
    of_the_day = Own.of_report({"at": began, "spent": spent})
    assert seen(cloud, ours=(of_the_day,)).read_days == {"byCity": days}
    of_another = Own.of_report({"at": began - 2 * DAY, "spent": spent})
    assert seen(cloud, ours=(of_another,)).read_days == {"byCity": 1}


def test_an_index_unread_in_30_days_is_told_from_one_that_is_younger():
    assert seen(alive()).read_days == {"byCity": 0}
    young = FakeCloudWatch(NOW)
    young.plant_life("Orders", days=31)
    young.plant(WRITES, 1, NOW - 5 * DAY, NOW, **CITY)
    assert seen(young).read_days == {"byCity": None}


@pytest.mark.parametrize(
    ("since", "period"), [(3600, 60), (14 * DAY, 60), (16 * DAY, 300), (70 * DAY, 3600)]
)
def test_the_period_is_the_finest_that_is_kept_for_the_window(since: float, period: int):
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders", days=80, each=60)
    facts = seen(cloud, since)
    assert facts.period == period
    assert facts.consumed["write", TABLE] == pytest.approx(since, rel=0.05)
    assert facts.peak["write", TABLE] == 1.0


def test_a_table_younger_than_the_window_is_judged_by_its_own_life():
    cloud = FakeCloudWatch(NOW)
    cloud.plant_life("Orders", days=2, each=60)
    young = replace(ORDERS, created=NOW - 2 * DAY)
    facts = look(cloud, young, NOW, 14 * DAY).facts
    assert facts.seconds == 2 * DAY
    just_made = look(cloud, replace(ORDERS, created=NOW + 5), NOW, 14 * DAY).facts
    assert just_made.seconds == 60


def test_a_table_that_was_named_by_its_arn_is_looked_for_in_its_own_account():
    for by_arn, accounts in ((False, {None}), (True, {"111122223333"})):
        cloud = alive()
        look(cloud, replace(ORDERS, by_arn=by_arn), NOW, DAY)
        queries = [one for _, asked in cloud.asked for one in asked["MetricDataQueries"]]
        assert {one.get("AccountId") for one in queries} == accounts


def test_many_indexes_are_asked_in_requests_of_500():
    indexes = [
        {
            "IndexName": f"by{number:03}",
            "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
        for number in range(60)
    ]
    cloud = alive()
    look(cloud, orders(GlobalSecondaryIndexes=indexes), NOW, 14 * DAY)
    queries = [len(asked["MetricDataQueries"]) for _, asked in cloud.asked]
    assert queries == [500, 188, 120]


def test_pages_are_put_together():
    cloud = alive(page=10_000)
    cloud.plant(WRITES, 6, NOW - 14 * DAY, NOW, TableName="Orders")
    looked = look(cloud, ORDERS, NOW, 14 * DAY)
    assert looked.facts.consumed["write", TABLE] == pytest.approx(6 * 14 * 1440, abs=6 * 60)
    assert looked.spent.requests > 5


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (DENIED, "cloudwatch:GetMetricData is not allowed", "allow cloudwatch:GetMetricData"),
        (THROTTLED, "CloudWatch throttled the request", "try again in a minute"),
        ("InternalServiceError", "CloudWatch refused GetMetricData (InternalServiceError)", ""),
    ],
)
def test_a_refusal_is_a_reason_and_no_zero(code: str, reason: str, remedy: str):
    cloud = alive(refusals={"get_metric_data": code})
    looked = look(cloud, ORDERS, NOW, 14 * DAY)
    assert looked.facts == Absent(reason, remedy)
    assert looked.spent.requests == 1


class OneFails(FakeCloudWatch):
    """CloudWatch answers, and says of one query that it could not."""

    def get_metric_data(self, **asked: Any) -> dict[str, Any]:
        answer = super().get_metric_data(**asked)
        for query, one in zip(asked["MetricDataQueries"], answer["MetricDataResults"], strict=True):
            if query["MetricStat"]["Metric"]["MetricName"] == HOT:
                one |= {"StatusCode": "InternalError", "Values": [], "Timestamps": []}
        return answer


def test_a_metric_that_failed_is_not_known():
    cloud = OneFails(NOW)
    cloud.plant_life("Orders", ["byCity"])
    facts = seen(cloud)
    assert ("write", "key range", TABLE) not in facts.throttles
    assert ("read", "key range", TABLE) in facts.throttles
