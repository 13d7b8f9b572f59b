"""The processes in which a laptop cloud runs a function, to kill or to halt one."""

import os
import time
from pathlib import Path

LONGEST_SECONDS = 240.0


def workers_of(function: str) -> set[int]:
    """Process ids of a function's workers, among the processes of this test's own children."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        named = f"AWS_LAMBDA_FUNCTION_NAME={function}".encode() in environment
        if named and _is_descendant(int(entry.name), os.getpid()):
            found.add(int(entry.name))
    return found


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
    """Processor time that a process has used; 0 if it is gone."""
    try:
        fields = (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_worker(function: str, but: set[int] = frozenset()) -> int:  # type: ignore[assignment]
    """A worker of `function` that is at work: it uses its processor while we look."""
    deadline = time.monotonic() + LONGEST_SECONDS
    before: dict[int, float] = {}
    while time.monotonic() < deadline:
        for process in workers_of(function) - but:
            used = cpu_seconds(process)
            if process in before and used > before[process] + 0.05:
                return process
            before.setdefault(process, used)
        time.sleep(0.1)
    raise AssertionError(f"no worker of {function} is at work")
