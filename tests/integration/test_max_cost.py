"""`--max-cost` prevents actions that certainly cost more, and ends others there, with status 4."""

import json
from pathlib import Path
from typing import Any

import pytest

from testing.databases import Database, Result, keyhop

SIZES = [1, 3, 2] * 60
ENOUGH = "1000000"


@pytest.fixture(autouse=True)
def prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a unit cost a dollar."""
    monkeypatch.setenv("KEYHOP_PRICES", '{"reads": 1000000, "writes": 1000000}')


@pytest.fixture
def database(dynamodb_local_url: str, table_name: str) -> Database:
    database = Database("dynamodb_local", dynamodb_local_url)
    database.collections(table_name, SIZES)
    return database


def run(database: Database, *arguments: str) -> Result:
    return keyhop(*arguments, "--yes", "--endpoint-url", database.url)


def items_of(database: Database, table: str) -> list[dict[str, Any]]:
    pages = database.client.get_paginator("scan").paginate(TableName=table)
    return [{name: item[name] for name in ("pk", "sk")} for page in pages for item in page["Items"]]


def check_not_started(result: Result) -> None:
    assert (result.status, result.out) == (4, b"")
    assert "This costs at least $" in result.err
    assert "so nothing was started." in result.err


def test_each_does_not_start_or_stops_and_can_be_resumed(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    item = tmp_path / "item.json"
    item.write_text(json.dumps({"sk": "#feature"}))
    each = ("each", table_name, "--put", str(item), "--guard", "none", "--max-write-rate", "400")
    check_not_started(run(database, *each, "--max-cost", "50", "-o", str(tmp_path / "refused")))
    assert not (tmp_path / "refused").exists()
    where = str(tmp_path / "run")
    assert run(database, *each, "--max-write-units", "40", "-o", where).status == 4
    spent = run(database, *each, "--resume", where, "--max-cost", "60", "-f", "json")
    assert spent.status == 4
    assert "is spent, and the maximum is $60" in spent.err
    assert f"Continue with --resume {where}" in spent.err
    assert 40 < json.loads(spent.out)["keys"] < len(SIZES)
    assert run(database, *each, "--resume", where, "--max-cost", ENOUGH).status == 0


def test_a_build_and_a_verification_do_not_start_or_stop(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    build, verify = ("index", "build", table_name), ("index", "verify", table_name)
    check_not_started(run(database, *build, "--max-cost", "100"))
    described = database.client.describe_table(TableName=table_name)["Table"]
    assert "GlobalSecondaryIndexes" not in described
    before = items_of(database, table_name)
    assert run(database, *build, "--max-cost", ENOUGH).status == 0
    check_not_started(run(database, *verify, "--max-cost", "1"))
    check_not_started(run(database, *verify, "--no-repair", "--max-cost", "1"))
    for sentinel in items_of(database, table_name):
        if sentinel not in before:
            database.client.delete_item(TableName=table_name, Key=sentinel)
    where = str(tmp_path / "walks")
    slowly = ("--max-write-rate", "400")
    # Before the first repair, each key is read twice, for a dollar each time.
    spent = run(database, *verify, "--max-cost", "500", *slowly, "-o", where)
    assert (spent.status, spent.out) == (4, b"")
    assert "is spent, and the maximum is $500" in spent.err
    assert 0 < len(items_of(database, table_name)) - len(before) < len(SIZES)
    assert run(database, *verify, "--max-cost", ENOUGH, "--resume", where).status == 3


def test_a_list_is_not_resumed_if_the_rest_certainly_costs_more(
    database: Database, table_name: str, tmp_path: Path
) -> None:
    where = str(tmp_path / "keys")
    keys = ("keys", table_name, "--segments", "60", "-q", "-f", "json")
    first = run(database, *keys, "-o", where, "--max-cost", "20")
    assert (first.status, "Resume it with a higher --max-cost" in first.err) == (4, True)
    check_not_started(run(database, *keys, "--resume", where, "--max-cost", "0.5"))
    assert run(database, *keys, "--resume", where, "--max-cost", ENOUGH).status == 0
