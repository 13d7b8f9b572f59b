"""An execution of EnumerateKeys from outside: start it, follow it, read what it has left in S3."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

POLL_SECONDS = 0.2
POLL_SECONDS_ON_AWS = 5.0
"""Step Functions serves about one DescribeMapRun a second, and the workers need some."""


@dataclass(frozen=True)
class Ended:
    """How an execution ended; output: of one that succeeded, else None."""

    status: str
    error: str
    cause: str
    output: Any


@dataclass(frozen=True)
class Progress:
    """Groups of the latest distributed map: done, running, in all. None before there is a map."""

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
        at = urlsplit(self.states.meta.endpoint_url).hostname
        self._poll_seconds = POLL_SECONDS if at == "127.0.0.1" else POLL_SECONDS_ON_AWS

    def start(self, given: Any, name: str | None = None) -> str:
        """Start one with an input; returns its ARN."""
        named = {"name": name} if name else {}
        begun = self.states.start_execution(
            stateMachineArn=self.state_machine, input=json.dumps(given), **named
        )
        return str(begun["executionArn"])

    def follow(
        self,
        execution: str,
        seconds: float,
        look: Callable[[Progress | None], None] = lambda progress: None,
    ) -> Ended:
        """Wait until it ends, at most so long (TimeoutError); `look` is called meanwhile."""
        deadline = time.monotonic() + seconds
        while True:
            told = self.states.describe_execution(executionArn=execution)
            if told["status"] not in ("RUNNING", "PENDING_REDRIVE"):
                output = json.loads(told["output"]) if "output" in told else None
                if told["status"] != "SUCCEEDED":
                    output = None
                return Ended(
                    told["status"], told.get("error") or "", sentence(told.get("cause")), output
                )
            look(self.progress(execution))
            if time.monotonic() > deadline:
                raise TimeoutError(f"{execution} did not end within {seconds:g} seconds")
            time.sleep(self._poll_seconds)

    def progress(self, execution: str) -> Progress | None:
        """How far its latest distributed map is."""
        begun = self.states.list_map_runs(executionArn=execution)["mapRuns"]
        if not begun:
            return None
        latest = max(begun, key=lambda run: run["startDate"])
        counts = self.states.describe_map_run(mapRunArn=latest["mapRunArn"])["executionCounts"]
        done = counts["succeeded"] + counts["failed"] + counts["aborted"] + counts["timedOut"]
        return Progress(done, counts["running"], counts["total"])

    def manifest(self, run: str) -> Any:
        """The manifest of a run."""
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


def sentence(cause: str | None) -> str:
    """The sentence in an execution's cause: Lambda wraps an exception into JSON."""
    try:
        told = json.loads(cause or "")
        return str(told["errorMessage"])
    except (ValueError, TypeError, KeyError):
        return cause or ""
