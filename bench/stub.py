"""A table in a separate process that is fast enough not to limit a client: stub.c.

`python -m bench.stub --keys 1000000 --latency 50000` compiles and runs it, and prints its address.
At the end of standard input (Ctrl-D), it prints what it has served. stub.c lists the settings.
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
    """The answered and refused Scans of a period; the items and units of the answered ones."""

    scans: int = 0
    throttled: int = 0
    items: int = 0
    units: float = 0.0

    @property
    def requests(self) -> int:
        return self.scans + self.throttled


@dataclass(slots=True)
class Stub:
    """A running stub; after its block, also what it has served.

    Attributes:
        began: the time of the first Scan, by time.monotonic()
        tenths: what it has served in each tenth of a second since then
    """

    url: str
    cpu_seconds: float = 0.0
    began: float = 0.0
    most_in_flight: int = 0
    tenths: list[Served] = field(default_factory=list)

    def served(self, begin: float = 0.0, end: float | None = None) -> Served:
        """Return the Scans served between two times, in seconds since the first Scan."""
        tenths = self.tenths[round(begin / TENTH) : None if end is None else round(end / TENTH)]
        return Served(
            sum(tenth.scans for tenth in tenths),
            sum(tenth.throttled for tenth in tenths),
            sum(tenth.items for tenth in tenths),
            sum(tenth.units for tenth in tenths),
        )


@contextmanager
def stub(cores: Sequence[int] = (), **settings: int) -> Iterator[Stub]:
    """Run a stub on these cores; it ends with the block, or with this process."""
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
            figures: dict[str, Any] = json.loads(process.stdout.read())
            running.cpu_seconds, running.began = figures["cpu_seconds"], figures["began"]
            running.most_in_flight = figures["most_in_flight"]
            running.tenths = [Served(*tenth) for tenth in figures["tenths"]]


@cache
def compiled() -> Path:
    """Compile the program into .cache and return its path; raise SystemExit without a compiler."""
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
    """Run the stub, and print its address and then what it has served."""
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
