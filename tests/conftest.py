"""Fixtures for databases: one DynamoDB Local and one dynalite for all tests, a stand-in for each.

Slow tests have the mark `prove`, in whole or for some of their parameters (testing/marks.py).
"""

import gc
import os
import tracemalloc  # noqa: F401 - else pytest imports it for the first warning of an open socket
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from functools import cache
from threading import Lock
from typing import Any

import botocore.hooks
import botocore.session
import moto.s3.urls
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError
from botocore.hooks import EventAliaser
from botocore.loaders import create_loader
from hypothesis import settings
from keyhop.cli import session
from keyhop.dynamodb.transport import Client
from moto.core.botocore_stubber import BotocoreStubber
from moto.s3.models import S3Backend
from xdist.scheduler import LoadScopeScheduling

from testing.databases import CANARY_KEY, CANARY_VALUE, Database
from testing.marks import prove
from testing.s3 import MemoryS3
from testing.schemas.watch import watching_calls, watching_handlers
from testing.servers import dynalite, dynamodb_local
from testing.standin.server import StandIn, running
from testing.validation import problems_of

os.environ["CDK_VALIDATION"] = "false"
"""Skip the CDK's validation, which is slow and which `cdk synth` in infra/test_app covers. This
must precede the imports of CDK packages, which start the CDK's process, and so all fixtures."""

gc.disable()  # until the tests are collected

settings.register_profile("same", derandomize=True, deadline=None, max_examples=50)
settings.register_profile(
    "new", derandomize=False, deadline=None, print_blob=True, max_examples=300
)
settings.load_profile("same")
"""The profile `same` draws the same examples every time, so that failures can be reproduced;
`make prove` draws new ones, and more (--hypothesis-profile=new, with the seed that it prints)."""


GROUPS = {
    "tests/e2e/test_deploy_meanwhile.py": "versions",
    "tests/e2e/test_upgrade.py": "versions",
    "tests/e2e/": "cloud",
    "tests/infra/": "cdk",
    "tests/golden/": "cdk",
    "tests/docs/test_permissions.py": "cdk",
    "tests/integration/fleet/test_permissions.py": "cdk",
}
"""Tests that run in one worker each, so that they share a laptop cloud or synthesized stacks."""


class ByFolder(LoadScopeScheduling):
    """A scheduler that assigns the tests of a group together, and other tests one by one.

    xdist's groups (--dist loadgroup) need a suffix of an item's id, which pytest 9.2 does not let
    it set.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((GROUPS[path] for path in GROUPS if nodeid.startswith(path)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)


def pytest_collection_finish() -> None:
    """Exclude imported and collected objects from garbage collection, and let it run rarely.

    With its defaults, the collector takes a quarter of the CPU time of the tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def what_all_requests_share_is_made_once() -> Iterator[None]:
    """Let botocore parse its files and translate the names of its events once, not for each client.

    This saves most of the time of a short command. Also let moto load its S3 addresses once.
    """
    names = EventAliaser(None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(botocore.session, "create_loader", cache(create_loader))
        patched.setattr(EventAliaser, "_alias_event_name", staticmethod(names._alias_event_name))
        patched.setattr(botocore.hooks, "accepts_kwargs", lambda handler: True)
        patched.setattr(S3Backend, "_url_module", moto.s3.urls)
        yield


@pytest.fixture(scope="session", autouse=True)
def moto_serves_one_at_a_time() -> Iterator[None]:
    """Serialize moto's requests, as it closes the body of an object that is overwritten."""
    lock = Lock()

    def serialized(self: BotocoreStubber, request: AWSPreparedRequest) -> Any:
        with lock:
            return process(self, request)

    process = BotocoreStubber.process_request
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BotocoreStubber, "process_request", serialized)
        yield


@pytest.fixture(scope="session", autouse=True)
def a_stop_has_all_the_time() -> Iterator[None]:
    """Disable the last resort of a stop, which would end the process of the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session, "STOP_SECONDS", 3600.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def validation_by_botocore() -> Iterator[None]:
    """Validate all requests of Keyhop's transport, which production sends without validation."""

    def checked(self: Client, operation: str, parameters: dict[str, Any]) -> bytes:
        problems = problems_of(operation, parameters)
        assert not problems, f"{operation}: {problems}"
        return send(self, operation, parameters)

    send = Client._send
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Client, "_send", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def schemas_hold() -> Iterator[None]:
    """Check inputs and outputs of state machines and functions against the published schemas."""
    with watching_calls(), watching_handlers():
        yield


@pytest.fixture(scope="session")
def dynamodb_local_url() -> Iterator[str]:
    with dynamodb_local() as url:
        yield url


@pytest.fixture(autouse=True)
def tables_go_with_their_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delete the tables of a test, as a thousand tables make DynamoDB Local slow."""
    callspec = getattr(request.node, "callspec", None)
    is_local = callspec is not None and callspec.params.get("database") == "dynamodb_local"
    if not is_local and "dynamodb_local_url" not in request.fixturenames:
        yield
        return
    database: Database = request.getfixturevalue("dynamodb")
    before = {*database.tables()}
    yield
    for table in {*database.tables()} - before:
        with suppress(ClientError):  # an index is still being created
            database.client.delete_table(TableName=table)


@pytest.fixture(scope="session")
def dynalite_url() -> Iterator[str]:
    with dynalite() as url:
        yield url


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with running() as server:
        yield server


@pytest.fixture(params=[prove("dynamodb_local"), prove("dynalite"), "stand_in"])
def database(request: pytest.FixtureRequest) -> Database:
    """The stand-in, and in `make prove` also DynamoDB Local and dynalite.

    The marks in testing/marks.py select other databases in `make test`.
    """
    if request.param == "stand_in":
        url = request.getfixturevalue("stand_in").url
    else:
        url = request.getfixturevalue(f"{request.param}_url")
    return Database(request.param, url)


@pytest.fixture(scope="session")
def dynamodb(dynamodb_local_url: str) -> Database:
    """DynamoDB Local."""
    return Database("dynamodb_local", dynamodb_local_url)


@pytest.fixture(scope="session")
def dated(dynamodb: Database) -> str:
    """A read-only table whose partition keys are dates and one canary."""
    name = f"t-{uuid.uuid4().hex}"
    dynamodb.create(name)
    items = [
        {"pk": {"S": f"{date(2025, 1, 1) + timedelta(day)}"}, "sk": {"S": f"{at:04}"}, "data": data}
        for data in [{"S": "x" * 200}]
        for day in range(60)
        for at in range(20)
    ]
    canary = {"pk": {"S": CANARY_KEY}, "sk": {"S": "a"}, "data": {"S": CANARY_VALUE}}
    dynamodb.fill(name, [*items, canary])
    return name


@pytest.fixture
def strict(stand_in: StandIn) -> Database:
    """The stand-in."""
    return Database("stand_in", stand_in.url)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> MemoryS3:
    """S3 in memory with the bucket `results`, and an environment for its clients."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    return MemoryS3("results")


@pytest.fixture
def table_name() -> str:
    return f"t-{uuid.uuid4().hex}"
