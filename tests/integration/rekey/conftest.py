"""Jobs of a re-key, each in a directory of its own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection, Endpoint, connect
from keyhop.jobs.local import LocalJob, opened
from keyhop.jobs.task import Options, Task
from keyhop.rekey.compare.task import VerifyTask
from keyhop.rekey.request import parse_backfill, parse_verify
from keyhop.tasks import tasks_of

from testing.databases import Database
from testing.rekey_pairs import RekeyTables, transform_of

Begin = Callable[..., LocalJob]


@pytest.fixture
def connection(dynamodb: Database) -> Connection:
    return connect(Endpoint(region="us-east-1", url=dynamodb.url), 16)


@pytest.fixture
def backfill(connection: Connection, tmp_path: Path) -> Begin:
    """Begins a backfill; tasks: for tasks_of; on: another connection; the others are fields of its
    input."""

    def begun(
        rekey: RekeyTables,
        resume: bool = False,
        tasks: Mapping[str, Any] | None = None,
        on: Connection | None = None,
        **given: Any,
    ) -> LocalJob:
        asked = {"rekey": rekey.pair.destination, "maxWriteRate": 1e6, **given}
        made = tasks_of(transform_of=transform_of, **(tasks or {}))
        path = tmp_path / f"{rekey.pair.source}-backfill"
        request, journal = parse_backfill(asked), opened(path, resume)
        return _begun(LocalJob(request, made, on or connection, journal))

    return begun


@pytest.fixture
def verify(connection: Connection, tmp_path: Path) -> Begin:
    """Begins a verify; task: more for VerifyTask, the others are fields of its input."""
    runs = []

    def begun(
        rekey: RekeyTables,
        resume: bool = False,
        task: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> LocalJob:
        def made(connection: Connection, options: Options) -> Task:
            own = {"wait": lambda seconds: None, "pauses": (0.0, 0.0), **(task or {})}
            return VerifyTask(connection, options, transform_of, **own)

        if not resume:
            runs.append(tmp_path / f"{rekey.pair.source}-verify-{len(runs)}")
        request = parse_verify({"rekey": rekey.pair.destination, **given})
        tasks = {"rekey_verify": made}
        return _begun(LocalJob(request, tasks, connection, opened(runs[-1], resume)))

    return begun


def _begun(job: LocalJob) -> LocalJob:
    try:
        job.prepare()
        job.begin()
    finally:
        job.journal.store.unlock()  # type: ignore[attr-defined]
    return job
