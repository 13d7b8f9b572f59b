"""Where runs are kept: one by one in directories, or all of a deployment's in a bucket.

A run of a deployment is in runs/<run>/, and named like the execution that began it; its files are
listed in docs/architecture.md.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.checks import InvalidInput
from keyhop.dynamodb.client import Connection, Endpoint, connect
from keyhop.errors import RunConflict
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.request import RUN_ID, allowed, table_region
from keyhop.storage.s3 import Bucket

LONGEST_ID = 80
"""Of a run (request.RUN_ID)."""


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of the state machine, by its context object. redrives: how often it was."""

    id: str
    name: str
    started: str
    redrives: int = 0

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Execution":
        """From `$$.Execution`; raises InvalidInput for a name that cannot name a place."""
        name = context["Name"]
        if not RUN_ID.fullmatch(name):
            raise InvalidInput(f"{name!r} cannot be the name of a run: give the execution another.")
        return cls(context["Id"], name, context["StartTime"], context.get("RedriveCount") or 0)

    def run(self, suffix: str) -> str:
        """The name of another run of it than the last one: an id like any other."""
        name = f"{self.name}{suffix}"
        if len(name) <= LONGEST_ID:
            return name
        mark = f"-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}{suffix}"
        return f"{self.name[: LONGEST_ID - len(mark)]}{mark}"

    @property
    def key(self) -> str:
        """Tells it from another one of the same name: names may be used again after 90 days."""
        return f"{self.id} {self.started}"


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs in a bucket."""

    s3: Any
    bucket: str

    def store(self, run: str) -> Bucket:
        """The files of one run."""
        return Bucket(self.s3, self.bucket, f"runs/{run}/")

    def journal(self, run: str) -> Journal:
        """The journal of one run."""
        return Journal(self.store(run))

    def begun(self, run: str) -> tuple[Journal, RunPlan]:
        """The journal and the plan of a run that has been begun; raises RunConflict otherwise."""
        journal = self.journal(run)
        plan = journal.plan()
        if plan is None:
            raise RunConflict(
                f"There is no run {run!r} in s3://{self.bucket}/runs/: a run is named like the "
                f"execution that began it, and is deleted when its retention is over."
            )
        return journal, plan


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the functions of a deployment share: its runs, and the tables that it may touch.

    prices: the deployment's own, as Prices.of takes them.
    """

    runs: Runs
    tables: list[str]
    prices: str = ""

    def connect(self, table: str, connections: int) -> Connection:
        """A connection for one of the tables; raises InvalidInput for another."""
        region = table_region(allowed(table, self.tables))
        return connect(Endpoint(region=region), connections, self.prices)
