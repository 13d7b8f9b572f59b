"""Tests that the JSON of any report has the published schema."""

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
from tests.unit.report.pages.strategies import reports

PUBLISHED = Draft202012Validator(json.loads((Path(FOLDER) / "Report.output.json").read_text()))
STRICT = Draft202012Validator(of_output(ReportJson, strict=True))


def document_of(source: Report) -> Any:
    return json.loads(json.dumps(to_json(source), allow_nan=False))


def test_the_example_has_the_published_schema_and_no_other_fields() -> None:
    document = document_of(report())
    assert faults(PUBLISHED, document) == []
    assert faults(STRICT, document) == []
    assert document["schema"] == SCHEMA


@few()
@given(reports())
def test_any_report_has_the_published_schema(source: Report) -> None:
    document = document_of(source)
    assert faults(PUBLISHED, document) == []
    assert faults(STRICT, document) == []


def test_the_worst_findings_are_first_and_unknown_ones_have_a_price() -> None:
    findings = document_of(report())["findings"]
    assert [finding["id"] for finding in findings[:3]] == ["A6", "H1", "A9"]
    priced = next(finding for finding in findings if finding["id"] == "A16")
    assert priced["price_of_knowing"] == {"rru": 2100, "remedy": "--max-read-units 5100"}
    assert "price" not in priced


def test_an_infinite_end_of_an_interval_is_null() -> None:
    open_ended = Estimate.at_least(7.0, 3, "blocks").to_json()
    unknown = Estimate(math.nan, -math.inf, math.inf, 0, "none").to_json()
    document = document_of(report(estimates={"a": open_ended, "b": unknown}))
    assert document["estimates"]["a"]["high"] is None
    assert document["estimates"]["b"]["value"] is document["estimates"]["b"]["low"] is None


def test_pictures_show_keys_as_the_facts_have_them() -> None:
    """The facts already have digests instead of keys."""
    collections = document_of(report())["pictures"]["top"]["collections"]
    assert all(collection["key"].startswith("#") for collection in collections)
