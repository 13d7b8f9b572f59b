"""Measure the memory that the command needs for a million keys, with many requests in flight."""

import tempfile
from pathlib import Path
from typing import Any

from bench.command import measure
from bench.report import say

KEYS = 1_000_000
IN_FLIGHT = 64
LATENCY = 20_000
"""Microseconds, long enough for the maximum of requests in flight."""
LONGEST_SECONDS = 120.0


def peak_megabytes() -> list[dict[str, Any]]:
    """Return the peak memory of `keyhop keys` to standard output, and into a directory."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for way, more in (
            ("to standard output", ()),
            ("with --output", ("--output", str(Path(folder) / "out"))),
        ):
            say(f"a million keys, {way}")
            flags = ("--threads", str(IN_FLIGHT), *more)
            figures = measure(
                LONGEST_SECONDS, flags, keys=KEYS, items=1, bytes=150, latency=LATENCY
            )
            rows.append({"way": way, **figures})
    return rows
