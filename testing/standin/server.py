"""The stand-in behind HTTP, with faults on demand."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from testing.standin.engine import Refused, Service

Fault = Callable[[str, Mapping[str, Any]], None]
"""Called before each request is answered: may raise Refused, or Hangup."""


class Hangup(Exception):
    """Close the connection without an answer."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Who finds the queue full asks again a second later, or three: many come at once."""


class StandIn:
    """A running stand-in. Set `fault` or `empty_pages` at any time."""

    def __init__(self) -> None:
        self.service = Service()
        self.fault: Fault = lambda operation, request: None
        self.empty_pages: Callable[[Mapping[str, Any]], bool] = lambda request: False
        self.requests: Counter[str] = Counter()
        self.units = 0.0
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def answer(self, operation: str, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        self.fault(operation, request)
        with self._lock:
            self.requests[operation] += 1
            empty = operation == "Scan" and self.empty_pages(request)
            body = self.service.answer(operation, request, empty)
            self.units += body.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        return 200, body

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.01)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = json.loads(self.rfile.read(length))
                operation = self.headers["X-Amz-Target"].split(".")[1]
                try:
                    status, body = stand_in.answer(operation, request)
                except Refused as refused:
                    status, body = refused.status, refused.body
                except Hangup:
                    self.close_connection = True
                    return
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        return Handler


@contextmanager
def running() -> Iterator[StandIn]:
    """A stand-in on a free port of loopback."""
    stand_in = StandIn()
    thread = threading.Thread(target=stand_in.serve, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.stop()
        thread.join()
