"""Tests of reading the file of the request sampler, also damaged or of another table."""

import json
from pathlib import Path

import pytest
from keyhop.errors import CannotStart
from keyhop.report.facts import Absent, RequestFacts
from keyhop.report.sampler import COUNTS, FULL
from keyhop.report.sources.requests import read_requests, requests_of


def line(table: str = "Orders", began: float = 100.0, share: float = 0.1, **counts: float) -> str:
    shape = {"table": table, "operation": "Query", "index": "", "conditions": ["pk"], "filters": []}
    document = {
        "keyhop": "requests",
        "version": 1,
        "began": began,
        "ended": began + 60,
        "share": share,
        "shapes": [{**shape, **dict.fromkeys(COUNTS, 0), "calls": 1, **counts}],
        "followed": [[table, "byCity", 1, 4]],
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


def test_lines_are_summed_by_shape():
    lines = [line(calls=3, count=5, units=1.5), line("Users"), line(began=400.0, calls=1, count=2)]
    facts = requests_of([*lines, FULL], "Orders", "f")
    (shape,) = facts.shapes
    assert (shape.calls, shape.count, shape.units) == (4, 7, 1.5)
    assert (facts.calls, facts.seconds, facts.sampled) == (4, 360.0, pytest.approx(0.1))
    assert facts.followed == {"byCity": (2, 8)}


def test_a_damaged_last_line_is_skipped():
    text = line(calls=3)
    for end in range(1, len(text) - 1):
        assert requests_of([text, text[:end]], "Orders", "f").calls == 3


@pytest.mark.parametrize("number", [0.0, 0.5, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["calls", "units"])
def test_a_line_with_an_impossible_number_is_skipped(field: str, number: float):
    is_possible = field == "units" and 0 <= number < 1
    facts = requests_of([line(calls=3), line(**{field: number})], "Orders", "f")
    assert facts.calls == (4 if is_possible else 3)


@pytest.mark.parametrize("fields", [{"share": -0.1}, {"began": float("inf")}])
def test_a_line_with_an_impossible_time_or_share_is_skipped(fields: dict[str, float]):
    assert requests_of([line(calls=3), line(**fields)], "Orders", "f").calls == 3


def test_lines_of_a_log_are_found():
    facts = requests_of(["START\n", "2026-11-22T10:00:00Z " + line()], "Orders", "f")
    assert isinstance(facts, RequestFacts)


def test_a_file_of_other_tables_is_absent_with_their_names():
    facts = requests_of([line("Users"), line("Carts")], "Orders", "requests.jsonl")
    assert facts == Absent(
        "'requests.jsonl' has requests to Carts, Users, and none to Orders",
        "--requests FILE, of keyhop.report.sampler in the application that uses this table",
    )


@pytest.mark.parametrize("text", ["", "hello\n", "{}\n", '{"keyhop":"keys"}\n', "\0\xff"])
def test_another_file_is_refused(text: str):
    with pytest.raises(CannotStart, match="not a file of the request sampler"):
        requests_of([text], "Orders", "f")


def test_another_version_is_refused():
    with pytest.raises(CannotStart, match="version 2"):
        requests_of([line().replace('"version":1', '"version":2')], "Orders", "f")


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path):
    with pytest.raises(CannotStart, match="no such file"):
        read_requests(tmp_path / "none", "Orders")
    with pytest.raises(CannotStart, match="is a directory"):
        read_requests(tmp_path, "Orders")
