"""The part of docs/internals/benchmark.md about speed, from what bench/speed.py has measured."""

from collections.abc import Iterator
from typing import Any

from bench.markdown import markdown
from testing.tables import TABLES

LEAST_RATE = 1_500
LEAST_SHARE = 0.9
MOST_CPU = {"1": 0.20, "10": 0.15, "100": 0.20}
"""Against boto3's, by items of a page."""
MOST_SLOWER = 1.0
MOST_UNITS = 1.01
MOST_MEGABYTES = 100
MOST_START = 300
MOST_THROTTLED = 0.02

Bar = tuple[str, str, str, str, bool]
"""What, before, wanted, now, whether that is kept."""


def speed_lines(results: dict[str, Any]) -> Iterator[str]:
    """Bars first, then what they are made of."""
    speed = results["speed"]
    yield (
        f"Made by `python -m bench.speed` in {speed['minutes']} minutes, alone on the machine. The "
        "table is a stub in C (bench/stub.c) in a process of its own, on a core of its own where "
        "one is said: it answers DescribeTable and Scan of any number of keys after a fixed time. "
        f"Before: commit {speed['base']}, in the same run. Each figure by itself: `python -m "
        "bench.command` (the command against the stub), `bench.start`, `bench.concurrency`, "
        "`bench.in_flight`, `bench.rates`. How long 2,000,000 keys take one function, by the model "
        "of costs, is in [costs](../reference/costs.md)."
    )
    yield ""
    yield from markdown(
        ("what", "before", "wanted", "now", "kept"),
        ((*bar[:4], "yes" if bar[4] else "**no**") for bar in _bars(results)),
    )
    yield from ("", _of_runs(speed), "")
    yield from _runs(speed)
    yield from (
        "",
        "CPU for one Scan request, microseconds: boto3's `client.scan`, Keyhop's `Client.call`, "
        "and all that `keyhop keys` does for a request (the walk):",
        "",
    )
    yield from _client(results["client_cpu"])
    yield from (
        "",
        "A table that throttles: what was read, as a share of what it gives, and the share of "
        "requests that it refused, both after the first ten seconds:",
        "",
    )
    yield from _throttled(speed["throttled"])
    few, many = "8 in flight", "up to 64"
    yield from ("", "Read units for each key, by requests in flight (simulated tables):", "")
    yield from _units(speed["in_flight"], few, many)
    yield from (
        "",
        "A million keys (1 x 150 B), up to 64 requests in flight, table 20 ms away:",
        "",
    )
    yield from _million(results["million"])
    yield from (
        "",
        "256 requests in flight, table 50 ms away, one core: sign, send, receive and parse. There "
        "is no walk. `keyhop` has threads: they are plain, and what it does for a page may wait.",
        "",
    )
    yield from _designs(speed["designs"])
    yield from (
        "",
        "Where the CPU of a run goes (`python -m bench.profile`, by cProfile):",
        "",
        "![CPU of a run by parts](../profile.svg)",
    )


def _bars(results: dict[str, Any]) -> Iterator[Bar]:
    speed = results["speed"]
    before, now = (speed[name]["requests_per_second"] for name in ("far_before", "far"))
    what = "requests a second, table 50 ms away, one core"
    yield what, f"{before:,.0f}", f"at least {LEAST_RATE:,}", f"{now:,.0f}", now >= LEAST_RATE
    share = speed["near"]["cpu_share"]
    what = "requests a second, table 5 ms away, of what the core's CPU allows"
    yield what, "-", f"at least {LEAST_SHARE}", f"{share:.2f}", share >= LEAST_SHARE
    for items, cpu in results["client_cpu"].items():
        ratio, most = cpu["keyhop"] / cpu["boto3 client.scan"], MOST_CPU[items]
        what = f"client CPU of a request against boto3's, {items} items a page"
        yield what, _BEFORE_CPU[items], f"at most {most:.2f}", f"{ratio:.2f}", ratio <= most
    one, two = (1e6 / run["cpu_us"] for run in speed["processes"])
    what = "requests for a second of the client's CPU, two processes against one"
    yield what, "-", f"at least {LEAST_SHARE}", f"{two / one:.2f}", two / one >= LEAST_SHARE
    small = speed["small"]
    yield (
        "ten items, the whole command, milliseconds",
        f"{1e3 * small['before']:.0f}",
        "not slower",
        f"{1e3 * small['now']:.0f}, {small['ratio']:.2f} of before",
        small["ratio"] <= MOST_SLOWER,
    )
    worst = max(speed["in_flight"], key=lambda row: row["many"] / row["few"])
    ratio = worst["many"] / worst["few"]
    what = "RRU for each key with up to 64 in flight against 8, the worst table"
    yield what, "1", f"at most {MOST_UNITS}", f"{ratio:.3f}", ratio <= MOST_UNITS
    peak = max(row["megabytes"] for row in results["million"])
    what = "memory of a process, a million keys, up to 64 in flight, MB"
    yield what, "62", f"at most {MOST_MEGABYTES}", f"{peak:.0f}", peak <= MOST_MEGABYTES
    before, now = (speed["start"][name]["keyhop"] for name in ("before", "now"))
    floor = speed["start"]["now"]["boto3"]
    yield (
        "CPU from the start of `keyhop keys` to its first request, milliseconds",
        f"{before:.0f}",
        f"at most {MOST_START}",
        f"{now:.0f} (boto3's client alone: {floor:.0f})",
        now <= MOST_START,
    )
    used = min(row["used"] for row in speed["throttled"])
    what = "of what a throttling table gives, the least of five"
    yield what, "-", f"at least {LEAST_SHARE}", f"{used:.2f}", used >= LEAST_SHARE
    throttled = max(row["throttled"] for row in speed["throttled"])
    yield (
        "throttled requests after ten seconds, the most of five",
        "-",
        f"at most {MOST_THROTTLED:.0%}",
        f"{throttled:.1%}",
        throttled <= MOST_THROTTLED,
    )


_BEFORE_CPU = {"1": "0.55", "10": "0.53", "100": "0.43"}
"""As `make bench` measured it at that commit."""


def _of_runs(speed: dict[str, Any]) -> str:
    return (
        "Runs of `keyhop keys` on a table of 1,000 items of 500 B a key, ended as by Ctrl-C after "
        f"{speed['far']['seconds']:.0f} seconds or so. Requests a second: from the first one on, "
        "and in the second half. CPU is that of the second half, of all processes; the share is of "
        "one core. What the CPU allows is one request for each `CPU us`. The last two rows: both "
        "cores for all, the stub included, which takes its share of them."
    )


def _runs(speed: dict[str, Any]) -> Iterator[str]:
    titles = {
        f"50 ms away, commit {speed['base']}": speed["far_before"],
        "50 ms away": speed["far"],
        "5 ms away": speed["near"],
        "0 ms away, one process": speed["processes"][0],
        "0 ms away, two processes": speed["processes"][1],
    }
    headings = ("table", "requests/s", "second half", "CPU us", "CPU share", "stub's CPU share")
    yield from markdown(
        (*headings, "most in flight", "peak MB"),
        (
            (
                title,
                f"{run['requests_per_second']:,.0f}",
                f"{run['steady']:,.0f}",
                f"{run['cpu_us']:.0f}",
                f"{run['cpu_share']:.2f}",
                f"{run['stub_share']:.2f}",
                f"{run['in_flight']}" if run["in_flight"] > 1 else "-",
                f"{run['megabytes']:.0f}",
            )
            for title, run in titles.items()
        ),
    )


def _client(rows: dict[str, dict[str, float]]) -> Iterator[str]:
    headings = ("items a page", "boto3 client.scan", "keyhop", "ratio", "the walk", "ratio")
    yield from markdown(
        headings,
        (
            (
                items,
                f"{cpu['boto3 client.scan']:.0f}",
                f"{cpu['keyhop']:.0f}",
                f"{cpu['keyhop'] / cpu['boto3 client.scan']:.2f}",
                f"{cpu['walk']:.0f}",
                f"{cpu['walk'] / cpu['boto3 client.scan']:.2f}",
            )
            for items, cpu in rows.items()
        ),
    )


def _throttled(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from markdown(
        ("a key's items", "RRU/s", "read", "throttled", "most in flight"),
        (
            (
                row["table"],
                f"{row['rate']:,}",
                f"{row['used']:.2f}",
                f"{row['throttled']:.1%}",
                f"{row['in_flight']}",
            )
            for row in rows
        ),
    )


def _units(rows: list[dict[str, Any]], few: str, many: str) -> Iterator[str]:
    yield from markdown(
        ("a key's items", "keys", few, many, "ratio", "most in flight"),
        (
            (
                TABLES[row["table"]].title,
                f"{row['keys']:,}",
                f"{row['few']:.4f}",
                f"{row['many']:.4f}",
                f"{row['many'] / row['few']:.3f}",
                f"{row['in_flight']}",
            )
            for row in rows
        ),
    )


def _million(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from markdown(
        ("keys", "requests", "RRU", "seconds", "most in flight", "peak memory MB"),
        (
            (
                f"{row['keys']:,} {row['way']}",
                f"{row['requests']:,}",
                f"{row['units']:,.0f}",
                f"{row['seconds']:.1f}",
                f"{row['in_flight']}",
                f"{row['megabytes']:.0f}",
            )
            for row in rows
        ),
    )


def _designs(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from markdown(
        ("way", "requests/s", "CPU us per request"),
        (
            (row["way"], f"{row['requests_per_second']:,.0f}", f"{row['cpu_us']:.0f}")
            for row in rows
        ),
    )
