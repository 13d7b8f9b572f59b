"""A burst second by second: a single key beside a key that gets shards, with the same seeds.

    python -m bench.sharding_seconds 20 > seconds.md

prints, for each second, the writes that were accepted: those of the single key, and those of the
sharded key as a share of these, in the seed in which that share is the lowest.
"""

import sys
from collections.abc import Iterator

from bench.markdown import markdown
from bench.sharding_burst import CALCULATED, LOG, Outcome, Way, burst

SECONDS = 12
SETTLE = {"settle_seconds": 2.0}
RELIEVED = 0.95
SEEDS = 20


def ways() -> Iterator[tuple[Way, Way]]:
    """Yield pairs of a single key and a sharded key for the same burst."""
    for times in (5.0, 10.0):
        for processes in (1, 32):
            for name, settings in (("calculated", CALCULATED), ("append-only", LOG)):
                title = f"{times:g} times, {name}, {processes} process" + "es" * (processes > 1)
                single = Way("a single key", 1, times=times, seconds=SECONDS)
                yield (
                    single,
                    Way(
                        title,
                        settings=settings | SETTLE,
                        times=times,
                        processes=processes,
                        seconds=SECONDS,
                    ),
                )


def relief(outcome: Outcome) -> int | None:
    """Return the first second in which nearly all requested writes were accepted."""
    enough = RELIEVED * outcome.way.rate
    seconds = (second for second, units in enumerate(outcome.by_second) if units >= enough)
    return next(seconds, None)


def compared(seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield a row of the table for each pair."""
    for single, sharded in ways():
        shares: list[list[float]] = []
        reliefs: list[float] = []
        waits: list[float] = []
        for seed in range(5, 5 + seeds):
            alone, spread = burst(single, seed), burst(sharded, seed)
            pairs = zip(spread.by_second, alone.by_second, strict=True)
            shares.append([there / here for there, here in pairs])
            relieved = relief(spread)
            reliefs.append(SECONDS if relieved is None else relieved)
            waits.append(spread.longest_wait)
        lowest = [f"{min(each):.0%}" for each in zip(*shares, strict=True)]
        yield (
            sharded.title,
            *lowest,
            f"{sorted(reliefs)[len(reliefs) // 2]:g} s, {max(reliefs):g} s",
            f"{max(waits):.1f} s",
        )


def table(seeds: int = SEEDS) -> Iterator[str]:
    """Yield the lines of the table in markdown."""
    headings = ("burst", *map(str, range(SECONDS)), "relief: median, latest", "longest wait")
    yield from markdown(headings, compared(seeds))


def main() -> None:
    """Print the table."""
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS):
        print(line, flush=True)


if __name__ == "__main__":
    main()
