"""How often the 95 % intervals of the real sampler hold what is true of a clustered table.

    python -m bench.report_intervals [--runs 100] [--units 600] [--table NAME] [--write]

Each run is a whole sample (keyhop.report.sampling.sample), with its budget, its first look, its
draw and its rows; only the database is a table in this process (testing/clustered.py). With --write
the counts are added to docs/report-intervals.json, so that several short calls make one
measurement. docs/internals/report-statistics.md has the result.
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from keyhop.report.estimate import Estimate
from keyhop.report.facts import SampleFacts

from bench.report_statistics import FIGURES, REPORT, lines
from bench.report_statistics import SAMPLED as JSON
from testing.clustered import LEVELS, TABLES, ClusteredTable, lengths_of, sampled


def estimates(facts: SampleFacts, table: ClusteredTable) -> Iterator[tuple[str, Estimate, float]]:
    """Yield each estimate of a sample, with the true value."""
    true = table.true
    tag = next((tag.share for tag in facts.tags if tag.name == "ORG"), None)
    single: dict[str, Estimate | None] = {
        "keys": facts.keys,
        "items per key, mean": facts.mean_items,
        "Gini": facts.gini,
        "item size, mean": facts.item_mean,
        "share with an attribute": facts.coverage.get("mail"),
        "share with a tag": tag,
        **{f"items per key, p{100 * p:g}": facts.length.get(p) for p in LEVELS},
        **{f"item size, p{100 * p:g}": facts.item_bytes.get(p) for p in LEVELS},
    }
    yield from ((name, one, true[name]) for name, one in single.items() if one is not None)
    if facts.unseen is not None and facts.seen_largest is not None:
        yield "share in unseen collections", facts.unseen, table.share_above(facts.seen_largest)
    for items, share in list(facts.beyond.items())[-1:]:
        yield "share in large collections", share, table.share_above(items - 1)


def measured(
    names: Sequence[str], runs: int, units: float, note: Callable[[str], None]
) -> Counter[tuple[str, str, str]]:
    """Return how many estimates there were, and how many of them held, by table and statistic."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for name in names:
        table = ClusteredTable(lengths_of(name, random.Random(name)), name)
        began = time.process_time()
        for _ in range(runs):
            facts = sampled(table, f"{random.random()}", units)
            for statistic, estimate, true in estimates(facts, table):
                counts[name, statistic, "given"] += 1
                slack = 1e-9 * abs(true)
                counts[name, statistic, "held"] += (
                    estimate.low - slack <= true <= estimate.high + slack
                )
        note(f"{name}: {runs} runs, {(time.process_time() - began) / runs:.2f} s of CPU each")
    return counts


def main() -> None:
    """Run the samples, and print or write how many intervals held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--units", type=float, default=600.0)
    parser.add_argument("--table", action="append", choices=TABLES)
    parser.add_argument("--write", action="store_true", help=f"add the counts to {JSON.name}")
    options = parser.parse_args()
    counts = measured(options.table or TABLES, options.runs, options.units, print)
    figures = json.loads(JSON.read_bytes()) if options.write and JSON.exists() else {}
    for (table, statistic, kind), count in sorted(counts.items()):
        one = figures.setdefault(f"{options.units:g}", {}).setdefault(table, {})
        entry = one.setdefault(statistic, {"given": 0, "held": 0})
        entry[kind] += count
    for table, statistics in figures.get(f"{options.units:g}", {}).items():
        for statistic, entry in statistics.items():
            share = entry["held"] / entry["given"]
            print(f"{table:20} {statistic:28} {entry['held']:4} of {entry['given']:4} {share:7.1%}")
    if options.write:
        JSON.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        if FIGURES.exists():
            measured_before = json.loads(FIGURES.read_bytes())
            REPORT.write_text("\n".join(lines(measured_before)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
