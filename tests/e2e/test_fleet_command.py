"""`keyhop keys --remote` and `keyhop runs` on the deployed stack, as a person uses them."""

import gzip
import json
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from testing.databases import Result, keyhop
from tests.e2e.conftest import Deployed

Command = Callable[..., Result]


@pytest.fixture
def command(at_the_cloud: None) -> Command:
    return keyhop


def test_a_run_is_started_followed_listed_shown_and_fetched(
    deployed: Deployed, small: set[str], command: Command, tmp_path: Path
) -> None:
    how = ("--remote", "--segments", "96", "--name", "by-command")
    started = command("keys", "Small", *how, "--follow")
    assert (started.status, Counter(started.lines)) == (0, Counter(small))
    assert deployed.found("by-command") == Counter(small)
    assert "by-command: EnumerateKeys of Small, finished after" in started.err
    listed = command("runs", "list", "--table", "Small", "--limit", "1")
    heads, line = listed.lines
    assert heads.split()[:4] == ["run", "what", "table", "state"]
    assert line.split()[:5] == ["by-command", "EnumerateKeys", "Small", "finished", f"{len(small)}"]
    shown = command("runs", "show", "by-command")
    assert shown.lines == started.err.splitlines()[-len(shown.lines) :]
    assert f"  keys      {len(small)}" in shown.lines
    assert f"s3://{deployed.executions.bucket}/runs/by-command/manifest.json" in shown.out.decode()
    fetched = command("runs", "fetch", "by-command", str(tmp_path / "keys"))
    assert fetched.lines[0].startswith(f"{len(small)} keys of Small in {tmp_path}/keys, ")
    lines = b"".join(gzip.decompress(p.read_bytes()) for p in tmp_path.glob("keys/parts/*"))
    assert Counter(json.loads(line)["pk"]["S"] for line in lines.splitlines()) == Counter(small)
    assert set(command("runs", "fetch", "by-command", "-").lines) == small


def test_a_run_without_follow_says_how_to_come_back(
    deployed: Deployed, small: set[str], command: Command
) -> None:
    started = command("keys", "Small", "--remote")
    (name,) = started.lines
    assert f"keyhop runs show {name} --follow" in started.err
    followed = command("runs", "show", name, "--follow")
    assert (followed.status, deployed.found(name)) == (0, Counter(small))


def test_a_failed_run_says_why_and_the_command_that_it_names_goes_on(
    deployed: Deployed, small: set[str], command: Command, tmp_path: Path
) -> None:
    limits = ("--max-read-units", "40", "--max-concurrency", "2", "--segments", "96")
    where = ("--output", str(tmp_path / "keys"))
    failed = command("keys", "Small", "--remote", *where, "--name", "by-command-poor", *limits)
    assert (failed.status, failed.out) == (4, b"")
    assert "BudgetSpent: The rest of maxReadUnits does not pay" in failed.err
    (line,) = (line for line in failed.err.splitlines() if line.startswith("  go on by"))
    told = shlex.split(line.removeprefix("  go on by"))
    assert told[:4] == ["keyhop", "keys", "Small", "--remote"]
    assert told[told.index("--max-read-units") + 1] == "80"
    more = ("--max-read-units", "400", "--name", "by-command-rich")
    resumed = command(*told[1:], *more, *where)
    assert resumed.status == 0, resumed.err
    assert "  run       by-command-poor" in resumed.err
    assert deployed.found("by-command-poor") == Counter(small)
    lines = b"".join(gzip.decompress(p.read_bytes()) for p in tmp_path.glob("keys/parts/*"))
    assert Counter(json.loads(line)["pk"]["S"] for line in lines.splitlines()) == Counter(small)
    assert command("runs", "show", "by-command-poor").status == 0


def test_a_table_that_is_not_deployed_is_refused_in_a_sentence(command: Command) -> None:
    refused = command("keys", "Payroll", "--remote", "--follow")
    assert refused.status == 2
    assert (
        "InvalidInput: table 'Payroll' is not one of the tables of this deployment" in refused.err
    )


def test_a_name_is_given_once(deployed: Deployed, small: set[str], command: Command) -> None:
    deployed.run({"table": "Small"}, "by-command-once")
    again = command("keys", "Small", "--remote", "--name", "by-command-once")
    assert (again.status, again.out) == (2, b"")
    assert "start with another --name, or continue it with --resume by-command-once" in again.err


def test_a_plan_is_waited_for(deployed: Deployed, small: set[str], command: Command) -> None:
    planned = command("keys", "Small", "--remote", "--dry-run", "--format", "json")
    assert planned.status == 0
    assert json.loads(planned.out)["cost"]["total"] > 0


def test_executions_of_other_state_machines_are_shown_too(
    deployed: Deployed, command: Command
) -> None:
    arn = deployed.cloud.outputs["VerifyKeyIndexArn"]
    states = deployed.executions.states
    given = json.dumps({"table": "Nowhere"})
    states.start_execution(stateMachineArn=arn, name="by-command-verify", input=given)
    shown = command("runs", "show", "by-command-verify", "--follow")
    assert shown.status == 2
    assert shown.lines[0].startswith("by-command-verify: VerifyKeyIndex of Nowhere, failed after")
    assert "by-command-verify" in command("runs", "list").out.decode()


def test_wrong_names_are_told(deployed: Deployed, command: Command) -> None:
    unknown = command("runs", "show", "never")
    assert (unknown.status, "has no run 'never': see the list of runs" in unknown.err) == (
        2,
        True,
    )
    elsewhere = command("runs", "list", "--stack", "keyhop")
    assert elsewhere.status == 2
    assert "There is no stack 'keyhop' in region us-east-1: did you mean Keyhop?" in elsewhere.err
