"""The report as JSON: as published, whatever the figures are."""

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import given
from jsonschema import Draft202012Validator
from keyhop.report.estimate import Estimate
from keyhop.report.findings import Report
from keyhop.report.pages.document import SCHEMA, ReportJson, to_json

from testing.marks import few
from testing.schemas.catalogue import FOLDER
from testing.schemas.shapes import of_output
from testing.schemas.watch import faults
from tests.unit.report.pages.example import report
from tests.unit.report.pages.made import reports

PUBLISHED = Draft202012Validator(json.loads((Path(FOLDER) / "Report.output.json").read_text()))
STRICT = Draft202012Validator(of_output(ReportJson, strict=True))


def written(of: Report) -> Any:
    return json.loads(json.dumps(to_json(of), allow_nan=False))


def test_a_report_is_as_published_and_has_nothing_else() -> None:
    document = written(report())
    assert faults(PUBLISHED, document) == []
    assert faults(STRICT, document) == []
    assert document["schema"] == SCHEMA


@few()
@given(reports())
def test_any_report_is_as_published(made: Report) -> None:
    document = written(made)
    assert faults(PUBLISHED, document) == []
    assert faults(STRICT, document) == []


def test_findings_are_the_worst_first_with_the_price_of_knowing() -> None:
    findings = written(report())["findings"]
    assert [one["id"] for one in findings[:3]] == ["A6", "H1", "A9"]
    priced = next(one for one in findings if one["id"] == "A16")
    assert priced["price_of_knowing"] == {"rru": 2100, "remedy": "--max-read-units 5100"}
    assert "price" not in priced


def test_an_end_that_is_infinite_is_null() -> None:
    open_ended = Estimate.at_least(7.0, 3, "blocks").to_json()
    nowhere = Estimate(math.nan, -math.inf, math.inf, 0, "none").to_json()
    document = written(report(estimates={"a": open_ended, "b": nowhere}))
    assert document["estimates"]["a"]["high"] is None
    assert document["estimates"]["b"]["value"] is document["estimates"]["b"]["low"] is None


def test_pictures_have_no_key_that_the_facts_do_not_show() -> None:
    """Digests are made before: what is drawn has them as they came."""
    keys = {one["key"] for one in written(report())["pictures"]["top"]["collections"]}
    assert all(key.startswith("#") for key in keys)
