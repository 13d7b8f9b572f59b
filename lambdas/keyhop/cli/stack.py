"""A deployment as the commands see it: its outputs, its state machines, and their executions.

The progress of an execution is read from the commits of its run in the bucket.
"""

import json
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.fleet import DEFAULT_STACK
from keyhop.cli.options import Options
from keyhop.cli.output import put_out
from keyhop.cli.progress import StatusLine, progress_text
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code
from keyhop.errors import CannotStart, KeyhopError, RunConflict
from keyhop.jobs.fleet import ANEW
from keyhop.jobs.journal import COMMIT_NAME, READERS, Commit, Journal, RunPlan, Totals
from keyhop.jobs.request import RUN_ID, table_name
from keyhop.jobs.runs import Runs
from keyhop.public.deployment import BUCKET, explaining, find_outputs

ENUMERATE_KEYS = "EnumerateKeys"
FOR_EACH_KEY = "ForEachKey"

MACHINES = {
    ENUMERATE_KEYS: "StateMachineArn",
    FOR_EACH_KEY: "ForEachKeyArn",
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

NOT_STOPPED = ("RekeyCutOver",)
"""State machines whose executions `keyhop runs stop` refuses: a stop could leave writes waiting."""

ARN = re.compile(r"arn:aws[a-z-]*:states:[a-z0-9-]+:\d{12}:execution:[^:]+:(?P<name>[^:]+)")
UNFINISHED = ("RUNNING", "PENDING_REDRIVE")
STATUSES = {"BudgetSpent": BUDGET_SPENT, "KeysMissing": KEYS_MISSING}
"""Exit statuses of failed executions, by their errors."""

LOCAL_POLL_SECONDS = 0.2
POLL_SECONDS = 5.0
LONGEST_POLL_SECONDS = 60.0
POLLS_OF_A_WAIT = 60
"""A look costs a list of the run's commits: after five minutes, it is taken less often."""

LOOKS_AT_ONCE = 8
MOST_OF_TABLE_NAME = 50

WORDS = {
    ENUMERATE_KEYS: ("planning", "reading", "reading", "key"),
    "RekeyBackfill": ("planning", "copying", "copying", "item"),
    "RekeyVerify": (
        "planning; within 12 s of a copy it waits until nothing of that is under way",
        "comparing",
        "looking at what differs",
        "item",
    ),
}
"""Of the state machines whose runs are in the bucket: what they are doing before a run is planned,
while it reads, and when everything is read; and the noun for what they count.
"""

FIRSTS = ("keys", "digests")
"""The names of runs that are made first, for another one (Task.first)."""

Beside = Callable[[], tuple[str, Sequence[str]]]
"""Returns more to show of an execution: its kind (another kind is shown at once), and parts."""


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution, as DescribeExecution describes it.

    Attributes:
        given: Its input, parsed; None if that is not JSON.
        output: Its output, parsed; None if there is none.
        error: The error of a failed execution, otherwise "".
        cause: The cause of that error, otherwise "".
        redrivable: Whether it can be redriven.
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
    def of(cls, description: Mapping[str, Any]) -> "Execution":
        return cls(
            arn=description["executionArn"],
            status=description["status"],
            started=description["startDate"],
            ended=description.get("stopDate"),
            given=_parsed(description.get("input")),
            output=_parsed(description.get("output")),
            error=description.get("error") or "",
            cause=description.get("cause") or "",
            redrivable=description.get("redriveStatus") == "REDRIVABLE",
        )

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    @property
    def machine(self) -> str:
        """The physical name of its state machine."""
        return self.arn.rsplit(":", 2)[1]

    @property
    def kind(self) -> str:
        """The name of its state machine in MACHINES."""
        return self.machine.rpartition("-")[2]

    @property
    def table(self) -> str:
        """The table; of a re-key, the destination."""
        if not isinstance(self.given, Mapping):
            return ""
        return str(self.given.get("table") or self.given.get("rekey") or "")

    @property
    def run(self) -> str:
        """The run that it works on, by its output or its input; otherwise its name."""
        for values, name in ((self.output, "run"), (self.given, "resume")):
            if isinstance(values, Mapping) and isinstance(values.get(name), str):
                return str(values[name])
        return self.name

    @property
    def is_over(self) -> bool:
        return self.status not in UNFINISHED

    @property
    def has_succeeded(self) -> bool:
        return self.status == "SUCCEEDED"

    @property
    def exit_status(self) -> int:
        """The exit status of a command that has waited for its end."""
        return DONE if self.has_succeeded else STATUSES.get(self.error, FAILED)

    @property
    def seconds(self) -> float:
        """The duration until its end, or until now."""
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Executions:
    """The executions of one state machine, by Step Functions' client. Methods raise KeyhopError."""

    states: Any
    machine: str
    endpoint: Endpoint = field(default_factory=Endpoint)

    def arn(self, name: str) -> str:
        """Return the ARN of the execution of this name."""
        return f"{self.machine.replace(':stateMachine:', ':execution:')}:{name}"

    def start(self, values: Any, name: str | None = None) -> str:
        """Start one with an input; return its ARN. Raise RunConflict if the name is taken."""
        named = {"name": name} if name else {}
        with explaining(self.endpoint):
            try:
                started = self.states.start_execution(
                    stateMachineArn=self.machine, input=json.dumps(values), **named
                )
            except ClientError as error:
                if error_code(error) != "ExecutionAlreadyExists":
                    raise
                raise RunConflict(
                    f"There is a run named {name!r} already: see keyhop runs show {name}; start "
                    f"with another --name, or go on with it by --resume {name}."
                ) from error
        return str(started["executionArn"])

    def look(self, execution: str) -> Execution | None:
        """Describe an execution by its ARN; return None if it does not exist."""
        with explaining(self.endpoint):
            try:
                return Execution.of(self.states.describe_execution(executionArn=execution))
            except ClientError as error:
                if error_code(error) not in ("ExecutionDoesNotExist", "InvalidArn"):
                    raise
                return None

    def stop(self, execution: Execution) -> Execution:
        """Stop an execution, and describe it.

        Raises:
            RunConflict: It had ended before, or a stop could leave writes waiting.
        """
        if execution.kind in NOT_STOPPED:
            raise RunConflict(
                f"The run {execution.name!r} changes which table serves, and a stop could leave "
                f"writes waiting: abort a cutover with keyhop rekey rollback, and a rollback with "
                f"keyhop rekey cutover."
            )
        if not execution.is_over:
            with explaining(self.endpoint):
                self.states.stop_execution(executionArn=execution.arn)
            if (stopped := self.look(execution.arn)) and stopped.status == "ABORTED":
                return stopped
        raise RunConflict(
            f"The run {execution.name!r} has ended already, so it cannot be stopped: see keyhop "
            f"runs show {execution.name}."
        )

    def latest(self, maximum: int) -> list[Execution]:
        """Return the latest ones, the last started first."""
        with explaining(self.endpoint), ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
            page = self.states.list_executions(stateMachineArn=self.machine, maxResults=maximum)
            arns = [execution["executionArn"] for execution in page["executions"]]
            return [execution for execution in pool.map(self.look, arns) if execution is not None]

    def follow(
        self,
        execution: str,
        look: Callable[[Execution], None] = lambda execution: None,
        wait: Callable[[float], object] = time.sleep,
    ) -> Execution:
        """Wait until an execution has ended; `look` is called at each poll, and can raise."""
        is_local = urlsplit(self.states.meta.endpoint_url).hostname == "127.0.0.1"
        shortest = LOCAL_POLL_SECONDS if is_local else POLL_SECONDS
        waited = 0.0
        while True:
            current = self.look(execution)
            if current is None:
                raise CannotStart(f"There is no execution {execution}.")
            if current.is_over:
                return current
            look(current)
            pause = min(max(shortest, waited / POLLS_OF_A_WAIT), LONGEST_POLL_SECONDS)
            wait(pause)
            waited += pause


@dataclass(frozen=True)
class Stack:
    """A deployment; `client` makes a client by service."""

    name: str
    outputs: Mapping[str, str]
    client: Callable[[str], Any]
    endpoint: Endpoint = field(default_factory=Endpoint)

    @property
    def bucket(self) -> str:
        return self.outputs[BUCKET]

    @property
    def runs(self) -> Runs:
        return Runs(self.client("s3"), self.bucket)

    @property
    def unusual_name(self) -> str:
        """The name that commands need, or "" if that is their default."""
        return "" if self.name == DEFAULT_STACK else self.name

    def executions(self, machine: str = ENUMERATE_KEYS) -> Executions:
        """Return those of one of MACHINES that is deployed."""
        arn = self.outputs[MACHINES[machine]]
        return Executions(self.client("stepfunctions"), arn, self.endpoint)

    def all_executions(self) -> Iterator[Executions]:
        """Return those of all state machines, of EnumerateKeys first."""
        for machine, output in MACHINES.items():
            if output in self.outputs:
                yield self.executions(machine)

    def find(self, run: str) -> tuple[Executions, Execution]:
        """Return an execution by its name or ARN; raise CannotStart."""
        arn = ARN.fullmatch(run)
        if arn is None and not RUN_ID.fullmatch(run):
            raise CannotStart(f"{run!r} is not the name of a run: see keyhop runs list.")
        for executions in self.all_executions():
            if arn is not None and not run.startswith(f"{executions.arn('')}"):
                continue
            if execution := executions.look(run if arn else executions.arn(run)):
                return executions, execution
        raise CannotStart(
            f"Stack {self.name!r} has no run {run!r}: see keyhop runs list. Step Functions forgets "
            f"an execution 90 days after its end."
        )

    def come_back(self, arn: str) -> str:
        """Return the command that shows an execution."""
        return self._command("show", arn, " --follow")

    def _command(self, action: str, arn: str, flags: str = "") -> str:
        where = f" --stack {self.name}" if self.unusual_name else ""
        return f"keyhop runs {action} {arn.rpartition(':')[2]}{flags}{where}"

    def put_out_start(self, options: Options, arn: str, run: str = "") -> None:
        """Print the name of an execution that has started; `run` is that of its run."""
        name = arn.rpartition(":")[2]
        put_out(options.format, {"run": run or name, "execution": arn}, lambda: name)
        sys.stdout.flush()
        if not options.quiet:
            print(f"keyhop: Started. To follow it: {self.come_back(arn)}", file=sys.stderr)

    def follow(
        self,
        executions: Executions,
        arn: str,
        quiet: bool = False,
        wait: Callable[[float], object] = time.sleep,
        beside: Beside = lambda: ("", ()),
    ) -> Execution | None:
        """Show the progress of an execution until it ends; None if Ctrl-C has ended the showing.

        Raises:
            KeyhopError: For example, the network is gone. The execution goes on all the same.
        """
        progress = _Progress(self, beside)
        try:
            with StatusLine(quiet) as status:
                return executions.follow(arn, lambda current: progress.show(current, status), wait)
        except KeyboardInterrupt:
            machine = arn.rsplit(":", 2)[1].rpartition("-")[2]
            stop = f". To stop it: {self._command('stop', arn)}" * (machine not in NOT_STOPPED)
            print(
                f"keyhop: The run goes on without you. To come back: {self.come_back(arn)}{stop}",
                file=sys.stderr,
            )
            return None
        except KeyhopError as error:
            raise type(error)(f"{error} The run goes on: {self.come_back(arn)}") from error


def find_stack(name: str, endpoint: Endpoint) -> Stack:
    """Return the stack of this name.

    Raises:
        CannotStart: The stack does not exist, or is not a deployment of Keyhop.
    """
    return Stack(name, *find_outputs(name, endpoint), endpoint)


def new_name(table: str) -> str:
    """Return a name for a new run of this table."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{table_name(table)[:MOST_OF_TABLE_NAME]}-{moment}-{uuid.uuid4().hex[:4]}"


@dataclass(slots=True)
class WatchedRun:
    """A run of a deployment, looked at again and again, or the run that is made first for it.

    Attributes:
        plan: The plan, once there is one.
        totals: The sum of the commits that were read.
    """

    runs: Runs
    run: str
    plan: RunPlan | None = None
    totals: Totals | None = None
    _journal: Journal = field(init=False)
    _seen: set[str] = field(default_factory=set)

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
            self._journal, self.plan, self.totals = journal, plan, Totals.of(plan, ())
            self._seen.clear()
        return plan is not None

    def _commit(self, name: str) -> Commit | None:
        numbers = COMMIT_NAME.fullmatch(name)
        if numbers is None:
            return None
        return self._journal.commit_of(int(numbers["group"]), int(numbers["slice"]))


class _Progress:
    """The progress of an execution, and of its run if that is in the bucket.

    Errors of a look are ignored: the execution does not depend on this process.
    """

    def __init__(self, stack: Stack, beside: Beside) -> None:
        self._stack = stack
        self._beside = beside
        self._run: WatchedRun | None = None
        self._before = 0.0, 0, 0.0  # Read units, segments and seconds of an earlier execution.

    def show(self, current: Execution, status: StatusLine) -> None:
        kind: str = ""
        more: Sequence[str] = ()
        with suppress(KeyhopError):
            kind, more = self._beside()
        if current.kind in WORDS:
            self._show_run(current, status, more)
        else:
            status.now(kind or current.status, more or f"{current.kind}: at work")

    def _show_run(self, current: Execution, status: StatusLine, more: Sequence[str]) -> None:
        planning, reading, ending, what = WORDS[current.kind]
        is_first = self._run is None
        self._run = run = self._run or WatchedRun(self._stack.runs, current.run)
        totals = None
        with suppress(KeyhopError):
            totals = run.look()
        if totals is None or run.plan is None:
            status.now("planning", planning, 0.0)
            return
        units, ended = totals.usage.read_units, totals.ended
        if is_first and current.run != current.name:  # what an earlier execution has done
            self._before = units, ended, current.seconds
        units_before, ended_before, seconds_before = self._before
        elapsed = max(1.0, current.seconds - seconds_before)
        segments, gained = run.plan.segments, ended - ended_before
        parts = progress_text(
            max(totals.keys, totals.counts.total()),
            units,
            (units - units_before) / elapsed,
            (ended, segments),
            elapsed * (segments - ended) / gained if gained > 0 else None,
            totals.usage.throttles.total(),
            state=reading if ended < segments else ending,
            writes=totals.usage.write_units,
            write_rate=totals.usage.write_units / elapsed,
            what=what,
        )
        status.now("", [*parts[:2], *more, *parts[2:]], ended / segments)
