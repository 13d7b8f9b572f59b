"""Processes of this machine: how many can run at once, and how to start one."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import keyhop

if TYPE_CHECKING:
    from multiprocessing.connection import Connection as Link

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Started(Protocol):
    """A process that was started, such as a subprocess.Popen."""

    def kill(self) -> None: ...
    def wait(self) -> int: ...


StartProcess = Callable[["Link", Sequence[int]], Started]
"""A function that starts a process with an end of a link, which it closes here, and with further
file descriptors."""


def cores() -> int:
    """Return how many processors this process may use: by its affinity, and by its CPU quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = CPU_QUOTA.read_text().split()
        count = min(count, math.ceil(int(quota) / int(period)))  # "max" raises ValueError
    return max(1, count)


def starting(program: str) -> StartProcess:
    """Return a function that runs a module of this library with its link's descriptor."""

    def start(link: "Link", descriptors: Sequence[int]) -> Started:
        number = link.fileno()
        places = [str(Path(keyhop.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        with link, _signals_held():
            return subprocess.Popen(
                [sys.executable, "-P", "-m", program, str(number)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(number, *descriptors),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
            )

    return start


@contextmanager
def _signals_held() -> Iterator[None]:
    """Block SIGINT and SIGTERM, so that a process that is started inherits the blocked signals.

    Ctrl-C goes to all processes of a terminal. This process receives it afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
