"""Tests of which sources a report reads, for the command and for the state machine."""

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


def course(name_of: Any = flag, **options: Any) -> Course:
    return Course(None, ReportInput(table="Orders", **options), name_of, NOW)  # type: ignore[arg-type]


def test_the_data_of_a_calm_table_is_read() -> None:
    assert course().why_no_data(CALM) is None


def test_the_data_of_a_throttled_table_is_read_only_if_the_user_accepts_it() -> None:
    absent = course().why_no_data(THROTTLED)
    assert "--accept throttled" in absent.remedy
    assert course(accept=("throttled",)).why_no_data(THROTTLED) is None


@pytest.mark.parametrize("metrics", [CALM, THROTTLED], ids=["calm", "throttled"])
@pytest.mark.parametrize(
    ("name_of", "name"), [(flag, "--control-plane-only"), (camel, "controlPlaneOnly")]
)
def test_the_remedy_has_the_option_name_of_the_caller(
    metrics: MetricFacts, name_of: Any, name: str
) -> None:
    absent = course(name_of, control_plane_only=True, max_read_units=500.0).why_no_data(metrics)
    assert absent == Absent("the data was not read", f"without {name}", 500.0)
