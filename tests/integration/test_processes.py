"""Runs in several processes, which share a rate, a budget and a Ctrl-C, and may be killed."""

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from keyhop.errors import RunConflict
from keyhop.jobs.processes import MOST_DEATHS
from keyhop.storage.local import Directory

from testing.databases import Database, resuming
from testing.standin.server import StandIn
from tests.integration.conftest import Interrupt, Scans
from tests.integration.test_nothing_is_lost import committed_keys

SIZES = [1, 3, 10, 1, 7, 1, 1, 30] * 40
TWO = ("--processes", "2", "--segments", "60")


def children(process: int) -> list[int]:
    """Return the running processes of a run that a process has started, without test servers."""
    processes = []
    for thread in Path("/proc", str(process), "task").iterdir():
        with contextlib.suppress(OSError):  # the thread or the child has ended
            processes += filter(belongs_to_run, map(int, (thread / "children").read_text().split()))
    return processes


def belongs_to_run(process: int) -> bool:
    try:
        return b"keyhop.public.process" in Path("/proc", str(process), "cmdline").read_bytes()
    except OSError:
        return False


def is_alive(process: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return "\nState:\tZ" not in Path("/proc", str(process), "status").read_text()
    except OSError:
        return False


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which temporary directories are created."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.mark.prove
@pytest.mark.parametrize("kills", [1, MOST_DEATHS])
def test_each_key_is_printed_once_though_processes_are_killed(
    strict: Database,
    stand_in: StandIn,
    table_name: str,
    tmp_path: Path,
    temporary: Path,
    kills: int,
) -> None:
    expected = strict.collections(table_name, SIZES * (1 + kills // 2), filling=3_000)
    chance = random.Random(kills)
    scans = itertools.count(1)
    commits = [0]
    one_at_a_time = threading.Lock()

    def kill(operation: str, request) -> None:
        """Kill a random process after some of the commits."""
        time.sleep(0.03)  # so that there are commits before the end
        if operation != "Scan" or next(scans) < 20:
            return
        with one_at_a_time:
            count = len(list(temporary.glob("*/commits/*")))
            if (
                count > commits[-1]
                and len(commits) <= kills
                and (processes := children(os.getpid()))
            ):
                os.kill(chance.choice(processes), signal.SIGKILL)
                commits.append(count)

    stand_in.fault = kill
    status, report = strict.report(table_name, tmp_path, *TWO)
    assert status == 0
    assert Counter(key["pk"]["S"] for key in report["out"]) == Counter(expected)
    summary = [report[name] for name in ("processes", "segments", "keys", "finished")]
    assert summary == [2, 60, len(expected), True]
    assert len(commits) == 1 + kills
    assert list(temporary.iterdir()) == []
    assert children(os.getpid()) == []


@pytest.mark.prove
def test_ctrl_c_ends_all_processes_and_another_number_of_them_can_resume(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path, interrupt: Interrupt
) -> None:
    """The processes do not wait for answers. A process that does not end in time is killed."""
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    released = threading.Event()

    def stop(number: int) -> None:
        if number >= 100:
            interrupt()
            released.wait(300)

    stand_in.at("Scan", stop)
    path = tmp_path / "out"
    where = ("--output", str(path))
    status, report = strict.report(table_name, tmp_path, *where, *TWO)
    assert (status, report["error"], report["finished"]) == (130, "interrupted", False)
    assert children(os.getpid()) == []
    progress = json.loads((path / "progress.json").read_bytes())
    assert progress["keys"] == report["keys"] < len(expected)
    assert report["read_units"] <= stand_in.units
    stand_in.heal()
    released.set()
    status, report = strict.report(table_name, tmp_path, *resuming(*where), "--processes", "1")
    assert (status, report["processes"], report["finished"]) == (0, 1, True)
    assert committed_keys(path) == expected


@pytest.mark.prove
def test_all_processes_together_do_not_exceed_the_budget(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    path = tmp_path / "out"
    arguments = ["--output", str(path), *TWO, "--max-read-units", "150"]
    for _ in range(9):
        before = stand_in.units
        result = strict.keys(table_name, *arguments)
        assert stand_in.units - before <= 150
        if result.status == 0:
            break
        assert result.status == 4
        assert "Of 150 read units" in result.err
        assert stand_in.units - before >= 0.8 * 150
        arguments = resuming(*arguments)
    assert committed_keys(path) == expected


@pytest.mark.prove
def test_all_processes_together_do_not_exceed_the_rate(
    strict: Database, charged: Scans, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, SIZES * 2, filling=3_000)
    rate = 100.0
    began = time.monotonic()
    status, report = strict.report(
        table_name, tmp_path, *TWO, "--max-read-rate", str(rate), "--output", str(tmp_path / "o")
    )
    assert (status, report["processes"]) == (0, 2)
    total = 0.0
    for moment, units in charged:
        total += units
        assert total <= rate * (moment - began) + 0.04 * rate + 2 * 8
    assert report["read_units"] == pytest.approx(total)


@pytest.mark.prove
def test_orphaned_processes_commit_and_end(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The run is locked until the last orphan has ended."""
    expected = Counter(strict.collections(table_name, SIZES, filling=3_000))
    path = tmp_path / "out"
    answers = threading.Event()

    def never_answer(number: int) -> None:
        if number > 200:
            answers.wait(300)

    stand_in.at("Scan", never_answer)
    where = ("--endpoint-url", strict.url, "--output", str(path))
    command = [sys.executable, "-m", "keyhop", "keys", table_name, *where, *TWO, "-f", "typed-json"]
    parent = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while stand_in.requests["Scan"] < 200:
            time.sleep(0.01)
        orphans = children(parent.pid)
        for orphan in orphans:
            os.kill(orphan, signal.SIGSTOP)  # until the lock was looked at
    finally:
        parent.kill()
        parent.wait()
    assert orphans
    with pytest.raises(RunConflict, match="Another process is working on"):
        Directory(path).lock()
    for orphan in orphans:
        os.kill(orphan, signal.SIGCONT)
    while any(map(is_alive, orphans)):
        time.sleep(0.01)
    assert not answers.is_set()
    answers.set()
    resume = ("--resume", str(path))
    while (result := strict.keys(table_name, *resume)).status == 2:  # an orphan's last threads run
        pass
    assert result.status == 0
    assert committed_keys(path) == expected
