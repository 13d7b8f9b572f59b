"""Requests on the wire: JSON, a signature and a socket, without boto3's machinery.

boto3's client validates, serialises, resolves, emits events and parses by shape; for the requests
that Keyhop sends in great number that is most of the CPU (bench/). Here the JSON is made and read
directly (`Client`), signed (`Signer`), and sent over connections of our own (`Connections`).
Credentials and their renewal, the endpoint and the trusted certificates are botocore's, as it is
configured. Where a proxy or an address with a path is configured, boto3's client is used. Errors
are botocore's.

boto3's client takes as long to make as Python takes to begin, so it is made when it is needed: for
an error, or for a request that is rare.
"""

import base64
import hmac
import json
import os
import re
import select
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from keyhop import __version__
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.values import from_json, with_bytes

USER_AGENT = f"keyhop/{__version__}"
VERSION = "DynamoDB_20120810"
SERVICE = "dynamodb"
SHORT_CALLS = {
    name: name.title().replace("_", "")
    for name in (
        *("scan", "query", "get_item", "batch_get_item", "put_item", "update_item", "delete_item"),
        *("batch_write_item", "transact_write_items", "describe_table"),
    )
}
"""The requests that Keyhop sends itself: boto3's names, and the names of the service."""

_BYTES = re.compile(rb'"BS?"\s*:')
"""An answer without this is the same in JSON and in boto3's form."""

_NESTED = {"BS", "L", "M"}
"""Types that may hold binary values."""

CONTENT_TYPE = "application/x-amz-json-1.0"
ALGORITHM = "AWS4-HMAC-SHA256"
CHUNK_BYTES = 1 << 16
MOST_HEAD_BYTES = 1 << 16
_HEADER = re.compile(r"\r\n([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection:[ \t]*close[ \t]*\r\n", re.IGNORECASE)


class Answer(NamedTuple):
    """An HTTP answer; `head` has its lines before the empty one."""

    status: int
    head: bytes
    content: bytes

    def headers(self) -> dict[str, str]:
        """Return the headers by their names in lower case."""
        pairs = _HEADER.findall(self.head.decode("latin-1"))
        return {name.lower(): value for name, value in pairs}


def _base64(value: Any) -> str:
    """Return a binary value in the form of the service's JSON."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} cannot be part of a request")


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_base64)


class Client:
    """A client for many threads, which sends requests about items itself and others by boto3."""

    def __init__(self, region: str, make: Callable[[], Any]) -> None:
        """Create a client; `make` makes boto3's client."""
        self.region = region
        self._make = make
        self._lock = Lock()
        self._made: Any = None
        self._connections: Connections | None = None

    def send_by(self, connections: "Connections | None", credentials: Any) -> None:
        """Send over these connections from now on; None sends everything by boto3's client."""
        self._connections = connections
        self._credentials = credentials
        if connections is not None:
            self._signer = Signer(connections.host, self.region, USER_AGENT)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Send one request, by boto3's name for it; return what boto3's client returns.

        A Scan's answer has no ResponseMetadata.
        """
        if operation not in SHORT_CALLS or self._connections is None:
            return dict(getattr(self._client, operation)(**parameters))
        name = SHORT_CALLS[operation]
        response = self._send(name, parameters)
        content = response.content
        try:
            answer = json.loads(content.decode())
            if operation == "scan":
                return _page(answer, content)
            if operation == "describe_table":
                answer = _with_times(answer)
            converted: dict[str, Any] = with_bytes(answer) if _BYTES.search(content) else answer
            converted["ResponseMetadata"] = _metadata(response)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise _not_whole(name) from error
        return converted

    @property
    def exceptions(self) -> Any:
        """Return the classes of errors, as boto3's client has them."""
        return self._client.exceptions

    @property
    def _client(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _send(self, operation: str, parameters: Mapping[str, Any]) -> Answer:
        assert self._connections is not None
        body = _ENCODER.encode(parameters).encode()
        credentials = self._credentials.get_frozen_credentials()
        head = self._signer.head(credentials, f"{VERSION}.{operation}", body, time.time())
        answer = self._connections.ask(head + body)
        if answer.status != 200:
            raise self._error(operation, answer)
        return answer

    def _error(self, operation: str, answer: Answer) -> ClientError:
        """Return the error of boto3's client, with further fields (ThrottlingReasons)."""
        try:
            body = dict(json.loads(answer.content))
        except (ValueError, TypeError):
            body = {}
        code = str(body.pop("__type", answer.status)).rsplit("#", 1)[-1]
        message = body.pop("message", None) or body.pop("Message", None) or ""
        response = {
            **with_bytes(body),
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": _metadata(answer),
        }
        if self._made is None and is_throttling(response):
            # At once, because other threads would continue too fast.
            return ClientError(response, operation)
        error: ClientError = self.exceptions.from_code(code)(response, operation)
        return error


def connections_to(
    url: str, ca_bundle: str | None, connect_timeout: float, read_timeout: float
) -> "Connections | None":
    """Return connections to an endpoint; None if they need what botocore alone can do."""
    parts = urlsplit(url)
    is_plain = parts.path in ("", "/") and not parts.query and "@" not in parts.netloc
    if not is_plain or get_environ_proxies(url).get(parts.scheme):
        return None
    trusted = ca_bundle or os.environ.get("REQUESTS_CA_BUNDLE") or get_cert_path(True)
    return Connections(url, trusted, connect_timeout, read_timeout)


def _not_whole(operation: str) -> HTTPClientError:
    """Return the error for an answer that something on the way cut short, or gave itself."""
    article = "a page of a" if operation == "Scan" else "that of a"
    return HTTPClientError(error=f"the answer is not {article} {operation}")


def _page(answer: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return a Scan's answer; raise LookupError and similar errors."""
    items = answer["Items"]
    if _BYTES.search(content):
        answer["Items"] = [_decoded(item) for item in items]
        if "LastEvaluatedKey" in answer:
            answer["LastEvaluatedKey"] = from_json(answer["LastEvaluatedKey"])
    return answer


def _decoded(item: dict[str, Any]) -> Mapping[str, Any]:
    """Return an item as boto3 does. Only binary values differ from those in the JSON."""
    types = {type_ for value in item.values() for type_ in value}
    if types & _NESTED:
        return dict(with_bytes(item))
    return from_json(item) if "B" in types else item


def _with_times(content: Any) -> Any:
    """Replace seconds by datetimes in the fields that contain times."""
    if isinstance(content, list):
        return [_with_times(member) for member in content]
    if not isinstance(content, dict):
        return content
    return {
        name: datetime.fromtimestamp(value, UTC)
        if name.endswith("DateTime") and isinstance(value, int | float)
        else _with_times(value)
        for name, value in content.items()
    }


def _metadata(answer: Answer) -> dict[str, Any]:
    headers = answer.headers()
    return {
        "RequestId": headers.get("x-amzn-requestid", ""),
        "HTTPStatusCode": answer.status,
        "HTTPHeaders": headers,
        "RetryAttempts": 0,
    }


HeadOf = Callable[[str, bytes], bytes]
"""Returns the head of a request of a certain second, from its target and its body."""


class Signer:
    """Signature version 4, for the one shape of request that is sent in great number.

    That is a POST to the root of an endpoint, with a JSON body and the headers below. Whatever is
    the same for all requests of a second is made once for that second, and the key that signs them
    once for a day. One signer serves many threads.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

    Args:
        host: The value of the Host header.
    """

    def __init__(self, host: str, region: str, user_agent: str) -> None:
        self._host = host
        self._region = region
        self._user_agent = user_agent
        self._second: tuple[int, Any, HeadOf] | None = None
        self._day: tuple[tuple[str, str], bytes] | None = None

    def head(self, credentials: Any, target: str, body: bytes, now: float) -> bytes:
        """Return the head of a request with this body.

        Args:
            credentials: Credentials, in the form in which botocore freezes them.
            target: The value of the header X-Amz-Target.
        """
        plain = (credentials.access_key, credentials.secret_key, credentials.token)
        second = self._second
        if second is None or second[:2] != (int(now), plain):
            # Replaced as a whole: another thread may be at the same.
            second = self._second = int(now), plain, self._head_of(*plain, int(now))
        return second[2](target, body)

    def _head_of(self, access_key: str, secret_key: str, token: str | None, now: int) -> HeadOf:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        scope = f"{stamp[:8]}/{self._region}/{SERVICE}/aws4_request"
        headers = {"content-type": CONTENT_TYPE, "host": self._host, "x-amz-date": stamp}
        if token:
            headers["x-amz-security-token"] = token
        signed = ";".join((*headers, "x-amz-target"))
        lines = "\n".join(f"{name}:{value}" for name, value in headers.items())
        # Names have no case, but some emulators and proxies know them only as botocore writes them.
        head = "\r\n".join(f"{name.title()}: {value}" for name, value in headers.items())
        head = f"POST / HTTP/1.1\r\n{head}\r\nUser-Agent: {self._user_agent}\r\nX-Amz-Target: "
        authorization = (
            f"\r\nAuthorization: {ALGORITHM} Credential={access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature="
        )
        canonical, end = f"POST\n/\n\n{lines}\nx-amz-target:", f"\n\n{signed}\n"
        to_sign = f"{ALGORITHM}\n{stamp}\n{scope}\n"
        key = self._key(secret_key, stamp[:8])

        def head_of(target: str, body: bytes) -> bytes:
            request = f"{canonical}{target}{end}{sha256(body).hexdigest()}"
            signed_text = to_sign + sha256(request.encode()).hexdigest()
            signature = hmac.digest(key, signed_text.encode(), "sha256").hex()
            length = f"\r\nContent-Length: {len(body)}\r\n\r\n"
            return f"{head}{target}{authorization}{signature}{length}".encode()

        return head_of

    def _key(self, secret: str, day: str) -> bytes:
        """Return the key of a day. It is remembered until another one is needed."""
        last = self._day
        if last is None or last[0] != (secret, day):
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            last = self._day = (secret, day), key
        return last[1]


class Connections:
    """HTTP to one endpoint: as many connections as are in use at once, which are kept, and as much
    of HTTP/1.1 as an answer needs; for many threads.

    Args:
        url: The scheme (http or https), the host and the port.
        ca_bundle: A file of certificates to trust; None for those of the system.
        connect_timeout, read_timeout: In seconds.
    """

    def __init__(
        self,
        url: str,
        ca_bundle: str | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 30.0,
    ) -> None:
        parts = urlsplit(url)
        self.url = url
        self.is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self.is_secure else 80)
        self.ca_bundle = ca_bundle
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._idle: list[socket.socket] = []
        self._process = os.getpid()
        self._context: ssl.SSLContext | None = None
        self._lock = Lock()

    @property
    def host(self) -> str:
        """Return the value of the Host header. It has no port that is the default of the scheme."""
        name = f"[{self._host}]" if ":" in self._host else self._host
        return name if self._port == (443 if self.is_secure else 80) else f"{name}:{self._port}"

    def ask(self, request: bytes) -> Answer:
        """Send a request and read the answer.

        Raises botocore's EndpointConnectionError, ConnectTimeoutError or SSLError if nothing was
        sent; ReadTimeoutError, ConnectionClosedError or HTTPClientError if it may have been served.
        """
        connection = self._kept() or self._connect()
        is_kept = False
        try:
            connection.sendall(request)
            answer, is_kept = _read(connection)
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self.url, error=error) from error
        except OSError as error:
            raise ConnectionClosedError(endpoint_url=self.url, error=error) from error
        except ValueError as error:
            raise HTTPClientError(error=error) from error
        finally:
            if is_kept:
                self._idle.append(connection)
            else:
                connection.close()
        return answer

    def _kept(self) -> socket.socket | None:
        """Return the last used connection that the other side has not closed since."""
        if self._process != os.getpid():  # after a fork they are the parent's
            self._idle, self._process = [], os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                return None
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()
        return None

    def _connect(self) -> socket.socket:
        try:
            plain = socket.create_connection((self._host, self._port), self._connect_timeout)
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self.url, error=error) from error
        except (OSError, UnicodeError) as error:
            raise EndpointConnectionError(endpoint_url=self.url, error=error) from error
        connection = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.is_secure:
                connection = self._trust().wrap_socket(plain, server_hostname=self._host)
            connection.settimeout(self._read_timeout)
        except TimeoutError as error:
            plain.close()
            raise ConnectTimeoutError(endpoint_url=self.url, error=error) from error
        except ssl.SSLError as error:
            plain.close()
            raise SSLError(endpoint_url=self.url, error=error) from error
        except OSError as error:
            plain.close()
            raise EndpointConnectionError(endpoint_url=self.url, error=error) from error
        return connection

    def _trust(self) -> ssl.SSLContext:
        """Return one context for all: to read the certificates costs the time of 100 requests."""
        with self._lock:
            if self._context is None:
                try:
                    self._context = ssl.create_default_context(cafile=self.ca_bundle)
                except OSError as error:
                    raise ssl.SSLError(f"{self.ca_bundle}: {error}") from error
            return self._context


def _read(connection: socket.socket) -> tuple[Answer, bool]:
    """Read an answer; return it with whether the connection can be used again.

    Raise OSError if the connection is broken, and ValueError if the bytes are not HTTP.
    """
    data = connection.recv(CHUNK_BYTES)
    while (end := data.find(b"\r\n\r\n")) < 0:
        if len(data) > MOST_HEAD_BYTES:
            raise ValueError("an answer with an endless head")
        data += _more(connection)
    head = data[: end + 2]
    if not head.startswith(b"HTTP/1."):
        raise ValueError("the answer is not HTTP/1.1")
    status = int(head[9:12])
    length = _LENGTH.search(head)
    if length is None:
        if not _CHUNKED.search(head):
            raise ValueError("the answer does not say how long it is")
        return Answer(status, head, _chunks(connection, data[end + 4 :])), False
    total_length = end + 4 + int(length[1])
    content = data[end + 4 : total_length]
    if len(data) < total_length:
        content += _exactly(connection, total_length - len(data))
    is_kept = (
        len(data) <= total_length and head.startswith(b"HTTP/1.1") and not _CLOSES.search(head)
    )
    return Answer(status, head, content), is_kept


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(CHUNK_BYTES)
    if not data:
        raise ConnectionResetError("closed in the middle of an answer")
    return data


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray(length)
    remaining = memoryview(content)
    while remaining:
        count = connection.recv_into(remaining)
        if not count:
            raise ConnectionResetError("closed in the middle of an answer")
        remaining = remaining[count:]
    return bytes(content)


def _chunks(connection: socket.socket, data: bytes) -> bytes:
    """Return a chunked body, as proxies and some emulators send it, up to the last chunk."""
    content = b""
    while True:
        while (end := data.find(b"\r\n")) < 0:
            data += _more(connection)
        size = int(data[:end].partition(b";")[0], 16)
        if size == 0:
            return content
        while len(data) < end + size + 4:
            data += _more(connection)
        content += data[end + 2 : end + 2 + size]
        data = data[end + size + 4 :]
