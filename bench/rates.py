"""How much of `--max-read-rate` the command uses: 6,000 items of 3 KB, at four rates.

`python -m bench.rates URL TABLE RATE THREADS` is one measurement, in a process of its own: the real
command, with a note of each request on its way to the wire. `python -m bench.rates` makes all of
them and adds them to docs/benchmark.*; with `PYTHONPATH` at the library of another commit, they are
that one's.
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

Sent = tuple[float, float, int, bool]
"""Of a request: when, its units, of how many segments one is read, whether one begins with it."""


def measure_rates() -> list[dict[str, Any]]:
    """A row for each rate and number of threads."""
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
    """Run the command; how it has used the rate, as shares of it.

    whole: from its first request to its last answer. steady: after the first look, while there are
    segments that nobody has begun; window: the least of it in ten seconds, None if that was over
    before. burst_pages: what a second had beyond the rate, in pages of the largest size for each
    request that may be under way.
    """
    sent: list[Sent] = []
    _note(sent, requester.send)
    began = time.monotonic()
    one = ("--processes", "1")  # requests are noted in this one
    arguments = ("--max-read-rate", str(rate), "--threads", str(threads), *one, "--quiet")
    with tempfile.TemporaryDirectory() as folder:
        status = keyhop(["keys", table, "--endpoint-url", url, *arguments, "--output", folder])
    ended = time.monotonic()
    if status != 0:
        raise SystemExit(f"the command ended with {status}")
    sent.sort()
    spent = sum(units for _, units, _, _ in sent)
    ((segments, _),) = Counter(of for _, _, of, _ in sent).most_common(1)
    firsts = [moment for moment, _, of, is_first in sent if of == segments and is_first]
    steady = next(_windows(sent, firsts[0], firsts[-1], firsts[-1] - firsts[0]))
    windows = list(_windows(sent, firsts[0], firsts[-1], WINDOW_SECONDS))
    most = max(units for units in _windows(sent, began, ended + 1.0, 1.0))
    page = max(units for _, units, _, _ in sent)
    return {
        "rate": rate,
        "threads": threads,
        "requests": len(sent),
        "units": spent,
        "seconds": ended - sent[0][0],
        "whole": spent / rate / (ended - sent[0][0]),
        "steady": steady / rate / (firsts[-1] - firsts[0]),
        "window": min(windows) / rate / WINDOW_SECONDS if windows else None,
        "burst_pages": (most - rate) / page / threads,
    }


def _note(sent: list[Sent], send: Callable[..., dict[str, Any]]) -> None:
    def noted(client: Any, operation: str, given: Any) -> dict[str, Any]:
        moment = time.monotonic()
        answer = send(client, operation, given)
        if operation == "scan":
            units = max(0.5, answer["ConsumedCapacity"]["CapacityUnits"])
            is_first = "ExclusiveStartKey" not in given
            sent.append((moment, units, given.get("TotalSegments", 1), is_first))
        return answer

    requester.send = noted


def _windows(sent: Sequence[Sent], begin: float, end: float, seconds: float) -> Iterator[float]:
    """Units of the windows between two moments that begin with a request."""
    moments = [moment for moment, *_ in sent]
    before = [0.0, *accumulate(units for _, units, _, _ in sent)]
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
