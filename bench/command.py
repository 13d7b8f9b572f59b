"""The command against the stub, for some seconds: requests, and the CPU and memory they took.

`python -m bench.command --seconds 20 --latency 50000 --cores 0 -- --threads 64` prints it as JSON:
of the stub's settings and the command's flags, any. With PYTHONPATH at the library of another
commit, that one's.
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
    """Yield the folder of the library as of a commit; raise SystemExit if there is no history."""
    archive = ["git", "archive", "--format=tar", commit, "lambdas"]
    ended = subprocess.run(archive, cwd=ROOT, stdout=subprocess.PIPE)
    if ended.returncode:
        raise SystemExit(f"Commit {commit} is compared with: this needs a clone with its history.")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(ended.stdout)) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder) / "lambdas"


def environment(library: Path = LIBRARY) -> dict[str, str]:
    """What a local command needs: the library, and credentials that mean nothing.

    Modules are compiled once, as an installation does it: also where the environment forbids it.
    """
    own = ("AWS_", "KEYHOP_", "PYTHONDONTWRITEBYTECODE")
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith(own)},
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
    """`keyhop keys` on the stub's table, as a command."""
    place = ("--endpoint-url", url, "--yes", "--quiet")
    return [sys.executable, "-m", "keyhop", "keys", TABLE, *place, *flags]


def every() -> list[int]:
    """The cores that there are."""
    return sorted(os.sched_getaffinity(0))


def halves() -> tuple[Sequence[int], Sequence[int]]:
    """A core for the client, and the others for the stub; where there is only one, it is shared."""
    return every()[:1], every()[1:] or every()


def measure(
    seconds: float,
    flags: Sequence[str] = (),
    library: Path = LIBRARY,
    cores: tuple[Sequence[int], Sequence[int]] | None = None,
    **settings: int,
) -> dict[str, Any]:
    """Run the command until it ends, or is interrupted as by Ctrl-C after so many seconds.

    cores: of the client and of the stub. What is told:
    requests_per_second: from the first Scan to the last. steady: in the second half of that.
    cpu_us: of all the command's processes, for a request of that half. cpu_share: of one core.
    stub_share: the same of the stub, over all of it. megabytes: the peak of the largest process.
    in_flight: the most at once. later: what was served after LATER_SECONDS, if it took so long.
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
        found = json.loads(report.read_text()) if report.exists() else {}
    return {**_told(table, looks), "megabytes": max(peaks.values()), "keys": found.get("keys")}


Look = tuple[float, float]
"""When, by time.monotonic(), and the CPU seconds of all processes until then."""


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
        raise SystemExit(f"the command ended with {status}")
    return looks, peaks


def family(process: int) -> Iterator[tuple[int, float, float]]:
    """A process and those below it: of each its id, CPU seconds so far, and peak memory in MB."""
    place = Path("/proc", str(process))
    with suppress(OSError, IndexError):  # gone meanwhile
        fields = (place / "stat").read_text().rpartition(")")[2].split()
        peak = int((place / "status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
        yield process, (int(fields[11]) + int(fields[12])) * TICK, peak
        for thread in (place / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from family(int(child))


def _told(table: Stub, looks: list[Look]) -> dict[str, Any]:
    last = looks[-1][0] - table.began
    whole = table.served(0.0, last)
    inside = [look for look in looks if look[0] - table.began >= last / 2]
    (begin, cpu_before), (end, cpu_after) = inside[0], looks[-1]
    half = table.served(begin - table.began, end - table.began)
    lasted = max(end - begin, LOOK_SECONDS)
    later = table.served(LATER_SECONDS, last)
    return {
        "requests": whole.requests,
        "units": whole.units,
        "seconds": last,
        "requests_per_second": whole.requests / last,
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
    """Measure once, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    for name in ("keys", "items", "bytes", "latency", "rate", "burst"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("flags", nargs="*", help="of the command, after --")
    given = vars(parser.parse_args())
    seconds, flags = given.pop("seconds"), given.pop("flags")
    settings = {name: value for name, value in given.items() if value is not None}
    print(json.dumps(measure(seconds, flags, **settings), indent=1))


if __name__ == "__main__":
    main()
