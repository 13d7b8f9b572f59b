"""How figures are told: two or three digits that tell, and the interval in the value's unit."""

import math

import pytest
from keyhop.report import figures
from keyhop.report.estimate import Estimate


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0"),
        (38.0, "38"),
        (9_999, "9,999"),
        (10_000, "10 k"),
        (2e6, "2.0 M"),
        (9.124e8, "912 M"),
    ],
)
def test_a_count(value: float, told: str) -> None:
    assert figures.count(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0 B"), (640, "640 B"), (400 * 1024, "400 KB"), (10 * 1024**3, "10 GB"), (1e12, "931 GB")],
)
def test_a_size_is_counted_by_1024_as_the_limits_are(value: float, told: str) -> None:
    assert figures.size(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "$0"), (0.000375, "$0.00038"), (0.4, "$0.40"), (12.5, "$12.50"), (1940, "$1,940")],
)
def test_dollars(value: float, told: str) -> None:
    assert figures.dollars(value) == told


@pytest.mark.parametrize(
    ("estimate", "told"),
    [
        (Estimate(2e6, 1.9e6, 2.1e6, 9, "m"), "2.0 M [1.9, 2.1]"),
        (Estimate(2e6, 900, 2.1e6, 9, "m"), "2.0 M [900, 2.1]"),
        (Estimate.at_least(1_200, 9, "m"), "at least 1,200"),
        (Estimate.exactly(1_200, 9, "m"), "1,200"),
        (Estimate(math.nan, math.nan, math.nan, 0, "m"), "unknown"),
    ],
)
def test_a_count_within(estimate: Estimate, told: str) -> None:
    assert figures.count_within(estimate.to_json()) == told


def test_a_share_within() -> None:
    assert figures.share_within(Estimate(0.4, 0.32, 0.48, 9, "m").to_json()) == "40 % [32, 48]"
    assert figures.share_within(Estimate(0.003, 0, 0.01, 9, "m").to_json()) == "0.3 % [0, 1.0]"


def test_a_moment_that_no_calendar_has_is_not_told() -> None:
    assert figures.when(0) == "1970-01-01 00:00 UTC"
    assert figures.when(math.nan) == figures.when(1e30) == ""
