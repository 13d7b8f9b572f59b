"""A backfill killed by kill -9 and gone on with: each item is there, and counted once."""

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.rekey.backfill import COPIED, THERE

from testing.databases import Database
from testing.rekey_pairs import create, order
from tests.integration.rekey.copying import copy

ITEMS = 600
SLOW = "25"
"""So slow that a run that is to be killed does not come to its end on any machine before that."""


@pytest.mark.prove
def test_kill_9_and_resume(
    dynamodb: Database, connection: Connection, table_name: str, tmp_path: Path
) -> None:
    rekey = create(dynamodb, connection, table_name)
    rekey.put(order(number) for number in range(ITEMS))
    where = (dynamodb.url, rekey.pair.destination, str(tmp_path / "run"))
    module = "tests.integration.rekey.copying"
    before = 0
    for kill in range(2):
        process = subprocess.Popen([sys.executable, "-m", module, *where, SLOW])
        try:
            while len(rekey.copied()) < before + 20:
                assert process.poll() is None, f"it ended before kill {kill}"
                Event().wait(0.1)
        finally:
            process.kill()
            process.wait()
        before = len(rekey.copied())
    job = copy(dynamodb.url, rekey.pair.destination, tmp_path / "run", 1e6)
    assert job.work()
    _, summary = job.finish()
    assert summary["counts"][COPIED] + summary["counts"][THERE] == ITEMS
    assert summary["counts"][THERE] == before, "what was written and not committed, and no more"
    assert len(rekey.copied()) == ITEMS
