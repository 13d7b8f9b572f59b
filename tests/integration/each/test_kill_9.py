"""`keyhop each` that is killed by kill -9 and resumed puts one item into each collection."""

import json
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from testing.databases import Database, keyhop
from testing.key_index_tables import scanned

KEYS = 600
USER_ITEMS = 50
SLOW, FAST = ("--max-write-rate", "20"), ("--max-write-rate", "2000")
"""Rates of the runs that are killed, which must not end earlier, and of the last run."""


@pytest.mark.prove
def test_kill_9_and_resume(dynamodb: Database, table_name: str, tmp_path: Path) -> None:
    dynamodb.collections(table_name, [2] * KEYS)
    dynamodb.fill(
        table_name,
        ({"pk": {"S": f"k{number}"}, "sk": {"S": "#feature"}} for number in range(USER_ITEMS)),
    )
    item, run = tmp_path / "item.json", tmp_path / "run"
    item.write_text(json.dumps({"sk": "#feature", "run": "${run}"}))
    where = (table_name, "--endpoint-url", dynamodb.url, "--yes")
    begin, resume = ("--put", str(item), "-o", str(run)), ("--resume", str(run))

    def count_puts() -> int:
        return sum("run" in item for item in scanned(dynamodb, table_name))

    for kill in range(3):
        action = resume if (run / "run.json").exists() else begin
        command = [sys.executable, "-m", "keyhop", "each", *where, *SLOW, *action]
        before = count_puts()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            while count_puts() < before + 15:
                assert process.poll() is None, f"it ended before kill {kill}"
                Event().wait(0.1)
        finally:
            process.kill()
            process.wait()
    result = keyhop("each", *where, *FAST, *resume, "--format", "json")
    assert result.status == 0, result.err
    assert json.loads(result.out)["outcomes"] == {"put": KEYS - USER_ITEMS, "there": USER_ITEMS}
    assert count_puts() == KEYS - USER_ITEMS
    result = keyhop("each", table_name, "--endpoint-url", dynamodb.url, "--undo", str(run), "--yes")
    assert result.status == 0, result.err
    assert count_puts() == 0
