"""`keyhop report`: its three outputs, its exit statuses, wrong inputs, and what it never tells."""

import csv
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testing.databases import CANARY_KEY, CANARY_VALUE, Database, Result, keyhop
from testing.simulation.service import failure
from testing.standin.server import StandIn

Run = Callable[..., Result]


@pytest.fixture
def report(dynamodb: Database, dated: str) -> Run:
    return partial(keyhop, "report", dated, "--endpoint-url", dynamodb.url)


def test_a_page_and_json_are_written_and_a_screen_is_shown(
    report: Run, dated: str, tmp_path: Path
) -> None:
    shown = report("-o", str(tmp_path / "out"))
    assert shown.status == 0
    first, *rest = shown.lines
    assert first.startswith(f"{dated} ")
    assert "RRU" in first
    assert any(" A3 " in line for line in rest)
    page = (tmp_path / "out" / "report.html").read_text()
    told = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert told["schema"] == "keyhop-report/1"
    assert {one["id"] for one in told["findings"] if one["status"] == "found"} >= {"A3"}
    assert re.search(r"<script|https?://[^\s\"<]*\.(js|css|woff)", page) is None
    assert len(page) < 500_000
    for text in (page, json.dumps(told), shown.out.decode(), shown.err):
        assert CANARY_KEY not in text
        assert CANARY_VALUE not in text


def test_all_of_its_dollars_are_at_the_prices_that_were_given(
    report: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 7, "writes": 7}')
    assert report("--yes", "-o", str(tmp_path / "out")).status in (0, 5)
    told = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert told["spent"]["dollars"] == pytest.approx(told["spent"]["rru"] * 7e-6, rel=1e-3)
    costs = [one["advice"]["cost"] for one in told["findings"] if one["advice"]]
    assert {one["priced"] for one in costs if one} == {"on demand, at your own prices"}


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--fail-on", "low"], 5),
        (["--fail-on", "high"], 0),
        (["--strict"], 6),
        (["--fail-on", "low", "--strict"], 5),
    ],
)
def test_the_exit_status_tells_what_was_found(report: Run, flags: list[str], status: int) -> None:
    assert report(*flags).status == status


def test_a_baseline_tells_what_has_changed(report: Run, tmp_path: Path) -> None:
    report("-o", str(tmp_path))
    again = report("--baseline", str(tmp_path / "report.json"), "--fail-on", "info")
    assert again.status == 0
    assert "Since the baseline" in again.out.decode()


def test_a_row_of_csv_is_a_finding(report: Run) -> None:
    rows = [*csv.DictReader(report("--format", "csv").out.decode().splitlines())]
    told = json.loads(report("--format", "typed-json").out)
    assert {row["id"] for row in rows} == {one["id"] for one in told["findings"]}
    assert {row["status"] for row in rows if row["id"] == "A3"} == {"found"}


def test_json_goes_to_standard_output_alone(report: Run, dated: str) -> None:
    shown = report("--format", "json")
    assert json.loads(shown.out)["table"]["name"] == dated


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--max-read-units", "0"], "above 0"),
        (["--since", "yesterday"], "is not a time as"),
        (["--exhaustive", "--control-plane-only"], "give one of them"),
        (["--exhaustive", "--max-read-units", "5"], "has no --max-read-units"),
        (["--baseline", "/nowhere/old.json"], "cannot be read"),
        (["--code", "/nowhere/src"], "There is no directory"),
        (["--requests", "/nowhere/requests.jsonl"], "cannot be read"),
        (["--candidate", "{"], "candidate"),
        (["--format", "pdf"], "pdf"),
        (["--fail-on", "worst"], "worst"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(report: Run, flags: list[str], sentence: str) -> None:
    wrong = report(*flags)
    assert wrong.status == 2
    assert wrong.out == b""
    assert sentence in wrong.err
    assert len(wrong.err.strip().splitlines()) == 1


def test_nothing_of_the_data_is_read_where_that_is_asked(report: Run) -> None:
    shown = report("--control-plane-only", "--format", "json")
    told = json.loads(shown.out)
    assert told["spent"]["rru"] == 0
    assert told["estimates"] == {}
    clear = {one["id"] for one in told["findings"] if one["status"] == "clear"}
    assert not clear & {"A1", "A2", "A3", "A13", "A15"}


@pytest.mark.parametrize("operation", ["Scan", "Query"])
def test_a_denied_read_loses_the_sample_and_not_the_other_findings(
    strict: Database, stand_in: StandIn, table_name: str, operation: str, tmp_path: Path
) -> None:
    """The free sources need no right to read items, so they are reported all the same."""
    strict.collections(table_name, [400] * 20, filling=900)
    arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{table_name}"

    def fault(called: str, request: Any) -> None:
        if called == operation:
            raise failure(
                "AccessDeniedException",
                "User: arn:aws:sts::123456789012:assumed-role/Reader/ana is not authorized to "
                f"perform: dynamodb:{operation} on resource: {arn} because no identity-based "
                f"policy allows the dynamodb:{operation} action",
            )

    stand_in.fault = fault
    flags = ("report", table_name, "--endpoint-url", strict.url, "--max-read-units", "150")
    shown = keyhop(*flags, "-o", str(tmp_path))
    assert shown.status == 0, shown.err
    report = json.loads((tmp_path / "report.json").read_bytes())
    sample = report["sources"]["sample"]
    assert sample == f"dynamodb:{operation} is not allowed; allow dynamodb:{operation} on {arn}"
    sentence = f"No items were sampled: dynamodb:{operation} is not allowed. To sample them: allow"
    assert sentence in shown.out.decode()
    statuses = {one["id"]: one["status"] for one in report["findings"]}
    assert {statuses[rule] for rule in ("A2", "A3", "A13", "A18")} == {"unknown"}
    (large,) = [one for one in report["findings"] if one["id"] == "A13"]
    assert f"dynamodb:{operation} is not allowed" in large["summary"]
    assert "clear" in statuses.values(), "other sources have answered"
    assert keyhop(*flags, "--strict").status == 6
