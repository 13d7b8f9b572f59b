"""Tests of how figures are formatted: with two or three digits, and an interval in their unit."""

import math

import pytest
from keyhop.report import figures
from keyhop.report.estimate import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (38.0, "38"),
        (9_999, "9,999"),
        (10_000, "10 k"),
        (2e6, "2.0 M"),
        (9.124e8, "912 M"),
    ],
)
def test_a_count(value: float, text: str) -> None:
    assert figures.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (640, "640 B"), (400 * 1024, "400 KB"), (10 * 1024**3, "10 GB"), (1e12, "931 GB")],
)
def test_a_size_has_units_of_1024_like_the_limits_of_the_service(value: float, text: str) -> None:
    assert figures.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "$0"), (0.000375, "$0.00038"), (0.4, "$0.40"), (12.5, "$12.50"), (1940, "$1,940")],
)
def test_dollars(value: float, text: str) -> None:
    assert figures.dollars(value) == text


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(2e6, 1.9e6, 2.1e6, 9, "m"), "2.0 M [1.9, 2.1]"),
        (Estimate(2e6, 900, 2.1e6, 9, "m"), "2.0 M [900, 2.1]"),
        (Estimate.at_least(1_200, 9, "m"), "at least 1,200"),
        (Estimate.exactly(1_200, 9, "m"), "1,200"),
        (Estimate(math.nan, math.nan, math.nan, 0, "m"), "unknown"),
    ],
)
def test_a_count_with_its_interval(estimate: Estimate, text: str) -> None:
    assert figures.count_within(estimate.to_json()) == text


def test_a_share_with_its_interval() -> None:
    assert figures.share_within(Estimate(0.4, 0.32, 0.48, 9, "m").to_json()) == "40 % [32, 48]"
    assert figures.share_within(Estimate(0.003, 0, 0.01, 9, "m").to_json()) == "0.3 % [0, 1.0]"


def test_an_impossible_time_is_an_empty_text() -> None:
    assert figures.when(0) == "1970-01-01 00:00 UTC"
    assert figures.when(math.nan) == figures.when(1e30) == ""
