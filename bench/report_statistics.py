"""Measure the statistics of the key report on simulated tables.

`python -m bench.report_statistics` measures for some minutes and writes docs/report-statistics.json
and docs/internals/report-statistics.md. Seeds are fixed: the figures are the same on any machine.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.markdown import markdown
from bench.report import DOCS
from testing.report_coverage import cell, recall
from testing.report_densities import DENSITIES, ratios
from testing.report_population import MAKERS

FIGURES = DOCS / "report-statistics.json"
SAMPLED = DOCS / "report-intervals.json"
REPORT = DOCS / "internals" / "report-statistics.md"

RUNS = {300: 200, 3_000: 200, 30_000: 10}
GINI_RUNS = {300: 40, 3_000: 10}
NAMES = ("keys", "median", "p90", "p99", "giants", "unseen")
BUDGETS = (3, 9, 17, 33)
LENGTH_RUNS = 100
RECALL_RUNS = 20


def main() -> None:
    """Measure, then write both documents."""
    results = measure()
    FIGURES.write_text(json.dumps(results, indent=1) + "\n")
    REPORT.write_text("\n".join(lines(results)) + "\n")


def measure() -> dict[str, Any]:
    """Return shares of runs, and ratios of estimates to the true values."""
    return {
        "coverage": {
            str(budget): {name: _cell(name, budget, runs) for name in MAKERS}
            for budget, runs in RUNS.items()
        },
        "gini": {
            str(budget): {
                name: cell(name, budget, runs, with_gini=True).coverage("Gini") for name in MAKERS
            }
            for budget, runs in GINI_RUNS.items()
        },
        "lengths": {
            name: {str(units): _ratio(name, units) for units in BUDGETS} for name in DENSITIES
        },
        "recall": {str(exponent): _recall(exponent) for exponent in (1.0, 1.5)},
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _cell(name: str, budget: int, runs: int) -> dict[str, Any]:
    _say(f"{name}: {budget:,} read units")
    result = cell(name, budget, runs)
    figures = {
        statistic: [result.share_given(statistic), result.coverage(statistic)]
        for statistic in NAMES
        if result.given[statistic]
    }
    return {"figures": figures, "alarms": result.alarms / runs, "false": result.false / runs}


def _ratio(name: str, units: int) -> list[float]:
    """Return the 5th and 95th percentile of estimate/truth, and the coverage."""
    _say(f"lengths, {name}: {units} read units")
    estimates = ratios(name, units, LENGTH_RUNS)
    values = sorted(estimate.value for estimate in estimates)
    covered = sum(estimate.low <= 1 <= estimate.high for estimate in estimates)
    return [values[LENGTH_RUNS // 20], values[-1 - LENGTH_RUNS // 20], covered / LENGTH_RUNS]


def _recall(exponent: float) -> list[float]:
    _say(f"recall, Zipf {exponent}")
    result = recall(exponent, 1_200, RECALL_RUNS)
    return [result.recall, result.covered]


INTRODUCTION = """# Statistics of the key report

A report estimates the figures of a table by a sample, each with a 95 % interval. This page says how
each figure is made, and how often its interval held the true value on known tables. The methods are
in `keyhop/report/statistics`, the tables and the sampler in `testing/report_population.py`. Made by
`python -m bench.report_statistics`; seeds are fixed. Nothing here was measured on AWS.

## How each figure is made

- **Distinct keys.** The sample counts the keys of whole random segments of about 8 keys. The counts
  are Poisson, so the interval has Garwood's limits. It is wider if segments differ more than that,
  and narrower by the part of the table that was read.
- **Items per collection.** If a collection was not read to its end, windows measure its length.
  Quantiles have the limits of order statistics, at least a factor of 1.25 where lengths were
  measured. The pooled error of the windows is subtracted from the spread. A quantile with fewer
  than 10 sampled collections beyond it is not given.
- **Length of one collection.** 0.5 read units for its end, 1 for each window: a page before and a
  page after a random place of the sort keys, read as numbers. The items of its beginning
  that the sample has read serve as its first page if they are half of one; otherwise that costs 0.5
  too. An item represents 1/(chance that a window meets it) items. There is one window in each of
  several equal parts, in a sample of three. Sort keys that are not numbers give "unknown, at least
  n". Tags are skipped, for 1 read unit each.
- **Share in giants.** This is ItemCount less keys x mean length. Thresholds are steps of 1, 2, 5,
  so the data do not choose them. There is no estimate where one collection is more than 6 % of the
  mass below. `unseen` is the share above the largest sampled collection, and `giants` the share
  above the highest threshold with an estimate. Writes since ItemCount was refreshed widen both.
- **The largest collections.** Random segments of an index with an unrelated key contain items of a
  collection in proportion to its size. The limits are Clopper and Pearson's, for the effective
  number of draws, which depends on the differences between clusters. Without such an index the
  report lists no collections, because uniform samples do not find them.
- **Shares of items, sizes.** Items are weighted by 1/chance. The jackknife by collection gives the
  effective number of draws, and Clopper and Pearson's limits the interval. Sizes use Woodruff's
  method.
- **Items that the sample does not represent.** This is ItemCount less the items that the sample
  represents, as a share. All of them might have an attribute, or none, so it widens both ends of
  each share of items. By Markov's inequality a share p of the items is larger than 1/p of
  DescribeTable's mean at most.
- **Mean size of an item.** The jackknife by collection gives the interval of the items that the
  sample represents. The other items may be empty or have 400 KB each, as far as DescribeTable's
  mean allows.
- **Bytes of a collection.** Its length times the mean of its items that were read, unless
  DescribeTable's size of the whole table refutes that: then times the mean of all items. The high
  end is the size of the whole table, as the items that were not read may be the large ones.
- **Gini, Lorenz.** The curve has the sampled collections and the number of keys against ItemCount;
  the unseen items are its last step. The interval is a bootstrap.
- **Order.** Kendall's tau-b with Fieller's interval, Spearman's rho with Bonett and Wright's.
- **Hash place.** A Scan refuses a start key of another segment: 12 bits by 12 requests.
- **Replay.** A bucket for each key, 1,000 write units a second and 300 seconds saved. The high end
  takes partitions that had saved one second only. No split is reckoned with. Tests hold it within 5
  points of the partition model, with times of whole seconds as streams have them.
"""

LIMITS = """## Where a figure of the table does not hold, or is silence

- 300 read units measure about 50 lengths: p90 is silent, and of unequal tables `giants` mostly is.
  p99 needs about 1,000 lengths.
- Few runs at 30,000 read units, and few of Gini coefficients: one miss in ten is chance.
- Where `unseen` speaks in a few per cent of runs, these are chosen by chance: its coverage there
  says little.
- `unseen` is mostly silent on heavy tails (Zipf 1.0, lognormal of sigma 2), and wherever a giant
  was sampled. `giants` speaks there, of a lower threshold.
- The Gini coefficient of equal collections is estimated a little above 0. Its interval then begins
  at 0, because windows cannot show that nothing differs.
- Lengths from few windows over eras or bursts are off by more than their usual factor. Their
  intervals are as wide as that.
- The sampler of the simulation measures collections with Poisson times of 500 items; other times
  cost precision as the table of lengths shows.
- Sending half of the windows where items seemed dense was tried: bursts became a little better,
  Poisson times and growth got a bias of 5 to 10 %. So windows come evenly.
"""


def of_the_sampler(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the section on the real sampler, whose intervals bench/report_intervals.py counts.

    Args:
        figures: By read units, table and statistic, how many intervals were given and held.
    """
    yield from ("", "## Intervals of the real sampler", "")
    yield (
        "Whole samples, with budget and first look, of tables in memory (`testing/clustered.py`): "
        "10,000 keys and 40 items each on average, of which those of one key are alike, and those "
        "of large collections larger. `python -m bench.report_intervals --write` adds runs: with "
        "fewer than 400 a share is known to some points only. Intervals that held, of those given:"
    )
    for units, tables in figures.items():
        names = sorted({name for statistics in tables.values() for name in statistics})
        yield from ("", f"### {units} read units, by the sampler", "")
        yield from markdown(
            ("statistic", *tables, "all"), (_of_statistic(name, tables) for name in names)
        )


def _of_statistic(name: str, tables: Mapping[str, Any]) -> Sequence[str]:
    pairs = [tables[table].get(name, {"held": 0, "given": 0}) for table in tables]
    held_count, count = (sum(pair[name] for pair in pairs) for name in ("held", "given"))
    cells = (f"{pair['held']} of {pair['given']}" if pair["given"] else "silent" for pair in pairs)
    return [name, *cells, f"{held_count / count:.1%}"]


def lines(results: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the document."""
    yield from INTRODUCTION.splitlines()
    yield from ("", "## Intervals that held the truth", "")
    yield (
        "Of the runs that gave a figure; in brackets how many gave one, if not all. Tables of "
        "200,000 keys and a thousand items each on average, of 500 bytes. Runs: "
        + ", ".join(f"{runs} for {budget:,} read units" for budget, runs in RUNS.items())
        + ". False alarms: the lower end of a share in giants was above 5 % and the share was not."
    )
    for budget in RUNS:
        yield from ("", f"### {budget:,} read units", "")
        yield from markdown(
            ("table", *NAMES, "alarms", "false"), _rows(results["coverage"][str(budget)])
        )
    yield from ("", "## Gini coefficient", "")
    yield from markdown(
        ("table", *(f"{budget:,} read units" for budget in GINI_RUNS)),
        (
            [name, *(f"{results['gini'][str(budget)][name]:.0%}" for budget in GINI_RUNS)]
            for name in MAKERS
        ),
    )
    yield from ("", "## Length of one collection", "")
    yield (
        "Estimate/truth, 5th to 95th percentile, and how often the interval held it; 100,000 items "
        f"of 500 bytes, {LENGTH_RUNS} runs. Ten million items at Poisson times, for 9 read units: "
        "within 35 % in nine of ten runs, which the tests hold."
    )
    yield ""
    yield from markdown(
        ("sort keys", *(f"{units} RRU" for units in BUDGETS)), _lengths(results["lengths"])
    )
    yield from ("", "## The ten largest collections", "")
    yield f"By an index with an unrelated key, 1,200 read units, {RECALL_RUNS} runs."
    yield ""
    yield from markdown(
        ("table", "recall at 10", "intervals that held the share"),
        (
            [f"Zipf {exponent}", f"{share:.1%}", f"{covered:.0%}"]
            for exponent, (share, covered) in results["recall"].items()
        ),
    )
    if SAMPLED.exists():
        yield from of_the_sampler(json.loads(SAMPLED.read_text()))
    yield ""
    yield from LIMITS.splitlines()


def _rows(cells: dict[str, Any]) -> Iterator[Sequence[str]]:
    for name, figures in cells.items():
        row = [name]
        for statistic in NAMES:
            share, covered = figures["figures"].get(statistic, (0.0, 0.0))
            if not share:
                row.append("silent")
            else:
                row.append(f"{covered:.1%}" + (f" ({share:.0%})" if share < 1 else ""))
        yield [*row, f"{figures['alarms']:.0%}", f"{figures['false']:.1%}"]


def _lengths(lengths: dict[str, Any]) -> Iterator[Sequence[str]]:
    for name, figures in lengths.items():
        yield [
            name,
            *(f"{low:.2f}-{high:.2f}, {covered:.0%}" for low, high, covered in figures.values()),
        ]


if __name__ == "__main__":
    main()
