"""Measure with cProfile where the CPU time of `keyhop keys` goes, and draw docs/profile.svg.

`python -m bench.profile` takes some seconds. Each reading thread has a separate profile of its CPU
time. The profiler costs about the same for each call, and this cost is subtracted. The remaining
times are scaled to the CPU time of a run without the profiler.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from cProfile import Profile
from functools import partial
from html import escape
from pstats import Stats
from typing import Any
from unittest.mock import patch

from bench.command import halves
from bench.measure import keyhop
from bench.stub import TABLE, stub
from testing.baselines import Reading
from testing.dark import for_dark_pages
from testing.servers import ROOT

PICTURE = ROOT / "docs" / "profile.svg"
SETTINGS = {"keys": 5_000, "items": 1_000, "bytes": 500, "latency": 5_000}
"""A key has 1,000 items, so each key takes one page, which is one request."""

PARTS = {
    "sign": tuple(f"keyhop/dynamodb/transport.py:{name}:" for name in ("head", "_begin", "_key")),
    "send and receive": tuple(
        f"keyhop/dynamodb/transport.py:{name}:"
        for name in ("ask", "_kept", "_connect", "_trust", "_read", "_more", "_exactly", "_chunks")
    ),
    "JSON": ("json/",),
    "build requests, parse responses": ("keyhop/dynamodb/transport.py",),
    "decide when to send (rate, in flight)": (
        "keyhop/dynamodb/rate_limit.py",
        "keyhop/scan/in_flight.py",
    ),
    "count units; retry failures": ("keyhop/dynamodb/", "keyhop/retries.py"),
    "choose the size of the next page": ("keyhop/scan/page_size.py",),
    "set parameters, extract keys (reader)": ("keyhop/scan/reader.py", "keyhop/scan/skip_scan.py"),
    "find the next start key (walk)": ("keyhop/scan/", "keyhop/jobs/pages.py", "keyhop/keys/"),
    "write keys (commit step)": ("keyhop/jobs/", "keyhop/cli/", "bench/"),
}
"""The files, or file:function:, of each part. Code that matches several counts for the first."""
ELSE = "all else"
CALLS = 500_000

Function = tuple[str, int, str]
"""A file, a line and a name, as in pstats."""

WIDTH, LEFT, TOP, ROW, BAR = 860, 300, 74, 30, 20


def main() -> None:
    """Measure, and draw the picture."""
    PICTURE.write_text(for_dark_pages("\n".join(draw(measure())) + "\n"))


def measure() -> Counter[str]:
    """Return the microseconds of CPU for a request, by part."""
    cpu = _run()
    profiles: list[Profile] = []
    with patch("threading.Thread.run", _profiled(profiles, threading.Thread.run)):
        _run()
    stats = Stats(*profiles).stats  # type: ignore[attr-defined]
    return parts_of(stats, _seconds_of_a_call(), cpu)


def _run() -> float:
    """Return the microseconds of CPU for a request."""
    with stub(halves()[1], **SETTINGS) as table:
        read = keyhop(table.url, TABLE, None)
        began = time.process_time()
        reading: Reading = read()
        return 1e6 * (time.process_time() - began) / reading.requests


def _profiled(profiles: list[Profile], run: Any) -> Any:
    def profiled(thread: threading.Thread) -> None:
        profile = Profile(time.thread_time)
        profiles.append(profile)
        profile.runcall(partial(run, thread))

    return profiled


def _seconds_of_a_call() -> float:
    """Return the seconds that the profiler adds to each call."""
    profile, began = Profile(time.thread_time), time.thread_time()
    profile.runcall(lambda: [len(()) for _ in range(CALLS)])
    return (time.thread_time() - began) / CALLS


def parts_of(stats: Mapping[Function, Any], seconds_of_a_call: float, cpu: float) -> Counter[str]:
    """Divide the CPU time of a request among the parts.

    Args:
        stats: the statistics of pstats.Stats
        seconds_of_a_call: how many seconds the profiler adds to each call
        cpu: the microseconds of CPU for a request without the profiler
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    calls: defaultdict[str, float] = defaultdict(float)
    for function, (_, count, own_seconds, _, _) in stats.items():
        for part, share in _shares(stats, function, frozenset()).items():
            seconds[part] += share * own_seconds
            calls[part] += share * count
    net = {part: max(0.0, seconds[part] - seconds_of_a_call * calls[part]) for part in seconds}
    total = sum(net.values())
    return +Counter({part: round(cpu * net[part] / total) for part in net})


def _shares(
    stats: Mapping[Function, Any], function: Function, below: frozenset[Function]
) -> dict[str, float]:
    """Return the shares of a function's time by part: its part, or its callers' parts."""
    for part, files in PARTS.items():
        if any(f"/{file}" in f"{function[0]}:{function[2]}:" for file in files):
            return {part: 1.0}
    callers = {f: calls[0] for f, calls in stats[function][4].items() if f not in below}
    if not callers:
        return {ELSE: 1.0}
    shares: Counter[str] = Counter()
    for caller, count in callers.items():
        for part, share in _shares(stats, caller, below | {function}).items():
            shares[part] += share * count / sum(callers.values())  # type: ignore[assignment]
    return dict(shares)


def draw(parts: Counter[str]) -> Iterator[str]:
    """Yield the lines of the picture."""
    total, maximum = parts.total(), max(parts.values())
    height = TOP + ROW * len(parts) + 14
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14" fill="#1f2933">'
    )
    yield "<title>Where the CPU of keyhop keys goes</title>"
    yield f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    yield '<text x="20" y="30" font-size="18">Where the CPU of keyhop keys goes</text>'
    yield (
        f'<text x="20" y="54" fill="#52606d">microseconds for a request, of {total:,} in all; '
        "a table of 1,000 items a key, 5 ms away</text>"
    )
    for number, (part, spent) in enumerate(parts.most_common()):
        y = TOP + ROW * number
        width = (WIDTH - LEFT - 110) * spent / maximum
        yield f'<text x="{LEFT - 12}" y="{y + 15}" text-anchor="end">{escape(part)}</text>'
        yield (
            f'<rect x="{LEFT}" y="{y}" width="{width:.0f}" height="{BAR}" rx="2" fill="#1b7f5a"/>'
        )
        yield (
            f'<text x="{LEFT + width + 8:.0f}" y="{y + 15}">{spent:,}'
            f'<tspan dx="8" fill="#52606d">{spent / total:.0%}</tspan></text>'
        )
    yield "</svg>"


if __name__ == "__main__":
    main()
