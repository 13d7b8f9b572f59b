"""How much of `--max-read-rate` the command uses: 6,000 items of 3 KB, at four rates.

`python -m bench.rates URL TABLE RATE THREADS` makes one measurement in a separate process. It runs
the real command, and records each request when it is sent. `python -m bench.rates` makes all
measurements, and adds them to docs/benchmark.*. Set `PYTHONPATH` to the library of another commit
to measure that commit.
"""

import json
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from keyhop.cli.main import main as keyhop
from keyhop.dynamodb import requester

from bench.report import DOCS, write_report
from testing.databases import load
from testing.servers import ROOT, dynamodb_local, local_client

ITEMS, ITEM_BYTES = 6_000, 3_000
RATES = (50, 100, 200, 400)
THREADS = (1, 8)
TABLE = "Rates"
WINDOW_SECONDS = 10.0

SentRequest = tuple[float, float, int, bool]
"""A request: its time, its units, the number of segments, and whether it begins a segment."""


def measure_rates() -> list[dict[str, Any]]:
    """Return a row for each rate and number of threads."""
    with dynamodb_local() as url:
        client = local_client(url)
        _create(client)
        return [_measure(url, rate, threads) for rate in RATES for threads in THREADS]


def _create(client: Any) -> None:
    keys = {"pk": "HASH", "sk": "RANGE"}
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": name, "KeyType": type_} for name, type_ in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    filling = {"S": "x" * (ITEM_BYTES - 20)}
    items = ({"pk": {"S": f"k{n:06}"}, "sk": {"S": "0"}, "d": filling} for n in range(ITEMS))
    load(client, items, TABLE)


def _measure(url: str, rate: int, threads: int) -> dict[str, Any]:
    print(f"bench: {rate} RRU/s, {threads} threads ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "bench.rates", url, TABLE, str(rate), str(threads)]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(ended.stdout)
    return row


def measure(url: str, table: str, rate: float, threads: int) -> dict[str, Any]:
    """Run the command, and return how much of the rate it has used.

    Returns:
        The shares of the rate that were used: `whole`, from the first request to the last
        response; `steady`, after the first look, while some segments have not begun; and
        `window`, the minimum of any ten seconds of that time (None if it was shorter). Also
        `burst_pages`: the maximum beyond the rate in a second, in the largest pages per thread.
    """
    requests: list[SentRequest] = []
    _record(requests, requester.send)
    began = time.monotonic()
    processes = ("--processes", "1")  # this process records the requests
    arguments = ("--max-read-rate", str(rate), "--threads", str(threads), *processes, "--quiet")
    with tempfile.TemporaryDirectory() as folder:
        status = keyhop(["keys", table, "--endpoint-url", url, *arguments, "--output", folder])
    ended = time.monotonic()
    if status != 0:
        raise SystemExit(f"The command ended with exit status {status}.")
    requests.sort()
    spent = sum(units for _, units, _, _ in requests)
    ((segments, _),) = Counter(count for _, _, count, _ in requests).most_common(1)
    firsts = [moment for moment, _, count, is_first in requests if count == segments and is_first]
    steady = next(_windows(requests, firsts[0], firsts[-1], firsts[-1] - firsts[0]))
    windows = list(_windows(requests, firsts[0], firsts[-1], WINDOW_SECONDS))
    highest = max(units for units in _windows(requests, began, ended + 1.0, 1.0))
    page = max(units for _, units, _, _ in requests)
    return {
        "rate": rate,
        "threads": threads,
        "requests": len(requests),
        "units": spent,
        "seconds": ended - requests[0][0],
        "whole": spent / rate / (ended - requests[0][0]),
        "steady": steady / rate / (firsts[-1] - firsts[0]),
        "window": min(windows) / rate / WINDOW_SECONDS if windows else None,
        "burst_pages": (highest - rate) / page / threads,
    }


def _record(requests: list[SentRequest], send: Callable[..., dict[str, Any]]) -> None:
    def record_and_send(client: Any, operation: str, parameters: Any) -> dict[str, Any]:
        moment = time.monotonic()
        response = send(client, operation, parameters)
        if operation == "scan":
            units = max(0.5, response["ConsumedCapacity"]["CapacityUnits"])
            is_first = "ExclusiveStartKey" not in parameters
            requests.append((moment, units, parameters.get("TotalSegments", 1), is_first))
        return response

    requester.send = record_and_send


def _windows(
    requests: Sequence[SentRequest], begin: float, end: float, seconds: float
) -> Iterator[float]:
    """Yield the units of the windows between two moments that begin with a request."""
    moments = [moment for moment, *_ in requests]
    before = [0.0, *accumulate(units for _, units, _, _ in requests)]
    for number, moment in enumerate(moments):
        if begin <= moment and moment + seconds <= end:
            yield before[bisect_left(moments, moment + seconds)] - before[number]


def main() -> None:
    """Add the rows to the report."""
    results = json.loads((DOCS / "benchmark.json").read_text())
    results["rates"] = measure_rates()
    write_report(results)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _, url, table, rate, threads = sys.argv
        print(json.dumps(measure(url, table, float(rate), int(threads))))
    else:
        main()
