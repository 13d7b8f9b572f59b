"""Tests that the examples of the pages about Python run, one after the other."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import keyhop
import pytest
from keyhop.jobs.runs import Runs
from keyhop.public import deployment

from testing.databases import Database
from testing.rekey_tasks import at_once
from testing.s3 import MemoryS3
from testing.servers import LOCAL_CREDENTIALS, ROOT
from tests.docs.world import ManualClock, tables
from tests.machine import Machine
from tests.step_functions import StepFunctions, stack_of

TEXT = (ROOT / "docs" / "reference" / "python.md").read_text()
TEMPLATE = """
items:
- match: {customer: "{customer}", order: "{order}"}
  set: {day: "{day}", order: "{customer}#{order}"}
"""


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", LOCAL_CREDENTIALS["region_name"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def run(page: str, is_run: Callable[[str], bool] = lambda example: True) -> None:
    """Run the examples of a page for which `is_run` is true."""
    examples = filter(is_run, re.findall(r"(?ms)^```python\n(.*?)^```$", page))
    exec(compile("".join(examples), "a page about Python", "exec"), {"keyhop": keyhop})


def test_the_examples_of_the_tutorial_run(
    strict: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    expected = strict.collections("Orders", [3] * 500)
    monkeypatch.setenv("AWS_ENDPOINT_URL", strict.url)
    run((ROOT / "docs" / "tutorials" / "python.md").read_text())
    printed = capsys.readouterr().out
    assert expected < set(printed.splitlines())
    assert "stopped at the limit" in printed


def test_the_examples_run(
    strict: Database,
    s3: MemoryS3,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    expected = strict.collections("Orders", [3] * 20)
    monkeypatch.setenv("AWS_ENDPOINT_URL", strict.url)
    monkeypatch.setattr(keyhop.Shards, "_clock", ManualClock())
    machine = Machine(Runs(s3, "results", ["Orders"]))
    stack = stack_of(machine, StepFunctions(machine))
    monkeypatch.setattr(deployment, "open_stack", lambda name, endpoint: stack)
    strict.create("Audit", ("path", "S"), ("at", "S"))
    strict.create("Audit-shards", ("path", "S"), None)
    strict.create("Views", ("page", "S"), ("part", "S"))
    table = keyhop.ShardedTable(
        "Audit", metadata="Audit-shards", endpoint_url=strict.url, clock=ManualClock()
    )
    table.put_item(Item={"path": "/f.txt", "at": "2026-11-21"})
    run(TEXT, lambda example: "keyhop.Rekey" not in example)
    assert expected < set(capsys.readouterr().out.splitlines())
    assert (tmp_path / "keys" / "manifest.json").exists()
    assert (tmp_path / "fetched" / "manifest.json").exists()
    assert keyhop.Shards("Audit").show("/f.txt").shards.writable == 4


@pytest.mark.prove
def test_the_example_of_a_re_key_runs(
    dynamodb: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """The example needs a database with tables that can be changed."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", dynamodb.url)
    monkeypatch.setattr(keyhop.Rekey, "_tasks", staticmethod(at_once))
    Path("by-day.yaml").write_text(TEMPLATE)
    with tables(dynamodb, {"Orders"}):
        run(TEXT, lambda example: "keyhop.Rekey" in example)
        assert "OrdersByDay" not in dynamodb.tables()
    start = "keyhop rekey start Orders --to OrdersByDay --remote"
    expected = ["()", "('streams',)", start]
    assert capsys.readouterr().out.splitlines()[-3:] == expected


def test_the_page_names_each_public_function_and_class() -> None:
    for name in set(keyhop.__all__) - {"Keys"}:
        assert f"`{name}`" in TEXT or f"keyhop.{name}" in TEXT, name


def described_by_arguments() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Yield the public functions and constructors, with the documentation of their arguments."""
    for name in keyhop.__all__:
        value = getattr(keyhop, name)
        is_result = is_dataclass(value) or value in (keyhop.Keys, keyhop.ItemTable)
        if inspect.isfunction(value):
            yield name, value, value.__doc__ or ""
        elif inspect.isclass(value) and not is_result and not issubclass(value, Exception):
            yield name, value.__init__, f"{value.__doc__}\n{value.__init__.__doc__}"


@pytest.mark.parametrize(("name", "call", "text"), [*described_by_arguments()])
def test_each_argument_is_documented(name: str, call: Callable[..., Any], text: str) -> None:
    lines = re.findall(r"(?m)^ +(\w+(?:, \w+)*): ", text.partition("Args:")[2])
    described = {argument for line in lines for argument in line.split(", ")}
    assert set(inspect.signature(call).parameters) - {"self"} <= described
