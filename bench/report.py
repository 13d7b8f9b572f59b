"""The benchmark's results: docs/internals/benchmark.md, with a plot, and docs/benchmark.json."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from bench.markdown import markdown
from bench.speed_report import speed_lines
from testing.dark import for_dark_pages
from testing.servers import ROOT
from testing.tables import TABLES

DOCS = ROOT / "docs"
PUBLISHED, SCAN = "published, serial", "full scan"

BEFORE_DAY = "2026-11-22"
BEFORE = {
    (50, 1): 0.76,
    (50, 8): 0.84,
    (100, 1): 0.62,
    (100, 8): 0.83,
    (200, 1): 0.61,
    (200, 8): 0.80,
    (400, 1): 0.53,
    (400, 8): 0.78,
}
"""Share of an allowed rate that was used, by rate and threads."""


def say(what: str) -> None:
    """On standard error, what is measured now."""
    print(f"bench: {what} ...", file=sys.stderr, flush=True)


def read_results() -> dict[str, Any]:
    """Those of the last run."""
    return dict(json.loads((DOCS / "benchmark.json").read_text()))


def write_report(results: dict[str, Any]) -> None:
    """Write the figures and the document; the plot is of the simulator's, see `plot`."""
    DOCS.mkdir(exist_ok=True)
    (DOCS / "benchmark.json").write_text(json.dumps(results, indent=1) + "\n")
    (DOCS / "internals" / "benchmark.md").write_text("\n".join(_lines(results)) + "\n")


def _lines(results: dict[str, Any]) -> Iterator[str]:
    yield "# Benchmark"
    yield ""
    yield (
        f"Made by `make bench` in one run of {results['minutes']} minutes: keyhop "
        f"{results['software_version']}, Python {results['python']}, {results['machine']}, client "
        f"and database on the same machine. Figures are comparable within a run, not between "
        f"machines. RRU are what the database reports (empty reads: 0.5 in keyhop's rows, 0 in the "
        f"others', as local databases say). CPU is the client's; memory its peak, Python included."
    )
    yield ""
    yield "![Read units per key and cost against the optimum](../benchmark.svg)"
    yield from ("", "## Speed", "")
    yield from speed_lines(results)
    for name, rows in results["databases"].items():
        yield from ("", f"## {name}", "")
        yield from _database_table(rows)
    yield from ("", "## An allowed rate", "")
    yield (
        "`keyhop keys --max-read-rate R` on 6,000 items of 3 KB in DynamoDB Local: what was read, "
        "as a share of R, as long as there were segments that nobody had begun, and the least of "
        "it in ten seconds (at 400 RRU/s the run is shorter). The first moments, in which sizes of "
        "pages are learnt, are in it. Most in a second: beyond R, in pages of the largest size "
        "for each thread; 1 is allowed. Before: at commit 6b7e68b, on the same machine at a load "
        f"of 15 ({BEFORE_DAY}), where this version used .98, .96, .92 and .73 with one thread."
    )
    yield ""
    yield from _rate_table(results["rates"])
    yield from ("", "## What was expected, and what came out", "")
    yield from _expectations(results)
    yield from ("", "## Simulator, at the scale of the cost model", "")
    yield (
        "Against two optima of one who knows the whole table beforehand: the least that can be "
        "read, and the least cost, which is one for each block of 4 KB (0.5 RRU) and 0.07 for each "
        "millisecond that a request takes, 3 ms and 1 ms for each 100 KB. The least cost may read "
        "more, in fewer requests. Both optima are of a smaller table of the same kind (up to 3,000 "
        "keys), and so are the ways against them, and the picture. One segment; items in random "
        "order, as hashing makes it."
    )
    yield ""
    yield from _simulator_table(results["simulated"])


def _database_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    headings = ("table", "way", "keys", "requests", "RRU", "RRU per key", "seconds")
    yield from markdown(
        (*headings, "CPU us per request", "peak MB"),
        (
            (
                TABLES[row["table"]].title,
                row["way"],
                f"{row['keys']:,}",
                f"{row['requests']:,}",
                f"{row['units']:,.1f}",
                f"{row['units'] / row['keys']:.4f}",
                f"{row['seconds']:.2f}",
                f"{row['cpu_us_per_request']:,.0f}",
                f"{row['megabytes']:.0f}",
            )
            for row in rows
        ),
        left=2,
    )


def _rate_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from markdown(
        ("RRU/s", "threads", "before", "used", "least in ten seconds", "most in a second"),
        (
            (
                f"{row['rate']:g}",
                f"{row['threads']}",
                f"{BEFORE[row['rate'], row['threads']]:.2f}",
                f"{row['steady']:.2f}",
                f"{row['window']:.2f}" if row["window"] else "-",
                f"{row['burst_pages']:.2f}",
            )
            for row in rows
        ),
        left=0,
    )


def _simulator_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from markdown(
        (
            "table",
            "keys",
            "least RRU per key",
            "least cost: RRU / requests per key",
            "keyhop",
            "published",
            "full scan",
            "cost against the least: keyhop",
            "published",
            "full scan",
        ),
        (
            (
                TABLES[row["table"]].title,
                f"{row['keys']:,}",
                f"{row['least_units_per_key']:.4f}",
                f"{row['optimum_units_per_key']:.4f} / {row['optimum_requests_per_key']:.4f}",
                *(
                    f"{way['units_per_key']:.4f} / {way['requests'] / row['keys']:.4f}"
                    for way in _ways(row)
                ),
                *(f"{way['against_optimum']:.2f}" for way in _ways(row)),
            )
            for row in rows
        ),
    )


def _ways(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [row["ways"][name] for name in ("keyhop", PUBLISHED, SCAN)]


def _expectations(results: dict[str, Any]) -> Iterator[str]:
    rows = []
    for database, measured in results["databases"].items():
        by_table: dict[str, dict[str, Any]] = defaultdict(dict)
        for row in measured:
            by_table[row["table"]][row["way"]] = row
        rows += [row for table in by_table.values() for row in _checks(database, table)]
    yield from markdown(
        ("where", "what", "expected", "measured", "kept"),
        ((*row[:4], "yes" if row[4] else "**no**") for row in rows),
        left=2,
    )


MOST_UNITS_PER_KEY = {"1x150": 0.025, "10x500": 0.60, "1000x500": 0.52}


def _checks(database: str, ways: dict[str, Any]) -> Iterator[tuple[str, str, str, str, bool]]:
    published = ways[PUBLISHED]
    (scan,) = (row for way, row in ways.items() if way.startswith(SCAN))
    (many,) = (row for way, row in ways.items() if way.startswith("keyhop, 16"))
    planned = ways["keyhop, as planned"]
    title = TABLES[planned["table"]].title
    for name, row in (("as planned", planned), ("16 segments", many)):
        segments = row["segments"]
        most = MOST_UNITS_PER_KEY.get(row["table"])
        per_key = row["units"] / row["keys"]
        if most:
            what = f"{title}: RRU per key, {name}"
            yield database, what, f"at most {most}", f"{per_key:.4f}", per_key <= most
        limit = 1.02 * published["units"] + 4 * segments
        yield (
            database,
            f"{title}: RRU, {name}",
            f"at most 1.02 x published + 4 a segment = {limit:,.1f}",
            f"{row['units']:,.1f}",
            row["units"] <= limit,
        )
        limit = 2 * scan["units"]
        yield (
            database,
            f"{title}: RRU, {name}",
            f"at most 2 x full scan = {limit:,.1f}",
            f"{row['units']:,.1f}",
            row["units"] <= limit,
        )
    faster = published["seconds"] / planned["seconds"]
    if planned["table"] in ("1x150", "10x500"):
        yield database, f"{title}: speed", "at least 4 x published", f"{faster:.1f} x", faster >= 4
    else:
        slower = 1000 * (planned["seconds"] - published["seconds"])
        measured = f"{faster:.1f} x published, {slower:+,.0f} ms"
        yield database, f"{title}: speed", "within 20 ms of published", measured, slower <= 20


def plot(results: dict[str, Any]) -> None:
    """Draw docs/benchmark.svg."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "keyhop"
    from matplotlib import pyplot

    rows = results["simulated"]
    colours = {"keyhop": "#1b7f5a", PUBLISHED: "#c4721b", SCAN: "#7a7f87"}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 6), sharey=True)
    height = 0.26
    least = [row["least_units_per_key"] for row in rows]
    for number, (way, colour) in enumerate(colours.items()):
        places = [at + (number - 1) * height for at in range(len(rows))]
        ways = [row["ways"][way] for row in rows]
        units = [one["against_least_units"] * of for one, of in zip(ways, least, strict=True)]
        left.barh(places, units, height, color=colour, label=way)
        right.barh(places, [one["against_optimum"] for one in ways], height, color=colour)
    left.plot(least, range(len(rows)), "k|", markersize=22, label="the least possible")
    left.set_yticks(range(len(rows)), [TABLES[row["table"]].title for row in rows])
    left.invert_yaxis()
    left.set_title("read units for each key (log scale)", fontsize=11, loc="left")
    right.axvline(1, color="black", linewidth=0.8)
    right.set_title("read units and time, against the least (log)", fontsize=11, loc="left")
    figure.text(0.01, 0.905, "a key's items", fontsize=11)
    figure.legend(loc="upper center", ncols=4, frameon=False)
    for axes in (left, right):
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
