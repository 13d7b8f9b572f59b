"""What a sample of 23 million items costs, and how wide its intervals are, by its read units.

    python -m bench.report_units [--runs 5] [--units 3000 2000]

The CPU time is that of the report alone: what the table in this process takes for its answers
(testing/clustered.py) is not in it, and neither is the start of the command.
"""

import argparse
import random
import statistics
import time
from collections import defaultdict
from typing import Any

from bench.report_intervals import estimates
from testing.clustered import ClusteredTable, lengths_of, sampled

REPEATED = 58
"""The lengths of 10,000 collections so many times: 580,000 keys with 23 million items."""


class TimedTable(ClusteredTable):
    """A table that counts the CPU seconds of its answers."""

    seconds = 0.0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        began = time.process_time()
        try:
            return super().call(operation, **request)
        finally:
            self.seconds += time.process_time() - began


def measured(units: float, runs: int) -> dict[str, Any]:
    """Return the mean read units, the median CPU seconds, and half of the width of the intervals.

    A width is a share of the true value: the median over the runs, by the names of the figures.
    """
    name = "lognormal, sigma 1"
    table = TimedTable(lengths_of(name, random.Random(name)) * REPEATED, name)
    used, seconds = [], []
    widths: defaultdict[str, list[float]] = defaultdict(list)
    for run in range(runs):
        table.seconds, began = 0.0, time.process_time()
        facts = sampled(table, str(run), units)
        seconds.append(time.process_time() - began - table.seconds)
        used.append(facts.rru)
        for statistic, estimate, true in estimates(facts, table):
            widths[statistic].append((estimate.high - estimate.low) / 2 / true if true else 0.0)
    return {
        "items": table.items,
        "units": statistics.fmean(used),
        "cpu_seconds": statistics.median(seconds),
        "widths": {statistic: statistics.median(found) for statistic, found in widths.items()},
    }


def main() -> None:
    """Print the figures for each number of units."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--units", type=float, nargs="+", default=[3_000.0, 2_000.0])
    options = parser.parse_args()
    rows = {units: measured(units, options.runs) for units in options.units}
    for units, row in rows.items():
        print(
            f"{units:g} units, {row['items']:,} items: {row['units']:,.0f} RRU, "
            f"{row['cpu_seconds']:.1f} s of CPU"
        )
    for statistic in dict.fromkeys(name for row in rows.values() for name in row["widths"]):
        shown = [f"{row['widths'][statistic]:7.1%}" for row in rows.values()]
        print(f"± {'  '.join(shown)}  {statistic}")


if __name__ == "__main__":
    main()
