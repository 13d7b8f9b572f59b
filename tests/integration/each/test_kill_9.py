"""`keyhop each` killed by kill -9 and gone on with: each collection its item, each key once."""

import json
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from testing.databases import Database, keyhop
from testing.key_index_tables import scanned

KEYS = 600
THEIRS = 50
SLOW, FAST = ("--max-write-rate", "20"), ("--max-write-rate", "2000")
"""So slow that a run that is to be killed does not come to its end on any machine before that."""


@pytest.mark.prove
def test_kill_9_and_resume(dynamodb: Database, table_name: str, tmp_path: Path) -> None:
    dynamodb.collections(table_name, [2] * KEYS)
    dynamodb.fill(
        table_name,
        ({"pk": {"S": f"k{number}"}, "sk": {"S": "#feature"}} for number in range(THEIRS)),
    )
    item, run = tmp_path / "item.json", tmp_path / "run"
    item.write_text(json.dumps({"sk": "#feature", "run": "${run}"}))
    where = (table_name, "--endpoint-url", dynamodb.url, "--yes")
    begin, resume = ("--put", str(item), "-o", str(run)), ("--resume", str(run))

    def put() -> int:
        return sum("run" in one for one in scanned(dynamodb, table_name))

    for kill in range(3):
        how = resume if (run / "run.json").exists() else begin
        command = [sys.executable, "-m", "keyhop", "each", *where, *SLOW, *how]
        before = put()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            while put() < before + 15:
                assert process.poll() is None, f"it ended before kill {kill}"
                Event().wait(0.1)
        finally:
            process.kill()
            process.wait()
    result = keyhop("each", *where, *FAST, *resume, "--format", "json")
    assert result.status == 0, result.err
    told = json.loads(result.out)
    assert told["outcomes"] == {"put": KEYS - THEIRS, "there": THEIRS}
    assert put() == KEYS - THEIRS
    result = keyhop("each", table_name, "--endpoint-url", dynamodb.url, "--undo", str(run), "--yes")
    assert result.status == 0, result.err
    assert put() == 0
