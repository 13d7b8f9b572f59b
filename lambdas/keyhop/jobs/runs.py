"""Where runs are kept: one by one in directories, or all of a deployment's in a bucket.

runs/<run>/                      a run's files, as in model.py; the run is named like the execution
                                 that began it
runs/<run>/groups/<execution>-<round>.json   the items of one distributed map
runs/<run>/levels/<map>/<slot>.json          how many workers share the rate (fleet_rate.py)
runs/<run>/failures/g<group>.json            why a group failed, written by the state machine
runs/<run>/notes/g<group>-<worker>.json      what a task's worker has met
runs/<run>/parts.json, links/parts.txt       the parts that count (part_index.py)
runs/<run>/verify.json                       what the check has found
"""

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


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of the state machine, by its context object. redriven: when it last was."""

    id: str
    name: str
    started: str
    redriven: str | None = None

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Execution":
        """From `$$.Execution`; raises InvalidInput for a name that cannot name a place."""
        name = context["Name"]
        if not RUN_ID.fullmatch(name):
            raise InvalidInput(f"{name!r} cannot be the name of a run: give the execution another.")
        return cls(context["Id"], name, context["StartTime"], context.get("RedriveTime"))

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
    """What the functions of a deployment share: its runs, and the tables that it may touch."""

    runs: Runs
    tables: list[str]

    def connect(self, table: str, connections: int) -> Connection:
        """A connection for one of the tables; raises InvalidInput for another."""
        return connect(Endpoint(region=table_region(allowed(table, self.tables))), connections)
