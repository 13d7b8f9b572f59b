"""The benchmark's results: docs/benchmark.md, with a plot, and docs/benchmark.json."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from testing.servers import ROOT

DOCS = ROOT / "docs"
PUBLISHED, SCAN = "published, serial", "full scan"


def write_report(results: dict[str, Any]) -> None:
    """Write all three files."""
    DOCS.mkdir(exist_ok=True)
    (DOCS / "benchmark.json").write_text(json.dumps(results, indent=1) + "\n")
    (DOCS / "benchmark.md").write_text("\n".join(_lines(results)) + "\n")
    _plot(results)


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
    yield "![Read units per key and cost against the optimum](benchmark.svg)"
    for name, rows in results["databases"].items():
        yield from ("", f"## {name}", "")
        yield from _database_table(rows)
    yield from ("", "## What was expected, and what came out", "")
    yield from _expectations(results)
    yield from ("", "## Simulator, at the scale of the cost model", "")
    yield (
        "Against the offline optimum, which knows the whole table beforehand and keeps the cost "
        "least: one for each block of 4 KB (0.5 RRU), and 0.07 for each millisecond that a request "
        "takes, 3 ms and 1 ms for each 100 KB. So a plan of fewer requests may be the optimum "
        "though it reads more. One segment; items in random order, as hashing makes it."
    )
    yield ""
    yield from _simulator_table(results["simulated"])
    yield from ("", "## The client", "", "CPU for one Scan request, microseconds:", "")
    yield from _client_table(results)
    yield from ("", "A million keys (1 x 150 B) from the stand-in server:", "")
    yield from markdown(
        ("keys", "requests", "RRU", "seconds", "peak memory MB"),
        (
            (
                f"{row['keys']:,} {row['way']}",
                f"{row['requests']:,}",
                f"{row['units']:,.0f}",
                f"{row['seconds']:.1f}",
                f"{row['megabytes']:.0f}",
            )
            for row in results["million"]
        ),
    )


def _database_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    headings = ("table", "way", "keys", "requests", "RRU", "RRU per key", "seconds")
    yield from markdown(
        (*headings, "CPU us per request", "peak MB"),
        (
            (
                row["title"],
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


def _simulator_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from markdown(
        (
            "table",
            "keys",
            "optimum: RRU / requests per key",
            "keyhop",
            "published",
            "full scan",
            "cost against the optimum: keyhop",
            "published",
            "full scan",
        ),
        (
            (
                row["title"],
                f"{row['keys']:,}",
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


def _client_table(results: dict[str, Any]) -> Iterator[str]:
    yield from markdown(
        ("items a page", "boto3 client.scan", "keyhop", "ratio"),
        (
            (
                str(items),
                f"{cpu['boto3 client.scan']:.0f}",
                f"{cpu['keyhop']:.0f}",
                f"{cpu['keyhop'] / cpu['boto3 client.scan']:.2f}",
            )
            for items, cpu in results["client_cpu"].items()
        ),
    )


def _expectations(results: dict[str, Any]) -> Iterator[str]:
    rows = []
    for database, measured in results["databases"].items():
        by_table: dict[str, dict[str, Any]] = defaultdict(dict)
        for row in measured:
            by_table[row["table"]][row["way"]] = row
        rows += [row for table in by_table.values() for row in _checks(database, table)]
    for items, cpu in results["client_cpu"].items():
        ratio = cpu["keyhop"] / cpu["boto3 client.scan"]
        what = f"client CPU against boto3's, {items} items a page"
        rows.append(("client", what, "at most 0.9", f"{ratio:.2f}", ratio <= 0.9))
    for row in results["million"]:
        peak = row["megabytes"]
        what = f"peak memory, a million keys {row['way']}"
        rows.append(("client", what, "under 150 MB", f"{peak:.0f} MB", peak < 150))
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
    title = planned["title"]
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


def markdown(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1
) -> Iterator[str]:
    """A table's lines; the first `left` columns are aligned to the left."""
    yield "| " + " | ".join(headings) + " |"
    yield "|" + "|".join("---" if at < left else "---:" for at in range(len(headings))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _plot(results: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "keyhop"
    from matplotlib import pyplot

    rows = results["simulated"]
    colours = {"keyhop": "#1b7f5a", PUBLISHED: "#c4721b", SCAN: "#7a7f87"}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5.2), sharey=True)
    height = 0.26
    for number, (way, colour) in enumerate(colours.items()):
        places = [at + (number - 1) * height for at in range(len(rows))]
        units = [row["ways"][way]["units_per_key"] for row in rows]
        ratios = [row["ways"][way]["against_optimum"] for row in rows]
        left.barh(places, units, height, color=colour, label=way)
        right.barh(places, ratios, height, color=colour, label=way)
    best = [row["optimum_units_per_key"] for row in rows]
    left.plot(best, range(len(rows)), "k|", markersize=22, label="offline optimum (of cost)")
    left.set_yticks(range(len(rows)), [row["title"] for row in rows])
    left.invert_yaxis()
    left.set_xscale("log")
    left.set_xlabel("read units per distinct key (log scale)")
    right.set_xscale("log")
    right.axvline(1, color="black", linewidth=0.8)
    right.set_xlabel("cost (blocks and time) against the optimum (log scale)")
    left.legend(loc="upper center", bbox_to_anchor=(1.0, 1.13), ncols=4, frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", alpha=0.3)
        axes.set_axisbelow(True)
    figure.subplots_adjust(left=0.22, right=0.98, wspace=0.08, top=0.9, bottom=0.11)
    figure.savefig(DOCS / "benchmark.svg", metadata={"Date": None})
    pyplot.close(figure)
