"""Ctrl-C before a command has started, in real processes that pause at a chosen import."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import Mock

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
"""A program that runs Keyhop, and prints a word and waits for a signal at the import of MODULE."""

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
def test_an_interrupt_during_the_imports_prints_one_sentence(module: str) -> None:
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


def test_the_installed_command_has_the_tested_entry_point() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"keyhop": "keyhop.__main__:main"}


def test_an_interrupt_of_a_command_prints_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("keyhop.cli.runs_actions.run", Mock(side_effect=KeyboardInterrupt))
    assert main(["runs", "list"]) == 130
    assert capsys.readouterr().err == "keyhop: Interrupted.\n"
