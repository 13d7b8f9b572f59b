"""Executions in a local cloud and their results, for tests and benchmarks."""

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
    """The number of groups of the latest distributed map, by status."""

    done: int
    running: int
    total: int


class Executions:
    """The executions of a state machine, and their results; `client` makes a client by service."""

    def __init__(self, client: Callable[[str], Any], state_machine: str, bucket: str) -> None:
        self.states = client("stepfunctions")
        self.s3 = client("s3")
        self.state_machine = state_machine
        self.bucket = bucket
        self.of = OfMachine(self.states, state_machine)

    def start(self, value: Any, name: str | None = None) -> str:
        """Start an execution with this input, and return its ARN."""
        return start_execution(self.states, self.state_machine, value, name, self.of.endpoint)

    def follow(self, execution: str, seconds: float) -> Run:
        """Wait until an execution ends. Raise TimeoutError after so many seconds."""
        deadline = time.monotonic() + seconds

        def look(run: Run) -> None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{execution} did not end within {seconds:g} seconds")

        return self.of.follow(execution, look)

    def progress(self, execution: str) -> Progress | None:
        """Return the progress of the latest map, or None before the first map starts."""
        map_runs = self.states.list_map_runs(executionArn=execution)["mapRuns"]
        if not map_runs:
            return None
        latest = max(map_runs, key=lambda run: run["startDate"])
        counts = self.states.describe_map_run(mapRunArn=latest["mapRunArn"])["executionCounts"]
        done = counts["succeeded"] + counts["failed"] + counts["aborted"] + counts["timedOut"]
        return Progress(done, counts["running"], counts["total"])

    def manifest(self, run: str) -> Any:
        return json.loads(self.read(f"runs/{run}/manifest.json"))

    def keys(self, run: str) -> Iterator[Any]:
        """Yield all keys of a finished run of format jsonl, in DynamoDB's typed form."""
        for part in self.manifest(run)["parts"]:
            for line in gzip.decompress(self.read(f"runs/{run}/{part['name']}")).splitlines():
                yield json.loads(line)

    def read(self, key: str) -> bytes:
        content: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return content
