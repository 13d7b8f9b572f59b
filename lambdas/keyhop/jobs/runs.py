"""The runs of a deployment in its bucket, and the executions that work on them.

The files of a run are in runs/<run>/, and it has the name of the execution that began it.
docs/architecture.md lists the files.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint, table_region
from keyhop.errors import InvalidInput, RunConflict
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.request import RUN_ID, allowed
from keyhop.storage.s3 import Bucket

LONGEST_ID = 80
"""The maximum length of the name of a run (request.RUN_ID)."""


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """An execution of the state machine, as its context object describes it; `id` is its ARN."""

    id: str
    name: str
    started: str
    redrives: int = 0

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "ExecutionContext":
        """Read `$$.Execution`; raise InvalidInput if its name cannot be the name of a run."""
        name = context["Name"]
        if not RUN_ID.fullmatch(name):
            raise InvalidInput(
                f"{name!r} cannot be the name of a run: give the execution another name."
            )
        return cls(context["Id"], name, context["StartTime"], context.get("RedriveCount") or 0)

    def run(self, suffix: str) -> str:
        """Return the name of a further run of this execution."""
        name = f"{self.name}{suffix}"
        if len(name) <= LONGEST_ID:
            return name
        mark = f"-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}{suffix}"
        return f"{self.name[: LONGEST_ID - len(mark)]}{mark}"

    @property
    def key(self) -> str:
        """Return an identifier that no other execution has: a name is free again after 90 days."""
        return f"{self.id} {self.started}"


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs in the bucket of a deployment, which may read `tables`.

    For `prices`, see `Prices.of`.
    """

    s3: Any
    bucket: str
    tables: Sequence[str] = ()
    prices: str = ""

    def store(self, run: str) -> Bucket:
        return Bucket(self.s3, self.bucket, f"runs/{run}/")

    def journal(self, run: str) -> Journal:
        return Journal(self.store(run))

    def open_run(self, run: str) -> tuple[Journal, RunPlan]:
        """Return the journal and the plan of a run; raise RunConflict if the run does not exist."""
        journal = self.journal(run)
        plan = journal.plan()
        if plan is None:
            raise RunConflict(
                f"There is no run {run!r} in s3://{self.bucket}/runs/: a run has the name of the "
                "execution that began it, and is deleted at the end of its retention."
            )
        return journal, plan

    def connect(self, table: str, connections: int) -> Connection:
        """Connect to one of the tables; raise InvalidInput for any other table."""
        region = table_region(allowed(table, self.tables))
        return connect(Endpoint(region=region), connections, self.prices)
