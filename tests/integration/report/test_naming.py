"""The command that A18 offers for pasting, run on the table on which it was found."""

import json
import shlex
from pathlib import Path

import pytest

from testing.databases import Database, keyhop


def command_of(database: Database, table: str) -> str:
    """Return the command of finding A18 on a table."""
    shown = keyhop("report", table, "--endpoint-url", database.url, "--format", "json")
    (finding,) = (one for one in json.loads(shown.out)["findings"] if one["id"] == "A18")
    assert finding["status"] == "found"
    return str(finding["advice"]["command"])


@pytest.mark.parametrize("delimiter", ["#", "|", "_", "::"])
def test_the_command_names_the_kind_of_no_other_item_and_changes_no_value(
    dynamodb: Database, table_name: str, tmp_path: Path, delimiter: str
) -> None:
    dynamodb.create(table_name, sort=None)
    kinds = {"ORDER": 60, "ORDERLINE": 40, "ORDER-HISTORY": 20}
    items = [
        {"pk": {"S": f"{kind}{delimiter}{number:04}"}, "data": {"S": "x"}}
        for kind, count in kinds.items()
        for number in range(count)
    ]
    already = {"Type": {"S": "Written by the application"}}
    items = [item | (already if at % 10 == 0 else {}) for at, item in enumerate(items)]
    dynamodb.fill(table_name, iter(items))
    _, *words = shlex.split(command_of(dynamodb, table_name))
    words.remove("--dry-run")
    changed = keyhop(*words, "--endpoint-url", dynamodb.url, "--yes", "-q", "-o", f"{tmp_path}/run")
    assert changed.status == 0, changed.err
    is_order = f"ORDER{delimiter}"
    expected = {
        item["pk"]["S"]: item.get(
            "Type", {"S": "Order"} if item["pk"]["S"].startswith(is_order) else None
        )
        for item in items
    }
    stored = dynamodb.client.scan(TableName=table_name, ConsistentRead=True)["Items"]
    assert {item["pk"]["S"]: item.get("Type") for item in stored} == expected


def test_keys_that_write_one_tag_in_two_ways_get_no_command(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, sort=None)
    texts = [f"ORDER{'#' if at % 2 else '|'}{at:04}" for at in range(60)]
    texts += [f"USER#{at:04}" for at in range(40)]
    dynamodb.fill(table_name, ({"pk": {"S": text}, "data": {"S": "x"}} for text in texts))
    assert command_of(dynamodb, table_name) == ""


@pytest.mark.parametrize("line", ["ORDER_LINE_{:04}", "ORDER_{:04}_LINE_1"])
def test_a_tag_that_begins_keys_of_two_kinds_gets_no_command(
    dynamodb: Database, table_name: str, line: str
) -> None:
    dynamodb.create(table_name, sort=None)
    texts = [f"ORDER_{at:04}" for at in range(60)] + [line.format(at) for at in range(40)]
    texts += [f"USER_{at:04}" for at in range(20)]
    dynamodb.fill(table_name, ({"pk": {"S": text}, "data": {"S": "x"}} for text in texts))
    assert command_of(dynamodb, table_name) == ""


@pytest.mark.parametrize("line", ["ORDER_LINE_17", "ORDER_LINE#17", "ORDER_17_LINE_3"])
def test_the_command_leaves_a_kind_alone_that_the_sample_has_not_seen(
    dynamodb: Database, table_name: str, tmp_path: Path, line: str
) -> None:
    dynamodb.create(table_name, sort=None)
    texts = [f"ORDER_{at:04}" for at in range(60)] + [f"USER_{at:04}" for at in range(20)]
    dynamodb.fill(table_name, ({"pk": {"S": text}, "data": {"S": "x"}} for text in texts))
    _, *words = shlex.split(command_of(dynamodb, table_name))
    words.remove("--dry-run")
    dynamodb.fill(table_name, iter([{"pk": {"S": line}, "data": {"S": "x"}}]))
    changed = keyhop(*words, "--endpoint-url", dynamodb.url, "--yes", "-q", "-o", f"{tmp_path}/run")
    assert changed.status == 0, changed.err
    stored = dynamodb.client.scan(TableName=table_name, ConsistentRead=True)["Items"]
    named = {item["pk"]["S"] for item in stored if "Type" in item}
    assert len(named) == 60
    assert line not in named
