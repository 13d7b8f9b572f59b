"""Where the runs of a fleet are kept, and what the functions of an execution share.

runs/<run>/                      a run's files, as in record.py; the run is named like the
                                 execution that began it
runs/<run>/groups/<execution>-<round>.json   the items of one distributed map
runs/<run>/levels/<map>/<slot>.json          how many workers share the rate (valve.py)
runs/<run>/failures/g<group>.json            why a group failed, written by the state machine
runs/<run>/parts.json, links/parts.txt       the parts that count (listing.py)
runs/<run>/verify.json                       what the check has found (checking.py)
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Client, Endpoint, dynamodb_client
from keyhop.errors import BrokenPromise, RunConflict
from keyhop.jobs.journal import RunLog
from keyhop.jobs.model import RunPlan
from keyhop.jobs.request import RUN_ID, InvalidInput, allowed, table_region
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

    def log(self, run: str) -> RunLog:
        """The log of one run."""
        return RunLog(self.store(run))

    def begun(self, run: str) -> tuple[RunLog, RunPlan]:
        """The log and the plan of a run that has been begun; raises RunConflict if it has not."""
        log = self.log(run)
        plan = log.plan()
        if plan is None:
            raise RunConflict(
                f"There is no run {run!r} in s3://{self.bucket}/runs/: a run is named like the "
                f"execution that began it, and is deleted when its retention is over."
            )
        return log, plan


def dynamodb_for(table: str, tables: list[str], connections: int) -> tuple[Client, Endpoint]:
    """A client for a table that this deployment may touch; raises InvalidInput for another."""
    endpoint = Endpoint(region=table_region(allowed(table, tables)))
    client = dynamodb_client(endpoint, connections)
    return client, Endpoint(region=client.region)


def groups_of(
    runs: Runs, run: str, execution: Execution, round_: int, items: Mapping[int, float | None]
) -> dict[str, Any]:
    """Write the items of a distributed map; returns what the state machine must know of them.

    items: for each group, what it may read in all. They go through S3 whatever their number, so
    that there is one way, which each run takes: in the state itself only 256 KiB would fit.
    """
    map_ = f"{execution.name}-{round_}"
    name = f"groups/{map_}.json"
    content = [{"group": group, "mayRead": units} for group, units in items.items()]
    runs.store(run).replace(name, json.dumps(content).encode())
    return {
        "groups": {
            "map": map_,
            "key": f"runs/{run}/{name}",
            "count": len(content),
            "round": round_,
        },
        "mapResults": f"runs/{run}/map-results/{map_}",
    }


def unfinished(groups: int, finished: Iterable[int]) -> list[int]:
    """The groups that are left."""
    done = set(finished)
    return [group for group in range(groups) if group not in done]


def load(store: Bucket, name: str) -> Any:
    """A JSON file of a run; None if it is not there."""
    content = store.read(name)
    if content is None:
        return None
    try:
        return json.loads(content)
    except ValueError as error:
        raise BrokenPromise(f"{store.url(name)} is damaged: it is not JSON.") from error
