"""Fixtures that run the state machine on DynamoDB Local or the stand-in, with S3 in memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from keyhop.jobs.runs import ExecutionContext, Runs

from testing.databases import Database
from testing.s3 import MemoryS3
from tests.integration.conftest import Scans
from tests.machine import Machine

BUCKET = "results"
SIZES = [1, 6, 1, 25, 2] * 60


@dataclass
class Fleet(Machine):
    """A state machine for one table of `database`."""

    database: Database | None = None

    @property
    def table(self) -> str:
        return self.tables[0]

    def collections(self, sizes: Sequence[int], filling: int = 0) -> set[str]:
        return self.database.collections(self.table, sizes, filling)

    def create(self, *keys: Any, **more: Any) -> None:
        self.database.create(self.table, *keys, **more)

    def fill(self, items: Any) -> None:
        self.database.fill(self.table, items)

    def run(self, run_name: str | None = None, **fields: Any) -> dict[str, Any]:
        """Run an execution with these input fields, and return its output."""
        return self.start({"table": self.table, **fields}, run_name)

    def begin(
        self, run_name: str | None = "run", **fields: Any
    ) -> tuple[dict[str, Any], ExecutionContext]:
        """Plan a run, and return its state and its execution."""
        execution = self.execution(run_name)
        return self.plan({"table": self.table, **fields}, execution), execution


@pytest.fixture
def runs(s3: MemoryS3) -> Runs:
    return Runs(s3, BUCKET)


def machine_on(
    database: Database, runs: Runs, table: str, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", database.url)
    return Fleet(replace(runs, tables=[table]), database=database)


@pytest.fixture
def local(
    dynamodb: Database, runs: Runs, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    """A state machine on DynamoDB Local."""
    return machine_on(dynamodb, runs, table_name, monkeypatch)


@pytest.fixture
def machine(
    strict: Database, runs: Runs, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    """A state machine on the stand-in."""
    return machine_on(strict, runs, table_name, monkeypatch)


def units(scans: Scans) -> float:
    return sum(charge for _, charge in scans)


def names(machine: Machine, run: str) -> Counter[str]:
    return Counter(key["pk"]["S"] for key in machine.keys(run))
