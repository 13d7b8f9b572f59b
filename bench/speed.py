"""Measure the command's speed where the table limits it, and where the machine limits it.

`python -m bench.speed` measures for some minutes, on a machine that does nothing else. It updates
this part of docs/benchmark.*, with memory and client CPU; `make bench` does this too. The table is
the stub. The same run also measures the earlier commit BASE.
"""

import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench import profile
from bench.client_cpu import client_cpu
from bench.command import LIBRARY, environment, every, keyhop, library_of, measure
from bench.concurrency import designs
from bench.in_flight import in_flight
from bench.million import peak_megabytes
from bench.report import read_results, say, write_report
from bench.start import starts
from bench.stub import stub

BASE = "33c15f63"
"""The earliest commit whose command has the options that this benchmark uses."""

LARGE = {"keys": 20_000_000, "items": 1_000, "bytes": 500}
"""Each key needs a separate request, and a run never reaches the last key."""
SINGLES = {"keys": 20_000_000, "items": 1, "bytes": 3_000}
"""Each page has the maximum size."""
TEN = {"keys": 10, "items": 1, "bytes": 200}

FAR, NEAR = 50_000, 5_000
SECONDS = 20.0
PAIRS = 15
THROTTLED_SECONDS = 24.0
RATES = (
    ("1,000 items of 500 B", LARGE, 50),
    ("1,000 items of 500 B", LARGE, 500),
    ("1 item of 3 KB", SINGLES, 50),
    ("1 item of 3 KB", SINGLES, 500),
    ("1 item of 3 KB", SINGLES, 5_000),
)
"""Tables, and the read units a second that each serves."""
ONE, TWO = (("--processes", str(number)) for number in (1, 2))


def main() -> None:
    """Measure, and update the report and the picture of the profile."""
    results = read_results() | measure_all()
    say("a profile")
    profile.main()
    write_report(results)


def measure_all() -> dict[str, Any]:
    """Return this part of the results, by its names in docs/benchmark.json."""
    began = time.monotonic()
    with library_of(BASE) as base:
        figures = {**_command(base), **_parts(base)}
    say("client CPU")
    cpu, million = client_cpu(), peak_megabytes()
    minutes = round((time.monotonic() - began) / 60, 1)
    speed = {"base": BASE, "minutes": minutes, **figures}
    return {"speed": speed, "client_cpu": cpu, "million": million}


def _command(base: Path) -> dict[str, Any]:
    """Measure the command while it reads."""
    say(f"commit {BASE}, table 50 ms away")
    far_before = measure(SECONDS, library=base, latency=FAR, **LARGE)
    say("table 50 ms away")
    far = measure(SECONDS, ONE, latency=FAR, **LARGE)
    say("table 5 ms away")
    near = measure(SECONDS, ONE, latency=NEAR, **LARGE)
    say("one process, and two")
    shared = (every(), every())
    processes = [measure(SECONDS, flags, cores=shared, **LARGE) for flags in (ONE, TWO)]
    throttled = [_throttled(*row) for row in RATES]
    return {
        "far_before": far_before,
        "far": far,
        "near": near,
        "processes": processes,
        "throttled": throttled,
    }


def _parts(base: Path) -> dict[str, Any]:
    """Measure a small table, starts, and ways to have many requests in flight."""
    say("a small table")
    small = _small(base)
    say("starts")
    start = {"before": starts(base), "now": starts()}
    say("ways to have many requests in flight")
    return {"small": small, "start": start, "designs": designs(), "in_flight": in_flight()}


def _small(base: Path) -> dict[str, Any]:
    """Measure the seconds of the whole command on ten items, in pairs that take turns."""
    ways = {"before": base, "now": LIBRARY}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    with stub(latency=1_000, **TEN) as table, tempfile.TemporaryDirectory() as folder:
        for number in range(PAIRS + 1):
            for way, library in sorted(ways.items(), reverse=bool(number % 2)):
                began = time.monotonic()
                subprocess.run(
                    keyhop(table.url),
                    env=environment(library),
                    cwd=folder,
                    stdout=subprocess.DEVNULL,
                    check=True,
                )
                if number:  # the first pair compiles modules
                    seconds[way].append(time.monotonic() - began)
    return {way: median(times) for way, times in seconds.items()} | {
        "ratio": median(
            now / then for now, then in zip(seconds["now"], seconds["before"], strict=True)
        )
    }


def _throttled(title: str, table: dict[str, int], rate: int) -> dict[str, Any]:
    say(f"a table of {title} that serves {rate} RRU/s")
    figures = measure(THROTTLED_SECONDS, ONE, latency=NEAR, rate=rate, **table)
    later = figures["later"]
    return {
        "table": title,
        "rate": rate,
        "used": later["units"] / later["seconds"] / rate,
        "throttled": later["throttled"],
        "in_flight": figures["in_flight"],
    }


if __name__ == "__main__":
    main()
