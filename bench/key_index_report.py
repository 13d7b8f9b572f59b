"""The figures of the key index, as docs/internals/benchmark-key-index.md."""

import os
import platform
from collections.abc import Iterator
from statistics import quantiles
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.units import UNITS_PER_BLOCK, blocks_of
from keyhop.key_index.keeper import THREADS, usage_json
from keyhop.key_index.sentinel import LEAST_SORT_KEY, MARKER

from bench.key_index_work import BACKLOG, BATCH, ITEM_BYTES, ITEMS, KEYS, LANES, ROUNDS, Work
from bench.markdown import markdown
from bench.report import DOCS
from local.stream_bridge import IDLE_SECONDS

REPORT = DOCS / "internals" / "benchmark-key-index.md"


def write_report(results: dict[str, Any]) -> None:
    """Write docs/internals/benchmark-key-index.md."""
    REPORT.write_text("\n".join(_lines(results)) + "\n")


def _lines(results: dict[str, Any]) -> Iterator[str]:
    yield "# Benchmark of the key index"
    yield ""
    yield (
        f"Made by `make bench` (this part alone: `python -m bench.key_index`) in one run of "
        f"{results['seconds']:.0f} seconds: keyhop {__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, on which "
        f"DynamoDB Local, the emulator with the deployed functions, the bridge and all clients run "
        f"together. The machine's load of the last minute was {results['load']:.1f} when it "
        f"began: other work makes rates and delays worse, not units. Figures are comparable "
        f"within a run, not between machines."
    )
    yield from ("", "## How many writes a keeper sustains", "")
    yield from markdown(
        ("users' writes", "in one process: seconds", "writes/s", "deployed: seconds", "writes/s"),
        (
            (alone.kind.title, *_pace(alone), *_pace(deployed))
            for alone, deployed in zip(results["alone"], results["deployed"], strict=True)
        ),
    )
    yield ""
    yield (
        f"Each row: a backlog of {BACKLOG:,} writes, each in a collection of its own (the worst "
        f"case: of a batch, each collection is worked once), and the time until it is drained, "
        f"with the records that the keeper's own writes leave; the faster of {ROUNDS} rounds. In "
        f"one process: one `keep` after the other, batches of {BATCH}, {THREADS} threads, records "
        f"read from the stream before; modifications are passed over. Deployed: until nothing "
        f"is left, one batch of up to {BATCH} at a time (the bridge has one lane, the mapping has "
        f"{LANES} for a shard), with reading the stream, filtering, and calling the function "
        f"through the emulator; the row of modifications shows what the bridge alone takes. On AWS "
        f"a function has a processor of its own, and a large table has many shards, each with its "
        f"own keeper; that was not measured."
    )
    yield from ("", "## What it adds to a user's write", "")
    yield from _costs(results)
    yield from ("", "## From a user's write to the row in the index", "")
    cuts = quantiles(results["delays"], n=20)
    yield from markdown(
        ("single writes of new keys", "p50", "p95", "longest"),
        [
            (
                f"{len(results['delays'])}",
                *(f"{1000 * delay:.0f} ms" for delay in (cuts[9], cuts[18])),
                f"{1000 * max(results['delays']):.0f} ms",
            )
        ],
    )
    yield ""
    yield (
        f"One at a time, from the answer to the write until a query of the index finds the key. "
        f"The bridge looks at the stream every {1000 * IDLE_SECONDS:.0f} ms; Lambda polls a shard "
        f"about four times a second (AWS documentation), so it may be some 100 ms more on AWS, "
        f"where it was not measured."
    )
    yield from ("", "## Reading the keys", "")
    yield from _reading_lines(results)


def _pace(work: Work) -> tuple[str, str]:
    return f"{work.seconds:.2f}", f"{work.rate:,.0f}" if any(work.kind.expected) else "no requests"


def _costs(results: dict[str, Any]) -> Iterator[str]:
    rows = []
    for single, batched in zip(results["singles"], results["alone"], strict=True):
        reads, writes = single.kind.expected
        charged = (single.usage.read_units / single.writes, single.charged_writes / single.writes)
        rows.append(
            (
                single.kind.title,
                *_each(single),
                *_each(batched),
                f"{charged[1]:.2f}",
                f"{reads:.0f} / {writes:.0f}",
                "yes" if charged == (reads, writes) else "**no**",
            )
        )
    yield from markdown(
        (
            "for each write",
            "one by one: reads / writes",
            "RRU",
            "WRU",
            f"batches of {BATCH}: reads / writes",
            "RRU",
            "WRU",
            "WRU of the service",
            "expected RRU / WRU",
            "kept",
        ),
        rows,
    )
    yield ""
    yield (
        "Requests and units as the keeper counts them (`Collections.usage`), with those for the "
        "record of the sentinel's own insert or delete. A sentinel is put or deleted for 2 WRU on "
        "the service, 1 for the table and 1 for the index; DynamoDB Local reports the same. Of "
        "items that a BatchGetItem does not find it reports nothing; the keeper counts 1 RRU each, "
        "as the service charges. Batches save requests, no units. A look reads the first two items "
        "of a collection, here under 4 KB together; larger items cost it more."
    )


def _each(work: Work) -> tuple[str, str, str]:
    usage, count = usage_json(work.usage), work.writes
    return (
        f"{usage['reads'] / count:.2f} / {usage['writes'] / count:.2f}",
        f"{usage['read_units'] / count:.2f}",
        f"{usage['write_units'] / count:.2f}",
    )


def _reading_lines(results: dict[str, Any]) -> Iterator[str]:
    yield from markdown(
        (f"{KEYS:,} keys x {ITEMS} items x {ITEM_BYTES} B", "requests", "RRU", "RRU/key", "s"),
        (
            (
                row["way"],
                f"{row['requests']:,}",
                f"{row['read_units']:,.1f}",
                f"{row['read_units'] / KEYS:.4f}",
                f"{row['seconds']:.2f}",
            )
            for row in results["readings"]
        ),
    )
    size = _row_bytes()
    index = results["readings"][0]
    minimum = UNITS_PER_BLOCK * blocks_of(size * KEYS)
    maximum = minimum + UNITS_PER_BLOCK * index["segments"]
    verdict = "kept" if minimum <= index["read_units"] <= maximum else "**not kept**"
    built, verification = results["built"]["build"], results["built"]["verification"]
    yield ""
    yield (
        f"All on the same table, with its sentinels. A row of the index is partition key, sort "
        f"key and marker, {size} B here, and is read for {UNITS_PER_BLOCK} RRU for each 4 KB; the "
        f"100 B that DynamoDB adds to an item of an index count for storage only. So {KEYS:,} "
        f"keys are expected to cost {minimum:.1f} RRU, and up to {UNITS_PER_BLOCK} more for each "
        f"segment (here {index['segments']}), {maximum:.1f} at most: {verdict}. A million such "
        f"keys would cost {UNITS_PER_BLOCK * blocks_of(size * 1_000_000):,.0f} RRU."
    )
    yield ""
    yield (
        f"BuildKeyIndex on it took {built['read_units'] / KEYS:.2f} RRU and "
        f"{built['write_units'] / KEYS:.2f} WRU a key, in {built['seconds']:.0f} s, and the "
        f"verification at its end {verification['read_units'] / KEYS:.2f} RRU a key."
    )


def _row_bytes() -> int:
    """Return the bytes of a row of the index; a number of one digit takes 2."""
    place = LEAST_SORT_KEY["S"]["S"]
    return len("pk" + "k000000" + "sk" + place + MARKER) + 2
