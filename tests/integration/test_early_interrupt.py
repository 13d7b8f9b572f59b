"""Ctrl-C before a command has begun, in real processes that pause at a chosen import."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from keyhop.cli.main import main

from testing.marks import prove

ROOT = Path(__file__).parents[2]

PAUSING = """
import os, runpy, sys

class Pause:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            os.write(1, b"paused")
            os.read(0, 1)

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Pause())
runpy.run_module("keyhop", run_name="__main__", alter_sys=True)
"""
"""Runs Keyhop, says when it comes to the import of MODULE, and waits there for a signal."""

MOMENTS = [
    "keyhop.cli.main",
    prove("click"),
    "keyhop.cli.keys",
    prove("keyhop.cli.options"),
    prove("keyhop.cli.keys_actions"),
    "botocore.session",
]
"""Imports, from the first one after the entry point to those of the command's own actions."""


@pytest.mark.parametrize("module", MOMENTS)
def test_an_interrupt_while_the_command_is_loaded_is_one_sentence(module: str) -> None:
    command = [sys.executable, "-c", PAUSING, module, "keys", "Orders", "--region", "eu-west-1"]
    path = os.pathsep.join([str(ROOT / "lambdas"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(6) == b"paused"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.decode()) == (130, "keyhop: Interrupted.\n")


def test_the_installed_command_begins_where_the_tested_one_does() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"keyhop": "keyhop.__main__:main"}


def test_an_interrupt_in_a_command_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keyhop.cli.runs_actions.run", interrupted)
    assert main(["runs", "list"]) == 130
    assert capsys.readouterr().err == "keyhop: Interrupted.\n"
