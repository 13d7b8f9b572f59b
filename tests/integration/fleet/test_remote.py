"""`keyhop keys --remote` starts a run of a deployment, and prints or copies its keys on request."""

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from testing.databases import Database, Result, keyhop
from tests.integration.fleet.conftest import SIZES
from tests.machine import Machine
from tests.step_functions import StepFunctions, stack_of


@pytest.fixture
def keys(strict: Database, table_name: str) -> set[str]:
    return strict.collections(table_name, SIZES)


@pytest.fixture
def states(machine: Machine) -> StepFunctions:
    return StepFunctions(machine)


@pytest.fixture(autouse=True)
def opened_stacks(
    machine: Machine, states: StepFunctions, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The names of the stacks that a command has opened."""
    names: list[str] = []

    def open_stack(name: str, endpoint: Any) -> Any:
        names.append(name)
        return stack_of(machine, states)._replace(name=name)

    monkeypatch.setattr("keyhop.cli.runs_actions.open_stack", open_stack)
    return names


def remotely(table: str, *more: str) -> Result:
    return keyhop("keys", table, "--remote", *more)


def test_without_follow_the_command_prints_the_name_of_the_run(
    states: StepFunctions, keys: set[str], table_name: str, opened_stacks: list[str]
) -> None:
    started = remotely(table_name, "--max-read-rate", "500")
    (name,) = started.lines
    assert (started.status, opened_stacks) == (0, ["Keyhop"])
    assert f"To follow it: keyhop runs show {name} --follow\n" in started.err
    assert states.inputs == [{"table": table_name, "maxReadRate": 500.0}]
    followed = keyhop("runs", "show", name, "--follow")
    assert (followed.status, f"  keys      {len(keys)}" in followed.lines) == (0, True)


def test_the_stack_is_that_of_the_flag_or_of_the_setting(
    table_name: str, keys: set[str], opened_stacks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = remotely(table_name, "--stack", "Mine")
    assert "--follow --stack Mine" in named.err
    monkeypatch.setenv("KEYHOP_STACK", "Ours")
    assert "settings: stack from KEYHOP_STACK" in remotely(table_name).err
    assert opened_stacks == ["Mine", "Ours"]


def test_with_follow_the_keys_are_printed(keys: set[str], table_name: str) -> None:
    followed = remotely(table_name, "--follow", "--name", "first")
    assert (followed.status, Counter(followed.lines)) == (0, Counter(keys))
    assert "first: EnumerateKeys of" in followed.err
    typed = remotely(table_name, "--follow", "--format", "typed-json", "--quiet")
    assert {json.loads(line)["pk"]["S"] for line in typed.lines} == keys
    assert typed.err == ""


def test_with_output_the_keys_are_copied(
    states: StepFunctions, keys: set[str], table_name: str, tmp_path: Path
) -> None:
    where = str(tmp_path / "keys")
    fetched = remotely(table_name, "--output", where)
    assert (fetched.status, fetched.out) == (0, b"")
    assert json.loads((tmp_path / "keys" / "manifest.json").read_bytes())["keys"] == len(keys)
    refused = remotely(table_name, "--output", where)
    assert (refused.status, "holds other files" in refused.err, len(states.inputs)) == (2, True, 1)


def test_the_command_waits_for_a_plan(keys: set[str], table_name: str) -> None:
    planned = remotely(table_name, "--dry-run")
    assert planned.status == 0
    assert "distinct partition keys (95% interval" in planned.lines[0]
    assert remotely(table_name, "--dry-run", "-o", "x").status == 2


def test_missing_keys_of_a_check_are_reported_after_the_keys(
    states: StepFunctions, keys: set[str], table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = states.describe_execution

    def failing_check(**parameters: Any) -> dict[str, Any]:
        execution = describe(**parameters)
        if execution["status"] == "SUCCEEDED":
            execution |= {"status": "FAILED", "error": "KeysMissing", "cause": "one is missing"}
        return execution

    monkeypatch.setattr(states, "describe_execution", failing_check)
    ended = remotely(table_name, "--follow", "--verify", "0.5")
    assert (ended.status, Counter(ended.lines)) == (3, Counter(keys))
    assert "KeysMissing: one is missing" in ended.err


def test_ctrl_c_does_not_stop_the_run_and_prints_how_to_stop_it(
    states: StepFunctions, keys: set[str], table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(states, "describe_execution", Mock(side_effect=KeyboardInterrupt))
        ended = remotely(table_name, "--output", "keys", "--name", "first")
    assert (ended.status, ended.out) == (130, b"")
    assert "The run goes on without you." in ended.err
    assert "at the end: keyhop runs fetch first keys. To stop it: keyhop runs stop first\n" in (
        ended.err
    )
    stopped = keyhop("runs", "stop", "first")
    assert stopped.status == 0
    assert "first: EnumerateKeys of" in stopped.lines[0]


def test_a_stopped_run_continues_with_the_printed_command(
    states: StepFunctions, keys: set[str], table_name: str
) -> None:
    remotely(table_name, "--name", "first", "--segments", "96")
    for _ in range(4):
        keyhop("runs", "show", "first")
    stopped = keyhop("runs", "stop", "first")
    (line,) = (line for line in stopped.lines if line.startswith("  go on by"))
    words = shlex.split(line.removeprefix("  go on by"))
    assert words == ["keyhop", "keys", table_name, "--remote", "--resume", "first"]
    resumed = keyhop(*words[1:], "--follow", "--max-read-units", "5000")
    assert (resumed.status, Counter(resumed.lines)) == (0, Counter(keys))
    assert states.inputs[1] == {"table": table_name, "resume": "first", "maxReadUnits": 5000.0}
    assert "  run       first" in resumed.err


def test_a_failed_run_prints_no_keys_and_says_why(keys: set[str], table_name: str) -> None:
    failed = remotely("Payroll", "--follow", "--quiet")
    assert (failed.status, failed.out) == (2, b"")
    assert "InvalidInput: table 'Payroll' is not one of the tables" in failed.err
