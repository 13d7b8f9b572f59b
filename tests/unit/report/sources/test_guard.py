"""Tests that a report does not sample a key range that was throttled in the last hour."""

from typing import Literal

import pytest
from keyhop.report.facts import TABLE, Absent, Cause, MetricFacts, Throttles
from keyhop.report.sources.absence import why_not

NOW = 1_000_000.0


def throttled(
    seconds_ago: float | None,
    cause: Cause = "key range",
    target: str = TABLE,
    way: Literal["read", "write"] = "write",
):
    last = None if seconds_ago is None else NOW - seconds_ago
    events = 0.0 if last is None else 9.0
    return MetricFacts(0, NOW, throttles={(way, cause, target): Throttles(events, last)})


def test_recent_throttles_of_a_key_range_forbid_a_sample():
    assert why_not(throttled(1200), NOW) == Absent(
        "DynamoDB throttled a key range of the table 20 min ago: a sample would add to that load",
        "wait for 60 min without throttles, or give --accept throttled",
    )


def test_throttled_reads_of_an_index_count_too():
    absent = why_not(throttled(60, target="byCity", way="read"), NOW)
    assert "index byCity" in absent.reason


@pytest.mark.parametrize(
    "metrics",
    [
        throttled(None),
        throttled(3600),
        throttled(60, "provisioned"),
        throttled(60, "account"),
        throttled(60, target="byCity"),
        Absent("not allowed"),
    ],
)
def test_without_such_throttles_the_data_is_sampled(metrics: MetricFacts | Absent):
    assert why_not(metrics, NOW) is None


def test_throttles_can_be_accepted():
    assert why_not(throttled(60), NOW, accepted=True) is None
