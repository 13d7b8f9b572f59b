"""The state machine's path, walked in this process: the fleet's functions, S3 by moto.

It passes JSON from function to function as Step Functions does, with its limit of 256 KiB.
"""

import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.usage import Tally
from keyhop.dynamodb.values import Key
from keyhop.jobs.check import verify_run
from keyhop.jobs.clock import now
from keyhop.jobs.costs import Worker
from keyhop.jobs.finish import finish_run
from keyhop.jobs.plan import plan_run
from keyhop.jobs.request import parse
from keyhop.jobs.runs import Execution, Runs
from keyhop.jobs.work import GroupWork, scan_segments
from keyhop.key_index.fleet import KeyIndexes
from keyhop.storage.s3 import Bucket

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

    def asked(self) -> int | None:
        return self.told

    def noted(self, slot: int) -> int | None:
        return self.notes.get(slot)

    def note(self, slot: int, level: int) -> int:
        return self.notes.setdefault(slot, level)


@dataclass
class Machine:
    """scan: stands between the map and ScanSegments, so that a test can spoil it."""

    runs: Runs
    tables: list[str]
    remaining: float = 900.0
    scan: Callable[..., Any] = scan_segments
    most_workers: int | None = None
    invocations: int = field(default=0)
    levels: Levels = field(default_factory=Levels)
    places: dict[str, str | None] = field(default_factory=dict)

    @property
    def indexes(self) -> KeyIndexes:
        return KeyIndexes(self.runs, self.places)

    def map_levels(self, execution: str, name: str, store: Bucket) -> Levels:
        return self.levels

    def start(self, given: Any, name: str | None = None) -> dict[str, Any]:
        """From the input to the output, or to what a function raises."""
        execution = self.execution(name)
        state = self.plan(given, execution)
        if state["planOnly"]:
            return state["estimate"]
        return self.go_on(state, execution)

    def execution(self, name: str | None = None) -> Execution:
        name = name or f"e-{uuid.uuid4().hex[:12]}"
        return Execution(f"arn:aws:states:::execution:EnumerateKeys:{name}", name, now())

    def plan(self, given: Any, execution: Execution) -> dict[str, Any]:
        request = parse(passed_on(given))
        state = plan_run(
            request,
            execution,
            self.runs,
            self.tables,
            WORKER,
            Tally(),
            self.most_workers,
            self.indexes.source,
        )
        return passed_on(state)

    def go_on(self, state: dict[str, Any], execution: Execution) -> dict[str, Any]:
        state["next"] = "scan"
        while True:
            if state["next"] == "scan":
                self.map(state)
                state = passed_on(finish_run(state, execution, self.runs, WORKER))
            elif state["next"] == "verify":
                state = passed_on(self.verify(state))
            else:
                return dict(state["result"])

    def verify(self, state: dict[str, Any]) -> dict[str, Any]:
        return verify_run(state, self.runs, self.tables, WORKER, self.remaining, Tally())[0]

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
            worker = uuid.uuid4().hex
            more = {"walks": self.indexes.walker} if self.places else {}
            worked = self.scan(
                work, self.runs, self.tables, self.remaining, worker, Tally(), **more
            )
            selected["slice"] = {"checkpoint": worked.to_state()}
            done = worked.done

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
        log, plan = self.runs.begun(run)
        parts = [part for commit in log.commits_of(range(plan.groups)) for part in commit.parts]
        assert {part.name for part in parts} == {p["name"] for p in self.manifest(run)["parts"]}
        there = {f"runs/{run}/{part.name}" for part in parts}
        assert {item["key"] for item in json.loads(self.object(f"runs/{run}/parts.json"))} == there
        links = self.object(f"runs/{run}/links/parts.txt").decode().splitlines()
        assert sorted(links) == sorted(f"s3://{self.runs.bucket}/{key}" for key in there)
        return [key for part in parts for _, key in log.keys(plan, part)]
