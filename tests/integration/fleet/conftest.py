"""The functions of the state machine on DynamoDB Local and the stand-in, with S3 in memory."""

from collections import Counter
from dataclasses import replace

import pytest
from keyhop.jobs.runs import Runs

from testing.databases import Database
from testing.s3 import MemoryS3
from tests.integration.conftest import Scans
from tests.machine import Machine

BUCKET = "results"
SIZES = [1, 6, 1, 25, 2] * 60


@pytest.fixture
def runs(s3: MemoryS3) -> Runs:
    return Runs(s3, BUCKET)


def machine_on(
    database: Database, runs: Runs, table: str, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", database.url)
    return Machine(replace(runs, tables=[table]))


@pytest.fixture
def local(
    dynamodb: Database, runs: Runs, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """On DynamoDB Local."""
    return machine_on(dynamodb, runs, table_name, monkeypatch)


@pytest.fixture
def machine(
    strict: Database, runs: Runs, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """On the stand-in."""
    return machine_on(strict, runs, table_name, monkeypatch)


def units(scans: Scans) -> float:
    return sum(charge for _, charge in scans)


def names(machine: Machine, run: str) -> Counter[str]:
    return Counter(key["pk"]["S"] for key in machine.keys(run))
