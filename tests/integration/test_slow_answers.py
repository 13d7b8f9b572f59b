"""Ctrl-C ends the command even while the service does not answer."""

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from testing.databases import Database, resuming
from testing.servers import ROOT
from testing.standin.server import StandIn
from tests.integration.test_nothing_is_lost import committed_keys

SIZES = [1, 6, 1, 25, 2] * 30


@pytest.mark.prove
def test_ctrl_c_does_not_wait_for_an_answer_and_loses_only_that_answer(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    withheld, released = threading.Event(), threading.Event()

    def withhold(number: int) -> None:
        if number > 60:
            withheld.set()
            assert released.wait(300)

    stand_in.at("Scan", withhold)
    path = tmp_path / "out"
    where = ("--output", str(path), "--segments", "9")
    command = [sys.executable, "-m", "testing.patient", "keys", table_name]
    command += ["--format", "typed-json", "--endpoint-url", strict.url, *where]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert withheld.wait(300)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
        assert not released.is_set()
    finally:
        released.set()
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "keyhop: stopping ...\n" in errors
    assert "Interrupted. Continue with --resume" in errors
    assert json.loads((path / "progress.json").read_bytes())["keys"] > 0
    assert strict.keys(table_name, *resuming(*where)).status == 0
    assert committed_keys(path) == expected
