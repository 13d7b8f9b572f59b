"""Deployments with a key index, for the state machines and for the command."""

from pathlib import Path
from typing import Any

import pytest
from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.jobs.runs import Runs
from keyhop.public import deployment, tables
from keyhop.streams.event_source import Watch

from testing.databases import Database
from testing.keepers import FakeLambda, watch_of
from testing.s3 import MemoryS3
from tests.integration.key_index.command import Index, Stacks
from tests.integration.key_index.machines import BUCKET, Machines
from tests.machine import Machine


@pytest.fixture
def machines(
    dynamodb: Database, table_name: str, s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> Machines:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    deployment = Runs(s3, BUCKET, [table_name])
    return Machines(Machine(deployment, places={table_name: None}), database=dynamodb)


@pytest.fixture
def index(dynamodb: Database, table_name: str) -> Index:
    return Index(dynamodb, table_name)


@pytest.fixture
def lambdas(s3: MemoryS3, monkeypatch: pytest.MonkeyPatch) -> FakeLambda:
    """The event source mappings of a deployment with the stack Keyhop."""
    fake = FakeLambda()
    monkeypatch.setattr(Watch, "from_here", lambda endpoint: watch_of(fake))
    clients = {"cloudformation": Stacks(), "s3": s3}

    def client_of(service: str, endpoint: Endpoint) -> Any:
        return clients.get(service) or aws_client(service, endpoint)

    for module in (tables, deployment):
        monkeypatch.setattr(module, "aws_client", client_of)
    return fake


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
