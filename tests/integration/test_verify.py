"""The check of a run finds missing keys, and distinguishes them from later changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import look_up
from keyhop.errors import BrokenPromise
from keyhop.jobs.journal import Journal
from keyhop.keys.verify import Verdict, verify
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory

from testing.databases import Database
from testing.marks import prove
from testing.standin.server import StandIn
from tests.integration.conftest import Interrupt

SHARE = ("--verify", "1")


def report_of(database: Database, table: str, tmp_path: Path, *arguments: str) -> tuple[int, dict]:
    path = tmp_path / "report.json"
    result = database.keys(table, "--summary", str(path), *arguments)
    return result.status, json.loads(path.read_bytes())["verify"] | {"err": result.err}


@pytest.mark.parametrize("share", [prove("1"), "0.25", prove("0.01")])
def test_a_complete_run_passes(
    database: Database, table_name: str, tmp_path: Path, share: str
) -> None:
    database.collections(table_name, [1, 5, 40] * 60, filling=200)
    status, verdict = report_of(database, table_name, tmp_path, "--verify", share)
    assert status == 0
    assert verdict["share"] == pytest.approx(max(float(share), 1 / 64), rel=0.2)
    assert (verdict["missing"], verdict["surplus"], verdict["appeared"]) == (0, 0, 0)
    assert "missing 0, surplus 0" in verdict["err"]


def test_the_keys_are_printed_as_well(database: Database, table_name: str) -> None:
    expected = database.collections(table_name, [2] * 50)
    keys = [key["pk"]["S"] for key in database.keys(table_name, "--verify", "0.5").keys]
    assert sorted(keys) == sorted(expected)


def test_a_key_that_hops_cannot_find_is_missing(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The service hides a collection from hops, but not from a plain Scan."""
    strict.collections(table_name, [3] * 80)

    def hide(operation: str, request, body) -> None:
        if operation == "Scan" and "Limit" in request:
            body["Items"] = [item for item in body["Items"] if item["pk"]["S"] != "k7"]

    stand_in.alter(hide)
    status, verdict = report_of(strict, table_name, tmp_path, *SHARE)
    assert status == 3
    assert verdict["missing"] == 1
    assert verdict["examples"] == {"missing": [{"pk": {"S": "k7"}}]}
    assert '{"pk": {"S": "k7"}}' in verdict["err"]


def test_a_key_written_or_deleted_since_is_not_missing(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, [3] * 80)
    table = stand_in.service.tables[table_name]

    def change(operation: str, request) -> None:
        if operation == "Scan" and "Limit" not in request and not changed:
            changed.append(True)  # the run has ended, and its check starts
            table.put({"pk": {"S": "late"}, "sk": {"S": "0"}})
            for item in range(3):
                table.delete({"pk": {"S": "k5"}, "sk": {"S": f"{item:06}"}})

    changed: list[bool] = []
    stand_in.fault = change
    status, verdict = report_of(strict, table_name, tmp_path, *SHARE)
    assert status == 0
    assert (verdict["missing"], verdict["appeared"], verdict["surplus"]) == (0, 1, 1)
    assert verdict["examples"]["appeared"] == [{"pk": {"S": "late"}}]
    assert verdict["examples"]["surplus"] == [{"pk": {"S": "k5"}}]


def test_a_key_that_was_deleted_from_a_part_is_detected(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, [3] * 80)
    assert strict.keys(table_name, "--output", str(tmp_path / "out")).status == 0
    journal = Journal(Directory(tmp_path / "out"))
    plan = journal.plan()
    assert plan is not None
    connection = connect(Endpoint(url=strict.url))
    reader = PageReader(connection, look_up(connection, table_name).source(), Budget())

    def check(name: str) -> Verdict:
        verdict = Verdict.of_none(plan, 1.0)
        verify(journal, plan, Journal(Directory(tmp_path / name)), reader, verdict, 2)
        return verdict

    assert check("first").missing == 0
    (part,) = (tmp_path / "out" / "parts").iterdir()
    part.write_bytes(part.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        check("second")


def test_a_check_within_a_budget(strict: Database, table_name: str, tmp_path: Path) -> None:
    strict.collections(table_name, [40] * 60, filling=1_000)
    result = strict.keys(
        table_name, "--output", str(tmp_path / "out"), *SHARE, "--max-read-units", "100"
    )
    assert result.status == 4
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["finished"]


@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_table_without_a_sort_key_can_be_checked(
    database: Database, table_name: str, tmp_path: Path, format_: str
) -> None:
    database.create(table_name, ("pk", "N"), None)
    database.fill(table_name, ({"pk": {"N": str(n)}} for n in range(400)))
    database.fill(table_name, ({"pk": {"N": f"0.00000{n}"}} for n in range(101, 200)))
    output = ("--output", str(tmp_path / "run"), "-f", format_)
    status, verdict = report_of(database, table_name, tmp_path, "--verify", "1", *output)
    assert (status, verdict["missing"], verdict["surplus"]) == (0, 0, 0)


def test_a_key_that_is_deleted_before_the_second_look_is_not_missing(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The key is written after the run, and deleted after the check has read it."""
    strict.collections(table_name, [1] * 80)
    table = stand_in.service.tables[table_name]
    late = {"pk": {"S": "late"}, "sk": {"S": "0"}}
    answer = stand_in.answer
    events: list[str] = []

    def change(operation: str, request):
        is_check = operation == "Scan" and "Limit" not in request
        if is_check and not events:
            events.append("put")
            table.put(late)
        status, body = answer(operation, request)
        if is_check and any(item["pk"] == late["pk"] for item in body["Items"]):
            events.append("delete")
            table.delete(late)
        return status, body

    stand_in.answer = change  # type: ignore[method-assign]
    status, verdict = report_of(strict, table_name, tmp_path, *SHARE)
    assert events == ["put", "delete"]
    assert (status, verdict["missing"], verdict["appeared"]) == (0, 0, 1)


def hide_once(stand_in: StandIn, is_affected: Callable[[Any], bool]) -> list[bool]:
    """Hide k7 in the first answer to an affected Scan, and record that in the returned list."""
    hidden: list[bool] = []

    def hide(operation: str, request, body) -> None:
        remaining = [item for item in body.get("Items", ()) if item["pk"]["S"] != "k7"]
        may_hide = operation == "Scan" and is_affected(request) and not hidden
        if may_hide and len(remaining) < len(body["Items"]):
            hidden.append(True)
            body["Items"] = remaining

    stand_in.alter(hide)
    return hidden


def test_a_key_that_the_check_finds_at_the_second_look_is_not_surplus(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, [1] * 80)
    hidden = hide_once(stand_in, lambda request: "Limit" not in request)
    status, verdict = report_of(strict, table_name, tmp_path, *SHARE)
    assert hidden
    assert (status, verdict["surplus"]) == (0, 0)


def test_without_a_sort_key_a_lost_key_is_missing(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The run did not read an existing key, and no second method can confirm it."""
    strict.create(table_name, ("pk", "S"), None)
    strict.fill(table_name, ({"pk": {"S": f"k{n}"}} for n in range(400)))
    hide_once(stand_in, lambda request: True)
    status, verdict = report_of(strict, table_name, tmp_path, *SHARE)
    assert (status, verdict["missing"]) == (3, 1)


def test_an_interrupted_check_is_not_a_passed_check(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    strict.collections(table_name, [3] * 80)

    def fault(operation: str, request) -> None:
        if operation == "Scan" and "Limit" not in request:
            interrupt()

    stand_in.fault = fault
    result = strict.keys(table_name, "--output", str(tmp_path / "out"), *SHARE)
    assert result.status == 130
    assert "All keys were found, but they are not checked" in result.err
