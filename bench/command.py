"""Run the command against the stub, and measure its requests, CPU time and memory.

`python -m bench.command --seconds 20 --latency 50000 -- --threads 64` prints the figures as JSON.
It takes the settings of the stub, and after -- any flags of the command.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from bench.stub import TABLE, Stub, stub
from testing.servers import ROOT

LIBRARY = ROOT / "lambdas"
TICK = 1 / os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.1
LATER_SECONDS = 10.0


@contextmanager
def library_of(commit: str) -> Iterator[Path]:
    """Yield the folder of the library as of a commit; raise SystemExit without a history."""
    archive = ["git", "archive", "--format=tar", commit, "lambdas"]
    ended = subprocess.run(archive, cwd=ROOT, stdout=subprocess.PIPE)
    if ended.returncode:
        raise SystemExit(f"The comparison with commit {commit} needs a clone with its history.")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(ended.stdout)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder) / "lambdas"


def environment(library: Path = LIBRARY) -> dict[str, str]:
    """Return the environment of a local command: the library, and credentials without meaning.

    Modules are compiled once, as in an installation, even if this environment forbids it.
    """
    replaced = ("AWS_", "KEYHOP_", "PYTHONDONTWRITEBYTECODE")
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith(replaced)},
        "PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "bench" / "pycache"),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{library}",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def keyhop(url: str, *flags: str) -> list[str]:
    """Return the command line of `keyhop keys` on the stub's table."""
    place = ("--endpoint-url", url, "--yes", "--quiet")
    return [sys.executable, "-m", "keyhop", "keys", TABLE, *place, *flags]


def every() -> list[int]:
    """Return the available cores."""
    return sorted(os.sched_getaffinity(0))


def halves() -> tuple[Sequence[int], Sequence[int]]:
    """Return a core for the client, and the others for the stub; they share a single core."""
    return every()[:1], every()[1:] or every()


def measure(
    seconds: float,
    flags: Sequence[str] = (),
    library: Path = LIBRARY,
    cores: tuple[Sequence[int], Sequence[int]] | None = None,
    **settings: int,
) -> dict[str, Any]:
    """Run the command until it ends, or interrupt it as by Ctrl-C after so many seconds.

    Args:
        seconds: after how many seconds to interrupt the command
        flags: flags of the command
        library: the folder of the library
        cores: the cores of the client, and those of the stub
        settings: the settings of the stub

    Returns:
        The figures: `requests_per_second` from the first Scan to the last; `steady`, the same in
        the second half of that time; `cpu_us`, the CPU of all processes of the command for a
        request of that half; `cpu_share`, the share of one core; `stub_share`, the same for the
        stub over the whole time; `megabytes`, the peak of the largest process; `in_flight`, the
        maximum of concurrent requests; and `later`, the figures after LATER_SECONDS.
    """
    client_cores, stub_cores = halves() if cores is None else cores
    with stub(stub_cores, **settings) as table, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        process = subprocess.Popen(
            keyhop(table.url, "--summary", str(report), *flags),
            env=environment(library),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        if client_cores:
            os.sched_setaffinity(process.pid, client_cores)
        try:
            looks, peaks = _watch(process, seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        summary = json.loads(report.read_text()) if report.exists() else {}
    figures = _figures(table, looks)
    return {**figures, "megabytes": max(peaks.values()), "keys": summary.get("keys")}


Look = tuple[float, float]
"""A time (time.monotonic()), and the CPU seconds of all processes until then."""


def _watch(
    process: "subprocess.Popen[bytes]", seconds: float
) -> tuple[list[Look], dict[int, float]]:
    began = time.monotonic()
    looks: list[Look] = []
    peaks: dict[int, float] = {}
    while process.poll() is None:
        moment, used = time.monotonic(), 0.0
        for number, cpu, peak in family(process.pid):
            used += cpu
            peaks[number] = max(peaks.get(number, 0.0), peak)
        looks.append((moment, used))
        if moment - began >= seconds:
            os.killpg(process.pid, signal.SIGINT)
            break
        time.sleep(LOOK_SECONDS)
    status = process.wait(timeout=30)
    if status not in (0, 130):
        raise SystemExit(f"The command ended with exit status {status}.")
    return looks, peaks


def family(process: int) -> Iterator[tuple[int, float, float]]:
    """Yield a process and its descendants: id, CPU seconds so far, and peak memory in MB."""
    place = Path("/proc", str(process))
    with suppress(OSError, IndexError):  # the process has ended
        fields = (place / "stat").read_text().rpartition(")")[2].split()
        peak = int((place / "status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
        yield process, (int(fields[11]) + int(fields[12])) * TICK, peak
        for thread in (place / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from family(int(child))


def _figures(table: Stub, looks: list[Look]) -> dict[str, Any]:
    last = looks[-1][0] - table.began
    total = table.served(0.0, last)
    inside = [look for look in looks if look[0] - table.began >= last / 2]
    (begin, cpu_before), (end, cpu_after) = inside[0], looks[-1]
    half = table.served(begin - table.began, end - table.began)
    lasted = max(end - begin, LOOK_SECONDS)
    later = table.served(LATER_SECONDS, last)
    return {
        "requests": total.requests,
        "units": total.units,
        "seconds": last,
        "requests_per_second": total.requests / last,
        "steady": half.requests / lasted,
        "cpu_us": 1e6 * (cpu_after - cpu_before) / max(1, half.requests),
        "cpu_share": (cpu_after - cpu_before) / lasted,
        "stub_share": table.cpu_seconds / last,
        "in_flight": table.most_in_flight,
        "later": {
            "seconds": max(0.0, last - LATER_SECONDS),
            "units": later.units,
            "throttled": later.throttled / max(1, later.requests),
        },
    }


def main() -> None:
    """Measure once with the given arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    for name in ("keys", "items", "bytes", "latency", "rate", "burst"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("flags", nargs="*", help="flags of the command, after --")
    arguments = vars(parser.parse_args())
    seconds, flags = arguments.pop("seconds"), arguments.pop("flags")
    settings = {name: value for name, value in arguments.items() if value is not None}
    print(json.dumps(measure(seconds, flags, **settings), indent=1))


if __name__ == "__main__":
    main()
