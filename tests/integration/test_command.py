"""The command `keyhop keys`: invalid inputs, plans, checks and reports."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from keyhop import __version__

from testing.databases import BY_DAY, Database, keyhop
from testing.marks import prove
from testing.simulation.service import failure
from testing.standin.server import StandIn
from tests.integration.conftest import Interrupt

ANYWHERE = ("--endpoint-url", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["keys"], "TABLE"),
        (["keys", "T", "--segments", "0"], "whole number from 1 to 1,000,000"),
        (["keys", "T", "--segments", "1000001"], "whole number from 1 to 1,000,000"),
        (["keys", "T", "--segments", "x"], "'x' is not a whole number"),
        (["keys", "T", "--threads", "-1"], "whole number from 1"),
        (["keys", "T", "--max-read-rate", "0"], "'0' is not a number above 0"),
        (["keys", "T", "--max-read-units", "nan"], "is not a number above 0"),
        (["keys", "T", "--verify", "1.5"], "'1.5' is not a share"),
        (["keys", "T", "--method", "magic"], "'magic' is not one of 'auto', 'skip', 'scan'"),
        (
            ["keys", "T", "--format", "xml"],
            "'xml' is not one of 'text', 'json', 'csv', 'typed-json'",
        ),
        (["keys", "T", "--colour"], "No such option '--colour'"),
        (["keys", "T", "--resume"], "requires an argument"),
        (["keys", "T", "--dry-run", "--output", "x"], "--dry-run only estimates"),
        (["keys", "T", "--limit", "0"], "'0' is not a whole number from 1"),
        (["keys", "T", "--limit", "1", "--output", "x"], "--limit does not work with --output"),
        (["keys", "T", "--limit", "1", "--count"], "--limit does not work with --count"),
        (["keys", "T", "--count", "-o", "x"], "--count does not work with --output"),
        (["keys", "T", "--count", "--dry-run"], "--count does not work with --dry-run"),
        (["keys", "T", "--verify", "0.1", "--index", "i"], "--verify does not work with --index"),
        (
            ["keys", "T", "--summary", "/nonexistent/r.json"],
            "/nonexistent/r.json cannot be written",
        ),
        (["keys", "T", "--summary", "/"], "cannot be written"),
        (["keys", "T", "--output", ""], "--output is empty"),
        (["keys", "T", "--summary", ""], "--summary is empty"),
        (["keys", "T", "--max-read-rate", "1e-11"], "less than 0.01 units a second"),
        (["keys", "T", "--endpoint-url", "nonsense"], "is not an http"),
        (["keys", "T", "--endpoint-url", "http://127.0.0.1:80x"], "is not an http"),
        (["keys", "T", "--endpoint-url", "http://127.0.0.1:99999"], "is not an http"),
        (["keys", "T", "--endpoint-url", "http://[::1"], "is not an http"),
        (["keys", "T", "--endpoint-url", "http://me:secret@127.0.0.1:9"], "at http://127.0.0.1:9:"),
        (
            ["keys", "T", "--region", "moon base", *ANYWHERE],
            "moon base is not the name of an AWS region",
        ),
        (["keys", "T", *ANYWHERE], "Nothing answers at http://127.0.0.1:9"),
        (["keys", "T", "--profile", "no-such-profile", *ANYWHERE], "'no-such-profile'"),
        (["nonsense"], "nonsense"),
        (["--quiet"], "Missing command"),
    ],
)
def test_an_invalid_input_is_reported_in_one_line(arguments: list[str], message: str) -> None:
    result = keyhop(*arguments)
    assert (result.status, result.out) == (2, b"")
    assert message in result.err
    assert result.err.count("\n") == 1


def test_a_table_or_an_index_with_a_similar_name_is_suggested(
    database: Database, strict: Database, table_name: str
) -> None:
    for number in range(150):  # more than a page of ListTables
        strict.create(f"a-{number}")
    database.create(table_name, **BY_DAY)
    place = ("--endpoint-url", database.url)
    wrong = keyhop("keys", f"{table_name}s".upper(), *place)
    assert wrong.status == 2
    assert f"'{table_name}'" in wrong.err.partition("Did you mean")[2]
    wrong = keyhop("keys", table_name, "--index", "by_day", *place)
    assert (wrong.status, "Did you mean 'by-day'?" in wrong.err) == (2, True)


def test_no_such_table_or_index(database: Database, table_name: str) -> None:
    missing = database.keys(table_name)
    assert (missing.status, f"There is no table '{table_name}'" in missing.err) == (2, True)
    database.create(table_name)
    missing = database.keys(table_name, "--index", "other")
    assert (missing.status, "has no index 'other': it has none" in missing.err) == (2, True)
    short = database.keys("x")
    assert (short.status, short.err.count("\n")) == (2, 1)


def test_errors_of_the_service_are_reported_in_one_line(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    invalid = failure("UnrecognizedClientException", "The security token is invalid.")
    stand_in.at("DescribeTable", lambda number: invalid)
    result = strict.keys(table_name)
    assert result.status == 2
    assert result.err == (
        "keyhop: The AWS credentials were not accepted (UnrecognizedClientException): sign in "
        "again (as by aws sso login).\n"
    )


@pytest.mark.parametrize("debug", [False, True])
def test_stack_traces_are_printed_on_request(debug: bool) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "KEYHOP_DEBUG"}
    if debug:
        environment["KEYHOP_DEBUG"] = "1"
    command = [sys.executable, "-m", "keyhop", "keys", "T", *ANYWHERE]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ("Traceback" in ended.stderr) is debug


def test_the_help_contains_options_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert keyhop("keys", "--help").status == 0
    text = keyhop("keys", "--help").out.decode()
    for word in ("--max-read-rate", "--resume", "examples:", "exit status", "KEYHOP_DEBUG"):
        assert word in text
    assert keyhop("--version").out.decode().strip() == f"keyhop {__version__}"


def test_a_limited_number_of_keys_is_printed(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    expected = strict.collections(table_name, [3] * 3_000, filling=500)
    path = tmp_path / "summary.json"
    result = strict.keys(table_name, "--limit", "7", "--summary", str(path))
    assert (result.status, len(result.lines)) == (0, 7)
    assert {key["pk"]["S"] for key in result.keys} <= expected
    assert f"7 keys of {table_name} so far" in result.err
    assert json.loads(path.read_bytes())["keys"] == 7
    assert stand_in.requests["Scan"] < 200
    assert len(strict.keys(table_name, "--limit", "5000").lines) == 3_000


def test_the_number_of_keys_is_printed(database: Database, table_name: str) -> None:
    database.collections(table_name, [3] * 1_200)
    where = ("keys", table_name, "--endpoint-url", database.url, "--count", "--quiet")
    assert keyhop(*where).out == b"1200\n"
    assert json.loads(keyhop(*where, "--format", "json").out) == {"keys": 1200}
    spent = keyhop(*where, "--max-read-units", "5")
    assert (spent.status, spent.out) == (4, b"")


def test_the_report(database: Database, table_name: str, tmp_path: Path) -> None:
    database.collections(table_name, [1, 5, 30] * 40, filling=500)
    path = tmp_path / "report.json"
    result = database.keys(table_name, "--summary", str(path), "--segments", "6")
    report = json.loads(path.read_bytes())
    assert report["table"] == table_name
    assert report["method"] == "skip"
    assert report["segments"] == 6
    assert report["keys"] == len(result.keys) == 120
    assert report["items_read"] >= 120
    assert report["read_units"] >= 0.5 * report["requests"]
    assert report["dollars"] == pytest.approx(report["read_units"] * 0.125e-6, rel=1e-3)
    assert report["seconds"] > 0
    assert report["throttles"] == {}
    assert report["no_progress_hops"] == 0
    assert report["software_version"] == __version__
    assert report["finished"] is True


def test_the_default_format_is_text(strict: Database, table_name: str, tmp_path: Path) -> None:
    """This applies to standard output, also after a check, and to files."""
    expected = sorted(strict.collections(table_name, [2] * 7))
    arguments = ("keys", table_name, "--endpoint-url", strict.url, "--quiet")
    assert sorted(keyhop(*arguments).lines) == expected
    assert sorted(keyhop(*arguments, "--verify", "1").lines) == expected
    assert keyhop(*arguments, "--output", str(tmp_path / "out")).status == 0
    (part,) = (tmp_path / "out" / "parts").iterdir()
    assert part.suffix == ".txt"
    assert sorted(part.read_text().splitlines()) == expected


def test_quiet_says_nothing(database: Database, table_name: str) -> None:
    database.collections(table_name, [2] * 20)
    result = database.keys(table_name, "--quiet")
    assert (result.err, len(result.keys)) == ("", 20)


def plan_of(database: Database, table: str, *arguments: str) -> dict:
    result = database.keys(table, "--dry-run", "--format", "json", *arguments)
    assert result.status == 0
    return json.loads(result.out)


def test_a_plan_states_what_it_cost_and_is_close(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    database.collections(table_name, [1, 30, 4] * 200, filling=350)
    plan = plan_of(database, table_name)
    assert plan["method"] == "skip"
    assert plan["spent"]["read_units"] <= 50
    # A 95 % interval may miss, but none of 600 plans of such a table missed by over a quarter.
    assert plan["keys"]["low"] <= 600 * 2
    assert plan["keys"]["high"] >= 600 / 2
    path = tmp_path / "report.json"
    database.keys(table_name, "--summary", str(path))
    spent = json.loads(path.read_bytes())["read_units"]
    assert plan["methods"]["skip"]["read_units"]["low"] <= 2 * spent
    assert plan["methods"]["skip"]["read_units"]["high"] >= spent / 2
    assert set(plan["methods"]) == {"skip", "scan", "published"}


def test_a_plan_as_text(database: Database, table_name: str) -> None:
    database.collections(table_name, [1] * 30)
    plan = keyhop("keys", table_name, "--endpoint-url", database.url, "--dry-run")
    text = plan.out.decode()
    assert "has 30 distinct partition keys (read whole)" in text
    assert "skip <- auto" in text
    assert "2026-08" in text
    assert plan.err == ""


def test_a_plan_of_a_table_without_a_sort_key(database: Database, table_name: str) -> None:
    database.create(table_name, ("pk", "S"), None)
    database.fill(table_name, ({"pk": {"S": f"k{n}"}} for n in range(900)))
    plan = plan_of(database, table_name)
    assert set(plan["methods"]) == {"scan"}
    assert plan["keys"]["low"] <= 1_000
    assert plan["keys"]["high"] >= 800


@pytest.mark.parametrize("allowed", [5, prove(50), 200])
def test_a_plan_reads_at_most_max_read_units(
    strict: Database, stand_in: StandIn, table_name: str, allowed: int
) -> None:
    strict.collections(table_name, [1, 3, 200] * 30, filling=3_000)
    before = stand_in.units
    plan = plan_of(strict, table_name, "--max-read-units", str(allowed))
    assert stand_in.units - before <= allowed
    assert plan["spent"]["read_units"] == stand_in.units - before


def test_a_plan_for_huge_items_says_that_it_could_not_sample(
    strict: Database, table_name: str
) -> None:
    strict.collections(table_name, [1] * 40, filling=390_000)
    plan = plan_of(strict, table_name)
    assert plan["keys"]["sampled"] is False
    assert plan["keys"]["low"] <= 40 <= plan["keys"]["high"]
    assert plan["spent"]["read_units"] <= 50


def test_a_plan_names_the_choice_of_auto_even_if_another_method_is_requested(
    strict: Database, table_name: str
) -> None:
    strict.collections(table_name, [3] * 300)
    assert plan_of(strict, table_name, "--method", "scan")["method"] == "skip"


@pytest.mark.prove
@pytest.mark.parametrize("items", [prove(1), prove(2), 5, prove(10)])
def test_a_plan_of_small_collections_is_close(
    strict: Database, table_name: str, tmp_path: Path, items: int
) -> None:
    strict.collections(table_name, [items] * (12_000 // items), filling=250)
    report = tmp_path / "report.json"
    assert strict.keys(table_name, "--summary", str(report)).status == 0
    spent = json.loads(report.read_bytes())["read_units"]
    units = plan_of(strict, table_name)["methods"]["skip"]["read_units"]
    assert units["low"] / 1.15 <= spent <= units["high"] * 1.15


def test_ctrl_c_ends_a_plan(
    strict: Database, stand_in: StandIn, table_name: str, interrupt: Interrupt
) -> None:
    strict.collections(table_name, [3] * 600, filling=900)
    stand_in.at("Scan", lambda number: interrupt() if number >= 6 else None)
    result = strict.keys(table_name, "--dry-run", "--format", "text")
    assert (result.status, result.err) == (130, "")


def test_a_summary_can_go_to_a_pipe(strict: Database, table_name: str, tmp_path: Path) -> None:
    """The summary is written into the pipe, and no file replaces it."""
    strict.collections(table_name, [2] * 5)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    summaries: list[str] = []
    reader = threading.Thread(target=lambda: summaries.append(pipe.read_text()))
    reader.start()
    assert strict.keys(table_name, "--summary", str(pipe)).status == 0
    reader.join()
    assert json.loads(summaries[0])["keys"] == 5
    assert pipe.is_fifo()


def test_a_summary_follows_a_link(strict: Database, table_name: str, tmp_path: Path) -> None:
    strict.collections(table_name, [2] * 5)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert strict.keys(table_name, "--summary", str(tmp_path / "link")).status == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "target").read_bytes())["keys"] == 5


@pytest.mark.parametrize("closing", ["2>&-", ">&-"])
def test_closed_streams_cause_no_internal_error(
    strict: Database, table_name: str, closing: str
) -> None:
    strict.collections(table_name, [2] * 5)
    command = (
        f"'{sys.executable}' -m keyhop keys {table_name} --endpoint-url {strict.url} {closing}"
    )
    result = subprocess.run(f"{command} {closing}", shell=True, capture_output=True, text=True)
    if closing == "2>&-":
        assert result.returncode == 0
        assert sorted(result.stdout.split()) == [f"k{number}" for number in range(5)]
    else:
        assert result.returncode == 2
        assert "Standard output is closed" in result.stderr


def test_a_missing_permission_is_named_even_if_the_service_does_not(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    strict.collections(table_name, [2] * 5)
    stand_in.at("Scan", lambda number: failure("AccessDeniedException", "no"))
    result = strict.keys(table_name)
    assert result.status == 2
    assert "allow dynamodb:Scan on arn:aws:dynamodb:" in result.err
    assert result.err.count("\n") == 1


def test_a_run_that_fails_writes_a_report(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The report is written even after an error that would prevent a run from starting."""
    strict.collections(table_name, [9] * 200, filling=900)
    gone = failure("ResourceNotFoundException", "gone")
    stand_in.at("Scan", lambda number: gone if number > 40 else None)
    report = tmp_path / "report.json"
    result = strict.keys(table_name, "--summary", str(report))
    assert result.status == 2
    summary = json.loads(report.read_bytes())
    assert summary["requests"] == 40
    assert "There is no table" in summary["error"]


@pytest.mark.prove
def test_a_stale_item_count_does_not_make_a_large_table_serial(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, [1] * 12_000, filling=100)
    stand_in.service.tables[table_name].reported = (900, 90_000)
    report = tmp_path / "report.json"
    assert strict.keys(table_name, "--summary", str(report)).status == 0
    assert json.loads(report.read_bytes())["segments"] >= 8
    assert json.loads(report.read_bytes())["keys"] == 12_000
