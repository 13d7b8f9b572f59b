"""Proxies before the servers of a laptop cloud: what passes is looked at, or refused."""

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

SPARED = ("DescribeTable",)
OF_THE_CONNECTION = ("connection", "content-length", "expect", "transfer-encoding")
"""Headers that each half of the way has for itself."""


@dataclass(frozen=True)
class Request:
    """path: with the query. headers: by their names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def operation(self) -> str:
        """Of a JSON protocol: Scan; else nothing."""
        return self.headers.get("x-amz-target", "").rpartition(".")[2]


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"Content-Type": "application/x-amz-json-1.0"}
    )


class Judge:
    """What a proxy asks of each request; this one lets all pass."""

    def before(self, request: Request) -> Answer | None:
        """The answer, without asking the server; None to pass the request on."""
        return None

    def after(self, request: Request, answer: Answer) -> Answer:
        """What the caller gets for the server's answer."""
        return answer


@dataclass
class Refusals(Judge):
    """Throttles, or knows a poison key: of DynamoDB. throttled: share of requests.

    poison: text of which no request may have any.
    """

    throttled: float = 0.0
    poison: str | None = None
    refused: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(5))
    _lock: Lock = field(default_factory=Lock)

    def before(self, request: Request) -> Answer | None:
        with self._lock:
            if request.operation in SPARED:
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
"""DynamoDB Local closes a connection that is idle for 30."""


def refusal(code: str, message: str, **more: object) -> Answer:
    """An error as DynamoDB writes it."""
    kind = f"com.amazonaws.dynamodb.v20120810#{code}"
    return Answer(400, json.dumps({"__type": kind, "message": message, **more}).encode())


@contextmanager
def proxy_before(target: str, judge: Judge) -> Iterator[str]:
    """A proxy on loopback, until the block ends; yields its address."""
    at = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self.upstream = http.client.HTTPConnection(at.hostname or "", at.port, timeout=1_000)
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
            answer = judge.before(request) or judge.after(request, self._asked(request))
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def _asked(self, request: Request) -> Answer:
            kept = {k: v for k, v in request.headers.items() if k not in OF_THE_CONNECTION}
            if time.monotonic() - self.asked_at > IDLE_SECONDS:
                self.upstream.close()  # it is opened again by the request
            self.asked_at = time.monotonic()
            self.upstream.request(request.method, request.path, request.body, kept)
            response = self.upstream.getresponse()
            body = response.read()
            headers = {k: v for k, v in response.getheaders() if k.lower() not in OF_THE_CONNECTION}
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
