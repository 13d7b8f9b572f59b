"""The suite for a real account: `python -m tests.live.run`, or `make live TABLE_PREFIX=mine-`.

It makes tables of its own, asks the service what Keyhop relies on, deploys a stack of its own
(KeyhopLive, with logLevel ERROR), runs `keyhop keys`, the state machines and the functions on them,
deploys a stack with another state machine and one in a VPC, destroys all three, deploys the first
again, and removes everything in the end, also after Ctrl-C and after a failure: only what it made,
by tag and identity. It says first what it will do and what that costs, and asks. The checks have
names, which docs/internals/claims.md uses. Settings come from the environment, or as flags:

  TABLE_PREFIX=mine-     begins the names of its tables; required, except with DRY_RUN
  DRY_RUN=1              list each check with its cost; needs no account, and sends no request
  REMOVE=1a2b3c4d        only remove what a start that was killed has left, by its id
  YES=1                  do not ask
  ONLY=athena,run        make these checks only, by name
  WITHOUT_STACK=1        deploy nothing: the service and the command only
  STACK_NAME=Keyhop      deploy nothing, and run the state machine EnumerateKeys of this stack
  STATE_MACHINE_ARN=...  or this very one

Account and region are those of the AWS configuration (AWS_PROFILE, AWS_REGION). With a stack of its
own it needs what `npx cdk deploy` needs, in an account where `npx cdk bootstrap` was done, and to
read and delete what it deploys: take an account for trials, and a role of an administrator. Without
it needs dynamodb: CreateTable, TagResource, ListTagsOfResource, DescribeTable, DeleteTable,
BatchWriteItem, Scan on its tables; sts:GetCallerIdentity; for a state machine that is there
cloudformation:DescribeStacks, lambda:GetFunctionConfiguration, states: DescribeStateMachine,
StartExecution, DescribeExecution, StopExecution, RedriveExecution, and s3: ListBucket, GetObject,
DeleteObject on the results.

Exit status: 0 all passed; 1 a check failed, or something could not be removed; 2 not begun;
130 interrupted. Nothing here is a pytest test, so `make test` never runs it against an account; it
runs it against the laptop cloud (tests/e2e/test_live_suite.py).
"""

import argparse
import os
import re
import signal
import sys
import uuid
from collections.abc import Callable, Sequence
from types import FrameType

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from keyhop.errors import KeyhopError

from testing.servers import LOCAL_CREDENTIALS
from tests.live.catalogue import CHECKS
from tests.live.deployed import DEFAULT_STACK, find
from tests.live.fixtures import COMMON, OfOwnStack, fixtures
from tests.live.leftovers import Leftovers
from tests.live.report import Differs, Refused, Report, say
from tests.live.stack import STACKS, OwnStack
from tests.live.suite import Suite
from tests.live.ways import AWS, Ways, ways_of
from tests.live.work import Work
from tests.live.workshop import Workshop

PASSED, FAILED, NOT_BEGUN, INTERRUPTED = 0, 1, 2, 130
PREFIX = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,39}")
ANY_PREFIX = "mine-"
"""The prefix of the table names in a dry run without TABLE_PREFIX."""
ANY_REGION = "us-east-1"
ID = re.compile(r"[0-9a-f]{8}")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """A signal handler. Only the first signal interrupts the suite, and never its clean-up."""

    def __init__(self) -> None:
        self.may_interrupt = True
        for number in SIGNALS:
            signal.signal(number, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.may_interrupt:
            say("  cleaning up, which must not be interrupted ...")
            return
        self.may_interrupt = False
        raise KeyboardInterrupt


def work(suite: Suite, report: Report, interruptions: Interruptions) -> list[str]:
    """Make the checks and clean up; return what could not be removed."""
    work = Work(suite, report)
    try:
        try:
            work.do()
        finally:
            interruptions.may_interrupt = False
    finally:
        failures = work.clean_up()
    return failures


def dry_run(options: argparse.Namespace) -> Suite:
    """Return a start that sends no request and needs neither an account nor a region."""
    # With these credentials boto3 does not look for others, not even in EC2's metadata service.
    settings = {
        **LOCAL_CREDENTIALS,
        "region_name": boto3.session.Session().region_name or ANY_REGION,
    }
    client = boto3.client("dynamodb", **settings)
    prefix, has_own_stack = options.prefix, not options.without_stack
    tables, ways = fixtures(prefix), _ways(**settings)
    return Suite("(none yet)", "(not asked)", client, prefix, tables, None, has_own_stack, ways)


def _ways(**settings: str) -> Ways:
    services = ("dynamodb", "sts", "stepfunctions", "s3", "lambda", "cloudformation")
    return ways_of(boto3.client(name, **settings).meta.endpoint_url for name in services)


def prepare(options: argparse.Namespace) -> Suite:
    """Check the settings and the account without creating anything; raise Refused."""
    if options.dry_run and not options.prefix:
        options.prefix = ANY_PREFIX
    if not PREFIX.fullmatch(options.prefix):
        raise Refused(
            f"TABLE_PREFIX is {options.prefix!r}; it must be 1 to 40 of a-z A-Z 0-9 _ . - with a "
            f"letter or digit first: the tables will be called TABLE_PREFIX{COMMON}..."
        )
    if unknown := names_in(options.only) - CHECKS.keys():
        raise Refused(f"ONLY has {', '.join(sorted(unknown))}; the checks are {', '.join(CHECKS)}.")
    uses_deployment = bool(options.state_machine_arn or options.stack_name)
    if options.dry_run and not uses_deployment:
        return dry_run(options)
    try:
        client = boto3.client(
            "dynamodb", config=Config(retries={"mode": "standard", "total_max_attempts": 10})
        )
    except NoRegionError as error:
        raise Refused("No AWS region is set: set AWS_REGION, or AWS_PROFILE.") from error
    if (region := os.environ.get("AWS_REGION", client.meta.region_name)) != client.meta.region_name:
        raise Refused(
            f"AWS_REGION is {region}, where the stack would be, and AWS_DEFAULT_REGION is "
            f"{client.meta.region_name}, where the tables would be: set them to the same."
        )
    ways = _ways()
    account = boto3.client("sts").get_caller_identity()["Account"]
    tables = fixtures(options.prefix)
    deployed = None
    has_own_stack = not (options.without_stack or uses_deployment)
    if uses_deployment and not options.without_stack:
        deployed = find(options.state_machine_arn, options.stack_name or DEFAULT_STACK)
        deployed.check(tables, client.meta.region_name, account)
    names = [table.name for table in tables]
    if has_own_stack and not options.dry_run:
        for stack in STACKS:
            OwnStack("", ways, {}, name=stack).refuse_existing()
    if has_own_stack:
        stack_tables = OfOwnStack.of(options.prefix, "a key")
        names += [*(table.name for table in stack_tables.made(False)), *stack_tables.made_by_rekey]
    if not options.dry_run:
        Workshop(client, "", ways).refuse_existing(names)
    may_expire = has_own_stack and ways is AWS and _may_expire()
    settings = (account, client, options.prefix, tables, deployed, has_own_stack, ways, may_expire)
    return Suite(uuid.uuid4().hex[:8], *settings)


def _may_expire() -> bool:
    """Return whether the credentials are temporary and cannot be renewed here."""
    credentials = boto3.session.Session().get_credentials()
    is_fixed = credentials is not None and not hasattr(credentials, "refresh_needed")
    return is_fixed and bool(credentials.token)


def names_in(text: str) -> set[str]:
    """Return the names in a list with commas."""
    return {name for name in text.replace(" ", "").split(",") if name}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the flags; the environment variables are their defaults."""
    env = os.environ.get
    parser = argparse.ArgumentParser(
        prog="python -m tests.live.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--prefix", default=env("TABLE_PREFIX", ""), metavar="TABLE_PREFIX")
    parser.add_argument("--stack-name", default=env("STACK_NAME"))
    parser.add_argument("--state-machine-arn", default=env("STATE_MACHINE_ARN"))
    parser.add_argument("--without-stack", action="store_true", default=bool(env("WITHOUT_STACK")))
    parser.add_argument("--only", default=env("ONLY", ""), metavar="NAME,NAME")
    parser.add_argument("--dry-run", action="store_true", default=env("DRY_RUN") == "1")
    parser.add_argument("--remove", default=env("REMOVE"), metavar="ID")
    parser.add_argument("--yes", action="store_true", default=env("YES") == "1")
    return parser.parse_args(arguments)


def consents(ask: Callable[[str], str] = input) -> bool:
    """Return whether the user types yes. The end of the input and Ctrl-C both mean no."""
    try:
        return ask("Go on? Type yes: ").strip().lower() == "yes"
    except (EOFError, KeyboardInterrupt):
        return False


def remove(options: argparse.Namespace) -> int:
    """Remove what a start that could not clean up has left; return the exit status."""
    try:
        if not ID.fullmatch(options.remove):
            raise Refused(f"REMOVE is {options.remove!r}; it must be the id that a start has said.")
        leftovers = Leftovers(options.remove, _ways())
        say(leftovers.announcement())
    except (Refused, BotoCoreError, ClientError) as error:
        print(error, file=sys.stderr)
        return NOT_BEGUN
    if not options.yes and not consents():
        print("Nothing was done.", file=sys.stderr)
        return NOT_BEGUN
    try:
        failures = leftovers.remove()
    except KeyboardInterrupt:
        print("Interrupted: start it again, to remove the rest.", file=sys.stderr)
        return INTERRUPTED
    if failures:
        say("NOT REMOVED:" + "".join(f"\n  {failure}" for failure in failures))
    else:
        say("Everything is removed.")
    return FAILED if failures else PASSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the whole suite; return the exit status."""
    options = parse(arguments)
    if "AWS_REGION" in os.environ:
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])  # boto3's name for it
    if options.remove:
        return remove(options)
    try:
        suite = prepare(options)
    except (Refused, BotoCoreError, ClientError) as error:
        print(error, file=sys.stderr)
        return NOT_BEGUN
    say(suite.announcement())
    if options.dry_run:
        say(suite.checks())
        return PASSED
    if not options.yes and not consents():
        print("Nothing was done.", file=sys.stderr)
        return NOT_BEGUN
    report = Report(suite.ways.lacks, only=names_in(options.only))
    interruptions = Interruptions()
    try:
        failures = work(suite, report, interruptions)
        status = FAILED if report.failed or failures else PASSED
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        status = INTERRUPTED
    except (Differs, Refused, BotoCoreError, ClientError, KeyhopError) as error:
        print(f"The suite could not go on: {error}", file=sys.stderr)
        status = FAILED
    else:
        say(report.summary())
    if report.made:
        say(report.table(suite.region, suite.costs))
    return status


if __name__ == "__main__":
    sys.exit(main())
