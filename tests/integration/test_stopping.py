"""Ctrl-C of what runs on this machine: it ends in order, not by its last resort; nothing is left.

The signal goes to the Python process alone, as by `kill -INT`: in a terminal the processes that it
has started get it too, and some of them end by that.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testing.marks import prove
from testing.servers import ROOT

MARK = "KEYHOP_TEST_OF_STOPPING"


@pytest.mark.prove
@pytest.mark.parametrize(
    ("module", "arguments", "until"),
    [
        ("local.laptop", ["laptop"], "$ cdk deploy"),
        prove("local.audit_log", [], "   1 s"),
        prove("local.laptop", ["local"], "DynamoDB Local is up"),
        prove("local.laptop", ["laptop"], "Ctrl-C ends the laptop cloud"),
        prove("local.demo", [], "EnumerateKeys"),
        prove("local.demo", [], "BuildKeyIndex"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, prove(signal.SIGTERM)])
def test_it_ends_in_order_and_leaves_nothing(
    module: str, arguments: list[str], until: str, number: signal.Signals, tmp_path: Path
) -> None:
    mark = f"{MARK}={tmp_path}"
    with subprocess.Popen(
        [sys.executable, "-u", "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, MARK: str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as example:
        assert example.stdout is not None
        assert any(until in told for told in example.stdout), example.communicate()
        assert len(processes_with(mark)) > 1
        example.send_signal(number)
        example.send_signal(number)  # whoever is impatient changes nothing
        _, error = example.communicate(timeout=300)
    assert error == "Stopping ...\nAll servers are stopped.\n"
    assert example.returncode == 128 + number
    assert processes_with(mark) == []
    assert list(tmp_path.iterdir()) == []


def processes_with(mark: str) -> list[str]:
    """Command lines of the processes that have `mark` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # gone, or somebody else's
            continue
    return [command for command in found if command]
