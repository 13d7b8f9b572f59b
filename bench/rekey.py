"""What the stream's worker of a re-key takes: `python -m bench.rekey`.

CPU of a record, on DynamoDB Local, by this process's own CPU time: so neither the database nor a
loaded machine counts, only what a function with one vCPU would do. The template is one of two keys;
items have 1 KB. And the most memory of a process that works batches of items of 400 KB: as many
as an invocation's 6 MB bring, and then small ones that have grown since, so that each look brings
what one answer of BatchGetItem can.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.rekey.control import Control
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.rekey.worker.replicate import Replicator
from keyhop.tasks import transform_of

from testing.databases import Database
from testing.servers import dynamodb_local

RECORDS, BATCH, ITEM_BYTES = 4_000, 500, 1_000
LARGE_BYTES, LARGE = 400 * 1024 - 200, 100
EVENT_BYTES = 6_000_000
"""Of an invocation's records, as JSON (AWS documentation)."""

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
    """An item of so many bytes, nearly."""
    texts = {
        "PK": f"USER#{number % 97}",
        "SK": f"ORDER#{number:08}",
        "tenantId": f"t{number % 7}",
        "status": "open",
        "note": "x" * max(1, size - 100),
    }
    return {name: {"S": text} for name, text in texts.items()}


def records_of(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As Lambda gets them: each item has been changed."""
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


def prepared(url: str, items: Iterator[dict[str, Any]]) -> Replicator:
    """A pair, whose source has these items, and its worker."""
    database = Database("dynamodb_local", url)
    for table in (PAIR.source, PAIR.destination):
        database.create(table, ("PK", "S"), ("SK", "S"))
    database.client.create_table(**table_request(PAIR.side))
    database.fill(PAIR.source, items)
    connection = connect(Endpoint(url=url), 64)
    SideTable(connection, PAIR.side).swap(None, Control(replicating=True))
    tables = [look_up(connection, table) for table in (PAIR.source, PAIR.destination)]
    return Replicator(PAIR, "forward", transform_of(PAIR, *tables), lambda table: connection)


def speed() -> None:
    """Records a second of CPU."""
    items = [order(number, ITEM_BYTES) for number in range(RECORDS)]
    with dynamodb_local() as url:
        worker = prepared(url, iter(items))
        worker.work(records_of(items[:BATCH]))  # threads, connections, caches
        worker.take_usage()
        cpu, began, done = time.process_time(), time.monotonic(), 0
        for at in range(0, RECORDS, BATCH):
            done += worker.work(records_of(items[at : at + BATCH])).keys
        cpu, took = time.process_time() - cpu, time.monotonic() - began
        usage = worker.take_usage()
    print(f"{done:,} records of {ITEM_BYTES:,} bytes, in batches of {BATCH}")
    print(f"  {done / cpu:,.0f} a second of CPU ({1e6 * cpu / done:.0f} us each), {took:.1f} s")
    print(f"  {usage.write_units / done:.4f} WRU and {usage.read_units / done:.4f} RRU each")


def memory() -> None:
    """Peak of this process, which holds the batch and what the worker makes of it."""
    grown = [order(number, LARGE_BYTES) for number in range(LARGE)]
    with dynamodb_local() as url:
        worker = prepared(url, iter(grown))
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
    """Both, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["speed", "memory"])
    what = parser.parse_args().what
    if what is not None:
        {"speed": speed, "memory": memory}[what]()
        return
    for one in ("speed", "memory"):
        subprocess.run([sys.executable, "-m", "bench.rekey", one], check=True)


if __name__ == "__main__":
    main()
