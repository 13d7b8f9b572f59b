"""Use `keyhop keys --remote` and `keyhop runs` on the deployed stack."""

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


def keys_in_parts(folder: Path) -> Counter[str]:
    lines = b"".join(gzip.decompress(part.read_bytes()) for part in folder.glob("parts/*"))
    return Counter(json.loads(line)["pk"]["S"] for line in lines.splitlines())


def test_a_run_is_started_followed_listed_shown_and_fetched(
    deployed: Deployed, small: set[str], command: Command, tmp_path: Path
) -> None:
    flags = ("--remote", "--segments", "96", "--name", "by-command", "--follow")
    started = command("keys", "Small", *flags)
    assert (started.status, Counter(started.lines)) == (0, Counter(small))
    assert deployed.listed_keys("by-command") == Counter(small)
    assert "by-command: EnumerateKeys of Small, finished after" in started.err
    listed = command("runs", "list", "--table", "Small", "--limit", "1")
    heads, line = listed.lines
    assert heads.split()[:4] == ["run", "what", "table", "state"]
    assert line.split()[:5] == ["by-command", "EnumerateKeys", "Small", "finished", f"{len(small)}"]
    summary = command("runs", "show", "by-command")
    assert summary.lines == started.err.splitlines()[-len(summary.lines) :]
    assert f"  keys      {len(small)}" in summary.lines
    manifest = f"s3://{deployed.executions.bucket}/runs/by-command/manifest.json"
    assert manifest in summary.out.decode()
    fetched = command("runs", "fetch", "by-command", str(tmp_path / "keys"))
    assert fetched.lines[0].startswith(f"{len(small)} keys of Small in {tmp_path}/keys, ")
    assert keys_in_parts(tmp_path / "keys") == Counter(small)
    assert set(command("runs", "fetch", "by-command", "-").lines) == small


def test_a_run_without_follow_names_the_command_that_shows_it(
    deployed: Deployed, small: set[str], command: Command
) -> None:
    started = command("keys", "Small", "--remote")
    (name,) = started.lines
    assert f"keyhop runs show {name} --follow" in started.err
    followed = command("runs", "show", name, "--follow")
    assert (followed.status, deployed.listed_keys(name)) == (0, Counter(small))


def test_a_failed_run_has_a_reason_and_the_command_that_it_names_continues(
    deployed: Deployed, small: set[str], command: Command, tmp_path: Path
) -> None:
    limits = ("--max-read-units", "40", "--max-concurrency", "2", "--segments", "96")
    where = ("--output", str(tmp_path / "keys"))
    failed = command("keys", "Small", "--remote", *where, "--name", "by-command-poor", *limits)
    assert (failed.status, failed.out) == (4, b"")
    assert "BudgetSpent: The rest of maxReadUnits does not pay" in failed.err
    (line,) = (line for line in failed.err.splitlines() if line.startswith("  go on by"))
    advised = shlex.split(line.removeprefix("  go on by"))
    assert advised[:4] == ["keyhop", "keys", "Small", "--remote"]
    assert advised[advised.index("--max-read-units") + 1] == "80"
    more = ("--max-read-units", "400", "--name", "by-command-rich")
    resumed = command(*advised[1:], *more, *where)
    assert resumed.status == 0, resumed.err
    assert "  run       by-command-poor" in resumed.err
    assert deployed.listed_keys("by-command-poor") == Counter(small)
    assert keys_in_parts(tmp_path / "keys") == Counter(small)
    assert command("runs", "show", "by-command-poor").status == 0


def test_a_table_that_is_not_deployed_is_refused_in_a_sentence(command: Command) -> None:
    refused = command("keys", "Payroll", "--remote", "--follow")
    assert refused.status == 2
    assert (
        "InvalidInput: table 'Payroll' is not one of the tables of this deployment" in refused.err
    )


def test_a_name_is_used_once(deployed: Deployed, small: set[str], command: Command) -> None:
    deployed.run({"table": "Small"}, "by-command-once")
    refused = command("keys", "Small", "--remote", "--name", "by-command-once")
    assert (refused.status, refused.out) == (2, b"")
    assert "start with another --name, or continue it with --resume by-command-once" in refused.err


def test_a_plan_is_waited_for(deployed: Deployed, small: set[str], command: Command) -> None:
    planned = command("keys", "Small", "--remote", "--dry-run", "--format", "json")
    assert planned.status == 0
    assert json.loads(planned.out)["cost"]["total"] > 0


def test_executions_of_other_state_machines_are_shown_too(
    deployed: Deployed, command: Command
) -> None:
    arn = deployed.cloud.outputs["VerifyKeyIndexArn"]
    states = deployed.executions.states
    values = json.dumps({"table": "Nowhere"})
    states.start_execution(stateMachineArn=arn, name="by-command-verify", input=values)
    summary = command("runs", "show", "by-command-verify", "--follow")
    assert summary.status == 2
    assert summary.lines[0].startswith("by-command-verify: VerifyKeyIndex of Nowhere, failed after")
    assert "by-command-verify" in command("runs", "list").out.decode()


def test_unknown_names_are_refused(deployed: Deployed, command: Command) -> None:
    refused = command("runs", "show", "never")
    assert refused.status == 2
    assert "has no run 'never': see the list of runs" in refused.err
    refused = command("runs", "list", "--stack", "keyhop")
    assert refused.status == 2
    assert "There is no stack 'keyhop' in region us-east-1: did you mean Keyhop?" in refused.err
