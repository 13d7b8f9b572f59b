"""Write sharding: what it adds to a write and to a read, and how soon it takes up a burst.

`python -m bench.sharding` measures for some minutes and writes
docs/internals/benchmark-sharding.md; `make bench` does so too. Requests, units and shards are
nearly the same on any machine; CPU and latency are ratios within the run.
"""

import os
import platform
import sys
import time
from collections.abc import Iterator
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.units import PRICE_DATE, PRICE_REGION, US_EAST_1
from keyhop.sharding.key.shards import SETTLE_SECONDS

from bench import sharding_burst as burst
from bench import sharding_reads as reading
from bench import sharding_seconds as seconds
from bench import sharding_writes as writing
from bench.markdown import markdown
from bench.report import DOCS
from bench.sharding_burst import Outcome
from bench.sharding_reads import Read
from bench.sharding_writes import Cost
from testing.servers import dynamodb_local

REPORT = DOCS / "internals" / "benchmark-sharding.md"
MILLION = 1_000_000


def main() -> None:
    """Measure, then write the document."""
    write_report(measure())


def measure() -> dict[str, Any]:
    """All figures, of one run on one machine."""
    began = time.monotonic()
    load = os.getloadavg()[0]
    with dynamodb_local() as url:
        _say("sharding: writes")
        results: dict[str, Any] = {"load": load, "writes": writing.costs(url)}
        _say("sharding: reads")
        results["reads"] = reading.reads(url)
        _say("sharding: bursts, in virtual time")
        results["bursts"] = burst.bursts()
        results["by_second"] = seconds.measure()
    results["seconds"] = time.monotonic() - began
    return results


def write_report(results: dict[str, Any]) -> None:
    """Write docs/internals/benchmark-sharding.md."""
    REPORT.write_text("\n".join(_lines(results)) + "\n")


def _lines(results: dict[str, Any]) -> Iterator[str]:
    yield "# Benchmark of write sharding"
    yield ""
    yield (
        f"Made by `make bench` (this part alone: `python -m bench.sharding`) in one run of "
        f"{results['seconds']:.0f} seconds: keyhop {__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, on which "
        f"DynamoDB Local and the client run together. The machine's load of the last minute was "
        f"{results['load']:.1f} when it began: other work blurs the ratios of CPU and latency, "
        f"not requests, units and shards. Nothing here was measured on AWS."
    )
    yield from ("", "## What a write costs", "")
    yield from _writes(results["writes"])
    yield from ("", "## A burst of what a partition takes several times", "")
    yield from _bursts(results["bursts"])
    yield from ("", seconds.HEADING, "", *seconds.section(results["by_second"]))
    yield from ("", "## Dollars for a million writes", "")
    yield from _dollars(results["writes"])
    yield from ("", "## What a read costs", "")
    yield from _reads(results["reads"])


def _writes(costs: list[Cost]) -> Iterator[str]:
    yield from markdown(
        (
            *("for each item", "requests", "of them metadata", "keys looked up", "moved"),
            *("RRU", "WRU", "client CPU"),
        ),
        (
            (
                cost.title,
                f"{cost.requests:.3f}",
                f"{cost.metadata:.3f}",
                f"{cost.looked_up:.2f}",
                f"{cost.moves:.2f}",
                f"{cost.read_units:.2f}",
                f"{cost.write_units:.2f}",
                f"{cost.cpu:.2f}",
            )
            for cost in costs
        ),
    )
    yield ""
    yield (
        f"Each row: {writing.WRITES * writing.ROUNDS:,} items of half a kilobyte, one writer that "
        f"makes {writing.WRITES_A_SECOND} writes a second to one key. Metadata is kept for half "
        f"of `settle_seconds` ({SETTLE_SECONDS / 2:g} s of {SETTLE_SECONDS:g} s): one read for "
        f"each key, process and {SETTLE_SECONDS / 2:g} s, whatever is written. A key of several "
        f"shards is reported once a minute by each writer, 1 WRU, which these rows are too short "
        f"for. Client CPU is the process's, against `Table.put_item` by turns, the least of "
        f"{writing.ROUNDS} rounds each; it is good to a fifth or so."
    )
    yield ""
    counts = ", ".join(map(str, writing.GROWTH))
    yield (
        f"RRU count each key that is looked up, found or not, strongly consistent, as the service "
        f"charges them; DynamoDB Local does not charge those that are not found. By the formula an "
        f"item has {writing.AFTER_GROWTH:.2f} candidates after {counts} "
        f"shards with the jump hash. Some have one only, so that no look is needed. A move, and a "
        f"new item while the count is being changed, are transactions of two items: 4 WRU, once."
    )


def _bursts(outcomes: list[Outcome]) -> Iterator[str]:
    def after(second: int | None, none: str) -> str:
        return none if second is None else f"{second} s"

    yield from markdown(
        (
            *("where", "written of wanted", "absorbed after", "throttles", "last throttle"),
            *("longest wait", "shards over time"),
        ),
        (
            (
                outcome.way.title,
                f"{outcome.written / (outcome.way.rate * outcome.way.seconds):.0%}",
                after(outcome.absorbed, "never"),
                f"{outcome.throttles:,}",
                "none"
                if outcome.last_throttle is None
                else "still at the end"
                if outcome.last_throttle >= outcome.way.seconds - 2
                else f"{outcome.last_throttle} s",
                f"{outcome.longest_wait:.1f} s",
                ", ".join(f"{count} at {at} s" for at, count in outcome.shards if at > 0)
                or f"{outcome.way.shards or 'unchanged'}",
            )
            for outcome in outcomes
        ),
    )
    yield ""
    yield (
        f"A new key; {burst.WRITERS} writers, {burst.CALM_SECONDS} s of calm, then 60 s (30 s for "
        f"20 times) in which they request 5 or 20 times the rate of a partition, which is "
        f"{burst.KEY_RATE} write units a second in this model. All have the same back-off and "
        f"patience; a writer that had to wait does not catch up. Absorbed: from then on "
        f"{burst.ABSORBED:.0%} of the requested writes succeeded. Time is virtual, so the figures "
        f"hardly depend on the machine. Keyhop has its default policy and settle_seconds of 5. The "
        f"times are those at which a count was written: an append-only key uses the new shards "
        f"half of settle_seconds later, another key all of it. Several processes tell one another "
        "the requested rate, so their first step comes a little later."
    )
    yield ""
    yield (
        "The service gives a partition about 1,000 write units a second, lends it unused capacity "
        "of five minutes, and may split it by sort key some minutes later; the model does neither. "
        "A fixed number of shards costs its fan-out for every key and every read, and cannot be "
        "changed later without a migration."
    )


def _dollars(costs: list[Cost]) -> Iterator[str]:
    plain = costs[0]
    rows = []
    for cost in costs:
        if "batch" in cost.title or "while it grows" in cost.title:
            continue  # the same units, or for seconds only
        writes, reads = MILLION * cost.write_units, MILLION * cost.read_units
        rows.append(_dollar_row(cost.title, reads, writes))
    for rate in (10.0, 0.1):
        reads = MILLION * min(1.0, 1 / (rate * SETTLE_SECONDS / 2))
        reports = MILLION * min(1.0, 1 / (60 * rate))
        title = f"append-only, {rate:g} writes a second by each process and key"
        rows.append(_dollar_row(title, reads, MILLION * plain.write_units + reports))
    yield from markdown(("a million writes of up to 1 KB", "RRU", "WRU", "dollars"), rows)
    yield ""
    yield (
        f"On demand, {PRICE_REGION}, {PRICE_DATE}, from the units above; reads of metadata are "
        f"included, tables' storage is not. The last two rows are calculated: the metadata is read "
        f"at most once a write and once in {SETTLE_SECONDS / 2:g} s, and the traffic of a key of "
        f"several shards is reported at most once a minute."
    )


def _dollar_row(title: str, reads: float, writes: float) -> tuple[str, ...]:
    dollars = US_EAST_1.dollars(reads, writes)
    return title, f"{reads:,.0f}", f"{writes:,.0f}", f"${dollars:.3f}"


def _reads(reads: list[Read]) -> Iterator[str]:
    def where(read: Read) -> str:
        if read.shards is None:
            return "a single key, boto3 `Table.query`"
        shards = f"{read.shards} shard{'' if read.shards == 1 else 's'}"
        return f"{shards}, calculated, in order" if read.ordered else shards

    def cells(read: Read | None) -> tuple[str, ...]:
        if read is None:
            return ("",) * 4
        return (
            f"{read.requests:.0f}",
            f"{read.units:,.1f}",
            f"{read.latency:.1f}",
            f"{read.cpu:.1f}",
        )

    by_place: dict[str, dict[tuple[bool, bool], Read]] = {}
    for read in reads:
        by_place.setdefault(where(read), {})[read.reads_all, read.consistent] = read
    for reads_all in (False, True):
        title = f"all {reading.ITEMS:,} items" if reads_all else f"`query(limit={reading.FEW})`"
        yield from markdown(
            (
                *(title, "eventually: requests", "RRU", "latency", "client CPU"),
                *("consistent: requests", "RRU", "latency", "client CPU"),
            ),
            (
                (
                    place,
                    *cells(by_kind.get((reads_all, False))),
                    *cells(by_kind.get((reads_all, True))),
                )
                for place, by_kind in by_place.items()
            ),
        )
        yield ""
    yield (
        f"{reading.ITEMS:,} items of some 200 B, the same for all. Latency is the median, against "
        f"that of boto3's query of the single key with the same consistency, by turns. A page "
        f"costs at least 0.5 RRU, consistent 1, whatever it holds: that is what the fan-out adds. "
        f"With a limit a little more than its share is read of each shard. `in order`: "
        f"calculated places, and items that puts may move. Consistent reads must then read the "
        f"shards one after the other (protocol.py), so their times add up. Append-only and "
        f"eventually consistent reads never do."
    )
    yield ""
    yield (
        "This does not show the latency of the service. Here a server on the same two cores "
        "answers within a millisecond or two, and concurrent requests are no faster. On AWS, "
        "shards are different partitions and answer at the same time; a read waits for the slowest."
    )


def _say(what: str) -> None:
    print(f"bench: {what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
