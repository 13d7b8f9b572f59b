"""Tests of the command that A18 advises, run on the table of the finding."""

import json
import shlex
from pathlib import Path

import pytest

from testing.databases import Database, keyhop


def command_of(database: Database, table: str) -> str:
    """Return the command of finding A18 on a table."""
    result = keyhop("report", table, "--endpoint-url", database.url, "--format", "json")
    findings = json.loads(result.out)["findings"]
    (finding,) = (finding for finding in findings if finding["id"] == "A18")
    assert finding["status"] == "found"
    return str(finding["advice"]["command"])


def run(command: str, database: Database, folder: Path) -> None:
    """Run an advised command, which has --dry-run, without it."""
    _, *words = shlex.split(command)
    words.remove("--dry-run")
    result = keyhop(*words, "--endpoint-url", database.url, "--yes", "-q", "-o", f"{folder}/run")
    assert result.status == 0, result.err


def create(database: Database, table: str, keys: list[str]) -> None:
    """Create a table without a sort key, with an item for each key."""
    database.create(table, sort=None)
    database.fill(table, ({"pk": {"S": key}, "data": {"S": "x"}} for key in keys))


@pytest.mark.parametrize("delimiter", ["#", "|", "_", "::"])
def test_the_command_names_the_kind_of_matching_items_that_have_none(
    dynamodb: Database, table_name: str, tmp_path: Path, delimiter: str
) -> None:
    dynamodb.create(table_name, sort=None)
    kinds = {"ORDER": 60, "ORDERLINE": 40, "ORDER-HISTORY": 20}
    items = [
        {"pk": {"S": f"{kind}{delimiter}{number:04}"}, "data": {"S": "x"}}
        for kind, count in kinds.items()
        for number in range(count)
    ]
    named = {"Type": {"S": "Written by the application"}}
    items = [item | (named if at % 10 == 0 else {}) for at, item in enumerate(items)]
    dynamodb.fill(table_name, iter(items))
    run(command_of(dynamodb, table_name), dynamodb, tmp_path)
    prefix = f"ORDER{delimiter}"
    expected = {
        item["pk"]["S"]: item.get(
            "Type", {"S": "Order"} if item["pk"]["S"].startswith(prefix) else None
        )
        for item in items
    }
    stored = dynamodb.client.scan(TableName=table_name, ConsistentRead=True)["Items"]
    assert {item["pk"]["S"]: item.get("Type") for item in stored} == expected


def test_keys_with_two_delimiters_after_one_tag_get_no_command(
    dynamodb: Database, table_name: str
) -> None:
    keys = [f"ORDER{'#' if at % 2 else '|'}{at:04}" for at in range(60)]
    create(dynamodb, table_name, keys + [f"USER#{at:04}" for at in range(40)])
    assert command_of(dynamodb, table_name) == ""


@pytest.mark.parametrize("line", ["ORDER_LINE_{:04}", "ORDER_{:04}_LINE_1"])
def test_a_tag_that_begins_keys_of_two_kinds_gets_no_command(
    dynamodb: Database, table_name: str, line: str
) -> None:
    keys = [f"ORDER_{at:04}" for at in range(60)] + [line.format(at) for at in range(40)]
    create(dynamodb, table_name, keys + [f"USER_{at:04}" for at in range(20)])
    assert command_of(dynamodb, table_name) == ""


@pytest.mark.parametrize("line", ["ORDER_LINE_17", "ORDER_LINE#17", "ORDER_17_LINE_3"])
def test_the_command_does_not_change_a_kind_that_the_sample_lacks(
    dynamodb: Database, table_name: str, tmp_path: Path, line: str
) -> None:
    keys = [f"ORDER_{at:04}" for at in range(60)] + [f"USER_{at:04}" for at in range(20)]
    create(dynamodb, table_name, keys)
    command = command_of(dynamodb, table_name)
    dynamodb.fill(table_name, iter([{"pk": {"S": line}, "data": {"S": "x"}}]))
    run(command, dynamodb, tmp_path)
    stored = dynamodb.client.scan(TableName=table_name, ConsistentRead=True)["Items"]
    named = {item["pk"]["S"] for item in stored if "Type" in item}
    assert len(named) == 60
    assert line not in named
