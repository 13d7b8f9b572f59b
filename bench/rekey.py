"""Measure the CPU and memory of a re-key's stream worker, and the CPU of its copy.

`python -m bench.rekey` measures all, and `python -m bench.rekey copy` one of them.

The CPU for a record is the CPU time of this process, with DynamoDB Local: neither the database nor
the load of the machine counts, only what a function with one vCPU would do. The template sets two
keys; items have 1 KB. The memory is the peak of a process that processes batches of items of 400
KB: first as many as the 6 MB of an invocation contain, then small items that have grown since, so
that each look reads as much as a response of BatchGetItem can contain.

The CPU for a copied item is that of a process which copies a whole table in memory of DynamoDB
Local, from its start to its end: the scan, the template, the conditional puts, and the second look
at each item. Beside it, boto3's client puts the same items, which it does not read, one after the
other or from as many threads.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair
from keyhop.rekey.request import BackfillInput
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.rekey.worker.replicate import Replicator
from keyhop.storage.store import Memory
from keyhop.tasks import tasks_of, transform_of

from bench.command import environment
from testing.databases import Database
from testing.servers import dynamodb_local

RECORDS, BATCH, ITEM_BYTES = 4_000, 500, 1_000
COPIED, ROUNDS = 20_000, 3
WAYS = {
    "the copy": ["copy-table"],
    "boto3's put_item": ["put-items", "1"],
    "boto3's put_item, 8 threads": ["put-items", "8"],
}
LARGE_BYTES, LARGE = 400 * 1024 - 200, 100
EVENT_BYTES = 6_000_000
"""The maximum size of an invocation's records, as JSON (AWS documentation)."""

PAIR = Pair(
    "Orders",
    "OrdersByTenant",
    {
        "items": [
            {
                "name": "order",
                "match": {"PK": "USER#{userId}", "SK": "ORDER#{orderId}"},
                "set": {"PK": "TENANT#{tenantId}", "SK": "ORDER#{orderId}"},
                "keep": {"PK": "oldPK"},
            }
        ]
    },
)


def order(number: int, size: int) -> dict[str, Any]:
    """Return an item of about so many bytes."""
    texts = {
        "PK": f"USER#{number % 97}",
        "SK": f"ORDER#{number:08}",
        "tenantId": f"t{number % 7}",
        "status": "open",
        "note": "x" * max(1, size - 100),
    }
    return {name: {"S": text} for name, text in texts.items()}


def records_of(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records that Lambda gets when each item has been changed."""
    return [
        {
            "eventID": f"e{number}",
            "eventName": "MODIFY",
            "dynamodb": {
                "Keys": {name: item[name] for name in ("PK", "SK")},
                "OldImage": {**item, "status": {"S": "new"}},
                "NewImage": item,
                "SequenceNumber": str(number),
                "ApproximateCreationDateTime": time.time(),
            },
        }
        for number, item in enumerate(items)
    ]


def prepare(url: str, items: Iterator[dict[str, Any]], pair: Pair = PAIR) -> Replicator:
    """Create a pair whose source has these items, and return its worker."""
    database = Database("dynamodb_local", url)
    for table in (pair.source, pair.destination):
        database.create(table, ("PK", "S"), ("SK", "S"))
    database.client.create_table(**table_request(pair.side))
    database.fill(pair.source, items)
    connection = connect(Endpoint(url=url), 64)
    side = SideTable(connection, pair.side)
    side.put_plan(pair)
    side.swap(None, Control(replicating=True))
    tables = [look_up(connection, table) for table in (pair.source, pair.destination)]
    return Replicator(pair, "forward", transform_of(pair, *tables), lambda table: connection)


def speed() -> None:
    """Print the records for each second of CPU."""
    items = [order(number, ITEM_BYTES) for number in range(RECORDS)]
    with dynamodb_local() as url:
        worker = prepare(url, iter(items))
        worker.work(records_of(items[:BATCH]))  # threads, connections, caches
        worker.take_usage()
        cpu, began, count = time.process_time(), time.monotonic(), 0
        for at in range(0, RECORDS, BATCH):
            count += worker.work(records_of(items[at : at + BATCH])).keys
        cpu, took = time.process_time() - cpu, time.monotonic() - began
        usage = worker.take_usage()
    print(f"{count:,} records of {ITEM_BYTES:,} bytes, in batches of {BATCH}")
    print(f"  {count / cpu:,.0f} a second of CPU ({1e6 * cpu / count:.0f} us each), {took:.1f} s")
    print(f"  {usage.write_units / count:.4f} WRU and {usage.read_units / count:.4f} RRU each")


def copy() -> None:
    """Print the CPU for each copied item, and for each item that boto3's client puts."""
    print(f"{COPIED:,} items of {ITEM_BYTES:,} bytes, from the start of a process to its end")
    for way, milliseconds in copy_cpu().items():
        print(f"  {milliseconds:.3f} ms of CPU each: {way}")


def copy_cpu() -> dict[str, float]:
    """Return the milliseconds of CPU of each way for an item: the minimum of the rounds."""
    least = dict.fromkeys(WAYS, float("inf"))
    with dynamodb_local() as url:
        for number in range(ROUNDS):
            for at, (way, command) in enumerate(WAYS.items()):
                pair = Pair(f"Orders{number}{at}", f"Copies{number}{at}", PAIR.template)
                prepare(url, (order(each, ITEM_BYTES) for each in range(COPIED)), pair)
                python = [sys.executable, "-m", "bench.rekey", *command, url, pair.destination]
                child = subprocess.Popen(python, env=environment())
                _, status, used = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
                if child.returncode:
                    raise SystemExit(f"{way} has failed.")
                seconds = used.ru_utime + used.ru_stime
                least[way] = min(least[way], 1e3 * seconds / COPIED)
    return least


def copy_table(url: str, destination: str) -> None:
    """Copy a table by one process."""
    request = BackfillInput.parse({"rekey": destination, "maxWriteRate": 1e6})
    job = LocalJob(request, tasks_of(), connect(Endpoint(url=url), 64), Journal(Memory()))
    job.prepare()
    job.begin()
    if not job.work() or job.finish()[1]["counts"] != {"copied": COPIED}:
        raise SystemExit("The table was not copied.")


def put_items(url: str, destination: str, threads: int) -> None:
    """Put the items of `copy` by boto3's client."""
    config = Config(max_pool_connections=threads)
    client = boto3.client("dynamodb", endpoint_url=url, config=config)

    def put(number: int) -> None:
        client.put_item(TableName=destination, Item=order(number, ITEM_BYTES))

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(put, range(COPIED)):
            pass


def memory() -> None:
    """Print the peak memory of this process, which holds the batch and the worker's data."""
    grown = [order(number, LARGE_BYTES) for number in range(LARGE)]
    with dynamodb_local() as url:
        worker = prepare(url, iter(grown))
        fitting = EVENT_BYTES // (2 * LARGE_BYTES)
        worker.work(records_of(grown[:fitting]))
        print(f"{_peak():,.0f} MB after {fitting} records of items of 400 KB")
        small = [{**item, "note": {"S": "small"}} for item in grown]
        del grown
        worker.work(records_of(small))
        print(f"{_peak():,.0f} MB after {LARGE} records of items that have grown to 400 KB")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure all, each in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    whats = {"speed": speed, "memory": memory, "copy": copy}
    parser.add_argument("what", nargs="?", choices=whats)
    what = parser.parse_args().what
    if what is not None:
        whats[what]()
        return
    for name in whats:
        subprocess.run([sys.executable, "-m", "bench.rekey", name], check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["copy-table", url, destination]:
            copy_table(url, destination)
        case ["put-items", threads, url, destination]:
            put_items(url, destination, int(threads))
        case _:
            main()
