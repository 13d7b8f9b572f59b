"""Tests that report-statistics.md has the measured figures, and that these reach their limits."""

import json

import pytest

from bench.report_statistics import FIGURES, REPORT, lines

RESULTS = json.loads(FIGURES.read_text())
AT_3_000 = RESULTS["coverage"]["3000"]


def test_the_page_is_generated_from_the_figures() -> None:
    assert REPORT.read_text() == "\n".join(lines(RESULTS)) + "\n"


@pytest.mark.parametrize("name", AT_3_000)
def test_intervals_have_their_coverage(name: str) -> None:
    for budget in ("300", "3000"):
        figures = RESULTS["coverage"][budget][name]["figures"]
        for figure in ("keys", "median", "p90"):
            assert figures.get(figure, (0, 1))[1] >= 0.92
    figures = AT_3_000[name]["figures"]
    assert figures["giants"][1] >= 0.9
    assert all(figures[figure][0] >= 0.9 for figure in ("keys", "median", "giants"))


def test_a_giant_is_detected_and_even_tables_raise_no_alarm() -> None:
    assert AT_3_000["one key of 40 %"]["alarms"] >= 0.99
    for name in ("equal", "lognormal, sigma 1"):
        assert AT_3_000[name]["false"] <= 0.02


def test_the_largest_keys_are_found_and_lengths_are_estimated() -> None:
    assert RESULTS["recall"]["1.0"][0] >= 0.95
    low, high, _ = RESULTS["lengths"]["Poisson times"]["9"]
    assert low >= 0.65
    assert high <= 1.35
