"""Measure several ways to have many requests in flight in one process.

`python -m bench.concurrency` prints the cost of a request, and the requests a second. Each way only
signs a request with Keyhop's signer, sends it, reads the response, parses its JSON, and makes the
next request, without a walk, a ledger or a gate. `python -m bench.concurrency WAY URL IN_FLIGHT
SECONDS` makes one measurement in a separate process.
"""

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

from botocore.credentials import Credentials
from keyhop.dynamodb.transport import Signer

from bench.command import environment, halves
from bench.stub import TABLE, stub

IN_FLIGHT = 256
LATENCY = 50_000
SECONDS = 6.0
ITEMS_OF_A_PAGE = 10
GREATEST = "\U0010ffff"
CHUNK = 1 << 16
SETTINGS = {"keys": 100_000_000, "items": 100, "bytes": 400, "latency": LATENCY}


def designs() -> list[dict[str, Any]]:
    """Return a row for each way."""
    rows = []
    client_cores, stub_cores = halves()
    for name in WAYS:
        with stub(stub_cores, **SETTINGS) as table:
            place = (table.url, str(IN_FLIGHT), str(SECONDS))
            command = [sys.executable, "-m", "bench.concurrency", name, *place]
            process = subprocess.Popen(
                command, env=environment(), stdout=subprocess.PIPE, text=True
            )
            os.sched_setaffinity(process.pid, client_cores)
            rows.append({"way": name, **json.loads(process.communicate()[0])})
    return rows


class Asker:
    """Makes requests and reads responses for all ways; it sends nothing."""

    def __init__(self, url: str, in_flight: int, seconds: float) -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        self.place = host, int(port)
        self.in_flight = in_flight
        self.end = time.monotonic() + seconds
        self._signer = Signer(f"{host}:{port}", "us-east-1", "keyhop")
        self._credentials = Credentials("local", "local")

    def request(self, segment: int, after: str | None) -> tuple[bytes, bytes]:
        """Return the head and the body of a request."""
        parameters: dict[str, Any] = {
            "TableName": TABLE,
            "Segment": segment,
            "TotalSegments": self.in_flight,
            "Limit": ITEMS_OF_A_PAGE,
            "ProjectionExpression": "#k0",
            "ExpressionAttributeNames": {"#k0": "pk"},
            "ReturnConsumedCapacity": "TOTAL",
        }
        if after is not None:
            parameters["ExclusiveStartKey"] = {"pk": {"S": after}, "sk": {"S": GREATEST}}
        body = json.dumps(parameters).encode()
        target = "DynamoDB_20120810.Scan"
        return self._signer.head(self._credentials, target, body, time.time()), body

    def hop(self, content: bytes) -> str:
        """Return the key after which the next request begins."""
        return str(json.loads(content)["LastEvaluatedKey"]["pk"]["S"])


def content_of(received: bytes) -> bytes | None:
    """Return the content of a response, or None if it is not complete."""
    head, blank, content = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return content if len(content) >= int(length) else None


def in_threads(asker: Asker, walk: Callable[[int], int]) -> int:
    """Run so many threads, and return the number of their requests."""
    counts = [0] * asker.in_flight

    def run(segment: int) -> None:
        counts[segment] = walk(segment)

    threads = [Thread(target=run, args=(segment,)) for segment in range(asker.in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def threads(asker: Asker) -> int:
    """Use a thread and a blocking socket for each segment."""

    def walk(segment: int) -> int:
        number, after = 0, None
        with socket.create_connection(asker.place) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while time.monotonic() < asker.end:
                connection.sendall(b"".join(asker.request(segment, after)))
                received = connection.recv(CHUNK)
                while (content := content_of(received)) is None:
                    received += connection.recv(CHUNK)
                after = asker.hop(content)
                number += 1
        return number

    return in_threads(asker, walk)


def urllib3(asker: Asker) -> int:
    """Use threads with the connections that botocore uses."""
    from urllib3 import HTTPConnectionPool

    pool = HTTPConnectionPool(*asker.place, maxsize=asker.in_flight)

    def walk(segment: int) -> int:
        number, after = 0, None
        while time.monotonic() < asker.end:
            head, body = asker.request(segment, after)
            lines = head.decode().strip().split("\r\n")[1:]
            headers = dict(line.split(": ", 1) for line in lines)
            after = asker.hop(pool.urlopen("POST", "/", body=body, headers=headers).data)
            number += 1
        return number

    return in_threads(asker, walk)


def loop(asker: Asker) -> int:
    """Use one thread with epoll, and a generator for each segment."""
    waiting = select.epoll()
    count = 0

    def walk(segment: int, connection: socket.socket) -> Iterator[None]:
        nonlocal count
        after = None
        while time.monotonic() < asker.end:
            connection.send(b"".join(asker.request(segment, after)))
            received = b""
            while (content := content_of(received)) is None:
                yield
                received += connection.recv(CHUNK)
            after = asker.hop(content)
            count += 1
        waiting.unregister(connection)
        connection.close()

    walks: dict[int, Iterator[None]] = {}
    for segment in range(asker.in_flight):
        connection = socket.create_connection(asker.place)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting.register(connection, select.EPOLLIN)
        walks[connection.fileno()] = walk(segment, connection)
        next(walks[connection.fileno()])
    while walks:
        for number, _ in waiting.poll():
            if next(walks[number], "over") == "over":
                del walks[number]
    return count


class _Answers(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""
        self.answer: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        """Pass a response on when it is complete."""
        self.received += data
        if self.answer is not None and (content := content_of(self.received)) is not None:
            self.received = b""
            self.answer.set_result(content)


def asyncio_(asker: Asker) -> int:
    """Use a task and a protocol of asyncio for each segment."""

    async def walk(segment: int) -> int:
        running, number, after = asyncio.get_running_loop(), 0, None
        transport, answers = await running.create_connection(_Answers, *asker.place)
        while time.monotonic() < asker.end:
            answers.answer = running.create_future()
            transport.write(b"".join(asker.request(segment, after)))
            after = asker.hop(await answers.answer)
            number += 1
        transport.close()
        return number

    async def run() -> int:
        return sum(await asyncio.gather(*map(walk, range(asker.in_flight))))

    return asyncio.run(run())


WAYS: dict[str, Callable[[Asker], int]] = {
    "threads": threads,
    "epoll loop": loop,
    "asyncio": asyncio_,
    "urllib3": urllib3,
}


def measure(way: str, url: str, in_flight: int, seconds: float) -> dict[str, float]:
    """Return the requests a second, and the microseconds of CPU for a request."""
    asker = Asker(url, in_flight, seconds)
    began, cpu = time.monotonic(), time.process_time()
    count = WAYS[way](asker)
    lasted, cpu = time.monotonic() - began, time.process_time() - cpu
    return {"requests_per_second": count / lasted, "cpu_us": 1e6 * cpu / count}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _, way, url, many, lasts = sys.argv
        print(json.dumps(measure(way, url, int(many), float(lasts))))
    else:
        print(json.dumps(designs(), indent=1))
