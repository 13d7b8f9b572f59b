"""Jobs of a re-key, each in a directory of its own."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.rekey.request import VERIFY, BackfillInput, VerifyInput, digests_of, with_digests
from keyhop.storage.local import DIGESTS, Directory
from keyhop.tasks import tasks_of

from testing.databases import Database
from testing.rekey_pairs import RekeyTables, transform_of
from testing.rekey_tasks import verifying
from tests.integration.rekey.pairs import BY_DAY, Pairs

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
        request, journal = BackfillInput.parse(asked), opened(path, resume)
        return _begun(LocalJob(request, made, on or connection, journal))

    return begun


@pytest.fixture
def digests(connection: Connection, tmp_path: Path) -> Begin:
    """Begins the first run of a verification; task: more for `verifying`, the others its input."""
    numbers = count()

    def begun(rekey: RekeyTables, task: Mapping[str, Any] | None = None, **given: Any) -> LocalJob:
        request = digests_of(
            VerifyInput.parse({"rekey": rekey.pair.destination, "repair": False, **given})
        )
        tasks = verifying(journal_in, transform_of, **(task or {}))
        path = tmp_path / f"verify-{next(numbers)}" / DIGESTS
        return _begun(LocalJob(request, tasks, connection, opened(path, False)))

    return begun


@pytest.fixture
def verify(digests: Begin) -> Begin:
    """Begins the second run of a verification, when the first is finished."""

    def begun(rekey: RekeyTables, **more: Any) -> LocalJob:
        first = digests(rekey, **more)
        assert first.work()
        first.finish()
        path = first.journal.store.path  # type: ignore[attr-defined]
        request = with_digests(replace(first.request, task=VERIFY), str(path))
        journal = opened(path.parent, False)
        return _begun(LocalJob(request, first.tasks, first.connection, journal))

    return begun


def journal_in(path: str) -> Journal:
    return Journal(Directory(Path(path)))


def _begun(job: LocalJob) -> LocalJob:
    try:
        job.prepare()
        job.begin()
    finally:
        job.journal.store.unlock()  # type: ignore[attr-defined]
    return job


@pytest.fixture
def pairs(dynamodb_local_url: str) -> Iterator[Pairs]:
    database = Database("dynamodb_local", dynamodb_local_url)
    pair = Pairs(database)
    yield pair
    for name in (pair.source, pair.destination, f"{pair.destination}.rekey"):
        if name in database.tables():
            database.client.delete_table(TableName=name)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "by-day.yaml"
    path.write_text(BY_DAY)
    return path
