"""`keyhop runs fetch` copies a run of a deployment to a directory, and detects forged files."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.cli.exit_status import DONE
from keyhop.cli.options import Options
from keyhop.cli.runs_actions import fetch as fetch_command
from keyhop.errors import BrokenPromise, CannotStart, RunConflict, Stopped
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import sum_up
from keyhop.keys.task import listed
from keyhop.public.deployment import OpenStack
from keyhop.public.fetch import copy_run
from keyhop.storage.local import Directory

from testing.databases import Database, keyhop
from testing.marks import prove
from tests.integration.fleet.conftest import SIZES, Fleet
from tests.integration.fleet.test_logical import sharded


@pytest.fixture
def keys(strict: Database, table_name: str) -> set[str]:
    return strict.collections(table_name, SIZES)


@pytest.fixture
def run(machine: Fleet, keys: set[str]) -> Journal:
    """A finished run of several groups."""
    machine.run("run", segments=96, maxConcurrency=2)
    return machine.runs.journal("run")


def copy(run: Journal, path: Path, stop: Event | None = None) -> dict[str, Any]:
    return copy_run(run, path, stop or Event(), lambda progress: None)


def keys_in(path: Path) -> Counter[str]:
    """Check that the run in a directory is complete, and return its keys."""
    journal = Journal(Directory(path))
    plan = journal.plan()
    assert plan is not None
    totals = sum_up(journal, plan)[0]
    assert len(totals.finished) == plan.groups
    return Counter(key["pk"]["S"] for part in totals.parts for _, key in journal.keys(plan, part))


def put(machine: Fleet, name: str, content: bytes) -> None:
    machine.runs.store("run").replace(name, content)


def test_the_directory_is_that_of_a_run_of_keyhop_keys(
    run: Journal, keys: set[str], strict: Database, table_name: str, tmp_path: Path
) -> None:
    manifest = copy(run, tmp_path / "keys")
    assert keys_in(tmp_path / "keys") == Counter(keys)
    names = {entry.name for entry in (tmp_path / "keys").iterdir() if entry.name[0] != "."}
    assert names == {"run.json", "manifest.json", "commits", "parts"}
    assert json.loads((tmp_path / "keys" / "manifest.json").read_bytes()) == manifest
    # The command accepts it as a finished run.
    place = ("--resume", str(tmp_path / "keys"), "--endpoint-url", strict.url)
    assert "finished" in keyhop("keys", table_name, *place).err


def test_logical_keys_are_copied_too(machine: Fleet, tmp_path: Path) -> None:
    expected = sharded(machine.database, machine.table)
    machine.run("run", logical=True)
    manifest = copy(machine.runs.journal("run"), tmp_path)
    assert all((tmp_path / part["name"]).is_file() for part in manifest["parts"])
    local = Journal(Directory(tmp_path))
    plan = local.plan()
    assert plan is not None
    assert Counter(key["pk"]["S"] for keys in listed(local, plan) for key in keys) == expected


def test_a_second_fetch_continues_a_stopped_one_and_copies_nothing_twice(
    run: Journal, keys: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, requested = Event(), []
    content = Journal.content

    def recorded_content(journal: Journal, part: Any) -> Any:
        if journal is run:
            requested.append(part.name)
            if len(requested) == 3:
                stop.set()
        return content(journal, part)

    monkeypatch.setattr(Journal, "content", recorded_content)
    with pytest.raises(Stopped):
        copy(run, tmp_path, stop)
    assert not (tmp_path / "manifest.json").exists()
    copied = {
        f"parts/{file.name}" for file in (tmp_path / "parts").iterdir() if file.stat().st_size
    }
    requested.clear()
    copy(run, tmp_path)
    assert keys_in(tmp_path) == Counter(keys)
    assert not copied & set(requested)
    requested.clear()
    copy(run, tmp_path)
    assert requested == [], "the copy is complete"


@pytest.mark.prove
def test_a_damaged_local_part_is_copied_again_and_a_damaged_remote_part_is_refused(
    run: Journal, machine: Fleet, keys: set[str], tmp_path: Path
) -> None:
    manifest = copy(run, tmp_path)
    name = manifest["parts"][0]["name"]
    (tmp_path / name).write_bytes(b"x" * manifest["parts"][0]["size"])
    copy(run, tmp_path)
    assert keys_in(tmp_path) == Counter(keys)
    put(machine, name, b"x" * manifest["parts"][0]["size"])
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        copy(run, tmp_path / "another")
    assert not (tmp_path / "another" / "manifest.json").exists()
    put(machine, name, b"")
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        copy(run, tmp_path / "yet-another")


@pytest.mark.prove
def test_a_directory_with_other_files_is_refused(
    run: Journal, machine: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(RunConflict, match="holds other files"):
        copy(run, tmp_path / "photos")
    with pytest.raises(RunConflict, match="is a file"):
        copy(run, tmp_path / "photos" / "cat.jpg")
    copy(run, tmp_path / "run")
    machine.run("other")
    with pytest.raises(RunConflict, match="holds other files"):
        copy(machine.runs.journal("other"), tmp_path / "run")
    assert [file.name for file in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


EVIL = b"evil"


def is_evil(file: Path) -> bool:
    return file.is_file() and file.read_bytes() == EVIL


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        prove("parts/../../evil"),
        prove("/evil"),
        prove("parts/g00000-s000000-000000000000.jsonl.gz/../../../evil"),
        "run.json",
        prove(".ssh/authorized_keys"),
    ],
)
def test_a_commit_that_names_another_file_is_refused_and_nothing_is_written(
    run: Journal, machine: Fleet, tmp_path: Path, name: str
) -> None:
    """An attacker who can write to the bucket could name any file, with its true SHA-256."""
    commit = run.load("commits/g00000-s000000.json")
    commit["parts"] = [
        {"name": name, "size": 4, "sha256": hashlib.sha256(EVIL).hexdigest(), "header": 0}
        | {"blocks": [[0, 1, 4]]}
    ]
    put(machine, "commits/g00000-s000000.json", json.dumps(commit).encode())
    if name.startswith("parts/"):
        put(machine, name, EVIL)
    place = tmp_path / "a" / "b"
    with pytest.raises(BrokenPromise, match="which is not part of it"):
        copy(run, place)
    assert not any(map(is_evil, tmp_path.rglob("*")))
    assert not (place / "manifest.json").exists()


def test_a_manifest_that_names_another_file_is_refused(
    run: Journal, machine: Fleet, tmp_path: Path
) -> None:
    manifest = run.load("manifest.json")
    stray = {"name": "parts/stray", "size": 4, "sha256": "", "keys": 1}
    put(machine, "parts/stray", EVIL)
    put(machine, "manifest.json", json.dumps({**manifest, "parts": [stray]}).encode())
    with pytest.raises(BrokenPromise, match="'parts/stray', which is not part of it"):
        copy(run, tmp_path)


@pytest.mark.prove
def test_objects_with_other_names_among_the_commits_are_ignored(
    run: Journal, machine: Fleet, keys: set[str], tmp_path: Path
) -> None:
    for name in ("../../evil", "g1.json", "/x", "g00000-s000000.js"):
        machine.runs.s3.put_object(
            Bucket=machine.runs.bucket, Key=f"runs/run/commits/{name}", Body=EVIL
        )
    copy(run, tmp_path / "a" / "b")
    assert keys_in(tmp_path / "a" / "b") == Counter(keys)
    assert not any(map(is_evil, tmp_path.rglob("*")))


class ForgetfulStepFunctions:
    """A Step Functions client that has forgotten all executions."""

    def describe_execution(self, executionArn: str) -> Any:  # noqa: N803
        raise ClientError({"Error": {"Code": "ExecutionDoesNotExist"}}, "DescribeExecution")


def options(run: str, directory: str, format_: str | None = None) -> Options:
    return Options(run=run, directory=directory, format=format_, quiet=True)


@pytest.fixture
def stack(machine: Fleet) -> OpenStack:
    outputs = {"ResultsBucketName": machine.runs.bucket, "StateMachineArn": "arn:aws:states:::x"}
    clients = {"s3": machine.runs.s3, "stepfunctions": ForgetfulStepFunctions()}
    return OpenStack("Keyhop", outputs, clients.__getitem__)


def test_the_command_prints_keys_or_a_summary(
    run: Journal, stack: OpenStack, keys: set[str], tmp_path: Path, capsysbinary: Any
) -> None:
    assert fetch_command(options("run", "-"), lambda: stack) == DONE
    assert Counter(capsysbinary.readouterr().out.decode().split()) == Counter(keys)
    assert fetch_command(options("run", "-", "typed-json"), lambda: stack) == DONE
    printed = capsysbinary.readouterr().out.decode().splitlines()
    assert {json.loads(line)["pk"]["S"] for line in printed} == keys
    assert fetch_command(options("run", str(tmp_path), "json"), lambda: stack) == DONE
    summary = json.loads(capsysbinary.readouterr().out)
    assert (summary["run"], summary["keys"]) == ("run", len(keys))


def test_an_unfinished_or_unknown_run_is_refused(
    machine: Fleet, stack: OpenStack, keys: set[str], tmp_path: Path
) -> None:
    machine.plan({"table": machine.table}, machine.execution("begun"))
    for name, message in (
        *(("begun", "has no run 'begun'"), ("never", "has no run 'never'")),
        *(("..", "'..' is not the name"), ("a/b", "'a/b' is not the name")),
    ):
        with pytest.raises(CannotStart, match=message):
            fetch_command(options(name, str(tmp_path / "x")), lambda: stack)
    assert not (tmp_path / "x").exists()
