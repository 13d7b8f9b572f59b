"""`keyhop.Deployment`, as a Python program calls it."""

import io
import json
from collections import Counter
from pathlib import Path
from threading import Event

import keyhop
import pytest
from keyhop.errors import CannotStart, InvalidInput, RunConflict, Stopped
from keyhop.jobs.runs import Runs

from testing.databases import Database
from testing.s3 import MemoryS3
from tests.machine import Machine
from tests.step_functions import StepFunctions, stack_of

SIZES = [1, 6, 1, 25, 2] * 20


@pytest.fixture
def keys(strict: Database, table_name: str) -> set[str]:
    return strict.collections(table_name, SIZES)


@pytest.fixture
def machine(
    strict: Database, s3: MemoryS3, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", strict.url)
    return Machine(Runs(s3, "results", [table_name]))


@pytest.fixture
def states(machine: Machine) -> StepFunctions:
    return StepFunctions(machine)


@pytest.fixture
def deployment(machine: Machine, states: StepFunctions) -> keyhop.Deployment:
    return keyhop.Deployment(stack_of(machine, states))


def test_a_run_is_started_followed_and_fetched(
    machine: Machine, states: StepFunctions, keys: set[str], table_name: str, tmp_path: Path
) -> None:
    reports: list[keyhop.Progress] = []
    deployment = keyhop.Deployment(stack_of(machine, states), progress=reports.append)
    run = deployment.start({"table": table_name, "segments": 64}, name="first")
    assert (run.name, run.machine, run.table, run.is_over) == (
        *("first", "EnumerateKeys", table_name),
        False,
    )
    assert run.input == states.inputs[0] == {"table": table_name, "segments": 64}
    ended = deployment.follow(run)
    assert (ended.has_succeeded, ended.output["keys"]) == (True, len(keys))
    assert [progress.activity for progress in reports] == [
        *("planning", "reading", "ending", "ending")
    ]
    assert reports[-1].share == 1.0
    assert reports[-1].keys == len(keys)
    fetched = deployment.fetch("first", tmp_path / "keys")
    assert (fetched.run, fetched.keys) == ("first", len(keys))
    assert reports[-1].activity == "fetching"
    assert reports[-1].is_over
    listed = keyhop.list_keys(table_name, output=tmp_path / "keys", resume=True)
    assert Counter(listed) == Counter(keys)


def test_keys_are_written_to_a_stream_in_any_format(
    deployment: keyhop.Deployment, keys: set[str], table_name: str
) -> None:
    run = deployment.follow(deployment.start({"table": table_name}))
    text, typed = io.BytesIO(), io.BytesIO()
    deployment.fetch(run, text)
    assert Counter(text.getvalue().decode().split()) == Counter(keys)
    deployment.fetch(run, typed, format="typed-json")
    assert {json.loads(line)["pk"]["S"] for line in typed.getvalue().splitlines()} == keys


def test_a_dry_run_is_an_estimate(
    deployment: keyhop.Deployment, keys: set[str], table_name: str
) -> None:
    ended = deployment.follow(deployment.start({"table": table_name}, dry_run=True))
    assert ended.output["cost"]["total"] > 0
    with pytest.raises(RunConflict, match="is not finished"):
        deployment.fetch(ended, io.BytesIO())


def test_a_run_is_stopped_and_a_new_one_continues_it(
    deployment: keyhop.Deployment, keys: set[str], table_name: str
) -> None:
    run = deployment.start({"table": table_name, "segments": 64}, name="first")
    for _ in range(4):
        run = deployment.show(run)
    assert run.progress is not None
    assert run.progress.segments_done == 64
    stopped = deployment.stop("first")
    assert (stopped.status, stopped.next_input) == (
        "ABORTED",
        {"table": table_name, "resume": "first"},
    )
    with pytest.raises(RunConflict, match="has ended already"):
        deployment.stop(stopped)
    ended = deployment.follow(deployment.start(stopped.next_input or {}, name="second"))
    assert (ended.name, ended.run_id, ended.output["keys"]) == ("second", "first", len(keys))
    assert [run.name for run in deployment.list()] == ["second", "first"]
    assert deployment.list("Another") == ()
    assert [run.name for run in deployment.list(table_name, limit=1)] == ["second"]


def test_a_stop_ends_the_call_and_not_the_run(
    machine: Machine, states: StepFunctions, keys: set[str], table_name: str
) -> None:
    stop = Event()
    deployment = keyhop.Deployment(
        stack_of(machine, states), progress=lambda progress: stop.set(), stop=stop
    )
    run = deployment.start({"table": table_name})
    with pytest.raises(Stopped):
        deployment.follow(run)
    assert keyhop.Deployment(stack_of(machine, states)).follow(run).has_succeeded


def test_invalid_input_is_refused_before_a_run_is_started(
    deployment: keyhop.Deployment, states: StepFunctions, table_name: str
) -> None:
    with pytest.raises(InvalidInput, match="maxReadRate must be"):
        deployment.start({"table": table_name, "maxReadRate": "fast"})
    with pytest.raises(CannotStart, match="has no ForEachKey: deploy"):
        deployment.start({"table": table_name}, machine="ForEachKey")
    assert states.inputs == []
    deployment.start({"table": table_name}, name="first")
    with pytest.raises(RunConflict, match="There is a run named 'first' already"):
        deployment.start({"table": table_name}, name="first")
    with pytest.raises(CannotStart, match="has no run 'second'"):
        deployment.show("second")
    with pytest.raises(CannotStart, match=r"'a/b' is not the name of a run"):
        deployment.show("a/b")


def test_a_failed_run_says_why_and_shows_no_input(
    deployment: keyhop.Deployment, table_name: str
) -> None:
    """Inputs and outputs may contain keys."""
    failed = deployment.follow(deployment.start({"table": "Payroll"}, name="first"))
    assert failed.error == "InvalidInput"
    assert "not one of the tables of this deployment" in failed.cause
    assert "Payroll" not in repr(failed)
    assert failed.to_json()["input"] == {"table": "Payroll"}
