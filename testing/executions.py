"""Executions on a laptop cloud, and what they wrote, for tests and benchmarks."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from keyhop.public.deployment import Executions as OfMachine
from keyhop.public.deployment import Run, start_execution


@dataclass(frozen=True)
class Progress:
    """Groups of the latest distributed map."""

    done: int
    running: int
    total: int


class Executions:
    """Executions of one state machine, and their results. client: makes a client by service."""

    def __init__(self, client: Callable[[str], Any], state_machine: str, bucket: str) -> None:
        self.states = client("stepfunctions")
        self.s3 = client("s3")
        self.state_machine = state_machine
        self.bucket = bucket
        self.of = OfMachine(self.states, state_machine)

    def start(self, given: Any, name: str | None = None) -> str:
        """Start one with an input; returns its ARN."""
        return start_execution(self.states, self.state_machine, given, name, self.of.endpoint)

    def follow(self, execution: str, seconds: float) -> Run:
        """Wait until it ends, at most so long (TimeoutError)."""
        deadline = time.monotonic() + seconds

        def look(seen: Run) -> None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{execution} did not end within {seconds:g} seconds")

        return self.of.follow(execution, look)

    def progress(self, execution: str) -> Progress | None:
        """None before there is a map."""
        begun = self.states.list_map_runs(executionArn=execution)["mapRuns"]
        if not begun:
            return None
        latest = max(begun, key=lambda run: run["startDate"])
        counts = self.states.describe_map_run(mapRunArn=latest["mapRunArn"])["executionCounts"]
        done = counts["succeeded"] + counts["failed"] + counts["aborted"] + counts["timedOut"]
        return Progress(done, counts["running"], counts["total"])

    def manifest(self, run: str) -> Any:
        return json.loads(self.read(f"runs/{run}/manifest.json"))

    def keys(self, run: str) -> Iterator[Any]:
        """All keys of a finished run of format jsonl, in DynamoDB's typed form."""
        for part in self.manifest(run)["parts"]:
            for line in gzip.decompress(self.read(f"runs/{run}/{part['name']}")).splitlines():
                yield json.loads(line)

    def read(self, key: str) -> bytes:
        """An object of the results bucket."""
        content: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return content
