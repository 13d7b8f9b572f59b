"""Databases: one DynamoDB Local and one dynalite for all tests, a stand-in for each."""

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings

from testing.databases import Database
from testing.servers import dynalite, dynamodb_local
from testing.standin.server import StandIn, running

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("same")
"""`same` examples every time, so that a red run is red for everybody; `make prove` draws new ones
(--hypothesis-profile=new, with the seed that it prints)."""


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


@pytest.fixture(params=["dynamodb_local", "dynalite", "stand_in"])
def database(request: pytest.FixtureRequest) -> Database:
    """Each of the three, in turn."""
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
