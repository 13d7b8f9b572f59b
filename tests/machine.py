"""The state machine, run in this process with the fleet's functions and S3 in memory.

It passes JSON from function to function as Step Functions does, with its limit of 256 KiB.
"""

import json
import math
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError
from keyhop.clock import now
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.each.request import EachInput
from keyhop.jobs.fleet import Planner, clean_up, finish_run, scan_segments
from keyhop.jobs.fleet_rate import MapLevels
from keyhop.jobs.price import FunctionSize
from keyhop.jobs.runs import ExecutionContext, Runs
from keyhop.jobs.task import Tasks
from keyhop.key_index.deployment import KeyIndexes
from keyhop.key_index.request import WalkInput
from keyhop.keys.request import KeysInput
from keyhop.keys.verify import verify_run
from keyhop.rekey.request import BackfillInput, VerifyInput
from keyhop.report.request import ReportInput
from keyhop.storage.store import Store
from keyhop.streams.event_source import Watch
from keyhop.tasks import tasks_of

from testing.schemas.watch import watched

MOST_STATE_BYTES = 256 * 1024
PARSE = {
    "EnumerateKeys": KeysInput.parse,
    "WalkKeyIndexes": WalkInput.parse,
    "ForEachKey": EachInput.parse,
    "SampleKeys": ReportInput.parse,
    "RekeyBackfill": BackfillInput.parse,
    "RekeyVerify": VerifyInput.parse,
}
WORKER = FunctionSize(1769, "arm64")


def passed_on(state: Any) -> Any:
    """Return a state as the next function receives it."""
    text = json.dumps(state)
    assert len(text.encode()) <= MOST_STATE_BYTES
    return json.loads(text)


def failed_now(state: dict[str, Any], execution: ExecutionContext) -> dict[str, Any]:
    """Return the state after CountRedrives."""
    return {**state, "failedAfter": {"redrives": execution.redrives}}


@dataclass
class Levels:
    """A Step Functions client that throttles if `max_concurrency` is None."""

    max_concurrency: int | None = None

    def list_map_runs(self, **parameters: str) -> dict[str, Any]:
        return {"mapRuns": [{"mapRunArn": "a-map-run", "startDate": now()}]}

    def describe_map_run(self, **parameters: str) -> dict[str, Any]:
        if self.max_concurrency is None:
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, "DescribeMapRun")
        return {
            "status": "RUNNING",
            "maxConcurrency": self.max_concurrency,
            "executionCounts": {"running": 1, "pending": 0},
        }


@dataclass
class Machine:
    """The state machine `name`, which runs in this process."""

    deployment: Runs
    remaining: float = 900.0
    scan: Callable[..., Any] = scan_segments
    """The function ScanSegments, which a test may replace."""
    most_workers: int | None = None
    max_cost: float = math.inf
    invocations: int = field(default=0)
    levels: Levels = field(default_factory=Levels)
    places: dict[str, str | None] = field(default_factory=dict)
    name: str = "EnumerateKeys"
    own: Tasks = field(default_factory=dict)
    """Tasks that replace those of the deployment."""
    watch: Watch | None = None

    @property
    def runs(self) -> Runs:
        return self.deployment

    @property
    def tables(self) -> list[str]:
        return self.deployment.tables

    @property
    def indexes(self) -> KeyIndexes:
        return KeyIndexes(self.deployment, self.places, self.watch, settle_seconds=1)

    @property
    def tasks(self) -> Tasks:
        tasks = tasks_of(
            self.indexes.decide_trust,
            self.indexes.task,
            sentinels_of=self.indexes.sentinels_of,
            journal_of=self.runs.journal,
        )
        return {**tasks, **self.own}

    def levels_of(self, execution: str, name: str, store: Store) -> MapLevels:
        return MapLevels(execution, name, store, self.levels)

    def start(
        self, execution_input: Any, name: str | None = None, walk: bool = False
    ) -> dict[str, Any]:
        """Run an execution of this machine, or of WalkKeyIndexes, and return its output."""
        machine = "WalkKeyIndexes" if walk else self.name
        return dict(
            watched(machine, lambda: self._output(execution_input, name, walk), execution_input)
        )

    def _output(self, execution_input: Any, name: str | None, walk: bool) -> dict[str, Any]:
        execution = self.execution(name)
        state = self.plan(execution_input, execution, walk)
        if state["dryRun"]:
            return state["estimate"]
        return self.go_on(state, execution, execution_input)

    def execution(self, name: str | None = None) -> ExecutionContext:
        name = name or f"e-{uuid.uuid4().hex[:12]}"
        return ExecutionContext(f"arn:aws:states:::execution:EnumerateKeys:{name}", name, now())

    def plan(
        self,
        execution_input: Any,
        execution: ExecutionContext,
        walk: bool = False,
        ended: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        request = PARSE["WalkKeyIndexes" if walk else self.name](passed_on(execution_input))
        planner = Planner(
            execution,
            self.deployment,
            self.tasks,
            WORKER,
            Usage(),
            self.most_workers,
            max_cost=self.max_cost,
        )
        return passed_on(planner.plan_run(request, ended))

    def go_on(
        self, state: dict[str, Any], execution: ExecutionContext, execution_input: Any = None
    ) -> dict[str, Any]:
        """Run an execution from its map to its end. A second plan needs the execution's input."""
        state["next"] = "scan"
        while True:
            if state["next"] == "scan":
                self.map(state)
                state = passed_on(self.finish(state, execution))
            elif state["next"] == "finish":
                state = passed_on(self.finish(state, execution))
            elif state["next"] == "plan":
                state = {**self.plan(execution_input, execution, ended=state), "next": "scan"}
            elif state["next"] == "verify":
                state = passed_on(self.verify(state))
            else:
                return dict(state["result"])

    def finish(
        self, state: dict[str, Any], execution: ExecutionContext, **more: Any
    ) -> dict[str, Any]:
        return finish_run(state, execution, self.deployment, self.tasks, WORKER, **more)

    def verify(self, state: dict[str, Any]) -> dict[str, Any]:
        verified = verify_run(state, self.deployment, self.tasks, WORKER, self.remaining, Usage())
        return verified[0]

    def clean_up(self, state: dict[str, Any], execution: ExecutionContext) -> None:
        """Run CleanUp as it runs for the first time after a failure."""
        clean_up(failed_now(state, execution), execution, self.runs, WORKER)

    def map(self, state: dict[str, Any]) -> None:
        items = json.loads(self.object(state["groups"]["key"]))
        assert len(items) == state["groups"]["count"]
        self.levels.max_concurrency = state["maxConcurrency"]
        with ThreadPoolExecutor(state["maxConcurrency"]) as pool:
            list(pool.map(lambda item: self.child(state, item), items))

    def child(self, state: dict[str, Any], item: dict[str, Any]) -> None:
        selected = {
            "run": state["run"],
            "execution": state["execution"],
            "maxReadRate": state["maxReadRate"],
            "map": state["groups"]["map"],
            "item": item,
        }
        checkpoint = {"done": False}
        while not checkpoint["done"]:
            self.invocations += 1
            checkpoint = passed_on(self.scan(passed_on(selected), *self.scan_arguments()))
            selected["slice"] = {"checkpoint": checkpoint}

    def scan_arguments(self) -> tuple[Any, ...]:
        """Return the arguments of scan_segments after the first one."""
        attempt = uuid.uuid4().hex
        return self.deployment, self.tasks, self.remaining, attempt, Usage(), self.levels_of

    def object(self, key: str) -> bytes:
        return bytes(self.runs.s3.get_object(Bucket=self.runs.bucket, Key=key)["Body"].read())

    def manifest(self, run: str) -> dict[str, Any]:
        return dict(json.loads(self.object(f"runs/{run}/manifest.json")))

    def progress(self, run: str) -> dict[str, Any]:
        """Return the summary of a run that is not finished, and so has no manifest."""
        listed = self.runs.s3.list_objects_v2(Bucket=self.runs.bucket, Prefix=f"runs/{run}/m")
        assert "Contents" not in listed
        return dict(json.loads(self.object(f"runs/{run}/progress.json")))

    def keys(self, run: str) -> list[Key]:
        """Return all keys of the parts that the manifest and the lists for readers name."""
        journal, plan = self.runs.open_run(run)
        parts = [part for commit in journal.commits_of(range(plan.groups)) for part in commit.parts]
        assert {part.name for part in parts} == {p["name"] for p in self.manifest(run)["parts"]}
        part_keys = {f"runs/{run}/{part.name}" for part in parts}
        assert {
            item["key"] for item in json.loads(self.object(f"runs/{run}/parts.json"))
        } == part_keys
        links = self.object(f"runs/{run}/links/parts.txt").decode().splitlines()
        assert sorted(links) == sorted(f"s3://{self.runs.bucket}/{key}" for key in part_keys)
        return [key for part in parts for _, key in journal.keys(plan, part)]
