"""A burst second by second: a single key beside a key that gets shards, with the same seeds.

    python -m bench.sharding_seconds

measures for some minutes, in virtual time, writes docs/sharding-seconds.json, and renews its
section of docs/internals/benchmark-sharding.md. Bursts of 5 times are also measured with the
library as of commit BASE, whose growths did not claim new items. `docs/draw_bursts.py` draws the
figures.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from statistics import median_low
from typing import Any

from bench.command import environment, library_of
from bench.markdown import markdown
from bench.report import DOCS
from bench.sharding_burst import CALCULATED, KEY_RATE, LOG, SEED, Way, burst

FIGURES = DOCS / "sharding-seconds.json"
REPORT = DOCS / "internals" / "benchmark-sharding.md"
HEADING = "## A burst second by second"
BASE = "c458999e"
SECONDS = 12
SETTLE = {"settle_seconds": 2.0}
CALLERS = 50
RELIEVED = 0.95
SEEDS = 20
SEEDS_BEFORE = 2
TIMES_BEFORE = 5.0

Bursts = list[dict[str, Any]]
"""The bursts of one library: `title`, `wanted` (writes a second), and for each seed `single` and
`sharded` (writes that were accepted in each second) and `waits` (the longest wait of a call).
"""


def ways() -> Iterator[Way]:
    """Yield the bursts on a sharded key."""
    for times in (5.0, 10.0):
        for processes in (1, CALLERS):
            for name, settings in (("calculated", CALCULATED), ("append-only", LOG)):
                title = f"{times:g} times, {name}, {processes} process" + "es" * (processes > 1)
                yield Way(
                    title,
                    settings=settings | SETTLE,
                    times=times,
                    writers=CALLERS,
                    processes=processes,
                    seconds=SECONDS,
                )


@cache
def single(times: float, seed: int) -> list[int]:
    """Return the writes that a single key accepts in each second of a burst."""
    way = Way("a single key", 1, times=times, writers=CALLERS, seconds=SECONDS)
    return burst(way, seed).by_second


def measured(way: Way, seed_count: int) -> dict[str, Any]:
    """Return a burst with some seeds, and with the library that this process imports."""
    seeds = range(SEED, SEED + seed_count)
    outcomes = [burst(way, seed) for seed in seeds]
    return {
        "title": way.title,
        "wanted": way.rate,
        "single": [single(way.times, seed) for seed in seeds],
        "sharded": [outcome.by_second for outcome in outcomes],
        "waits": [round(outcome.longest_wait, 1) for outcome in outcomes],
    }


def bursts_before() -> Bursts:
    """Return the bursts of TIMES_BEFORE times."""
    return [measured(way, SEEDS_BEFORE) for way in ways() if way.times == TIMES_BEFORE]


def measure() -> dict[str, Any]:
    """Measure with this library and with that of BASE, and write the figures."""
    with library_of(BASE) as base:
        before = subprocess.Popen(
            [sys.executable, "-m", "bench.sharding_seconds", "--before"],
            env=environment(base),
            stdout=subprocess.PIPE,
        )
        now = [measured(way, SEEDS) for way in ways()]
        figures = {
            "key_rate": KEY_RATE,
            "before": json.loads(before.communicate()[0]),
            "now": now,
        }
    FIGURES.write_text(json.dumps(figures) + "\n")
    return figures


def lowest(burst: dict[str, Any]) -> list[float]:
    """Return for each second the lowest share, of all seeds, of what the single key accepted."""
    shares = [
        [sharded / single for sharded, single in zip(spread, alone, strict=True)]
        for spread, alone in zip(burst["sharded"], burst["single"], strict=True)
    ]
    return [min(each) for each in zip(*shares, strict=True)]


def reliefs(burst: dict[str, Any]) -> list[int]:
    """Return for each seed, in order, the first second in which nearly all was accepted.

    It is the length of the burst if there was no such second.
    """
    enough = RELIEVED * burst["wanted"]
    return sorted(
        next((second for second, units in enumerate(run) if units >= enough), len(run))
        for run in burst["sharded"]
    )


def section(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the report's section, without its heading."""
    yield "![Accepted writes in each second of a burst](../bursts.svg)"
    yield ""
    headings = ("burst", *map(str, range(SECONDS)), "relief: median, latest", "longest wait")
    yield from markdown(headings, _rows(figures))
    yield ""
    yield (
        f"For each second of the burst: the acknowledged writes as a share of those that a single "
        f"key accepts: the lowest of {SEEDS} seeds. {CALLERS} callers "
        f"write in one process, or in one each. Both run with the same seeds, and the sharded key "
        f"has `settle_seconds` of {SETTLE['settle_seconds']:g}. "
        f"Relief: the first second in which {RELIEVED:.0%} of the requested writes are accepted; "
        f"{SECONDS} s if there was none. The burst begins with a second's units saved, so that the "
        f"first throttle comes after a fraction of a second. Rows with *before* are measured with "
        f"commit {BASE} and {SEEDS_BEFORE} seeds; new items were not "
        f"[claimed](sharding-protocol.md#claims) during a growth then. The picture shows the "
        f"bursts of {TIMES_BEFORE:g} times: the median of the seeds, and for Keyhop their range; "
        f"the dotted line is the requested rate."
    )


def _rows(figures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    before = {each["title"]: each for each in figures["before"]}
    for now in figures["now"]:
        for each, suffix in ((before.get(now["title"]), ", before"), (now, "")):
            if each is not None:
                yield (
                    f"{each['title']}{suffix}",
                    *(f"{share:.0%}" for share in lowest(each)),
                    f"{median_low(reliefs(each))} s, {reliefs(each)[-1]} s",
                    f"{max(each['waits'])} s",
                )


def write_section(figures: dict[str, Any]) -> None:
    """Renew the report's section."""
    lines = "\n".join((HEADING, "", *section(figures), "", ""))
    pattern = re.compile(rf"(?s){HEADING}\n.*?(?=## )")
    REPORT.write_text(pattern.sub(lambda _: lines, REPORT.read_text(), count=1))


def main() -> None:
    """Renew the figures and the section, or print the bursts of an earlier library."""
    if sys.argv[1:]:
        json.dump(bursts_before(), sys.stdout)
    else:
        write_section(measure())


if __name__ == "__main__":
    main()
