"""An HTTP server of the DynamoDB in memory, with faults on demand."""

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore import xform_name
from botocore.exceptions import ClientError
from keyhop.dynamodb.values import typed_json, with_bytes

from testing.simulation.service import Service, failure
from testing.simulation.values import NotSimulated

Fault = Callable[[str, Mapping[str, Any]], None]
"""A function that is called before each request is answered; it may raise ClientError or Hangup."""


class Hangup(Exception):
    """Close the connection without an answer."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """A long queue, because many clients connect at once, and retry after seconds if it is full."""


class StandIn:
    """A running stand-in. Set `fault` or `service.has_empty_page` at any time, or call `at`."""

    def __init__(self) -> None:
        self.service = Service({})
        self.fault: Fault = lambda operation, request: None
        self.requests: Counter[str] = Counter()
        self.units = 0.0
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def answer(self, operation: str, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        self.fault(operation, request)
        with self._lock:
            self.requests[operation] += 1
            try:
                body = self.service.answer(xform_name(operation), request)
            except NotSimulated as error:
                raise failure("UnknownOperationException", str(error)) from error
            if operation in ("Scan", "Query") and "ConsumedCapacity" in body:
                self.units += body["ConsumedCapacity"]["CapacityUnits"]
        return 200, body

    def at(self, operation: str, act: Callable[[int], Exception | None]) -> list[int]:
        """Raise what `act` returns, if anything, before each request of an operation.

        `act` gets the number of the request, from 1. The returned list has all numbers so far.
        """
        counter, numbers = itertools.count(1), list[int]()

        def fault(called: str, request: Mapping[str, Any]) -> None:
            if called == operation:
                numbers.append(number := next(counter))
                if (error := act(number)) is not None:
                    raise error

        self.fault = fault
        return numbers

    def heal(self) -> None:
        """Remove the fault."""
        self.fault = lambda operation, request: None

    def alter(self, change: Callable[[str, Mapping[str, Any], dict[str, Any]], None]) -> None:
        """Call a function that may change each answer before it is sent."""
        answer = self.answer

        def altered(operation: str, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
            status, body = answer(operation, request)
            change(operation, request, body)
            return status, body

        self.answer = altered  # type: ignore[method-assign]

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
                request = with_bytes(json.loads(self.rfile.read(length)))
                operation = self.headers["X-Amz-Target"].split(".")[1]
                try:
                    status, body = stand_in.answer(operation, request)
                except ClientError as error:
                    status, body = _error_response(error)
                except Hangup:
                    self.close_connection = True
                    return
                content = typed_json(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.0")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def _error_response(exception: ClientError) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the body of an error response."""
    body: dict[str, Any] = dict(exception.response)
    error, status = body.pop("Error"), body.pop("ResponseMetadata")["HTTPStatusCode"]
    type_ = f"com.amazonaws.dynamodb.v20120810#{error['Code']}"
    return status, {"__type": type_, "message": error["Message"], **body}


@contextmanager
def running() -> Iterator[StandIn]:
    """Run a stand-in on a free loopback port."""
    stand_in = StandIn()
    thread = threading.Thread(target=stand_in.serve, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.stop()
        thread.join()
