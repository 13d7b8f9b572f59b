"""Executions of a deployed state machine, from outside: start, look, wait for the end."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.errors import CannotStart, RunConflict

LOCAL_POLL_SECONDS = 0.2
POLL_SECONDS = 5.0
LONGEST_POLL_SECONDS = 60.0
POLLS_OF_A_WAIT = 60
"""A look costs a list of the run's commits: after five minutes, it is taken less often."""

LOOKS_AT_ONCE = 8
AT_WORK = ("RUNNING", "PENDING_REDRIVE")
ARN = re.compile(r"arn:aws[a-z-]*:states:[a-z0-9-]+:\d{12}:execution:[^:]+:(?P<name>[^:]+)")


@dataclass(frozen=True, slots=True)
class Execution:
    """One, as it stands. given, output: what JSON says; None where there is none.

    error, cause: of one that has failed, else empty. redrivable: whether it can be gone on with.
    """

    arn: str
    status: str
    started: datetime
    ended: datetime | None
    given: Any
    output: Any
    error: str
    cause: str
    redrivable: bool

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Execution":
        """From what DescribeExecution tells."""
        return cls(
            arn=told["executionArn"],
            status=told["status"],
            started=told["startDate"],
            ended=told.get("stopDate"),
            given=_parsed(told.get("input")),
            output=_parsed(told.get("output")),
            error=told.get("error") or "",
            cause=told.get("cause") or "",
            redrivable=told.get("redriveStatus") == "REDRIVABLE",
        )

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    @property
    def machine(self) -> str:
        """The physical name of its state machine."""
        return self.arn.rsplit(":", 2)[1]

    @property
    def table(self) -> str:
        """Of a re-key, the destination."""
        if not isinstance(self.given, Mapping):
            return ""
        return str(self.given.get("table") or self.given.get("rekey") or "")

    @property
    def run(self) -> str:
        """The run that it works on, as far as its input and output tell."""
        for told, name in ((self.output, "run"), (self.given, "resume")):
            if isinstance(told, Mapping) and isinstance(told.get(name), str):
                return str(told[name])
        return self.name

    @property
    def is_over(self) -> bool:
        return self.status not in AT_WORK

    @property
    def has_succeeded(self) -> bool:
        return self.status == "SUCCEEDED"

    @property
    def seconds(self) -> float:
        """How long it took, or has taken up to now."""
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Executions:
    """Those of one state machine. states: Step Functions' client. Raise KeyhopError."""

    states: Any
    machine: str
    endpoint: Endpoint = field(default_factory=Endpoint)

    def arn(self, name: str) -> str:
        """The ARN of the execution that is called so."""
        return f"{self.machine.replace(':stateMachine:', ':execution:')}:{name}"

    def start(self, given: Any, name: str | None = None) -> str:
        """Start one with an input; returns its ARN. Raises RunConflict if the name is taken."""
        named = {"name": name} if name else {}
        with explaining(self.endpoint):
            try:
                begun = self.states.start_execution(
                    stateMachineArn=self.machine, input=json.dumps(given), **named
                )
            except ClientError as error:
                if error_code(error) != "ExecutionAlreadyExists":
                    raise
                raise RunConflict(
                    f"There is a run named {name!r} already: see keyhop show {name}; start with "
                    f"another --name, or go on with it by --resume {name}."
                ) from error
        return str(begun["executionArn"])

    def look(self, execution: str) -> Execution | None:
        """One by its ARN; None if there is no such execution."""
        with explaining(self.endpoint):
            try:
                return Execution.of(self.states.describe_execution(executionArn=execution))
            except ClientError as error:
                if error_code(error) not in ("ExecutionDoesNotExist", "InvalidArn"):
                    raise
                return None

    def latest(self, most: int) -> list[Execution]:
        """The latest ones, the last begun first."""
        with explaining(self.endpoint), ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
            listed = self.states.list_executions(stateMachineArn=self.machine, maxResults=most)
            arns = [one["executionArn"] for one in listed["executions"]]
            return [one for one in pool.map(self.look, arns) if one is not None]

    def follow(
        self,
        execution: str,
        look: Callable[[Execution], None] = lambda execution: None,
        wait: Callable[[float], object] = time.sleep,
    ) -> Execution:
        """Wait until one has ended; `look` is called meanwhile, and can raise to give up."""
        is_local = urlsplit(self.states.meta.endpoint_url).hostname == "127.0.0.1"
        least = LOCAL_POLL_SECONDS if is_local else POLL_SECONDS
        waited = 0.0
        while True:
            seen = self.look(execution)
            if seen is None:
                raise CannotStart(f"There is no execution {execution}.")
            if seen.is_over:
                return seen
            look(seen)
            pause = min(max(least, waited / POLLS_OF_A_WAIT), LONGEST_POLL_SECONDS)
            wait(pause)
            waited += pause


@contextmanager
def explaining(endpoint: Endpoint) -> Iterator[None]:
    """What boto3 raises within, as errors that a user can act on."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise explained(error, endpoint, service="AWS") from error
