"""Tests of `keyhop report`: its outputs, exit statuses, wrong inputs, and secrets."""

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


def ids(document: Any, status: str) -> set[str]:
    """Return the rules whose findings have a status."""
    return {finding["id"] for finding in document["findings"] if finding["status"] == status}


@pytest.fixture
def report(dynamodb: Database, dated: str) -> Run:
    return partial(keyhop, "report", dated, "--endpoint-url", dynamodb.url)


def test_a_page_and_json_are_written_and_a_summary_is_printed(
    report: Run, dated: str, tmp_path: Path
) -> None:
    result = report("-o", str(tmp_path / "out"))
    assert result.status == 0
    first, *rest = result.lines
    assert first.startswith(f"{dated} ")
    assert "RRU" in first
    assert any(" A3 " in line for line in rest)
    page = (tmp_path / "out" / "report.html").read_text()
    document = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert document["schema"] == "keyhop-report/1"
    assert "A3" in ids(document, "found")
    assert re.search(r"<script|https?://[^\s\"<]*\.(js|css|woff)", page) is None
    assert len(page) < 500_000
    for text in (page, json.dumps(document), result.out.decode(), result.err):
        assert CANARY_KEY not in text
        assert CANARY_VALUE not in text


def test_all_dollars_are_at_the_prices_of_the_environment(
    report: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 7, "writes": 7}')
    assert report("--yes", "-o", str(tmp_path / "out")).status in (0, 5)
    document = json.loads((tmp_path / "out" / "report.json").read_bytes())
    spent = document["spent"]
    assert spent["dollars"] == pytest.approx(spent["rru"] * 7e-6, rel=1e-3)
    costs = [row["advice"]["cost"] for row in document["findings"] if row["advice"]]
    assert {cost["priced"] for cost in costs if cost} == {"on demand, at your own prices"}


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--fail-on", "low"], 5),
        (["--fail-on", "high"], 0),
        (["--strict"], 6),
        (["--fail-on", "low", "--strict"], 5),
    ],
)
def test_the_exit_status_depends_on_the_findings(
    report: Run, flags: list[str], status: int
) -> None:
    assert report(*flags).status == status


def test_a_baseline_shows_the_changes(report: Run, tmp_path: Path) -> None:
    report("-o", str(tmp_path))
    result = report("--baseline", str(tmp_path / "report.json"), "--fail-on", "info")
    assert result.status == 0
    assert "Since the baseline" in result.out.decode()


def test_each_row_of_csv_is_a_finding(report: Run) -> None:
    rows = [*csv.DictReader(report("--format", "csv").out.decode().splitlines())]
    document = json.loads(report("--format", "typed-json").out)
    assert {row["id"] for row in rows} == {finding["id"] for finding in document["findings"]}
    assert {row["status"] for row in rows if row["id"] == "A3"} == {"found"}


def test_json_is_all_that_is_written_to_standard_output(report: Run, dated: str) -> None:
    assert json.loads(report("--format", "json").out)["table"]["name"] == dated


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
def test_a_wrong_input_is_one_error_line(report: Run, flags: list[str], sentence: str) -> None:
    result = report(*flags)
    assert result.status == 2
    assert result.out == b""
    assert sentence in result.err
    assert len(result.err.strip().splitlines()) == 1


def test_control_plane_only_reads_no_data(report: Run) -> None:
    document = json.loads(report("--control-plane-only", "--format", "json").out)
    assert document["spent"]["rru"] == 0
    assert document["estimates"] == {}
    assert not ids(document, "clear") & {"A1", "A2", "A3", "A13", "A15"}


@pytest.mark.parametrize("operation", ["Scan", "Query"])
def test_a_denied_read_loses_the_sample_and_not_the_other_findings(
    strict: Database, stand_in: StandIn, table_name: str, operation: str, tmp_path: Path
) -> None:
    """The free sources need no permission to read items, so their findings are reported."""
    strict.collections(table_name, [400] * 20, filling=900)
    arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{table_name}"

    def fault(requested: str, request: Any) -> None:
        if requested == operation:
            raise failure(
                "AccessDeniedException",
                "User: arn:aws:sts::123456789012:assumed-role/Reader/ana is not authorized to "
                f"perform: dynamodb:{operation} on resource: {arn} because no identity-based "
                f"policy allows the dynamodb:{operation} action",
            )

    stand_in.fault = fault
    flags = ("report", table_name, "--endpoint-url", strict.url, "--max-read-units", "150")
    result = keyhop(*flags, "-o", str(tmp_path))
    assert result.status == 0, result.err
    document = json.loads((tmp_path / "report.json").read_bytes())
    sample = document["sources"]["sample"]
    assert sample == f"dynamodb:{operation} is not allowed; allow dynamodb:{operation} on {arn}"
    sentence = f"No items were sampled: dynamodb:{operation} is not allowed. To sample them: allow"
    assert sentence in result.out.decode()
    findings = {finding["id"]: finding for finding in document["findings"]}
    assert {findings[rule]["status"] for rule in ("A2", "A3", "A13", "A18")} == {"unknown"}
    assert f"dynamodb:{operation} is not allowed" in findings["A13"]["summary"]
    assert ids(document, "clear"), "other sources give findings"
    assert keyhop(*flags, "--strict").status == 6
