"""The suite for a real account (tests/live), on the laptop cloud: all of its ways, as a user's."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from local.cloud import Cloud
from testing.servers import ROOT, local_client
from tests.e2e.conftest import LIVE_PREFIX, Deployed
from tests.live.fixtures import COMMON, enumerated, fixtures


@dataclass(frozen=True)
class Account:
    """The laptop cloud as the suite's account."""

    cloud: Cloud
    machine: str
    bucket: str

    def command(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """What starts the suite, for subprocess; with nothing of a real account."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {
            "args": [sys.executable, "-m", "tests.live.run", *arguments],
            "cwd": ROOT,
            "env": {**clean, **self.cloud.exports, **environment},
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
    def executions(self) -> list[dict[str, Any]]:
        told = self.cloud.client("stepfunctions").list_executions(stateMachineArn=self.machine)
        return [one for one in told["executions"] if one["name"].startswith(COMMON)]


@pytest.fixture
def account(deployed: Deployed) -> Account:
    return Account(deployed.cloud, deployed.executions.state_machine, deployed.executions.bucket)


@pytest.mark.prove
def test_all_checks_pass_and_nothing_stays(account: Account) -> None:
    status, said = account.run("--yes", TABLE_PREFIX=LIVE_PREFIX)
    assert status == 0, said
    assert said.count("\n  ok ") > 80
    assert "FAILED" not in said.replace("status FAILED", "")
    before, after = said.split("Making and loading the tables", 1)
    assert "account   000000000000, region us-east-1" in before
    assert "in all, at most" in before
    assert "2026-08" in before
    first_check = after.split("\n  ok ", 1)[1]
    assert "{last key, greatest sort key} with a Segment" in first_check.splitlines()[0]
    assert "All tables and objects that it made are removed." in after
    assert account.tables == set()
    assert account.objects == []


@pytest.mark.prove
@pytest.mark.parametrize("at", ["Making and loading", "state machine on"])
def test_an_interruption_cleans_up_and_a_second_one_does_not_hinder_it(
    account: Account, at: str
) -> None:
    arguments = () if "Making" not in at else ("--without-stack",)
    command = account.command("--yes", *arguments, TABLE_PREFIX=LIVE_PREFIX)
    with subprocess.Popen(**command) as suite:
        said = _until(suite, lambda line: at in line)
        suite.send_signal(signal.SIGINT)
        said += _until(suite, lambda line: "Cleaning up" in line)
        suite.send_signal(signal.SIGINT)
        said += _until(suite, lambda line: False)
    assert suite.returncode == 130, said
    assert "All tables and objects that it made are removed." in said
    assert account.tables == set()
    assert account.objects == []
    assert "RUNNING" not in {execution["status"] for execution in account.executions}


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
    status, said = account.run(TABLE_PREFIX=LIVE_PREFIX)
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
    status, said = account.run("--yes", TABLE_PREFIX="live-others-")
    assert status == 2
    allowed, missing = (
        ",".join(table.name for table in enumerated(fixtures(prefix)))
        for prefix in (LIVE_PREFIX, "live-others-")
    )
    assert re.search(rf"npx cdk deploy -c tables=[\w,]+,{allowed},{missing}\n", said)
    assert account.tables == set()


def test_a_stack_that_is_not_there_is_told_with_the_command_to_deploy(account: Account) -> None:
    status, said = account.run("--yes", TABLE_PREFIX=LIVE_PREFIX, STACK_NAME="Nobodys")
    assert status == 2
    names = ",".join(table.name for table in enumerated(fixtures(LIVE_PREFIX)))
    assert "There is no stack Nobodys." in said
    assert f"npx cdk deploy -c tables={names} -c stackName=KeyhopLive -c keepResults=false" in said


def test_a_state_machine_of_another_region_is_refused(account: Account) -> None:
    """The tables would be made where the state machine does not look for them."""
    status, said = account.run(
        "--yes",
        TABLE_PREFIX=LIVE_PREFIX,
        STATE_MACHINE_ARN=account.machine,
        AWS_DEFAULT_REGION="eu-west-1",
    )
    assert status == 2
    assert account.tables == set()
    assert said


def test_half_a_laptop_is_refused(account: Account) -> None:
    """Its tables would be made in a real account."""
    there = "https://dynamodb.us-east-1.amazonaws.com"
    status, said = account.run("--yes", TABLE_PREFIX=LIVE_PREFIX, AWS_ENDPOINT_URL_DYNAMODB=there)
    assert status == 2
    assert "Some endpoints are on this machine and some are not" in said


@pytest.mark.parametrize("prefix", ["", " ", "a b-", "-a", "../", "ä-", "x" * 41, "a;ls"])
def test_an_empty_or_unsafe_prefix_is_refused(account: Account, prefix: str) -> None:
    status, said = account.run("--yes", TABLE_PREFIX=prefix)
    assert status == 2
    assert "TABLE_PREFIX is" in said
