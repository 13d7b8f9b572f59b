"""Fixtures of a re-key and its jobs, each of which has its own directory."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.values import Item
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, opened
from keyhop.public.deployment import BUCKET, OpenStack
from keyhop.public.rekey import Rekey
from keyhop.rekey.request import VERIFY, BackfillInput, VerifyInput, digests_of, with_digests
from keyhop.rekey.worker.replicate import Replicator
from keyhop.storage.local import DIGESTS, Directory
from keyhop.tasks import tasks_of

from testing.databases import Database
from testing.keepers import QUEUE, Elsewhere, FakeLambda
from testing.rekey_pairs import ByTenant, RekeyTables, create, transform_of
from testing.rekey_tasks import at_once, verifying
from testing.s3 import MemoryS3
from tests.integration.rekey.pairs import BY_DAY, MACHINES, Pairs, States
from tests.integration.rekey.worlds import World

Begin = Callable[..., LocalJob]


@pytest.fixture
def connection(dynamodb: Database) -> Connection:
    return connect(Endpoint(region="us-east-1", url=dynamodb.url), 16)


@pytest.fixture
def rekey(dynamodb: Database, connection: Connection, table_name: str) -> RekeyTables:
    return create(dynamodb, connection, table_name)


@pytest.fixture
def contended(dynamodb: Database, connection: Connection, table_name: str) -> RekeyTables:
    """A re-key whose transform may map two items to one place."""
    return create(dynamodb, connection, table_name, by="order")


@pytest.fixture
def world(dynamodb: Database, table_name: str) -> World:
    return World(dynamodb, table_name)


@pytest.fixture
def backfill(connection: Connection, tmp_path: Path) -> Begin:
    """Return a function that begins a backfill with these fields of its input.

    `tasks` are arguments of tasks_of, and `on` is another connection.
    """

    def begin(
        rekey: RekeyTables,
        resume: bool = False,
        tasks: Mapping[str, Any] | None = None,
        on: Connection | None = None,
        **fields: Any,
    ) -> LocalJob:
        values = {"rekey": rekey.pair.destination, "maxWriteRate": 1e6, **fields}
        all_tasks = tasks_of(transform_of=transform_of, **(tasks or {}))
        path = tmp_path / f"{rekey.pair.source}-backfill"
        request, journal = BackfillInput.parse(values), opened(path, resume)
        return _begin(LocalJob(request, all_tasks, on or connection, journal))

    return begin


@pytest.fixture
def digests(connection: Connection, tmp_path: Path) -> Begin:
    """Return a function that begins the first run of a verification with these input fields.

    `task` are arguments of `verifying`.
    """
    numbers = count()

    def begin(rekey: RekeyTables, task: Mapping[str, Any] | None = None, **fields: Any) -> LocalJob:
        request = digests_of(
            VerifyInput.parse({"rekey": rekey.pair.destination, "repair": False, **fields})
        )
        tasks = verifying(journal_in, transform_of, **(task or {}))
        path = tmp_path / f"verify-{next(numbers)}" / DIGESTS
        return _begin(LocalJob(request, tasks, connection, opened(path, False)))

    return begin


@pytest.fixture
def verify(digests: Begin) -> Begin:
    """Return a function that finishes the first run of a verification and begins the second."""

    def begin(rekey: RekeyTables, **more: Any) -> LocalJob:
        first = digests(rekey, **more)
        finished(first)
        path = first.journal.store.path  # type: ignore[attr-defined]
        request = with_digests(replace(first.request, task=VERIFY), str(path))
        journal = opened(path.parent, False)
        return _begin(LocalJob(request, first.tasks, first.connection, journal))

    return begin


def finished(job: Any) -> dict[str, Any]:
    """Work a job to its end, and return its summary."""
    assert job.work()
    return dict(job.finish()[1])


def worker_of(rekey: RekeyTables, connection: Connection) -> Replicator:
    return Replicator(rekey.pair, "forward", ByTenant(), lambda name: connection)


def change(rekey: RekeyTables, worker: Replicator, before: Item, after: Item | None) -> None:
    """Put or delete a source item, and let the worker process the stream's record at once."""
    client, key = rekey.database.client, {name: before[name] for name in ("pk", "sk")}
    record: dict[str, Any] = {"Keys": key, "OldImage": before, "SequenceNumber": "1"}
    if after is None:
        client.delete_item(TableName=rekey.pair.source, Key=key)
    else:
        client.put_item(TableName=rekey.pair.source, Item=after)
        record["NewImage"] = after
    record["ApproximateCreationDateTime"] = time.time()
    worker.work([{"eventID": "1", "dynamodb": record}])


def journal_in(path: str) -> Journal:
    return Journal(Directory(Path(path)))


def _begin(job: LocalJob) -> LocalJob:
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
def states(monkeypatch: pytest.MonkeyPatch, s3: MemoryS3) -> States:
    """The state machines of the stack Keyhop, whose failure queue has two messages."""
    states = States()
    clients: dict[str, Any] = {"stepfunctions": states, "lambda": FakeLambda(), "s3": s3}
    clients["sqs"] = Elsewhere(messages=2)
    names = ("RekeyBackfill", "RekeyVerify", "RekeyCutOver")
    outputs = {f"{name}Arn": f"{MACHINES}{name}" for name in names}
    outputs |= {"ReplicateArn": "Replicate", "RekeyFailureQueueArn": QUEUE, BUCKET: "results"}
    stack = OpenStack("Keyhop", outputs, clients.__getitem__)
    monkeypatch.setattr(
        "keyhop.public.rekey.open_stack", lambda name, endpoint: stack._replace(name=name)
    )
    return states


@pytest.fixture
def nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waits from the verifications of commands."""
    monkeypatch.setattr(Rekey, "_tasks", staticmethod(at_once))


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "by-day.yaml"
    path.write_text(BY_DAY)
    return path
