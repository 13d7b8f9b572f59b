"""CPU time of a Scan request in boto3's client, Keyhop's client, and Keyhop's walk."""

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
"""The numbers of items in a page."""
REQUESTS = 1_000
ROUNDS = 3
WALKED_KEYS, ITEMS_OF_A_KEY, BLOCK_BYTES = 2_000, 1_000, 4_000
START = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S")).hop_from(
    {"pk": {"S": "k000000001"}}
)


def client_cpu() -> dict[str, dict[str, float]]:
    """Return the microseconds of CPU for a request, by the items in a page and by method."""
    return {str(items): {**_requests(items), "walk": _walk(items)} for items in PAGES}


def _requests(items: int) -> dict[str, float]:
    """Return each client's minimum over a few rounds, in which the clients take turns."""
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
        client = connect(Endpoint(url=table.url)).client
        ways: dict[str, Callable[[], Any]] = {
            "boto3 client.scan": lambda: plain.scan(**parameters),
            "keyhop": lambda: client.call("scan", **parameters),
        }
        fastest = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, request in ways.items():
                fastest[name] = min(fastest[name], _microseconds(request))
    return fastest


def _microseconds(request: Callable[[], Any]) -> float:
    began = time.process_time()
    for _ in range(REQUESTS):
        request()
    return 1e6 * (time.process_time() - began) / REQUESTS


def _walk(items: int) -> float:
    """Measure a run in another process, on a table that is best read by so many items."""
    settings = {"items": ITEMS_OF_A_KEY, "bytes": BLOCK_BYTES // items}
    with stub(halves()[1], keys=WALKED_KEYS, **settings) as table:
        command = [sys.executable, "-m", "bench.measure", "keyhop", table.url, TABLE]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(ended.stdout)["cpu_us_per_request"])
