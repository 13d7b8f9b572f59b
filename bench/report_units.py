"""What a sample of 23 million items costs, and how wide its intervals are, by its read units.

    python -m bench.report_units [--runs 5] [--units 3000 2000]

The CPU time is that of the report alone: what the table in this process takes for its answers
(testing/clustered.py) is not in it, and neither is the start of the command.
"""

import argparse
import random
import statistics
import time
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


def main() -> None:
    """Print the figures for each number of units."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--units", type=float, nargs="+", default=[3_000.0, 2_000.0])
    options = parser.parse_args()
    name = "lognormal, sigma 1"
    table = TimedTable(lengths_of(name, random.Random(name)) * REPEATED, name)
    print(f"{table.items:,} items, {table.bytes / 1e9:.1f} GB")
    widths: dict[tuple[float, str], list[float]] = {}
    for units in options.units:
        used, seconds = [], []
        for run in range(options.runs):
            table.seconds, began = 0.0, time.process_time()
            facts = sampled(table, str(run), units)
            seconds.append(time.process_time() - began - table.seconds)
            used.append(facts.rru)
            for statistic, estimate, true in estimates(facts, table):
                width = (estimate.high - estimate.low) / 2 / true if true else 0.0
                widths.setdefault((units, statistic), []).append(width)
        print(
            f"{units:g} units: {statistics.fmean(used):,.0f} RRU, "
            f"{statistics.median(seconds):.1f} s of CPU"
        )
    for statistic in dict.fromkeys(statistic for _, statistic in widths):
        shown = [f"{statistics.median(widths[units, statistic]):7.1%}" for units in options.units]
        print(f"± {'  '.join(shown)}  {statistic}")


if __name__ == "__main__":
    main()
