"""Deployments with a key index, for the state machines and for the command."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyhop.cli import deployment as of_the_command
from keyhop.cli import stack
from keyhop.dynamodb.client import Endpoint, aws_client
from keyhop.jobs.runs import Deployment, Runs
from keyhop.storage.s3 import s3_client
from keyhop.streams.event_source import Watch
from moto import mock_aws

from testing.databases import Database
from testing.keepers import FakeLambda, watch_of
from tests.integration.key_index.command import Stacks
from tests.integration.key_index.machines import BUCKET, Machines
from tests.machine import Machine


@pytest.fixture
def machines(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machines]:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    with mock_aws():
        s3 = s3_client()
        s3.create_bucket(Bucket=BUCKET)
        deployment = Deployment(Runs(s3, BUCKET), [table_name])
        yield Machines(Machine(deployment, places={table_name: None}))


@pytest.fixture
def lambdas(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLambda]:
    """The mappings of a deployment, whose stack is called Keyhop."""
    fake = FakeLambda()
    monkeypatch.setattr(Watch, "from_here", lambda endpoint: watch_of(fake))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    with mock_aws():
        s3_client().create_bucket(Bucket="results")

        def client_of(service: str, endpoint: Endpoint) -> Any:
            return Stacks() if service == "cloudformation" else aws_client(service, endpoint)

        for module in (of_the_command, stack):
            monkeypatch.setattr(module, "aws_client", client_of)
        yield fake


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
