"""`make demo`: real data in DynamoDB Local, its keys by Keyhop, and what the other ways cost.

`make local` (`python -m local.demo --keep`) stops after the loading and keeps the database up.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from keyhop.units import PRICE_DATE, PRICE_REGION, read_dollars
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.baselines import Reading, full_scan, published
from local.flights import TABLE, create_table, flights, load
from local.servers import dynamodb_local, local_client

ITEMS = 100_000
SEGMENTS = 128
"""For the comparison: DynamoDB Local gets slow with the position inside a segment."""


def main(keep: bool = False) -> int:
    """Load, enumerate, compare; or load and `keep`. Returns an exit status."""
    console = Console(highlight=False, soft_wrap=True)
    with dynamodb_local() as url:
        client = local_client(url)
        _load(console, client, url)
        if keep:
            console.print(
                f"\nTry:  .venv/bin/keyhop keys {TABLE} --endpoint-url {url}\n"
                f"Ctrl-C ends the database, and all that is in it."
            )
            signal.pause()
        with tempfile.TemporaryDirectory() as folder:
            report = _enumerate(console, url, Path(folder))
        if report is None:
            return 1
        console.print("For comparison, the same table by the other ways ...")
        scanned = full_scan(client, TABLE, SEGMENTS)
        hopped = published(client, TABLE, SEGMENTS)
    _compare(console, report, scanned, hopped)
    return 0 if report["keys"] == scanned.keys == hopped.keys else 1


def _load(console: Console, client: Any, url: str) -> None:
    console.print(f"DynamoDB Local is up at {url}; it ends with this demo.")
    create_table(client)
    began = time.monotonic()
    columns = (
        TextColumn("Loading the flights of New York City, 2013"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=ITEMS)
        items = islice(flights(), ITEMS)
        load(client, items, progress=lambda loaded: bar.update(task, completed=loaded))
    console.print(
        f"Loaded {ITEMS:,} flights into the table {TABLE} in {time.monotonic() - began:.0f} s: "
        f"partition key tailnum, sort key departure."
    )


def _enumerate(console: Console, url: str, folder: Path) -> dict[str, Any] | None:
    path = folder / "report.json"
    arguments = ["keys", TABLE, "--endpoint-url", url]
    console.print(f"\n$ keyhop {' '.join(arguments)}")
    command = [sys.executable, "-m", "keyhop", *arguments, "--report", str(path)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        return None
    keys = ended.stdout.splitlines()
    console.print(f"{', '.join(keys[:8])}, ... {len(keys):,} keys\n")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _compare(console: Console, report: dict[str, Any], scanned: Reading, hopped: Reading) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("way")
    for heading in ("keys", "requests", "RRU", "dollars"):
        table.add_column(heading, justify="right")
    rows = (
        ("keyhop", report["keys"], report["requests"], report["read_units"]),
        ("published: Limit=1", hopped.keys, hopped.requests, hopped.units),
        ("full scan", scanned.keys, scanned.requests, scanned.units),
    )
    for way, keys, requests, units in rows:
        dollars = f"${read_dollars(units):.6f}"
        table.add_row(way, f"{keys:,}", f"{requests:,}", f"{units:,.1f}", dollars)
    console.print(table)
    console.print(
        f"\nAll three were run just now. Prices on demand, {PRICE_REGION}, {PRICE_DATE}. The others"
        f" read {SEGMENTS} segments, only to save time, and are not charged for empty reads at the"
        f" ends; keyhop is charged 0.5 RRU for each, as the service would."
    )


if __name__ == "__main__":
    try:
        sys.exit(main(keep="--keep" in sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
