"""Processes of this machine: how many may run at once, and how one is started."""

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
    """A process, as subprocess.Popen is one."""

    def kill(self) -> None: ...
    def wait(self) -> int: ...


StartProcess = Callable[["Link", Sequence[int]], Started]
"""Starts a process that has this end of a link, which is closed here, and other descriptors."""


def cores() -> int:
    """Processors that this process may use, by its affinity and, in a container, by its quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = CPU_QUOTA.read_text().split()
        count = min(count, math.ceil(int(quota) / int(period)))  # "max" is no number
    return max(1, count)


def starting(program: str) -> StartProcess:
    """What runs a module of this library, with its link's descriptor as its one argument."""

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
    """A process that is started meanwhile never hears of Ctrl-C, which goes to all of a terminal's;
    this one does, afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
