"""A user's script runs, and `mypy --strict` finds the types of all names that it uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testing.databases import Database
from testing.servers import ROOT
from tests.integration.sharding.single import Place
from tests.public.conftest import boto3s_table
from tests.public.users_script import closes, main

SCRIPT = ROOT / "tests" / "public" / "users_script.py"


def test_a_function_takes_boto3s_table_and_a_sharded_one(
    dynamodb: Database, table_name: str
) -> None:
    place = Place(dynamodb, table_name)
    dynamodb.create(f"{table_name}-plain", partition=("path", "S"), sort=("at", "S"))
    plain = boto3s_table(dynamodb, f"{table_name}-plain")
    sharded = place.table()
    for table, path in ((plain, "a"), (sharded, "b")):
        table.put_item(Item={"path": path, "at": "1"})
    assert closes(plain, sharded) == [True, True]


def test_it_lists_and_estimates(
    strict: Database, table_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    strict.collections(table_name, [2] * 30)
    assert main(table_name, strict.url) == 0
    assert "30 of 30 keys" in capsys.readouterr().out
    assert main("no-such-table", strict.url) == 2


def test_mypy_checks_it_in_strict_mode(tmp_path: Path) -> None:
    """A name that is not public and arguments of a wrong type are the only errors."""
    text = SCRIPT.read_text()
    invalid_lines = (
        "keyhop.list_key('Orders')",
        "keyhop.list_keys('Orders', limit='7')",
        "close('Orders', 'a')",
    )
    (tmp_path / "script.py").write_text("\n".join([text, *invalid_lines]))
    first = text.count("\n") + 2
    command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports"]
    cache = ("--cache-dir", str(ROOT / ".cache" / "mypy-of-users"))
    process = subprocess.run(
        [*command, "--follow-imports=silent", *cache, "script.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MYPYPATH": str(ROOT / "lambdas")},
    )
    errors = [line.split(":")[1] for line in process.stdout.splitlines() if "error:" in line]
    assert errors == [str(first), str(first + 1), str(first + 2)], process.stdout
