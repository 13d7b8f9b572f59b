"""The suite for a real account (tests/live), on the laptop cloud: all of its ways, as a user's."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.cloud import CACHES, Cloud, laptop_cloud
from local.stream_bridge import bridge_for
from testing.servers import ROOT, local_client
from tests.e2e.conftest import Deployed
from tests.infra.recorded import LIVE_PREFIX
from tests.live.catalogue import CHECKS
from tests.live.fixtures import COMMON, enumerated, fixtures
from tests.live.ways import LAPTOP

QUICK = {**CACHES, "CDK_VALIDATION": "false"}


@dataclass(frozen=True)
class Account:
    """A laptop cloud as the suite's account. bucket: of the stack that is there before."""

    cloud: Cloud
    machine: str = ""
    bucket: str = ""

    def command(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """What starts the suite, for subprocess; with nothing of a real account."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {
            "args": [sys.executable, "-m", "tests.live.run", *arguments],
            "cwd": ROOT,
            "env": {**clean, **QUICK, **self.cloud.exports, **environment},
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
        }

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """The suite's exit status, and what it said."""
        done = subprocess.run(**self.command(*arguments, **environment), check=False)
        return done.returncode, done.stdout

    @property
    def dynamodb(self) -> Any:
        return local_client(self.cloud.dynamodb)

    @property
    def tables(self) -> set[str]:
        return {name for name in self.dynamodb.list_tables()["TableNames"] if "live-" in name}

    @property
    def objects(self) -> list[str]:
        """Those of the suite's own runs."""
        began = {"Bucket": self.bucket, "Prefix": f"runs/{COMMON}"}
        listed = self.cloud.client("s3").list_objects_v2(**began)
        return [entry["Key"] for entry in listed.get("Contents", ())]

    @property
    def statuses(self) -> set[str]:
        """Of the executions of the suite's own."""
        told = self.cloud.client("stepfunctions").list_executions(stateMachineArn=self.machine)
        return {one["status"] for one in told["executions"] if one["name"].startswith(COMMON)}

    @property
    def stacks(self) -> set[str]:
        """Those that are there."""
        told = self.cloud.client("cloudformation").describe_stacks()["Stacks"]
        return {one["StackName"] for one in told if one["StackStatus"] != "DELETE_COMPLETE"}


@pytest.fixture
def account(deployed: Deployed) -> Account:
    """With the stack of the other tests."""
    return Account(deployed.cloud, deployed.executions.state_machine, deployed.executions.bucket)


@pytest.fixture(scope="module")
def empty_account() -> Iterator[Account]:
    """With nothing but what `cdk bootstrap` makes, and the stream bridge."""
    with laptop_cloud() as cloud:
        cloud.bootstrap()
        with bridge_for(cloud).running():
            yield Account(cloud)


def names_in(said: str, word: str) -> set[str]:
    """The checks of which the suite says that."""
    return set(re.findall(rf"^  {word} +([a-z-]+)(?: \[|:)", said, re.MULTILINE))


NOT_ON_A_LAPTOP = {name for name, check in CHECKS.items() if check.needs in LAPTOP.lacks}


@pytest.mark.timeout(1500)
def test_all_checks_pass_and_nothing_stays(empty_account: Account) -> None:
    """With a stack of its own; each check is made, or skipped by name for what a laptop lacks."""
    account = empty_account
    status, said = account.run("--yes", TABLE_PREFIX=LIVE_PREFIX)
    assert status == 0, said
    assert "FAILED" not in said.replace("status FAILED", "")
    assert names_in(said, "skipped") == NOT_ON_A_LAPTOP
    assert names_in(said, "ok") == CHECKS.keys() - NOT_ON_A_LAPTOP
    before, after = said.split("Making and loading the tables", 1)
    assert "account   000000000000, region us-east-1" in before
    assert "in all, at most" in before
    assert "2026-08" in before
    assert "All tables and objects that it made are removed." in after
    assert account.tables == set()
    assert account.stacks == {"CDKToolkit"}


INTERRUPTED: dict[str, dict[str, str]] = {
    "Making and loading": {},
    "npx cdk deploy": {"ONLY": "run"},
    "ok      run [": {"STACK_NAME": "Keyhop", "ONLY": "run"},
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("at", sorted(INTERRUPTED))
def test_an_interruption_cleans_up_and_a_second_one_does_not_hinder_it(
    request: pytest.FixtureRequest, at: str
) -> None:
    has_stack = "STACK_NAME" in INTERRUPTED[at]
    account = request.getfixturevalue("account" if has_stack else "empty_account")
    before = account.stacks
    command = account.command("--yes", TABLE_PREFIX=LIVE_PREFIX, **INTERRUPTED[at])
    with subprocess.Popen(**command) as suite:
        said = _until(suite, lambda line: at in line)
        suite.send_signal(signal.SIGINT)
        said += _until(suite, lambda line: "Cleaning up" in line)
        suite.send_signal(signal.SIGINT)
        said += _until(suite, lambda line: False)
    assert suite.returncode == 130, said
    assert "All tables and objects that it made are removed." in said
    assert account.tables == set()
    assert account.stacks == before
    if has_stack:
        assert account.objects == []
        assert "RUNNING" not in account.statuses


@pytest.mark.timeout(900)
def test_a_failure_cleans_up(empty_account: Account) -> None:
    """The deployment takes no address of DynamoDB that has a path."""
    account = empty_account
    there = f"{account.cloud.dynamodb}/elsewhere"
    status, said = account.run(
        "--yes", TABLE_PREFIX=LIVE_PREFIX, ONLY="run", AWS_ENDPOINT_URL_DYNAMODB=there
    )
    assert status == 1, said
    assert "The suite could not go on: cdk deploy ended with 1" in said
    assert "dynamodbEndpoint" in said
    assert "All tables and objects that it made are removed." in said
    assert account.tables == set()
    assert account.stacks == {"CDKToolkit"}


def _until(suite: "subprocess.Popen[str]", is_it: Callable[[str], bool]) -> str:
    """What the suite says up to a line, or to its end."""
    assert suite.stdout is not None
    said = ""
    for line in suite.stdout:
        said += line
        if is_it(line):
            break
    return said


def test_without_consent_nothing_is_made(account: Account) -> None:
    status, said = account.run(TABLE_PREFIX=LIVE_PREFIX, WITHOUT_STACK="1")
    assert status == 2
    assert "in all, at most" in said
    assert "Nothing was done." in said
    assert account.tables == set()


def test_a_table_that_is_there_already_is_not_touched(account: Account) -> None:
    name = fixtures(LIVE_PREFIX)[3].name
    account.dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    try:
        status, said = account.run("--yes", "--without-stack", TABLE_PREFIX=LIVE_PREFIX)
        assert status == 2
        assert f"There are tables already that this suite would make: {name}." in said
        assert account.tables == {name}
    finally:
        account.dynamodb.delete_table(TableName=name)


def test_tables_that_are_not_allowed_are_told_with_the_command_to_deploy(account: Account) -> None:
    status, said = account.run("--yes", TABLE_PREFIX="live-others-", STACK_NAME="Keyhop")
    assert status == 2
    allowed, missing = (
        ",".join(table.name for table in enumerated(fixtures(prefix)))
        for prefix in (LIVE_PREFIX, "live-others-")
    )
    assert re.search(rf"npx cdk deploy -c tables=[\w,]+,{allowed},{missing}\n", said)
    assert account.tables == set()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ONLY": "run,atena"}, ["ONLY has atena; the checks are hop,"]),
        ({"STACK_NAME": "Nobodys"}, ["There is no stack Nobodys.", "WITHOUT_STACK=1"]),
        # The tables would be made where the state machine does not look for them.
        ({"STATE_MACHINE_ARN": "the account's", "AWS_DEFAULT_REGION": "eu-west-1"}, []),
        (  # Its tables would be made in a real account.
            {"AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.us-east-1.amazonaws.com"},
            ["Some endpoints are on this machine and some are not"],
        ),
        *(
            ({"TABLE_PREFIX": prefix}, ["TABLE_PREFIX is"])
            for prefix in ("", " ", "a b-", "-a", "../", "\u00e4-", "x" * 41, "a;ls")
        ),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(
    account: Account, given: dict[str, str], told: list[str]
) -> None:
    if "STATE_MACHINE_ARN" in given:
        given = {**given, "STATE_MACHINE_ARN": account.machine}
    status, said = account.run("--yes", **{"TABLE_PREFIX": LIVE_PREFIX, **given})
    assert status == 2
    assert said
    assert [text for text in told if text not in said] == []
    assert account.tables == set()
