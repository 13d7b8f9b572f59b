"""The state machine's path, walked in this process: the fleet's functions, S3 by moto.

It passes JSON from function to function as Step Functions does, with its limit of 256 KiB.
"""

import json
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.jobs.clock import now
from keyhop.jobs.costs import Worker
from keyhop.jobs.failure import clean_up
from keyhop.jobs.fleet import Planner, finish_run
from keyhop.jobs.runs import Deployment, Execution, Runs
from keyhop.jobs.task import Tasks
from keyhop.jobs.work import GroupWork, scan_segments
from keyhop.key_index.deployment import KeyIndexes
from keyhop.key_index.request import parse_walk
from keyhop.keys.check import verify_run
from keyhop.keys.request import parse
from keyhop.storage.store import Store
from keyhop.tasks import tasks_of

MOST_STATE_BYTES = 256 * 1024
WORKER = Worker(1769, "arm64")


def passed_on(state: Any) -> Any:
    """What the next state sees of a state."""
    text = json.dumps(state)
    assert len(text.encode()) <= MOST_STATE_BYTES
    return json.loads(text)


@dataclass
class Levels:
    """What Step Functions tells of the map (None while it does not answer), and the notes."""

    told: int | None = None
    notes: dict[int, int] = field(default_factory=dict)

    def current(self) -> int | None:
        return self.told

    def noted(self, slot: int) -> int | None:
        return self.notes.get(slot)

    def note(self, slot: int, level: int) -> int:
        return self.notes.setdefault(slot, level)


@dataclass
class Machine:
    """scan: stands between the map and ScanSegments, so that a test can spoil it."""

    deployment: Deployment
    remaining: float = 900.0
    scan: Callable[..., Any] = scan_segments
    most_workers: int | None = None
    invocations: int = field(default=0)
    levels: Levels = field(default_factory=Levels)
    places: dict[str, str | None] = field(default_factory=dict)

    @property
    def runs(self) -> Runs:
        return self.deployment.runs

    @property
    def tables(self) -> list[str]:
        return self.deployment.tables

    @property
    def indexes(self) -> KeyIndexes:
        return KeyIndexes(self.deployment, self.places)

    @property
    def tasks(self) -> Tasks:
        return tasks_of(self.indexes.believe, self.indexes.task)

    def levels_of(self, execution: str, name: str, store: Store) -> Levels:
        return self.levels

    def start(self, given: Any, name: str | None = None, walk: bool = False) -> dict[str, Any]:
        """From the input to the output, or to what a function raises; walk: of WalkKeyIndexes."""
        execution = self.execution(name)
        state = self.plan(given, execution, walk)
        if state["planOnly"]:
            return state["estimate"]
        return self.go_on(state, execution)

    def execution(self, name: str | None = None) -> Execution:
        name = name or f"e-{uuid.uuid4().hex[:12]}"
        return Execution(f"arn:aws:states:::execution:EnumerateKeys:{name}", name, now())

    def plan(self, given: Any, execution: Execution, walk: bool = False) -> dict[str, Any]:
        request = (parse_walk if walk else parse)(passed_on(given))
        planner = Planner(
            execution, self.deployment, self.tasks, WORKER, Usage(), self.most_workers
        )
        return passed_on(planner.plan_run(request))

    def go_on(self, state: dict[str, Any], execution: Execution) -> dict[str, Any]:
        state["next"] = "scan"
        while True:
            if state["next"] == "scan":
                self.map(state)
                state = passed_on(self.finish(state, execution))
            elif state["next"] == "verify":
                state = passed_on(self.verify(state))
            else:
                return dict(state["result"])

    def finish(self, state: dict[str, Any], execution: Execution, **more: Any) -> dict[str, Any]:
        return finish_run(state, execution, self.deployment, self.tasks, WORKER, **more)

    def verify(self, state: dict[str, Any]) -> dict[str, Any]:
        verified = verify_run(state, self.deployment, self.tasks, WORKER, self.remaining, Usage())
        return verified[0]

    def clean_up(self, state: dict[str, Any], execution: Execution, entered: str) -> None:
        clean_up(state, execution, entered, self.runs, WORKER)

    def map(self, state: dict[str, Any]) -> None:
        items = json.loads(self.object(state["groups"]["key"]))
        assert len(items) == state["groups"]["count"]
        at_once = state["maxConcurrency"]
        self.levels.told = at_once
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda item: self.child(state, item), items))

    def child(self, state: dict[str, Any], item: dict[str, Any]) -> None:
        selected = {
            "run": state["run"],
            "execution": state["execution"],
            "maxReadRate": state["maxReadRate"],
            "map": state["groups"]["map"],
            "item": item,
        }
        done = False
        while not done:
            self.invocations += 1
            work = GroupWork.from_state(passed_on(selected))
            worked = self.scan(work, *self.scan_arguments())
            selected["slice"] = {"checkpoint": worked.to_state()}
            done = worked.done

    def scan_arguments(self) -> tuple[Any, ...]:
        """Of scan_segments, beside the work."""
        given = (self.deployment, self.tasks, self.remaining, uuid.uuid4().hex, Usage())
        return (*given, time.monotonic, self.levels_of)

    def object(self, key: str) -> bytes:
        found: bytes = self.runs.s3.get_object(Bucket=self.runs.bucket, Key=key)["Body"].read()
        return found

    def manifest(self, run: str) -> dict[str, Any]:
        return dict(json.loads(self.object(f"runs/{run}/manifest.json")))

    def progress(self, run: str) -> dict[str, Any]:
        """The summary of a run that is not finished, which has no manifest."""
        listed = self.runs.s3.list_objects_v2(Bucket=self.runs.bucket, Prefix=f"runs/{run}/m")
        assert "Contents" not in listed
        return dict(json.loads(self.object(f"runs/{run}/progress.json")))

    def keys(self, run: str) -> list[Key]:
        """All keys of the parts that the manifest and the lists for readers name, in any order."""
        journal, plan = self.runs.begun(run)
        parts = [part for commit in journal.commits_of(range(plan.groups)) for part in commit.parts]
        assert {part.name for part in parts} == {p["name"] for p in self.manifest(run)["parts"]}
        there = {f"runs/{run}/{part.name}" for part in parts}
        assert {item["key"] for item in json.loads(self.object(f"runs/{run}/parts.json"))} == there
        links = self.object(f"runs/{run}/links/parts.txt").decode().splitlines()
        assert sorted(links) == sorted(f"s3://{self.runs.bucket}/{key}" for key in there)
        return [key for part in parts for _, key in journal.keys(plan, part)]
