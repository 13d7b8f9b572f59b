"""Databases: one DynamoDB Local and one dynalite for all tests, a stand-in for each.

What takes long has the mark `prove`, in whole or for some of its parameters (testing/marks.py).
"""

import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore.loaders import create_loader
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from testing.databases import Database
from testing.marks import prove
from testing.servers import dynalite, dynamodb_local
from testing.standin.server import StandIn, running

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile(
    "new", derandomize=False, deadline=None, print_blob=True, max_examples=1_000
)
settings.load_profile("same")
"""`same` examples every time, so that a red run is red for everybody; `make prove` draws new ones,
and more (--hypothesis-profile=new, with the seed that it prints)."""


GROUPS = {"e2e": "cloud", "infra": "cdk", "golden": "cdk"}
"""Folders whose tests one worker has: of a laptop cloud, and of each synthesized stack, one is
enough."""


class ByFolder(LoadScopeScheduling):
    """Deals tests out one by one, but those of a group together; the largest groups begin first.

    xdist's own groups (--dist loadgroup) go by a suffix of an item's id, which pytest 9.2 does not
    let it set.
    """

    def _split_scope(self, nodeid: str) -> str:
        return GROUPS.get(nodeid.split("/")[1], nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    """xdist's hook."""
    return ByFolder(config, log)


@pytest.fixture(scope="session", autouse=True)
def one_reading_of_the_service_model() -> Iterator[None]:
    """botocore parses its files once, not for each client: three quarters of a short command."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(botocore.session, "create_loader", cache(create_loader))
        yield


@pytest.fixture(scope="session")
def dynamodb_local_url() -> Iterator[str]:
    with dynamodb_local() as url:
        yield url


@pytest.fixture(scope="session")
def dynalite_url() -> Iterator[str]:
    with dynalite() as url:
        yield url


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with running() as server:
        yield server


@pytest.fixture(params=["dynamodb_local", prove("dynalite"), "stand_in"])
def database(request: pytest.FixtureRequest) -> Database:
    """DynamoDB Local and the stand-in; in `make prove` dynalite as well.

    Where dynalite is wanted as a second judge in `make test`: @on_every_database.
    """
    if request.param == "stand_in":
        url = request.getfixturevalue("stand_in").url
    else:
        url = request.getfixturevalue(f"{request.param}_url")
    return Database(request.param, url)


@pytest.fixture
def dynamodb(dynamodb_local_url: str) -> Database:
    """DynamoDB Local."""
    return Database("dynamodb_local", dynamodb_local_url)


@pytest.fixture
def strict(stand_in: StandIn) -> Database:
    """The stand-in."""
    return Database("stand_in", stand_in.url)


@pytest.fixture
def table_name() -> str:
    return f"t-{uuid.uuid4().hex}"
