"""A table in a process of its own, so quick that it is not the limit: stub.c, compiled and run.

`python -m bench.stub --keys 1000000 --latency 50000` prints its address, and at the end of its
standard input (Ctrl-D) what it has served. The settings are told in stub.c.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from testing.servers import ROOT

SOURCE = Path(__file__).with_name("stub.c")
TABLE = "Stub"
TENTH = 0.1


@dataclass(frozen=True, slots=True)
class Served:
    """Scans of some time that were answered, and refused; items and read units of the former."""

    scans: int = 0
    throttled: int = 0
    items: int = 0
    units: float = 0.0

    @property
    def requests(self) -> int:
        return self.scans + self.throttled


@dataclass(slots=True)
class Stub:
    """A running stub; after its block also what it has served.

    began: when the first Scan came, by time.monotonic(). tenths: of each tenth of a second since.
    """

    url: str
    cpu_seconds: float = 0.0
    began: float = 0.0
    most_in_flight: int = 0
    tenths: list[Served] = field(default_factory=list)

    def served(self, begin: float = 0.0, end: float | None = None) -> Served:
        """Between two moments, in seconds since the first Scan, of whole tenths of a second."""
        some = self.tenths[round(begin / TENTH) : None if end is None else round(end / TENTH)]
        return Served(
            sum(one.scans for one in some),
            sum(one.throttled for one in some),
            sum(one.items for one in some),
            sum(one.units for one in some),
        )


@contextmanager
def stub(cores: Sequence[int] = (), **settings: int) -> Iterator[Stub]:
    """Run one, on these cores; it ends with the block, or with this process."""
    arguments = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    with subprocess.Popen(
        [compiled(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if cores:
            os.sched_setaffinity(process.pid, cores)
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline()
        if not port:
            raise SystemExit(f"The stub did not start: {' '.join(arguments)}")
        running = Stub(f"http://127.0.0.1:{int(port)}")
        try:
            yield running
        finally:
            process.stdin.close()
            told: dict[str, Any] = json.loads(process.stdout.read())
            running.cpu_seconds, running.began = told["cpu_seconds"], told["began"]
            running.most_in_flight = told["most_in_flight"]
            running.tenths = [Served(*one) for one in told["tenths"]]


@cache
def compiled() -> Path:
    """The program, in .cache; raises SystemExit without a C compiler."""
    source = SOURCE.read_bytes()
    program = ROOT / ".cache" / "bench" / f"stub-{hashlib.sha256(source).hexdigest()[:16]}"
    if program.exists():
        return program
    if not sys.platform.startswith("linux"):
        raise SystemExit("The benchmark's stub needs Linux: it waits by epoll.")
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise SystemExit(
            "The benchmark's stub needs a C compiler (on Debian: apt-get install gcc)."
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    beside = program.with_suffix(f".{os.getpid()}")
    subprocess.run([compiler, "-O2", "-o", beside, SOURCE], check=True)
    beside.replace(program)
    return program


def main() -> None:
    """Become the stub, but for its address."""
    with subprocess.Popen(
        [compiled(), *sys.argv[1:]], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        if port := process.stdout.readline():
            print(f"http://127.0.0.1:{int(port)}", flush=True)
        sys.stdout.write(process.stdout.read())
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
