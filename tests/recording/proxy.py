"""Proxies before the servers of a laptop cloud, which inspect or refuse requests."""

import http.client
import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

NEVER_REFUSED = ("DescribeTable",)
CONNECTION_HEADERS = ("connection", "content-length", "expect", "transfer-encoding")
"""The headers that a proxy does not forward."""


@dataclass(frozen=True)
class Request:
    """An HTTP request, with its query in the path, and its headers by lower-case name."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def operation(self) -> str:
        """The operation of a JSON protocol, for example Scan, or an empty text."""
        return self.headers.get("x-amz-target", "").rpartition(".")[2]


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"Content-Type": "application/x-amz-json-1.0"}
    )


class Judge:
    """The hooks of a proxy; this class forwards all requests."""

    def before(self, request: Request) -> Answer | None:
        """Return an answer in place of the server's, or None to forward the request."""
        return None

    def after(self, request: Request, answer: Answer) -> Answer:
        """Return the answer for the caller, given the server's answer."""
        return answer


@dataclass
class Refusals(Judge):
    """Hooks that throttle a share of the requests to DynamoDB, and refuse those with a text."""

    throttled: float = 0.0
    poison: str | None = None
    refused: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(5))
    _lock: Lock = field(default_factory=Lock)

    def before(self, request: Request) -> Answer | None:
        with self._lock:
            if request.operation in NEVER_REFUSED:
                return None
            if self.poison is not None and self.poison.encode() in request.body:
                self.refused += 1
                return refusal("ValidationException", "This key is poison")
            if self._chance.random() < self.throttled:
                self.refused += 1
                reason = {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:t"}
                return refusal("ThrottlingException", "Slow down", throttlingReasons=[reason])
        return None


IDLE_SECONDS = 10.0
"""The limit is below the 30 seconds after which DynamoDB Local closes an idle connection."""


def refusal(code: str, message: str, **more: object) -> Answer:
    """Return an error in DynamoDB's format."""
    type_ = f"com.amazonaws.dynamodb.v20120810#{code}"
    return Answer(400, json.dumps({"__type": type_, "message": message, **more}).encode())


@contextmanager
def proxy_before(target: str, judge: Judge) -> Iterator[str]:
    """Run a proxy on loopback until the block ends, and yield its address."""
    address = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self.upstream = http.client.HTTPConnection(
                address.hostname or "", address.port, timeout=1_000
            )
            self.asked_at = time.monotonic()

        def finish(self) -> None:
            self.upstream.close()
            super().finish()

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, body)
            answer = judge.before(request) or judge.after(request, self._forward(request))
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def _forward(self, request: Request) -> Answer:
            headers = {k: v for k, v in request.headers.items() if k not in CONNECTION_HEADERS}
            if time.monotonic() - self.asked_at > IDLE_SECONDS:
                self.upstream.close()  # The request opens it again.
            self.asked_at = time.monotonic()
            self.upstream.request(request.method, request.path, request.body, headers)
            response = self.upstream.getresponse()
            body = response.read()
            fields = response.getheaders()
            headers = {k: v for k, v in fields if k.lower() not in CONNECTION_HEADERS}
            if request.method == "HEAD":
                headers["Content-Length"] = response.getheader("Content-Length") or "0"
            return Answer(response.status, body, headers)

        def log_message(self, *arguments: object) -> None:
            pass

    for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.pass_on)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
