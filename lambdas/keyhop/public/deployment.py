"""A deployment: the outputs of its stack, and its runs."""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial
from heapq import nlargest
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.checks import hint
from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.errors import CannotStart, KeyhopError, RunConflict, Stopped
from keyhop.jobs.journal import ANEW, COMMIT_NAME, READERS, Commit, Journal, RunPlan, Totals
from keyhop.jobs.request import DEFAULT_STACK, RUN_ID, table_name
from keyhop.keys.request import KeysInput
from keyhop.public.runs import Progress

if TYPE_CHECKING:
    from keyhop.jobs.runs import Runs

BUCKET = "ResultsBucketName"
MACHINE = "StateMachineArn"
"""The outputs that every deployment has: the bucket, and the state machine EnumerateKeys."""

FAILURE_QUEUE = "FailureQueueUrl"
"""The output of a deployment with a key index: the queue of what its keeper gave up on."""

SHARD_METADATA = "ShardMetadata"
"""How the outputs of a deployment with sharded tables begin: in each are the name of a table, and
that of its shard-metadata table."""

MOST_OF_TABLE_NAME = 50

ENUMERATE_KEYS = "EnumerateKeys"

MACHINES = {
    ENUMERATE_KEYS: "StateMachineArn",
    "ForEachKey": "ForEachKeyArn",
    "ReportKeys": "ReportKeysArn",
    "BuildKeyIndex": "BuildKeyIndexArn",
    "VerifyKeyIndex": "VerifyKeyIndexArn",
    "RemoveKeyIndex": "RemoveKeyIndexArn",
    "DrainShards": "DrainShardsArn",
    "RekeyBackfill": "RekeyBackfillArn",
    "RekeyVerify": "RekeyVerifyArn",
    "RekeyCutOver": "RekeyCutOverArn",
}
"""The output that names a state machine; a deployment has those of what it was deployed with."""

WITH_RUN = (ENUMERATE_KEYS, "ForEachKey", "RekeyBackfill", "RekeyVerify")
"""The state machines whose executions work on a run in the bucket."""

NOT_STOPPED = ("RekeyCutOver",)
"""The state machines whose executions are not stopped: a stop could leave writes waiting."""

FIRSTS = ("keys", "digests")
"""The names of runs that are made first, for another one (Task.first)."""

ARN = re.compile(r"arn:aws[a-z-]*:states:[a-z0-9-]+:\d{12}:execution:[^:]+:(?P<name>[^:]+)")
UNFINISHED = ("RUNNING", "PENDING_REDRIVE")
CONSOLES = {"aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}
AGAIN = re.compile(r"\bstart\b[^{]* with (?=\{)")
"""The text before the input to start again with, in the cause of a failure."""

LOCAL_POLL_SECONDS = 0.2
POLL_SECONDS = 5.0
LONGEST_POLL_SECONDS = 60.0
POLLS_OF_A_WAIT = 60
"""A look costs a list of the run's commits: after five minutes, it is taken less often."""

LOOKS_AT_ONCE = 8
LOOKED_THROUGH = 200
"""The executions of each state machine among which those of one table are searched."""

ClientOf = Callable[[str], Any]
"""Makes a client by the name of its service."""


class OpenStack(NamedTuple):
    """A stack whose outputs were read, and what makes clients beside it."""

    name: str
    outputs: Mapping[str, str]
    client: ClientOf
    endpoint: Endpoint = Endpoint()


def open_stack(name: str, endpoint: Endpoint) -> OpenStack:
    """Read the outputs of a stack; see `find_outputs`."""
    return OpenStack(name, *find_outputs(name, endpoint), endpoint)


def find_outputs(name: str, endpoint: Endpoint) -> tuple[dict[str, str], ClientOf]:
    """Return the outputs of the stack of this name, and what makes clients beside it.

    Raises:
        CannotStart: The stack does not exist, or is not a deployment of Keyhop.
    """
    client = cache(partial(aws_client, endpoint=endpoint))
    with explaining(endpoint):
        cloudformation = client("cloudformation")
        try:
            (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            region = cloudformation.meta.region_name
            raise CannotStart(
                f"There is no stack {name!r} in region {region}: "
                f"{_other_stacks(name, cloudformation)}"
            ) from error
    outputs = _outputs(stack)
    if BUCKET not in outputs:
        raise CannotStart(
            f"Stack {name!r} ({stack['StackStatus']}) has no output {BUCKET}: it is not a stack "
            "of Keyhop, or its deployment has not ended."
        )
    return outputs, client


def _outputs(stack: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}


def _other_stacks(name: str, cloudformation: Any) -> str:
    """Name the deployments that may have been meant. Listing stacks needs a separate right."""
    names: list[str] = []
    with suppress(ClientError, KeyhopError):
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        stacks = (stack for page in pages for stack in page["Stacks"])
        names = [
            stack["StackName"] for stack in stacks if {BUCKET, MACHINE} <= _outputs(stack).keys()
        ]
    if names:
        return hint(name, names) or f"Keyhop is there as {', '.join(names)}; give stack=."
    return "deploy it first (npx cdk deploy), or give another stack= or region."


@contextmanager
def explaining(endpoint: Endpoint, service: str = "AWS", table: str = "") -> Iterator[None]:
    """Turn what boto3 raises into errors that a user can act on."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise explained(error, endpoint, table, service=service) from error


def start_execution(
    states: Any, machine: str, values: Any, name: str | None, endpoint: Endpoint
) -> str:
    """Start an execution of a state machine with an input, and return its ARN.

    Raises:
        RunConflict: There is an execution of this name.
    """
    named = {"name": name} if name else {}
    with explaining(endpoint):
        try:
            started = states.start_execution(
                stateMachineArn=machine, input=json.dumps(values, default=_json_number), **named
            )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            raise RunConflict(
                f"There is a run named {name!r} already: start with another name=, or continue it "
                f"with resume={name}."
            ) from error
    return str(started["executionArn"])


def _check_input(machine: str, values: object) -> None:
    """Raise InvalidInput for an input that one of these state machines would refuse."""
    # A list of keys needs none of these.
    from keyhop.each.request import EachInput
    from keyhop.key_index.request import Order
    from keyhop.report.request import ReportInput

    parsers: dict[str, Callable[[object], object]] = {
        ENUMERATE_KEYS: KeysInput.parse,
        "ForEachKey": EachInput.parse,
        "ReportKeys": ReportInput.parse,
        "BuildKeyIndex": partial(Order.parse, "build"),
        "VerifyKeyIndex": partial(Order.parse, "verify"),
        "RemoveKeyIndex": partial(Order.parse, "remove"),
    }
    if machine in parsers:
        parsers[machine](values)


def _json_number(value: object) -> float:
    """Return a Decimal as a number of JSON; raise CannotStart if that cannot hold its digits."""
    if not isinstance(value, Decimal):
        raise TypeError(f"{type(value).__name__} is not a JSON value")
    if value == value.to_integral_value():
        return int(value)
    if Decimal(repr(float(value))) != value:
        raise CannotStart(
            f"The input of a run cannot hold all digits of {value}: write the item in DynamoDB "
            f'JSON, such as {{"N": "{value}"}}.'
        )
    return float(value)


def new_name(table: str) -> str:
    """Return a name for a new run of this table."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{table_name(table)[:MOST_OF_TABLE_NAME]}-{moment}-{uuid.uuid4().hex[:4]}"


@dataclass(frozen=True, slots=True)
class RunProgress(Progress):
    """The progress of a run of a deployment, by what its workers have committed.

    Attributes:
        requests, dollars: The reads so far, at the `prices`.
        prices: The name of the prices.
        read_rate, write_rate: The units a second since the execution began; None if it does not
            work any more.
        seconds_left: The estimated time until everything is read; None if it is unknown.
    """

    requests: int = 0
    dollars: float = 0.0
    prices: str = ""
    read_rate: float | None = None
    write_rate: float | None = None
    seconds_left: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the figures, as `keyhop runs show --format json` prints them."""
        return {
            "segments": self.segments,
            "ended": self.segments_done,
            "share": round(self.share, 4),
            "keys": self.keys,
            "requests": self.requests,
            "read_units": round(self.read_units, 3),
            "throttles": self.throttles,
            "dollars": round(self.dollars, 9),
            "prices": self.prices,
            "read_units_per_second": self.read_rate and round(self.read_rate, 3),
            "seconds_left": self.seconds_left and round(self.seconds_left, 1),
        }


NOT_PLANNED = RunProgress(0, None, 0.0, 0, 0, 0.0, 0.0, 0, activity="planning")


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a deployment at one moment: an execution of a state machine. `repr` shows no keys.

    Attributes:
        execution: The ARN of the execution.
        status: The status that Step Functions has: RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED
            or PENDING_REDRIVE.
        ended: When it ended; None if it has not.
        input: The input, parsed; None if it is not JSON.
        output: The output, parsed; None if there is none.
        error, cause: Why a run failed, otherwise "".
        redrivable: Whether the execution can be redriven.
        progress: The progress of a run that has not succeeded; None if it is not known.
        files: The place of the run's files.
    """

    execution: str
    status: str
    started: datetime
    ended: datetime | None
    input: Any = field(repr=False)
    output: Any = field(repr=False)
    error: str
    cause: str = field(repr=False)
    redrivable: bool
    progress: RunProgress | None = None
    files: str = ""

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "Run":
        """Read the response of DescribeExecution."""
        return cls(
            execution=description["executionArn"],
            status=description["status"],
            started=description["startDate"],
            ended=description.get("stopDate"),
            input=_parsed(description.get("input")),
            output=_parsed(description.get("output")),
            error=description.get("error") or "",
            cause=description.get("cause") or "",
            redrivable=description.get("redriveStatus") == "REDRIVABLE",
        )

    @property
    def name(self) -> str:
        """The name of the execution, by which each method of Deployment finds it."""
        return self.execution.rpartition(":")[2]

    @property
    def machine(self) -> str:
        """The name of the state machine, such as EnumerateKeys."""
        return self.execution.rsplit(":", 2)[1].rpartition("-")[2]

    @property
    def table(self) -> str:
        """The table; of a re-key, the destination."""
        return str(next(iter(self._subject.values()), ""))

    @property
    def _subject(self) -> Mapping[str, Any]:
        """The field of the input that names the table."""
        values = self.input if isinstance(self.input, Mapping) else {}
        return {name: values[name] for name in ("table", "rekey") if values.get(name)}

    @property
    def run_id(self) -> str:
        """The name of the run that it works on: its own, or that of the run that it resumes."""
        for values, name in ((self.output, "run"), (self.input, "resume")):
            if isinstance(values, Mapping) and isinstance(values.get(name), str):
                return str(values[name])
        return self.name

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status not in UNFINISHED

    @property
    def has_succeeded(self) -> bool:
        """Whether it has ended without an error."""
        return self.status == "SUCCEEDED"

    @property
    def seconds(self) -> float:
        """The duration until its end, or until now."""
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()

    @property
    def next_input(self) -> Mapping[str, Any] | None:
        """The input of a new execution that continues this one; None if there is none."""
        if not self.is_over or self.has_succeeded or not self._subject:
            return None
        advised = _advised(self.cause)
        if advised is None and not self.cause and self.progress is not None:  # it was stopped
            return {**self._subject, "resume": self.run_id}
        return advised

    @property
    def console(self) -> str:
        """The address of its page in the AWS console."""
        _, partition, _, region, *_ = self.execution.split(":")
        host = CONSOLES.get(partition, f"{region}.console.aws.amazon.com")
        return f"https://{host}/states/home?region={region}#/v2/executions/details/{self.execution}"

    def to_json(self) -> dict[str, Any]:
        """Return all that is known; the input and the output can have keys."""
        return {
            "run": self.run_id,
            "execution": self.execution,
            "machine": self.machine,
            "status": self.status,
            "table": self.table,
            "started": _moment(self.started),
            "ended": _moment(self.ended),
            "seconds": round(self.seconds, 1),
            "input": self.input,
            "progress": self.progress and self.progress.to_json(),
            "result": self.output,
            "error": self.error or None,
            "cause": self.cause or None,
            "files": self.files,
            "console": self.console,
        }


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")


def _advised(cause: str) -> Mapping[str, Any] | None:
    """Return the input to continue with that the cause of a failure names."""
    match = AGAIN.search(cause)
    try:
        values = json.JSONDecoder().raw_decode(cause, match.end())[0] if match else None
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


@dataclass(frozen=True, slots=True)
class FetchedKeys:
    """The keys of a finished run that were copied.

    Attributes:
        run: The name of the run.
        keys, parts, bytes: How many were copied.
    """

    run: str
    table: str
    keys: int
    parts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Executions:
    """The executions of one state machine, by Step Functions' client. Methods raise KeyhopError."""

    states: Any
    machine: str
    endpoint: Endpoint = field(default_factory=Endpoint)

    def arn(self, name: str) -> str:
        """Return the ARN of the execution of this name."""
        return f"{self.machine.replace(':stateMachine:', ':execution:')}:{name}"

    def describe(self, execution: str) -> Run | None:
        """Describe an execution by its ARN; return None if it does not exist."""
        with explaining(self.endpoint):
            try:
                return Run.from_description(self.states.describe_execution(executionArn=execution))
            except ClientError as error:
                if error_code(error) not in ("ExecutionDoesNotExist", "InvalidArn"):
                    raise
                return None

    def latest(self, maximum: int) -> list[Run]:
        """Return the latest ones, the last started first."""
        with explaining(self.endpoint), ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
            page = self.states.list_executions(stateMachineArn=self.machine, maxResults=maximum)
            arns = [execution["executionArn"] for execution in page["executions"]]
            return [run for run in pool.map(self.describe, arns) if run is not None]

    def stop(self, run: Run) -> Run:
        """Stop an execution; see Deployment.stop."""
        if run.machine in NOT_STOPPED:
            raise RunConflict(
                f"The run {run.name!r} changes which table serves, and if it were stopped, writes "
                "could be left waiting. Abort a cutover with a rollback, and a rollback with a "
                "cutover."
            )
        if not run.is_over:
            with explaining(self.endpoint):
                self.states.stop_execution(executionArn=run.execution)
            if (stopped := self.describe(run.execution)) and stopped.status == "ABORTED":
                return stopped
        raise RunConflict(f"The run {run.name!r} has ended already, so it cannot be stopped.")

    def follow(
        self,
        execution: str,
        look: Callable[[Run], None] = lambda run: None,
        wait: Callable[[float], object] = time.sleep,
    ) -> Run:
        """Wait until an execution has ended; `look` is called at each poll, and can raise."""
        is_local = urlsplit(self.states.meta.endpoint_url).hostname == "127.0.0.1"
        shortest = LOCAL_POLL_SECONDS if is_local else POLL_SECONDS
        waited = 0.0
        while True:
            current = self.describe(execution)
            if current is None:
                raise CannotStart(f"There is no execution {execution}.")
            if current.is_over:
                return current
            look(current)
            pause = min(max(shortest, waited / POLLS_OF_A_WAIT), LONGEST_POLL_SECONDS)
            wait(pause)
            waited += pause


@dataclass(slots=True)
class WatchedRun:
    """A run of a deployment, looked at again and again, or the run that is made first for it.

    Attributes:
        plan: The plan, once there is one.
        totals: The sum of the commits that were read.
    """

    runs: "Runs"
    run: str
    plan: RunPlan | None = None
    totals: Totals | None = None
    _journal: Journal = field(init=False)
    _seen: set[str] = field(default_factory=set)
    _before: tuple[float, int, float] | None = None
    """Read units, segments and seconds of an earlier execution."""

    def progress(self, current: Run) -> RunProgress | None:
        """Return the progress of an execution; None before there is a plan. Raise KeyhopError."""
        totals = self.look()
        if totals is None or self.plan is None:
            return None
        usage, ended, segments = totals.usage, totals.ended, self.plan.segments
        units = usage.read_units
        if self._before is None:
            is_resumed = current.run_id != current.name
            self._before = (units, ended, current.seconds) if is_resumed else (0.0, 0, 0.0)
        units_before, ended_before, seconds_before = self._before
        elapsed, gained = max(1.0, current.seconds - seconds_before), ended - ended_before
        return RunProgress(
            keys=max(totals.keys, totals.counts.total()),
            expected=None,
            share=ended / segments,
            segments=segments,
            segments_done=ended,
            read_units=units,
            write_units=usage.write_units,
            throttles=usage.throttles.total(),
            activity="reading" if ended < segments else "ending",
            requests=usage.requests,
            dollars=self.plan.prices.dollars(units),
            prices=self.plan.prices.on_demand,
            read_rate=None if current.is_over else (units - units_before) / elapsed,
            write_rate=None if current.is_over else usage.write_units / elapsed,
            seconds_left=None
            if current.is_over or gained <= 0
            else elapsed * (segments - ended) / gained,
        )

    def look(self) -> Totals | None:
        """Return the sum of all commits; None before there is a plan. Raise KeyhopError."""
        firsts = [f"{self.run}-{first}" for first in FIRSTS]
        if self.plan is None or self.plan.id in firsts:
            any(self._begin(run) for run in (self.run, *firsts))
        elif self.plan.method == "index" and self.plan.id == self.run:
            self._begin(f"{self.run}{ANEW}")  # if the index was out of date at the end
        if self.plan is None or self.totals is None:
            return None
        new = [name for name in self._journal.store.sizes("commits") if name not in self._seen]
        with ThreadPoolExecutor(READERS) as pool:
            for name, commit in zip(new, pool.map(self._commit, new), strict=True):
                self._seen.add(name)
                if commit is not None:
                    self.totals.add(commit)
        return self.totals

    def _begin(self, run: str) -> bool:
        """Look at this run from now on, if it is planned."""
        if self.plan is not None and self.plan.id == run:
            return True
        journal = self.runs.journal(run)
        plan = journal.plan()
        if plan is not None:
            self._journal, self.plan, self.totals = journal, plan, Totals(plan)
            self._seen.clear()
        return plan is not None

    def _commit(self, name: str) -> Commit | None:
        numbers = COMMIT_NAME.fullmatch(name)
        if numbers is None:
            return None
        return self._journal.commit_of(int(numbers["group"]), int(numbers["slice"]))


class Deployment:
    """The runs of a deployed stack: they are started, shown, followed, fetched and stopped.

    A deployment works on when the process that started a run ends. Several threads may share an
    object; make another one in a fork of the process.

        deployment = keyhop.Deployment("Keyhop")
        run = deployment.follow(deployment.start({"table": "Orders"}))
        deployment.fetch(run, "keys")
    """

    def __init__(
        self,
        stack: str | OpenStack = DEFAULT_STACK,
        *,
        session: Any = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Event | None = None,
    ) -> None:
        """Read the outputs of the stack.

        Args:
            stack: The name of the deployment; an OpenStack is taken as it is.
            session: A boto3 session. By default credentials and region are those of the
                environment.
            progress: Is called by `follow` at each look (with a RunProgress), and by `fetch`.
            stop: An event that ends `follow` and `fetch`, with the exception Stopped, when it is
                set. The deployment goes on with the run all the same.

        Raises:
            CannotStart: The stack does not exist, or is not a deployment of Keyhop.
        """
        if isinstance(stack, str):
            stack = open_stack(stack, Endpoint(session=getattr(session, "_session", session)))
        self.stack = stack
        self._progress = progress or (lambda progress: None)
        self._stop = stop or Event()

    def __repr__(self) -> str:
        return f"<keyhop.Deployment {self.stack.name}>"

    def start(
        self,
        input: Mapping[str, Any],
        *,
        machine: str = ENUMERATE_KEYS,
        name: str | None = None,
        dry_run: bool = False,
    ) -> Run:
        """Start a run, and return it without waiting for its end.

        Args:
            input: The input of the state machine, such as {"table": "Orders", "maxReadRate": 500}.
                docs/schemas has that of each. "resume" continues an earlier run.
            machine: The name of the state machine; EnumerateKeys lists keys.
            name: The name of the run; by default it is made of the table's name and the time.
            dry_run: Only estimate: the output of the run is then the estimate.

        Raises:
            CannotStart: The input is wrong, or the deployment does not have the state machine.
            RunConflict: There is a run of this name.
        """
        executions = self.executions(machine)
        values = {**input, "dryRun": True} if dry_run else dict(input)
        _check_input(machine, values)
        name = name or new_name(str(values.get("table") or values.get("rekey") or machine))
        arn = start_execution(
            executions.states, executions.machine, values, name, self.stack.endpoint
        )
        return Run(arn, "RUNNING", datetime.now(UTC), None, values, None, "", "", False)

    def list(self, table: str | None = None, limit: int = 20) -> tuple[Run, ...]:
        """Return the latest runs of all state machines, the last started first.

        Args:
            table: Only those of this table, by its name or ARN.
            limit: The maximum number of runs.
        """
        maximum = limit if table is None else max(LOOKED_THROUGH, limit)
        only = None if table is None else table_name(table)
        runs = (
            run
            for machine in self._machines()
            for run in self.executions(machine).latest(maximum)
            if only in (None, table_name(run.table))
        )
        return tuple(nlargest(limit, runs, key=lambda run: run.started))

    def show(self, run: str | Run) -> Run:
        """Return the present state of a run, by its name or ARN.

        Raises:
            CannotStart: The stack has no run of this name.
        """
        return self._with_progress(self._find(run)[1])

    def follow(self, run: str | Run) -> Run:
        """Wait until a run has ended, and return it, whatever became of it.

        Raises:
            Stopped: `stop` was set. The run goes on.
        """
        executions, current = self._find(run)
        watched = WatchedRun(self._runs, current.run_id)

        def look(current: Run) -> None:
            progress = replace(NOT_PLANNED, activity="working")
            if current.machine in WITH_RUN:
                with suppress(KeyhopError):  # The run does not depend on its display.
                    progress = watched.progress(current) or NOT_PLANNED
            self._progress(progress)

        def wait(seconds: float) -> None:
            if self._stop.wait(seconds):
                raise Stopped

        return self._with_progress(executions.follow(current.execution, look, wait))

    def fetch(
        self, run: str | Run, output: str | Path | IO[bytes], *, format: str = "text"
    ) -> FetchedKeys:
        """Copy the keys of a finished run.

        Args:
            run: The name of the run, or that of an execution which worked on it.
            output: A directory, which is then like that of `list_keys(output=)`: new, empty, or of
                a fetch that was interrupted. Or a binary stream, to which keys are written.
            format: The format of the keys in a stream: "text", "json", "typed-json" or "csv".

        Raises:
            RunConflict: The run is not finished, or the directory has other files.
            BrokenPromise: The files of the run are damaged.
            Stopped: `stop` was set. The same call continues.
        """
        from keyhop.public.fetch import copy_run, write_keys  # They load boto3's transfers.

        remote = self._finished(run)
        if isinstance(output, str | Path):
            manifest = copy_run(remote, Path(output), self._stop, self._progress)
        else:
            manifest = write_keys(remote, output, format, self._stop)
        parts = manifest["parts"]
        size = sum(part["size"] for part in parts)
        return FetchedKeys(manifest["run"], manifest["table"], manifest["keys"], len(parts), size)

    def stop(self, run: str | Run) -> Run:
        """Stop a run. It keeps what it has committed, and "resume" continues it.

        Raises:
            RunConflict: It had ended before, or a stop could leave writes waiting.
        """
        executions, current = self._find(run)
        return self._with_progress(executions.stop(current))

    def executions(self, machine: str) -> Executions:
        """Return the executions of a state machine. Raise CannotStart if it is not deployed."""
        if machine not in self._machines():
            raise CannotStart(
                f"The stack {self.stack.name!r} has no {machine}: deploy this version of Keyhop, "
                f"with what {machine} needs."
            )
        arn = self.stack.outputs[MACHINES[machine]]
        return Executions(self.stack.client("stepfunctions"), arn, self.stack.endpoint)

    def _machines(self) -> tuple[str, ...]:
        return tuple(name for name, output in MACHINES.items() if output in self.stack.outputs)

    @property
    def _runs(self) -> "Runs":
        from keyhop.jobs.runs import Runs  # It loads boto3's transfers.

        return Runs(self.stack.client("s3"), self.stack.outputs[BUCKET])

    def _find(self, run: str | Run) -> tuple[Executions, Run]:
        """Return a run by its name or ARN; raise CannotStart."""
        name = run.execution if isinstance(run, Run) else run
        is_arn = ARN.fullmatch(name) is not None
        if not is_arn and not RUN_ID.fullmatch(name):
            raise CannotStart(f"{name!r} is not the name of a run: see the list of runs.")
        for executions in map(self.executions, self._machines()):
            if is_arn and not name.startswith(executions.arn("")):
                continue
            if current := executions.describe(name if is_arn else executions.arn(name)):
                return executions, current
        raise CannotStart(
            f"Stack {self.stack.name!r} has no run {name!r}: see the list of runs. Step Functions "
            "deletes an execution 90 days after its end."
        )

    def _with_progress(self, run: Run) -> Run:
        progress = None
        if not run.has_succeeded and run.machine in WITH_RUN:
            with suppress(KeyhopError):
                progress = WatchedRun(self._runs, run.run_id).progress(run)
        return replace(run, progress=progress, files=self._runs.store(run.run_id).url(""))

    def _finished(self, run: str | Run) -> Journal:
        """Return the files of a run by its name, or by that of an execution that worked on it."""
        name = run.run_id if isinstance(run, Run) else run
        if RUN_ID.fullmatch(name) and self._runs.journal(name).is_finished():
            return self._runs.journal(name)
        journal = self._runs.journal(self._find(run)[1].run_id)
        if not journal.is_finished():
            raise RunConflict(f"The run {name!r} is not finished.")
        return journal
