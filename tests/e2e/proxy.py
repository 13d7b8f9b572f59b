"""A proxy before DynamoDB Local that refuses some requests: it throttles, or knows a poison key."""

import http.client
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import urlsplit

SPARED = ("DescribeTable",)


@dataclass
class Proxy:
    """throttled: share of requests. poison: text of which no request may have any."""

    target: str
    url: str = ""
    throttled: float = 0.0
    poison: str | None = None
    refused: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(5))
    _lock: Lock = field(default_factory=Lock)

    def verdict(self, operation: str, body: bytes) -> bytes | None:
        """The error to answer with, None to pass the request on."""
        with self._lock:
            if operation in SPARED:
                return None
            if self.poison is not None and self.poison.encode() in body:
                self.refused += 1
                return _error("ValidationException", "This key is poison")
            if self._chance.random() < self.throttled:
                self.refused += 1
                reason = {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:t"}
                return _error("ThrottlingException", "Slow down", throttlingReasons=[reason])
        return None


def _error(code: str, message: str, **more: object) -> bytes:
    kind = f"com.amazonaws.dynamodb.v20120810#{code}"
    return json.dumps({"__type": kind, "message": message, **more}).encode()


@contextmanager
def proxy_before(target: str) -> Iterator[Proxy]:
    """A proxy on loopback, until the block ends."""
    proxy = Proxy(target)
    at = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self.upstream = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)

        def finish(self) -> None:
            self.upstream.close()
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            refusal = proxy.verdict(operation, body)
            if refusal is not None:
                self._answer(400, refusal)
                return
            self.upstream.request("POST", self.path, body, dict(self.headers))
            response = self.upstream.getresponse()
            self._answer(response.status, response.read())

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
