"""CPU of the client for one Scan request: boto3's as it comes, Keyhop's, and its whole walk."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import boto3
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.schema import KeyAttribute, KeySpace

from bench.command import halves
from bench.stub import TABLE, stub
from testing.servers import LOCAL_CREDENTIALS, ROOT

PAGES = (1, 10, 100)
"""Items of a page."""
REQUESTS = 1_000
ROUNDS = 3
WALKED_KEYS, ITEMS_OF_A_KEY, BLOCK_BYTES = 2_000, 1_000, 4_000
START = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S")).hop_from(
    {"pk": {"S": "k000000001"}}
)


def client_cpu() -> dict[str, dict[str, float]]:
    """By items of a page, of each way the microseconds of CPU for a request."""
    return {str(items): {**_requests(items), "walk": _walk(items)} for items in PAGES}


def _requests(items: int) -> dict[str, float]:
    """By turns, the least of a few rounds."""
    with stub(halves()[1], items=1, bytes=32) as table:
        parameters = {
            "TableName": TABLE,
            "Segment": 0,
            "TotalSegments": 16,
            "ExclusiveStartKey": START,
            "Limit": items,
            "ProjectionExpression": "#k0",
            "ExpressionAttributeNames": {"#k0": "pk"},
            "ReturnConsumedCapacity": "TOTAL",
        }
        plain = boto3.client("dynamodb", endpoint_url=table.url, **LOCAL_CREDENTIALS)
        own = connect(Endpoint(url=table.url)).client
        ways: dict[str, Callable[[], Any]] = {
            "boto3 client.scan": lambda: plain.scan(**parameters),
            "keyhop": lambda: own.call("scan", **parameters),
        }
        least = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, request in ways.items():
                least[name] = min(least[name], _microseconds(request))
    return least


def _microseconds(request: Callable[[], Any]) -> float:
    began = time.process_time()
    for _ in range(REQUESTS):
        request()
    return 1e6 * (time.process_time() - began) / REQUESTS


def _walk(items: int) -> float:
    """A run in a process of its own, on a table of which a page of so many items is best."""
    settings = {"items": ITEMS_OF_A_KEY, "bytes": BLOCK_BYTES // items}
    with stub(halves()[1], keys=WALKED_KEYS, **settings) as table:
        command = [sys.executable, "-m", "bench.measure", "keyhop", table.url, TABLE]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(ended.stdout)["cpu_us_per_request"])
