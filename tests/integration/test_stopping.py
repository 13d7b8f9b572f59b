"""Signals and a closed terminal end all local programs cleanly, and nothing remains of them.

A terminal sends Ctrl-C and its hangup to a whole process group; `kill` and a service manager may
send a signal to one process only. The tests do both.
"""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from testing.marks import prove, prove_long
from testing.servers import ROOT

MARK = "KEYHOP_TEST_OF_STOPPING"
LONGEST_SECONDS = 60.0
LONGEST_END_SECONDS = 200.0
"""The maximum is below pytest's timeout, so that a program that does not end fails its test."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

TREE = """
import os, subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
os.write(1, b"%d %d %d\\n" % (os.getppid(), os.getpid(), worker.pid))
worker.wait()
"""
"""A server with a worker, which prints the process ids of its guard, of itself and the worker."""

HOLD = f"""
import signal
from testing.servers import ROOT, child

def hold(log=None):
    with child([{sys.executable!r}, "-c", {TREE!r}], ROOT, None, log):
        signal.pause()
"""
"""The definition of `hold`, which runs the server until a signal, with its output in `log`."""


@pytest.fixture(autouse=True)
def signals_are_not_ignored() -> Iterator[None]:
    """Restore default handlers, as nohup may have let the tests ignore SIGHUP."""
    ignored = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def holding(program: str) -> Iterator["HeldServer"]:
    """Run `program`, which calls `hold`, in a separate process group."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD + program],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        server = HeldServer(parent, parent.stdout.readline())
        try:
            yield server
        finally:
            server.kill()


class HeldServer:
    """A program that runs a server, with the server's guard and processes.

    Args:
        parent: The program.
        printed: The line that the server prints.
    """

    def __init__(self, parent: "subprocess.Popen[bytes]", printed: bytes) -> None:
        self.parent = parent
        self.guard, *processes = map(int, printed.split())
        self.files = [os.pidfd_open(process) for process in processes]

    def ends(self) -> bool:
        """Return whether all processes of the server end within the maximum time."""
        return all(select.select([file], [], [], LONGEST_SECONDS)[0] for file in self.files)

    def kill(self) -> None:
        """Kill the remaining processes."""
        self.parent.kill()
        for file in self.files:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(file, signal.SIGKILL)
            os.close(file)


def to_group(server: HeldServer, number: signal.Signals) -> None:
    os.killpg(server.parent.pid, number)


def to_parent(server: HeldServer, number: signal.Signals) -> None:
    server.parent.send_signal(number)


def to_guard(server: HeldServer, number: signal.Signals) -> None:
    os.kill(server.guard, number)


@pytest.mark.parametrize(
    ("send", "number"),
    [
        *((to_group, number) for number in SIGNALS),
        (to_group, signal.SIGKILL),
        *((to_parent, number) for number in SIGNALS),
        (to_parent, signal.SIGKILL),
        *((to_guard, number) for number in SIGNALS),
    ],
)
def test_all_processes_of_a_server_end_whichever_process_gets_the_signal(
    send: Callable[[HeldServer, signal.Signals], None], number: signal.Signals
) -> None:
    with holding("hold()") as server:
        send(server, number)
        assert server.ends()


@pytest.mark.parametrize(
    ("before", "numbers"),
    [
        *(("", [number]) for number in SIGNALS),
        ("signal.signal(signal.SIGHUP, signal.SIG_IGN)", [signal.SIGHUP, signal.SIGTERM]),  # nohup
    ],
)
def test_servers_are_stopped_before_the_program_says_so(
    before: str, numbers: list[signal.Signals]
) -> None:
    program = f"from local.cloud import exit_with\n{before}\nexit_with(hold)"
    with holding(program) as server:
        for number in numbers:
            to_group(server, number)
        assert server.parent.stderr is not None
        assert server.parent.stderr.readline() == b"Stopping ...\n"
        assert server.parent.stderr.readline() == b"All servers are stopped.\n"
        assert select.select(server.files[:1], [], [], 0)[0], "the server still runs"
        assert server.ends()
        assert server.parent.wait(LONGEST_SECONDS) == 128 + numbers[-1]


def test_a_closed_terminal_stops_the_servers(tmp_path: Path) -> None:
    """Printing to the closed terminal fails, and must not prevent the program from ending."""
    program = """
from local.cloud import exit_with

def main():
    try:
        hold(3)
    finally:
        print("printed into the closed terminal", flush=True)

exit_with(main)
"""
    terminal, end = pty.openpty()
    reader, writer = os.pipe()

    def take_terminal() -> None:
        os.dup2(writer, 3)
        fcntl.ioctl(end, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [sys.executable, "-c", HOLD + program],
        cwd=ROOT,
        start_new_session=True,
        preexec_fn=take_terminal,
        pass_fds=[3],
        stdin=end,
        stdout=end,
        stderr=end,
    ) as parent:
        os.close(end)
        os.close(writer)
        with os.fdopen(reader, "rb") as printed:
            server = HeldServer(parent, printed.readline())
        try:
            os.close(terminal)
            assert server.ends()
            assert parent.wait(LONGEST_SECONDS) == 128 + signal.SIGHUP
        finally:
            server.kill()


STEPS = [
    ("local.laptop", ["laptop"], "$ cdk deploy", signal.SIGTERM),
    ("local.audit_log", [], "   1 s", signal.SIGHUP),
    ("local.laptop", ["local"], "DynamoDB Local is up", signal.SIGINT),
    ("local.laptop", ["laptop"], "Ctrl-C ends the laptop cloud", signal.SIGINT),
    ("local.demo", [], "EnumerateKeys", signal.SIGTERM),
    ("local.demo", [], "BuildKeyIndex", None),
]
"""The programs, the output after which they are stopped, and the signal of `make prove`.

`make prove-long` sends all signals.
"""


@pytest.mark.parametrize(
    ("module", "arguments", "until", "number"),
    [
        (prove if number is usual else prove_long)(module, arguments, until, number)
        for module, arguments, until, usual in STEPS
        for number in SIGNALS
    ],
)
def test_a_stopped_program_ends_cleanly_and_leaves_nothing(
    module: str, arguments: list[str], until: str, number: signal.Signals, tmp_path: Path
) -> None:
    mark = f"{MARK}={tmp_path}"
    with subprocess.Popen(
        [sys.executable, "-u", "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, MARK: str(tmp_path), "TMPDIR": str(tmp_path)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as example:
        assert example.stdout is not None
        try:
            assert any(until in line for line in example.stdout), example.communicate()
            assert len(processes_with(mark)) > 1
            os.killpg(example.pid, number)
            example.send_signal(number)  # a second signal changes nothing
            _, error = example.communicate(timeout=LONGEST_END_SECONDS)
        finally:
            example.kill()
    assert error == "Stopping ...\nAll servers are stopped.\n"
    assert example.returncode == 128 + number
    assert processes_with(mark) == []
    assert list(tmp_path.iterdir()) == []


def processes_with(mark: str) -> list[str]:
    """Return the command lines of the processes that have `mark` in their environment."""
    commands = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # the process has ended, or belongs to another user
            if mark.encode() in (entry / "environ").read_bytes():
                commands.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return [command for command in commands if command]
