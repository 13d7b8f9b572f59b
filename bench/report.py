"""The benchmark's results: docs/internals/benchmark.md, with a plot, and docs/benchmark.json."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from bench.goals import PLANNED, PUBLISHED, SCAN, goals
from bench.markdown import markdown
from testing.dark import for_dark_pages
from testing.servers import ROOT
from testing.tables import TABLES

DOCS = ROOT / "docs"


def say(what: str) -> None:
    """Print to standard error which measurement begins."""
    print(f"bench: {what} ...", file=sys.stderr, flush=True)


def read_results() -> dict[str, Any]:
    """Return the results of the last run."""
    return dict(json.loads((DOCS / "benchmark.json").read_text()))


def write_report(results: dict[str, Any]) -> None:
    """Write the figures and the document; `plot` draws the picture."""
    DOCS.mkdir(exist_ok=True)
    (DOCS / "benchmark.json").write_text(json.dumps(results, indent=1) + "\n")
    (DOCS / "internals" / "benchmark.md").write_text("\n".join(_lines(results)) + "\n")


def _lines(results: dict[str, Any]) -> Iterator[str]:
    speed = results["speed"]
    yield "# Benchmark"
    yield ""
    yield (
        "To repeat it, run `make bench` on a machine that does nothing else. This page was made "
        f"with keyhop {results['software_version']}, Python {results['python']}, "
        f"{results['machine']}. The client and the database ran on the same machine. Compare "
        "figures within a run, not between machines. [benchmark.json](../benchmark.json) has each "
        "single measurement, also those of dynalite."
    )
    yield ""
    yield "![Read units per key and cost against the optimum](../benchmark.svg)"
    yield from ("", "## Goals", "")
    yield (
        f"The earlier commit is {speed['base']}, measured in the same run. For speed, the table is "
        "a stub in C (bench/stub.c), which answers any number of Scan requests after a fixed time. "
        "For read units, it is DynamoDB Local, which counts 0.5 RRU for Keyhop's empty pages and "
        "0 for the others'. The tables of the worst figures are the small ones: a plan for a table "
        "of ten items has one segment, but the benchmark also reads it in 16."
    )
    yield ""
    yield from markdown(
        ("figure", "earlier", "goal", "measured", "met"),
        ((*goal[:4], "yes" if goal[4] else "**no**") for goal in goals(results)),
    )
    yield from ("", "## Read units and cost, simulated", "")
    yield (
        "A simulated table charges each page 0.5 RRU for each 4 KB begun. The cost adds time to "
        "blocks of 4 KB: 0.07 for each millisecond; a request takes 3.5 ms, and 1 ms for each "
        "100 KB. Two readers are compared with Keyhop. The first knows the whole table beforehand: "
        "its least RRU per key, and its least cost, which is 1 in the last columns. The second "
        "knows everything except the order of the collections. No reader that learns from its "
        "pages can expect to cost less, because collections are in random order "
        "(`best_online` in testing/simulator.py has the argument, which does not hold for the one "
        "table whose collections alternate)."
    )
    yield ""
    yield from _simulator_table(results["simulated"])
    yield from ("", "## DynamoDB Local", "")
    yield (
        "The published method reads one item with each request, one request at a time. The full "
        "scan has 16 segments. Keyhop reads as it has planned."
    )
    yield ""
    yield from _database_table(results["databases"]["DynamoDB Local"])
    yield from (
        "",
        "## CPU of a run",
        "",
        "`python -m bench.profile` shows where the CPU time of a run goes:",
    )
    yield from ("", "![CPU of a run by parts](../profile.svg)")


def _simulator_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    ways = ("keyhop", PUBLISHED, SCAN)
    yield from markdown(
        (
            "a key's items",
            "least RRU per key",
            "Keyhop",
            "published",
            "full scan",
            "cost: best that can learn",
            "Keyhop",
            "published",
            "full scan",
        ),
        (
            (
                TABLES[row["table"]].title,
                f"{row['least_units_per_key']:.4f}",
                *(f"{row['ways'][way]['units_per_key']:.4f}" for way in ways),
                f"{row['best_online']:.2f}" if row["best_online"] else "-",
                *(f"{row['ways'][way]['against_optimum']:.2f}" for way in ways),
            )
            for row in rows
        ),
    )


def _database_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    tables: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        tables[row["table"]][row["way"]] = row
    ways = (PLANNED, PUBLISHED, f"{SCAN}, 16 segments")
    yield from markdown(
        (
            "a key's items",
            "keys",
            *("RRU per key: Keyhop", "published", "full scan"),
            *("seconds: Keyhop", "published", "full scan"),
        ),
        (
            (
                TABLES[name].title,
                f"{table[PLANNED]['keys']:,}",
                *(f"{table[way]['units'] / table[way]['keys']:.4f}" for way in ways),
                *(f"{table[way]['seconds']:.2f}" for way in ways),
            )
            for name, table in tables.items()
        ),
    )


def plot(results: dict[str, Any]) -> None:
    """Draw docs/benchmark.svg."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "keyhop"
    from matplotlib import pyplot

    rows = results["simulated"]
    colours = {"keyhop": "#1b7f5a", PUBLISHED: "#c4721b", SCAN: "#7a7f87"}
    figure, (units_axes, right) = pyplot.subplots(1, 2, figsize=(12, 6), sharey=True)
    height = 0.26
    minimum = [row["least_units_per_key"] for row in rows]
    for number, (way, colour) in enumerate(colours.items()):
        places = [at + (number - 1) * height for at in range(len(rows))]
        ways = [row["ways"][way] for row in rows]
        units = [
            way["against_least_units"] * units for way, units in zip(ways, minimum, strict=True)
        ]
        units_axes.barh(places, units, height, color=colour, label=way)
        right.barh(places, [way["against_optimum"] for way in ways], height, color=colour)
    units_axes.plot(minimum, range(len(rows)), "k|", markersize=22, label="the least possible")
    units_axes.set_yticks(range(len(rows)), [TABLES[row["table"]].title for row in rows])
    units_axes.invert_yaxis()
    units_axes.set_title("read units for each key (log scale)", fontsize=11, loc="left")
    right.axvline(1, color="black", linewidth=0.8)
    right.set_title("read units and time, against the least (log)", fontsize=11, loc="left")
    figure.text(0.01, 0.905, "a key's items", fontsize=11)
    figure.legend(loc="upper center", ncols=4, frameon=False)
    for axes in (units_axes, right):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    figure.subplots_adjust(left=0.265, right=0.985, wspace=0.06, top=0.89, bottom=0.05)
    picture = DOCS / "benchmark.svg"
    figure.savefig(picture, metadata={"Date": None})
    picture.write_text(for_dark_pages(picture.read_text()))
    pyplot.close(figure)


if __name__ == "__main__":
    plot(read_results())
