"""The goals of the benchmark: what is measured, what it should be, and whether it is.

`goals` reads the results of one run (docs/benchmark.json) and measures nothing itself.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from testing.tables import TABLES

PUBLISHED, SCAN, PLANNED = "published, serial", "full scan", "keyhop, as planned"

MOST_CPU = {"1": 0.20, "10": 0.15, "100": 0.20}
"""The maximum share of boto3's CPU for the same request, by the number of items in a page."""
MOST_UNITS_PER_KEY = {"1x150": 0.025, "10x500": 0.60, "1000x500": 0.52}
FASTER = ("1x150", "10x500")
"""Tables on which many keys fit into a page, so that the published method is much slower."""

Goal = tuple[str, str, str, str, bool]
"""The figure, its value at the earlier commit, the goal, the measurement, and whether it is met."""


def goals(results: dict[str, Any]) -> Iterator[Goal]:
    """Yield each goal with its figure."""
    yield from _speed_goals(results)
    yield from _database_goals(results["databases"]["DynamoDB Local"])
    copied, put, _ = results["rekey"].values()
    figure = "CPU of an item that a re-key copies, against boto3's put_item of it"
    yield figure, "-", "at most 1", f"{copied / put:.2f}", copied <= put
    report = results["report"]
    figure = f"RRU of a report on {report['items'] / 1e6:.0f} million items"
    yield figure, "-", "at most 2,000", f"{report['units']:,.0f}", report["units"] <= 2_000
    seconds = report["cpu_seconds"]
    yield "its CPU, seconds", "-", "at most 3", f"{seconds:.1f}", seconds <= 3


def _speed_goals(results: dict[str, Any]) -> Iterator[Goal]:
    speed = results["speed"]
    before, now = (speed[name]["requests_per_second"] for name in ("far_before", "far"))
    figure = "requests a second on one core, table 50 ms away"
    yield figure, f"{before:,.0f}", "at least 1,500", f"{now:,.0f}", now >= 1_500
    share = speed["near"]["cpu_share"]
    yield "share of the core that is used, table 5 ms away", *_at_least(0.9, share)
    for items, cpu in results["client_cpu"].items():
        ratio, limit = cpu["keyhop"] / cpu["boto3 client.scan"], MOST_CPU[items]
        figure = f"CPU of a request against boto3's, items in a page: {items}"
        yield figure, "-", f"at most {limit:.2f}", f"{ratio:.2f}", ratio <= limit
    single, double = (1e6 / run["cpu_us"] for run in speed["processes"])
    yield "requests per CPU second, two processes against one", *_at_least(0.9, double / single)
    small = speed["small"]
    figure = "time of the whole command on ten items, against the earlier commit"
    yield figure, "1", "at most 1", f"{small['ratio']:.2f}", small["ratio"] <= 1
    ratio = max(row["many"] / row["few"] for row in speed["in_flight"])
    figure = "RRU with up to 64 requests in flight against 8, the worst of 12 tables"
    yield figure, "-", "at most 1.02", f"{ratio:.3f}", ratio <= 1.02
    peak = max(row["megabytes"] for row in results["million"])
    yield "peak memory for a million keys, MB", "-", "at most 100", f"{peak:.0f}", peak <= 100
    before, now = (speed["start"][name]["keyhop"] for name in ("before", "now"))
    client = speed["start"]["now"]["boto3"]
    figure = f"CPU until the first request, ms (only boto3's client: {client:.0f})"
    yield figure, f"{before:.0f}", "at most 300", f"{now:.0f}", now <= 300
    used = min(row["used"] for row in speed["throttled"])
    yield (
        "share of a throttling table's capacity that is used, the least of 5",
        *_at_least(0.9, used),
    )
    throttled = max(row["throttled"] for row in speed["throttled"])
    figure = "share of requests that it throttles after 10 s, the most of 5"
    yield figure, "-", "at most 2%", f"{throttled:.1%}", throttled <= 0.02
    used = min(row["steady"] for row in results["rates"])
    yield "share of --max-read-rate that is used, the least of 8", *_at_least(0.9, used)
    over = max(row["burst_pages"] for row in results["rates"])
    figure = "the most beyond that rate in a second, in pages for each thread"
    yield figure, "-", "at most 1", f"{over:.2f}", over <= 1


def _at_least(minimum: float, value: float) -> tuple[str, str, str, bool]:
    return "-", f"at least {minimum:g}", f"{value:.2f}", value >= minimum


def _database_goals(rows: list[dict[str, Any]]) -> Iterator[Goal]:
    tables: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        tables[row["table"]][row["way"].removesuffix(", 16 segments")] = row
    for table, limit in MOST_UNITS_PER_KEY.items():
        row = tables[table][PLANNED]
        per_key = row["units"] / row["keys"]
        figure = f"RRU for each key, {TABLES[table].title}"
        yield figure, "-", f"at most {limit:g}", f"{per_key:.4f}", per_key <= limit
    ways = [way for table in tables.values() for way in _both(table)]
    worst = max(
        (ours["units"] - 4 * ours["segments"]) / published["units"] for ours, published, _ in ways
    )
    figure = "RRU without 4 for each segment, against the published method, the worst table"
    yield figure, "-", "at most 1.02", f"{worst:.2f}", worst <= 1.02
    worst = max(ours["units"] / scan["units"] for ours, _, scan in ways)
    figure = "RRU against a full scan, the worst table"
    yield figure, "-", "at most 2", f"{worst:.2f}", worst <= 2
    faster = min(
        tables[name][PUBLISHED]["seconds"] / tables[name][PLANNED]["seconds"] for name in FASTER
    )
    figure = "times as fast as the published method where pages hold many keys, the least"
    yield figure, "-", "at least 4", f"{faster:.1f}", faster >= 4


def _both(table: dict[str, Any]) -> Iterator[tuple[dict[str, Any], ...]]:
    """Pair Keyhop's two runs of a table with the other methods."""
    for way in (PLANNED, "keyhop"):
        yield table[way], table[PUBLISHED], table[SCAN]
