"""Make one measurement in a separate process: `python -m bench.measure WAY URL TABLE [SEGMENTS]`.

It prints JSON. Seconds and CPU are those from DescribeTable to the last key, without the start of
Python and of the client. Memory is that of the whole process.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import boto3
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.values import Key
from keyhop.jobs.journal import Journal, Part
from keyhop.jobs.local import LocalJob
from keyhop.jobs.request import Request
from keyhop.storage.store import Memory
from keyhop.tasks import tasks_of

from testing.baselines import Reading, full_scan, published
from testing.servers import LOCAL_CREDENTIALS


class Counted:
    """An output that only counts keys (jobs.worker.Output)."""

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Return the number of keys."""
        return len(keys)

    def close(self) -> tuple[Part, ...]:
        """Return no parts."""
        return ()


def measure(way: str, url: str, table: str, segments: int | None) -> dict[str, Any]:
    """Read the table in one way, and return the figures."""
    if way == "keyhop":
        read = keyhop(url, table, segments)
    else:
        client = boto3.client("dynamodb", endpoint_url=url, **LOCAL_CREDENTIALS)
        baseline = {"published": published, "full scan": full_scan}[way]

        def read() -> Reading:
            return baseline(client, table, segments or 1)

    began, cpu = time.monotonic(), time.process_time()
    reading = read()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    return {
        "keys": reading.keys,
        "requests": reading.requests,
        "units": reading.units,
        "segments": reading.segments,
        "seconds": seconds,
        "cpu_us_per_request": 1e6 * cpu / reading.requests,
        "megabytes": peak_megabytes(),
    }


def peak_megabytes() -> float:
    """Return this process's peak memory; getrusage would include that of its parent."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    )
    return int(line.split()[1]) / 1024


def keyhop(url: str, table: str, segments: int | None) -> Callable[[], Reading]:
    """Return a function that runs `keyhop keys`."""
    connection = connect(Endpoint(url=url))
    request = Request(table, "keys", segments=segments)

    def read() -> Reading:
        job = LocalJob(request, tasks_of(), connection, Journal(Memory()))
        job.prepare()
        job.begin()
        if not job.work(output=Counted()):
            raise SystemExit("The table was not read to its end.")
        usage = job.reader.usage
        return Reading(job.group.keys, usage.requests, usage.read_units, job.plan.segments)

    return read


if __name__ == "__main__":
    way, url, table, *rest = sys.argv[1:]
    print(json.dumps(measure(way, url, table, int(rest[0]) if rest else None)))
