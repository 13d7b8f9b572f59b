"""The suite for a real account: `python -m tests.live.run`, or `make live TABLE_PREFIX=mine-`.

It makes small tables of its own, asks the service what Keyhop relies on, runs `keyhop keys` and the
deployed state machine on them, and removes everything in the end, also after Ctrl-C. It says first
what it will do and what that costs, and asks. Settings come from the environment, or as flags:

  TABLE_PREFIX=mine-     begins the names of its tables; required
  STACK_NAME=Keyhop      the stack whose state machine is run
  STATE_MACHINE_ARN=...  or the state machine itself
  WITHOUT_STACK=1        leave the state machine out
  YES=1                  do not ask

Account and region are those of the AWS configuration (AWS_PROFILE, AWS_REGION). It needs
dynamodb: CreateTable, TagResource, ListTagsOfResource, DescribeTable, DeleteTable, BatchWriteItem,
Scan on its tables; sts:GetCallerIdentity; for the state machine cloudformation:DescribeStacks,
lambda:GetFunctionConfiguration, states: DescribeStateMachine, StartExecution, DescribeExecution,
StopExecution, RedriveExecution, and s3: ListBucket, GetObject, DeleteObject on the results.

Exit status: 0 all passed; 1 a check failed, or something could not be removed; 2 not begun;
130 interrupted. Nothing here is a pytest test, so `make test` never runs it against an account; it
runs it against the laptop cloud (tests/e2e/test_live_suite.py).
"""

import argparse
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from keyhop.dynamodb.capacity import read_dollars

from tests.live.command import check_command
from tests.live.cost import DOLLARS_PER_WRITE_UNIT, Expected, expected
from tests.live.deployed import DEFAULT_STACK, Deployed, find
from tests.live.fixtures import COMMON, Fixture, enumerated, fixtures
from tests.live.report import Refused, Report, say
from tests.live.runs import Runs, check_runs
from tests.live.service import check_service
from tests.live.ways import Ways, ways_of
from tests.live.workshop import TAG, Workshop

PASSED, FAILED, NOT_BEGUN, INTERRUPTED = 0, 1, 2, 130
PREFIX = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,39}")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """The first signal interrupts; later ones, and any during the clean-up, are only answered."""

    def __init__(self) -> None:
        self.may_interrupt = True
        for number in SIGNALS:
            signal.signal(number, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if not self.may_interrupt:
            say("  cleaning up, which must not be interrupted ...")
            return
        self.may_interrupt = False
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Suite:
    """One start of the suite, with all that was found out before anything is made."""

    id: str
    account: str
    client: Any
    tables: list[Fixture]
    deployed: Deployed | None
    ways: Ways

    @property
    def region(self) -> str:
        """Where the tables are made."""
        return str(self.client.meta.region_name)

    @property
    def expected(self) -> Expected:
        """What it will cost."""
        return expected(self.tables, self.deployed.worker if self.deployed else None)

    def announcement(self) -> str:
        """What it will do, where, and for how much."""
        names = "".join(f"\n    {table.name}" for table in self.tables)
        machine = self.deployed.arn if self.deployed else "left out"
        bucket = f"\n    results in {self.deployed.bucket}" if self.deployed else ""
        return (
            f"The live suite of Keyhop, start {self.id}, on {self.ways.where}\n"
            f"  account   {self.account}, region {self.region}\n"
            f"  tables    {len(self.tables)}, made, tagged {TAG}={self.id}, and deleted:{names}\n"
            f"  machine   {machine}{bucket}\n"
            f"{self.expected.text()}\n"
            f"  It takes a few minutes. No other table is touched; what the runs write to the "
            f"bucket is deleted."
        )

    def run(self, report: Report, interruptions: Interruptions) -> list[str]:
        """Everything, and the clean-up; returns what could not be removed."""
        workshop = Workshop(self.client, self.id, self.ways)
        runs = Runs(self.deployed, self.id, self.ways) if self.deployed else None
        try:
            try:
                self._work(workshop, runs, report)
            finally:
                interruptions.may_interrupt = False
        finally:
            left = self._clean_up(workshop, runs)
        return left

    def _clean_up(self, workshop: Workshop, runs: Runs | None) -> list[str]:
        say("Cleaning up ...")
        steps: list[Callable[[], list[str]]] = [workshop.remove]
        if runs is not None:
            # Step Functions stops executions, not the functions that are at work for them: those
            # end because the table is gone. Only then nothing is written any more.
            steps = [runs.end, workshop.remove, self._wait_for_functions, runs.delete]
        left: list[str] = []
        for step in steps:
            try:
                left += step()
            except Exception as error:  # whatever it is, the other steps must be taken
                left.append(f"{step.__name__}: {type(error).__name__}: {error}")
        if left:
            say("NOT REMOVED:" + "".join(f"\n  {what}" for what in left))
        else:
            say("All tables and objects that it made are removed.")
        if runs is not None:
            say("Histories of its executions, and logs, go when their retention is over.")
        return left

    def _wait_for_functions(self) -> list[str]:
        time.sleep(self.ways.last_write_seconds)
        return []

    def _work(self, workshop: Workshop, runs: Runs | None, report: Report) -> None:
        say("Making and loading the tables ...")
        workshop.make(self.tables)
        say("What Keyhop relies on")
        read_units = check_service(self.client, self.tables, self.ways, report)
        say("keyhop keys")
        check_command(self.tables, report)
        if runs is not None:
            say("The state machine")
            check_runs(enumerated(self.tables), runs, self.ways, report)
        dollars = (
            sum(table.write_units for table in self.tables) * DOLLARS_PER_WRITE_UNIT
            + read_dollars(workshop.read_units + read_units)
            + (runs.dollars if runs else 0.0)
        )
        say(
            f"It cost about ${dollars:.4f}, the reads of keyhop keys not counted; at most "
            f"${self.expected.dollars:.4f} were expected."
        )


def prepare(options: argparse.Namespace) -> Suite:
    """Find out all that can be without making anything; raises Refused."""
    if not PREFIX.fullmatch(options.prefix):
        raise Refused(
            f"TABLE_PREFIX is {options.prefix!r}; it must be 1 to 40 of a-z A-Z 0-9 _ . - with a "
            f"letter or digit first: the tables will be called TABLE_PREFIX{COMMON}..."
        )
    if "AWS_REGION" in os.environ:
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])  # boto3's name for it
    try:
        client = boto3.client(
            "dynamodb", config=Config(retries={"mode": "standard", "total_max_attempts": 10})
        )
    except NoRegionError as error:
        raise Refused("No AWS region is set: set AWS_REGION, or AWS_PROFILE.") from error
    services = ("sts", "stepfunctions", "s3", "lambda", "cloudformation")
    endpoints = [client.meta.endpoint_url, *(boto3.client(s).meta.endpoint_url for s in services)]
    ways = ways_of(endpoints)
    account = boto3.client("sts").get_caller_identity()["Account"]
    tables = fixtures(options.prefix)
    deployed = None
    if not options.without_stack:
        deployed = find(options.state_machine_arn, options.stack_name, tables)
        deployed.check(tables, client.meta.region_name, account)
    Workshop(client, "", ways).refuse_existing(tables)
    return Suite(uuid.uuid4().hex[:8], account, client, tables, deployed, ways)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Flags, with the environment behind them."""
    env = os.environ.get
    parser = argparse.ArgumentParser(
        prog="python -m tests.live.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--prefix", default=env("TABLE_PREFIX", ""), metavar="TABLE_PREFIX")
    parser.add_argument("--stack-name", default=env("STACK_NAME") or DEFAULT_STACK)
    parser.add_argument("--state-machine-arn", default=env("STATE_MACHINE_ARN"))
    parser.add_argument("--without-stack", action="store_true", default=bool(env("WITHOUT_STACK")))
    parser.add_argument("--yes", action="store_true", default=env("YES") == "1")
    return parser.parse_args(arguments)


def consents(ask: Callable[[str], str] = input) -> bool:
    """Whether the user types yes; no answer is none."""
    try:
        return ask("Go on? Type yes: ").strip().lower() == "yes"
    except EOFError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole suite; returns the exit status."""
    options = parse(arguments)
    try:
        suite = prepare(options)
    except (Refused, BotoCoreError, ClientError) as error:
        print(error, file=sys.stderr)
        return NOT_BEGUN
    say(suite.announcement())
    if not options.yes and not consents():
        print("Nothing was done.", file=sys.stderr)
        return NOT_BEGUN
    report = Report()
    interruptions = Interruptions()
    try:
        left = suite.run(report, interruptions)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except (Refused, BotoCoreError, ClientError) as error:
        print(f"The suite could not go on: {error}", file=sys.stderr)
        return FAILED
    say(report.summary())
    return FAILED if report.failed or left else PASSED


if __name__ == "__main__":
    sys.exit(main())
