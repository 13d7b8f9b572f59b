"""The suite for a real account (tests/live), started on the laptop cloud as a user starts it."""

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
    """A laptop cloud as the suite's account, with the machine and bucket of an existing stack."""

    cloud: Cloud
    machine: str = ""
    bucket: str = ""

    def command(self, *arguments: str, **environment: str) -> dict[str, Any]:
        """Return arguments of subprocess that start the suite, without any real account."""
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
        """Run the suite; return its exit status and its output."""
        process = subprocess.run(**self.command(*arguments, **environment), check=False)
        return process.returncode, process.stdout

    @property
    def dynamodb(self) -> Any:
        return local_client(self.cloud.dynamodb)

    @property
    def tables(self) -> set[str]:
        return {name for name in self.dynamodb.list_tables()["TableNames"] if "live-" in name}

    @property
    def objects(self) -> list[str]:
        """The objects of the suite's runs."""
        s3 = self.cloud.client("s3")
        page = s3.list_objects_v2(Bucket=self.bucket, Prefix=f"runs/{COMMON}")
        return [entry["Key"] for entry in page.get("Contents", ())]

    @property
    def statuses(self) -> set[str]:
        """The statuses of the suite's executions."""
        page = self.cloud.client("stepfunctions").list_executions(stateMachineArn=self.machine)
        return {row["status"] for row in page["executions"] if row["name"].startswith(COMMON)}

    @property
    def stacks(self) -> set[str]:
        """The names of the existing stacks."""
        stacks = self.cloud.client("cloudformation").describe_stacks()["Stacks"]
        return {row["StackName"] for row in stacks if row["StackStatus"] != "DELETE_COMPLETE"}


@pytest.fixture
def account(deployed: Deployed) -> Account:
    """The account with the stack of the other tests."""
    return Account(deployed.cloud, deployed.executions.state_machine, deployed.executions.bucket)


@pytest.fixture(scope="module")
def empty_account() -> Iterator[Account]:
    """An account with the resources of `cdk bootstrap` only, and with the stream bridge."""
    with laptop_cloud() as cloud:
        cloud.bootstrap()
        with bridge_for(cloud).running():
            yield Account(cloud)


def names_in(output: str, result: str) -> set[str]:
    """Return the names of the checks with a result in the suite's output."""
    return set(re.findall(rf"^  {result} +([a-z-]+)(?: \[|:)", output, re.MULTILINE))


NOT_ON_A_LAPTOP = {name for name, check in CHECKS.items() if check.needs in LAPTOP.lacks}


@pytest.mark.timeout(1500)
def test_all_checks_pass_and_nothing_remains(empty_account: Account) -> None:
    """Run the suite with its own stack. It skips only checks that need what a laptop lacks."""
    account = empty_account
    status, output = account.run("--yes", TABLE_PREFIX=LIVE_PREFIX)
    assert status == 0, output
    assert "FAILED" not in output.replace("status FAILED", "")
    assert names_in(output, "skipped") == NOT_ON_A_LAPTOP
    assert names_in(output, "ok") == CHECKS.keys() - NOT_ON_A_LAPTOP
    before, after = output.split("Making and loading the tables", 1)
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
def test_an_interruption_cleans_up_and_a_second_one_is_ignored(
    request: pytest.FixtureRequest, at: str
) -> None:
    has_stack = "STACK_NAME" in INTERRUPTED[at]
    account = request.getfixturevalue("account" if has_stack else "empty_account")
    before = account.stacks
    command = account.command("--yes", TABLE_PREFIX=LIVE_PREFIX, **INTERRUPTED[at])
    with subprocess.Popen(**command) as suite:
        output = _until(suite, lambda line: at in line)
        suite.send_signal(signal.SIGINT)
        output += _until(suite, lambda line: "Cleaning up" in line)
        suite.send_signal(signal.SIGINT)
        output += _until(suite, lambda line: False)
    assert suite.returncode == 130, output
    assert "All tables and objects that it made are removed." in output
    assert account.tables == set()
    assert account.stacks == before
    if has_stack:
        assert account.objects == []
        assert "RUNNING" not in account.statuses


@pytest.mark.timeout(900)
def test_a_failure_cleans_up(empty_account: Account) -> None:
    """Use an address of DynamoDB that has a path, which the deployment refuses."""
    account = empty_account
    url = f"{account.cloud.dynamodb}/elsewhere"
    status, output = account.run(
        "--yes", TABLE_PREFIX=LIVE_PREFIX, ONLY="run", AWS_ENDPOINT_URL_DYNAMODB=url
    )
    assert status == 1, output
    assert "The suite could not go on: cdk deploy ended with 1" in output
    assert "dynamodbEndpoint" in output
    assert "All tables and objects that it made are removed." in output
    assert account.tables == set()
    assert account.stacks == {"CDKToolkit"}


def _until(suite: "subprocess.Popen[str]", is_last: Callable[[str], bool]) -> str:
    """Read the suite's output up to a line, or to its end."""
    assert suite.stdout is not None
    output = ""
    for line in suite.stdout:
        output += line
        if is_last(line):
            break
    return output


def test_without_consent_nothing_is_created(account: Account) -> None:
    status, output = account.run(TABLE_PREFIX=LIVE_PREFIX, WITHOUT_STACK="1")
    assert status == 2
    assert "in all, at most" in output
    assert "Nothing was done." in output
    assert account.tables == set()


def test_an_existing_table_is_not_changed(account: Account) -> None:
    name = fixtures(LIVE_PREFIX)[3].name
    account.dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    try:
        status, output = account.run("--yes", "--without-stack", TABLE_PREFIX=LIVE_PREFIX)
        assert status == 2
        assert f"There are tables already that this suite would make: {name}." in output
        assert account.tables == {name}
    finally:
        account.dynamodb.delete_table(TableName=name)


def test_missing_tables_are_reported_with_the_command_that_allows_them(account: Account) -> None:
    status, output = account.run("--yes", TABLE_PREFIX="live-others-", STACK_NAME="Keyhop")
    assert status == 2
    allowed, missing = (
        ",".join(table.name for table in enumerated(fixtures(prefix)))
        for prefix in (LIVE_PREFIX, "live-others-")
    )
    assert re.search(rf"npx cdk deploy -c tables=[\w,]+,{allowed},{missing}\n", output)
    assert account.tables == set()


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"ONLY": "run,atena"}, ["ONLY has atena; the checks are hop,"]),
        ({"STACK_NAME": "Nobodys"}, ["There is no stack Nobodys.", "WITHOUT_STACK=1"]),
        # The tables would be in another region than the state machine.
        ({"STATE_MACHINE_ARN": "the account's", "AWS_DEFAULT_REGION": "eu-west-1"}, []),
        (  # The tables would be in a real account.
            {"AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.us-east-1.amazonaws.com"},
            ["Some endpoints are on this machine and some are not"],
        ),
        *(
            ({"TABLE_PREFIX": prefix}, ["TABLE_PREFIX is"])
            for prefix in ("", " ", "a b-", "-a", "../", "\u00e4-", "x" * 41, "a;ls")
        ),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_created(
    account: Account, settings: dict[str, str], texts: list[str]
) -> None:
    if "STATE_MACHINE_ARN" in settings:
        settings = {**settings, "STATE_MACHINE_ARN": account.machine}
    status, output = account.run("--yes", **{"TABLE_PREFIX": LIVE_PREFIX, **settings})
    assert status == 2
    assert output
    assert [text for text in texts if text not in output] == []
    assert account.tables == set()
