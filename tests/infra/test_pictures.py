"""Tests of the pictures of the dashboard (with the records of a real run) and of the stack."""

import json
import re
import runpy
from itertools import pairwise
from typing import Any

import pytest

from docs.dashboard_data import Metrics
from docs.draw_dashboard import LINES
from infra.monitoring import ANY_TABLE
from testing.flights import BY_AIRCRAFT as TABLE
from testing.servers import ROOT
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import Deployed

METRICS = Metrics.parse(LINES.read_text().splitlines())
COUNTED = frozenset({"service": "enumerate-keys", "table": TABLE}.items())


@pytest.fixture
def widgets(template: Deployed) -> dict:
    return json.loads(json.dumps(template.widgets).replace(ANY_TABLE, TABLE))


def last(widgets: dict, title: str) -> dict[str, float]:
    return {label: values[max(values)] for _, label, values in METRICS.widget_lines(widgets[title])}


def test_the_reports_of_the_workers_add_up_to_the_whole_run(widgets: dict):
    (graph,) = [widget for title, widget in widgets.items() if title.startswith("Done, % of")]
    lines = {label: values for _, label, values in METRICS.widget_lines(graph)}
    percent = lines["done, %"]
    assert percent[max(percent)] == 100
    assert sorted(percent.values()) == [*percent.values()], "it never decreases"
    assert lines["minutes left, at this pace"][max(lines["minutes left, at this pace"])] == 0
    assert last(widgets, "Keys found") == {"keys": 3452}
    (dollars,) = last(widgets, "Cost of reads so far, dollars").values()
    assert dollars == pytest.approx(600 * 0.125e-6)


def test_the_dashboard_shows_the_rate_beside_the_allowed_rate(widgets: dict):
    lines = last(widgets, "Read units a second")
    assert lines.pop("allowed (maxReadRate)") == 1.2
    (rate,) = lines.values()
    assert 0 < rate < 1.2


def test_the_list_of_runs_has_the_figures_of_the_run(widgets: dict):
    widget = widgets[f"Runs of {TABLE} that reported in the time shown"]
    (run,) = METRICS.query_rows(widget["query"])
    assert (run["run"], run["percent_done"], run["keys"], run["read_units"]) == (
        *("nightly", 100, 3452),
        600,
    )


def test_running_workers_report_every_minute():
    times = [
        record["timestamp"]
        for record in METRICS.records
        if "SegmentsDone" in record or "KeysFound" in record
    ]
    assert max(later - earlier for earlier, later in pairwise(times)) < 65


def test_the_dashboard_groups_throttles_by_reason(widgets: dict):
    reported = {
        "_aws": {
            "CloudWatchMetrics": [
                {
                    "Dimensions": [["service"], ["service", "table", "Reason"]],
                    "Metrics": [{"Name": "Throttles"}],
                }
            ]
        },
        **dict(COUNTED),
        "Reason": "TableReadKeyRangeThroughputExceeded",
        "Throttles": [3.0],
        "timestamp": METRICS.records[0]["timestamp"],
    }
    throttled = Metrics([*METRICS.records, reported])
    graph = widgets["Throttles, by DynamoDB's reason"]
    ((_, label, values),) = throttled.widget_lines(graph)
    assert (label, [*values.values()]) == ("TableReadKeyRangeThroughputExceeded", [3.0])
    assert METRICS.widget_lines(graph) == []


@pytest.fixture(scope="module")
def drawing() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "draw_stack.py"))


def test_the_picture_of_the_stack_matches_the_template(drawing: dict[str, Any]) -> None:
    picture = drawing["draw"](deployed(stack_of(drawing["EVERY_OPTION"])))
    assert (ROOT / "docs" / "stack.svg").read_text() == picture, "run make pictures"


def test_the_picture_has_each_function_and_machine(drawing: dict[str, Any]) -> None:
    template = deployed(stack_of(drawing["EVERY_OPTION"]))
    picture = (ROOT / "docs" / "stack.svg").read_text()
    kinds = ("AWS::Lambda::Function", "AWS::StepFunctions::StateMachine")
    for properties in template.properties_of(*kinds):
        name = properties.get("FunctionName") or properties["StateMachineName"]
        assert f">{name.removeprefix('Keyhop-')}</text>" in picture


def test_the_picture_has_the_functions_and_machines_of_all_options() -> None:
    """The golden templates together have all options."""
    picture = (ROOT / "docs" / "stack.svg").read_text()
    templates = [path.read_text() for path in (ROOT / "tests/golden/files/templates").glob("*")]
    name_pattern = r'"(?:FunctionName|StateMachineName)": "Keyhop-(\w+)"'
    for name in {name for text in templates for name in re.findall(name_pattern, text)}:
        assert f">{name}</text>" in picture


def test_an_unknown_type_of_resource_is_refused(drawing: dict[str, Any]) -> None:
    template = deployed(stack_of(drawing["EVERY_OPTION"]))
    resources = {**template.body["Resources"], "New": {"Type": "AWS::Kinesis::Stream"}}
    with pytest.raises(SystemExit, match=r"does not know these resources: .*Kinesis"):
        drawing["draw"](type(template)({**template.body, "Resources": resources}))
