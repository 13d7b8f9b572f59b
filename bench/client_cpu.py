"""CPU of the client for one Scan request: boto3's client as it comes, and Keyhop's reader."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import boto3
from keyhop.dynamodb.client import Endpoint, connect
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Source
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

from testing.servers import LOCAL_CREDENTIALS, ROOT

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
START = SPACE.hop_from({"pk": {"S": "key-1"}})
REQUESTS = 2_000
ROUNDS = 3


def client_cpu(items: int) -> dict[str, float]:
    """Microseconds of CPU for a page of `items` items, by turns, the least of a few rounds."""
    command = [sys.executable, "-m", "bench.stub", str(items)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stub:
        assert stub.stdin is not None
        assert stub.stdout is not None
        url = f"http://127.0.0.1:{int(stub.stdout.readline())}"
        ways = {"boto3 client.scan": _plain(url), "keyhop": _keyhop(url)}
        least = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, request in ways.items():
                least[name] = min(least[name], _microseconds(request))
        stub.stdin.close()
    return least


def _microseconds(request: Callable[[], Any]) -> float:
    began = time.process_time()
    for _ in range(REQUESTS):
        request()
    return 1e6 * (time.process_time() - began) / REQUESTS


def _plain(url: str) -> Callable[[], Any]:
    client = boto3.client("dynamodb", endpoint_url=url, **LOCAL_CREDENTIALS)
    return lambda: client.scan(
        TableName="Stub",
        Segment=1,
        TotalSegments=16,
        ExclusiveStartKey=START,
        Limit=8,
        ProjectionExpression="#p",
        ExpressionAttributeNames={"#p": "pk"},
        ReturnConsumedCapacity="TOTAL",
    )


def _keyhop(url: str) -> Callable[[], Any]:
    source = Source("Stub", None, "", "", SPACE, 0, 0)
    reader = PageReader(connect(Endpoint(url=url)), source, Budget())
    return lambda: reader.read(1, 16, START, 8, 0.5)
