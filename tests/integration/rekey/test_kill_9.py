"""A backfill is killed with kill -9 and resumed; each item is copied and counted once."""

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.jobs.local import LocalJob, opened
from keyhop.rekey.backfill import COPIED, THERE
from keyhop.rekey.request import BackfillInput
from keyhop.tasks import tasks_of

from testing.rekey_pairs import RekeyTables, order, transform_of
from tests.integration.rekey.conftest import finished

ITEMS = 600
SLOW = "25"
"""A rate so low that no machine finishes a run before it is killed."""


def copy(url: str, destination: str, path: str, rate: float) -> LocalJob:
    """Begin or resume a backfill."""
    request = BackfillInput.parse({"rekey": destination, "maxWriteRate": rate})
    connection = connect(Endpoint(region="us-east-1", url=url), 16)
    tasks = tasks_of(transform_of=transform_of)
    job = LocalJob(request, tasks, connection, opened(Path(path), resume=True))
    job.prepare()
    job.begin()
    return job


@pytest.mark.prove
def test_kill_9_and_resume(rekey: RekeyTables, tmp_path: Path) -> None:
    rekey.put(order(number) for number in range(ITEMS))
    where = (rekey.database.url, rekey.pair.destination, str(tmp_path / "run"))
    before = 0
    for kill in range(2):
        process = subprocess.Popen([sys.executable, "-m", __name__, *where, SLOW])
        try:
            while len(rekey.copied()) < before + 20:
                assert process.poll() is None, f"it ended before kill {kill}"
                Event().wait(0.1)
        finally:
            process.kill()
            process.wait()
        before = len(rekey.copied())
    summary = finished(copy(*where, 1e6))
    assert summary["counts"][COPIED] + summary["counts"][THERE] == ITEMS
    assert summary["counts"][THERE] == before, "the items that were written and not committed"
    assert len(rekey.copied()) == ITEMS


if __name__ == "__main__":
    copy(*sys.argv[1:-1], float(sys.argv[-1])).work()
