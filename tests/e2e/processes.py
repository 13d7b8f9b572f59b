"""Find the processes in which a laptop cloud runs a function, to kill or stop one."""

import os
import time
from pathlib import Path

LONGEST_SECONDS = 240.0


def workers_of(function: str) -> set[int]:
    """Return the ids of a function's worker processes among the descendants of this process."""
    processes = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_worker = f"AWS_LAMBDA_FUNCTION_NAME={function}".encode() in environment
        if is_worker and _is_descendant(int(entry.name), os.getpid()):
            processes.add(int(entry.name))
    return processes


def _is_descendant(process: int, ancestor: int) -> bool:
    while process > 1:
        if process == ancestor:
            return True
        try:
            status = (Path("/proc") / str(process) / "stat").read_text()
        except OSError:
            return False
        process = int(status.rpartition(")")[2].split()[1])
    return False


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process; 0 if it has ended."""
    try:
        fields = (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_worker(function: str, excluded: set[int] = frozenset()) -> int:  # type: ignore[assignment]
    """Return a worker process of a function that is using its processor now."""
    deadline = time.monotonic() + LONGEST_SECONDS
    before: dict[int, float] = {}
    while time.monotonic() < deadline:
        for process in workers_of(function) - excluded:
            used = cpu_seconds(process)
            if process in before and used > before[process] + 0.05:
                return process
            before.setdefault(process, used)
        time.sleep(0.1)
    raise AssertionError(f"no worker of {function} is busy")
