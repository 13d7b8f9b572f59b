"""The course of a report: which sources are read, whoever follows it."""

from typing import Any

import pytest
from keyhop.checks import camel
from keyhop.cli.options import flag
from keyhop.report.course import Course
from keyhop.report.facts import Absent, MetricFacts, Throttles
from keyhop.report.request import ReportInput

NOW = 1_795_000_000.0
CALM = MetricFacts(NOW - 3600, NOW)
THROTTLED = MetricFacts(
    NOW - 3600, NOW, throttles={("read", "key range", ""): Throttles(5.0, NOW - 60)}
)


def course(called: Any = flag, **wishes: Any) -> Course:
    return Course(None, ReportInput(table="Orders", **wishes), called, NOW)  # type: ignore[arg-type]


def test_the_data_of_a_calm_table_is_read() -> None:
    assert course().why_no_data(CALM) is None


def test_the_data_of_a_throttled_table_is_read_only_if_that_is_accepted() -> None:
    absent = course().why_no_data(THROTTLED)
    assert "--accept throttled" in absent.remedy
    assert course(accept=("throttled",)).why_no_data(THROTTLED) is None


@pytest.mark.parametrize("metrics", [CALM, THROTTLED], ids=["calm", "throttled"])
@pytest.mark.parametrize(
    ("called", "name"), [(flag, "--control-plane-only"), (camel, "controlPlaneOnly")]
)
def test_without_data_the_remedy_has_the_caller_s_name(
    metrics: MetricFacts, called: Any, name: str
) -> None:
    absent = course(called, control_plane_only=True, max_read_units=500.0).why_no_data(metrics)
    assert absent == Absent("the data was not read", f"without {name}", 500.0)
