"""A backfill in a process of its own, which a test kills: URL, destination, directory, rate."""

import sys
from pathlib import Path

from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.jobs.local import LocalJob, opened
from keyhop.rekey.request import BackfillInput
from keyhop.tasks import tasks_of

from testing.rekey_pairs import transform_of


def copy(url: str, destination: str, path: Path, rate: float) -> LocalJob:
    """Begins, or goes on."""
    request = BackfillInput.parse({"rekey": destination, "maxWriteRate": rate})
    connection = connect(Endpoint(region="us-east-1", url=url), 16)
    tasks = tasks_of(transform_of=transform_of)
    job = LocalJob(request, tasks, connection, opened(path, resume=True))
    job.prepare()
    job.begin()
    return job


if __name__ == "__main__":
    url, destination, path, rate = sys.argv[1:]
    copy(url, destination, Path(path), float(rate)).work()
