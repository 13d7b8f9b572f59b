"""Compare the read units for each key with many requests in flight with those with few.

With many requests in flight, a run learns later from each response. The tables are those of the
simulator, and each response is delayed. `python -m bench.in_flight` prints the figures.
"""

import random
import time
from statistics import mean
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.units import UNITS_PER_BLOCK, blocks_of
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob
from keyhop.jobs.request import Request
from keyhop.storage.store import Memory
from keyhop.tasks import tasks_of

from bench.report import say
from bench.simulated import SEED, SIMULATED
from testing.simulator import Table
from testing.tables import TABLES

FEW, MANY = 8, 64
LATENCIES = {FEW: 0.002, MANY: 0.02}
"""Seconds, so long that one CPU can have so many requests in flight."""
ROUNDS = 4
"""The figures are means over these rounds, because segments and the order of responses vary."""


def in_flight() -> list[dict[str, Any]]:
    """Return each table's read units for each key with few and many requests, and their maximum."""
    return [_row(name, keys) for name, keys in SIMULATED.items()]


def _row(name: str, keys: int) -> dict[str, Any]:
    say(f"{FEW} and {MANY} requests in flight on {name}")
    table = Table(TABLES[name].make(random.Random(SEED), keys))
    few, many = ([_run(table, threads) for _ in range(ROUNDS)] for threads in (FEW, MANY))
    return {
        "table": name,
        "keys": table.keys,
        "few": mean(units for units, _ in few) / table.keys,
        "many": mean(units for units, _ in many) / table.keys,
        "in_flight": max(at_once for _, at_once in many),
    }


def _run(table: Table, threads: int) -> tuple[float, int]:
    slow = Slow(table, LATENCIES[threads])
    request = Request("Slow", "keys", threads=threads)
    job = LocalJob(request, tasks_of(), Connection(slow), Journal(Memory()))
    job.prepare()
    job.begin()
    if not job.work() or job.group.keys != table.keys:
        raise SystemExit("The table was not read to its end.")
    return job.reader.usage.read_units, slow.maximum


class Slow:
    """A table with delayed responses, with the interface of dynamodb.client.DynamoDB.

    Attributes:
        maximum: the maximum number of concurrent requests so far
    """

    def __init__(self, table: Table, latency: float) -> None:
        self.maximum = self._now = 0
        self._table = table
        self._latency = latency

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Answer DescribeTable or Scan after the latency."""
        self._now += 1
        self.maximum = max(self.maximum, self._now)
        time.sleep(self._latency)
        is_scan = operation == "scan"
        response = self._scan(parameters) if is_scan else {"Table": self._description()}
        self._now -= 1
        return response

    def _description(self) -> dict[str, Any]:
        names = {"pk": "HASH", "sk": "RANGE"}
        return {
            "TableName": "Slow",
            "TableId": "slow",
            "KeySchema": [{"AttributeName": n, "KeyType": t} for n, t in names.items()],
            "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in names],
            "ItemCount": self._table.items,
            "TableSizeBytes": self._table.size(0, self._table.items),
        }

    def _scan(self, parameters: dict[str, Any]) -> dict[str, Any]:
        table, segments = self._table, parameters.get("TotalSegments", 1)
        segment = parameters.get("Segment", 0)
        first, last = (-(-(segment + more) * table.keys // segments) for more in (0, 1))
        begin, end = table.starts[first], table.starts[last]
        if start := parameters.get("ExclusiveStartKey"):
            begin = self._after(start)
        reach = table.page_end(begin, parameters.get("Limit")) if begin < end else end
        reach = min(reach, end)
        numbers, read = table.collection_of[begin:reach], table.size(begin, reach)
        page = {
            "Items": [{"pk": {"S": f"{number:09}"}} for number in numbers],
            "ConsumedCapacity": {"CapacityUnits": UNITS_PER_BLOCK * blocks_of(read)},
        }
        if numbers and (reach < end or len(numbers) == parameters.get("Limit")):
            position = reach - 1 - table.starts[numbers[-1]]
            key = {"pk": {"S": f"{numbers[-1]:09}"}, "sk": {"S": f"{position:06}"}}
            page["LastEvaluatedKey"] = key
        return page

    def _after(self, start: dict[str, dict[str, str]]) -> int:
        """Return the item after a start key; an unknown sort key counts as the greatest one."""
        number, sort = int(start["pk"]["S"]), start["sk"]["S"]
        if not sort.isdigit():
            return self._table.starts[number + 1]
        return self._table.starts[number] + int(sort) + 1


if __name__ == "__main__":
    for row in in_flight():
        print(row, f"{row['many'] / row['few']:.3f}")
