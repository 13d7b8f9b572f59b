"""The pictures: the dashboard's expressions over what a real run reported; the stack as it is."""

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
def shown(template: Deployed) -> dict:
    return json.loads(json.dumps(template.widgets).replace(ANY_TABLE, TABLE))


def last(shown: dict, title: str) -> dict[str, float]:
    return {label: values[max(values)] for _, label, values in METRICS.widget_lines(shown[title])}


def test_what_the_workers_report_comes_to_the_whole_run(shown: dict):
    (graph,) = [one for title, one in shown.items() if title.startswith("Done, % of")]
    lines = {label: values for _, label, values in METRICS.widget_lines(graph)}
    percent = lines["done, %"]
    assert percent[max(percent)] == 100
    assert sorted(percent.values()) == [*percent.values()], "it only grows"
    assert lines["minutes left, at this pace"][max(lines["minutes left, at this pace"])] == 0
    assert last(shown, "Keys found") == {"keys": 3452}
    (dollars,) = last(shown, "Cost of reads so far, dollars").values()
    assert dollars == pytest.approx(600 * 0.125e-6)


def test_the_rate_is_shown_beside_what_was_allowed(shown: dict):
    lines = last(shown, "Read units a second")
    assert lines.pop("allowed (maxReadRate)") == 1.2
    (rate,) = lines.values()
    assert 0 < rate < 1.2


def test_the_list_of_runs_has_the_figures_of_the_run(shown: dict):
    (run,) = METRICS.query_rows(shown[f"Runs of {TABLE} that reported in the time shown"]["query"])
    assert (run["run"], run["percent_done"], run["keys"], run["read_units"]) == (
        *("nightly", 100, 3452),
        600,
    )


def test_workers_report_every_minute_while_they_work():
    at = [
        one["timestamp"] for one in METRICS.records if "SegmentsDone" in one or "KeysFound" in one
    ]
    assert max(later - one for one, later in pairwise(at)) < 65


def test_throttles_are_searched_by_their_reasons(shown: dict):
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
    graph = shown["Throttles, by DynamoDB's reason"]
    ((_, label, values),) = throttled.widget_lines(graph)
    assert (label, [*values.values()]) == ("TableReadKeyRangeThroughputExceeded", [3.0])
    assert METRICS.widget_lines(graph) == []


@pytest.fixture(scope="module")
def drawing() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "draw_stack.py"))


def test_it_is_drawn_from_the_template_as_it_is(drawing: dict[str, Any]) -> None:
    picture = drawing["draw"](deployed(stack_of(drawing["EVERY_OPTION"])))
    assert (ROOT / "docs" / "stack.svg").read_text() == picture, "run make pictures"


def test_each_function_and_machine_is_in_it(drawing: dict[str, Any]) -> None:
    template = deployed(stack_of(drawing["EVERY_OPTION"]))
    picture = (ROOT / "docs" / "stack.svg").read_text()
    for kind, named in (("Lambda::Function", "FunctionName"), ("StepFunctions::StateMachine", "")):
        for resource in template.of_type(f"AWS::{kind}").values():
            name = resource["Properties"][named or "StateMachineName"].removeprefix("Keyhop-")
            assert f">{name}</text>" in picture


def test_nothing_that_an_option_adds_is_missing() -> None:
    """The golden templates have all options between them."""
    picture = (ROOT / "docs" / "stack.svg").read_text()
    templates = [path.read_text() for path in (ROOT / "tests/golden/files/templates").glob("*")]
    named = r'"(?:FunctionName|StateMachineName)": "Keyhop-(\w+)"'
    for name in {name for text in templates for name in re.findall(named, text)}:
        assert f">{name}</text>" in picture


def test_an_unknown_kind_of_resource_is_refused(drawing: dict[str, Any]) -> None:
    template = deployed(stack_of(drawing["EVERY_OPTION"]))
    more = {**template.body["Resources"], "New": {"Type": "AWS::Kinesis::Stream"}}
    with pytest.raises(SystemExit, match=r"does not know these resources: .*Kinesis"):
        drawing["draw"](type(template)({**template.body, "Resources": more}))
